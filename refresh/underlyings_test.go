package refresh_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/refresh"
	"strikecache/refresh/cboe"
	"strikecache/refresh/product"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// Every underlying has every product. The answers of SPX are the same without other underlyings. The verifier of bench/e2e compares the
// table of underlyings with their answers.
func TestEveryUnderlyingHasEveryProduct(t *testing.T) {
	long(t)
	synctest.Test(t, func(t *testing.T) {
		all := []string{"SPX", "NDX", "SPY", "AAPL"}
		r := newRig(t, t.TempDir(), "2026-11-20 11:00", func(c *refresh.Config) { c.Underlyings = all })
		alone := newRig(t, t.TempDir(), "2026-11-20 11:00", func(c *refresh.Config) { c.Underlyings = one })
		offers := func(want bool) {
			t.Helper()
			if offered := r.Offers(); len(offered) != len(refresh.Resources(all)) || slices.Contains(slices.Collect(maps.Values(offered)), !want) {
				t.Errorf("not all are %v: %v", want, offered)
			}
		}
		offers(false)
		for range 2 {
			r.once()
			alone.once()
			offers(true)
			for _, name := range refresh.Resources(one) {
				if name == product.FlowResource || name == product.UnderlyingsResource {
					continue // they rest on all chains
				}
				a, b := alone.store.Current(name), r.store.Current(name)
				if !bytes.Equal(a.Default.Body(snapshots.Identity), b.Default.Body(snapshots.Identity)) || len(a.Variants) != len(b.Variants) {
					t.Errorf("%s differs beside other underlyings", name)
				}
			}
			time.Sleep(2 * time.Minute)
		}
		identical(t, r.dir, "2026-11-20", slices.DeleteFunc(refresh.Resources(all), ofSettlements)...)
	})
}

// serveOne answers the one request of a connection in memory. While all goroutines wait for such connections, the clock of a bubble advances.
func serveOne(conn net.Conn, handler http.Handler) {
	defer conn.Close()
	if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		w.Result().Write(conn)
	}
}

// servedMarket serves the documents of a market as the real upstream does. It says at which instants it was asked.
func servedMarket(market *faultyMarket) (handler http.HandlerFunc, asked func() []time.Time) {
	var mu sync.Mutex
	var all []time.Time
	return func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			all = append(all, time.Now())
			mu.Unlock()
			name := upstream.Name(strings.TrimPrefix(r.URL.Path, "/quotes/"))
			if date := r.URL.Query().Get("dt"); date != "" {
				name = upstream.Settlement(date)
			}
			doc, err := market.Fetch(r.Context(), name, &upstream.Document{ETag: r.Header.Get("If-None-Match")})
			if err != nil {
				w.WriteHeader(map[bool]int{true: http.StatusNotModified, false: http.StatusForbidden}[errors.Is(err, upstream.ErrNotModified)])
				return
			}
			h := w.Header()
			h.Set("ETag", doc.ETag)
			h.Set("Last-Modified", doc.LastModified)
			h.Set("Content-Encoding", "gzip")
			if doc.FileDate != "" {
				h.Set("Content-Disposition", "attachment; filename=FuturesSettlements_"+doc.FileDate+".csv")
			}
			w.Write(doc.Gzip)
		}, func() []time.Time {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(all)
		}
}

// With the real client and the default underlyings, the upstream gets at most 20 requests in a minute, and no chain is more than five
// minutes older than the upstream's newest.
func TestFaultDefaultUnderlyings(t *testing.T) {
	long(t)
	length := 6 * time.Minute // more than a round
	if full() {
		length = 2 * time.Hour
	}
	synctest.Test(t, func(t *testing.T) {
		var asked func() []time.Time
		r := newRig(t, t.TempDir(), "2026-11-20 11:00", func(c *refresh.Config) {
			var handler http.Handler
			handler, asked = servedMarket(c.Source.Source.(*faultyMarket))
			client, err := cboe.NewClient("http://127.0.0.1:1/quotes", 20, func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				go serveOne(theirs, handler)
				return ours, nil
			})
			must(t, err)
			c.Source.Source, c.ChainEvery, c.TurnEvery, c.Underlyings = client, time.Minute, 20*time.Second, refresh.DefaultUnderlyings
		})
		defer r.begin()()
		until := func(what string, limit time.Duration, holds func() bool) {
			t.Helper()
			for start := time.Now(); !holds(); time.Sleep(time.Second) {
				if synctest.Wait(); time.Since(start) > limit {
					t.Fatalf("%s: not within %v", what, limit)
				}
			}
		}
		until("every resource has an answer", 10*time.Minute, func() bool {
			return !slices.ContainsFunc(refresh.Resources(refresh.DefaultUnderlyings), func(name string) bool { return r.store.Current(name) == nil })
		})
		if r.meta(product.VIXResource).CapturedAt == nil {
			t.Error("the settlement file has lost its Last-Modified")
		}
		if m := r.meta(product.SectorsResource); m.ComputedAt.Before(*m.CapturedAt) { // a round of quotes takes a minute
			t.Errorf("computed at %s of a quote that was made at %s", m.ComputedAt, m.CapturedAt)
		}
		until("a round later", 15*time.Minute, func() bool { return time.Since(asked()[0]) > 10*time.Minute })
		begin, oldest := time.Now(), map[string]time.Duration{}
		until("the end", length+time.Minute, func() bool {
			for _, u := range refresh.DefaultUnderlyings {
				age := r.clock.Now().Sub(*r.meta("gex/" + strings.ToLower(u)).CapturedAt)
				if oldest[u] = max(oldest[u], age); age > 6*time.Minute { // the upstream makes a document a minute
					t.Fatalf("the chain of %s is %s old", u, age)
				}
			}
			return time.Since(begin) > length
		})
		most, requests := 0, asked()
		for i, at := range requests {
			within := slices.IndexFunc(requests[i:], func(later time.Time) bool { return later.Sub(at) >= time.Minute })
			if within < 0 {
				within = len(requests) - i
			}
			most = max(most, within)
		}
		if most > 20 {
			t.Errorf("%d requests in a minute", most)
		}
		t.Logf("figure: in %s at most %d requests a minute; oldest documents %v", length, most, oldest)
	})
}
