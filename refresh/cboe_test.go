package refresh_test

import (
	"compress/gzip"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"strikecache/refresh"
	"strikecache/refresh/cboe"
	"strikecache/refresh/simulated"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// cdn serves the documents of a market as the real upstream does: redirected and compressed, with the date of a settlement
// file in Content-Disposition. It answers 403 to an unknown name and to the first request for each quote.
type cdn struct {
	market *simulated.Market
	mu     sync.Mutex
	asked  map[upstream.Name]int
}

func (c *cdn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := upstream.Name(strings.TrimPrefix(r.URL.Path, "/moved/"))
	if date := r.URL.Query().Get("dt"); date != "" {
		name = upstream.Settlement(date)
	} else if !strings.HasPrefix(r.URL.Path, "/moved/") {
		http.Redirect(w, r, "/moved"+r.URL.Path, http.StatusTemporaryRedirect)
		return
	}
	c.mu.Lock()
	c.asked[name]++
	first := c.asked[name] == 1
	c.mu.Unlock()
	kind, _ := name.Split()
	doc, err := c.market.Fetch(r.Context(), name, nil)
	if err != nil || first && kind == upstream.QuotesKind {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Set("ETag", doc.ETag)
	w.Header().Set("Last-Modified", doc.LastModified)
	if doc.FileDate != "" {
		w.Header().Set("Content-Disposition", "attachment; filename=FuturesSettlements_"+doc.FileDate+".csv")
	}
	z := gzip.NewWriter(w)
	z.Write(doc.Body)
	z.Close()
}

// With the real client and a server that behaves like the real upstream, every resource is answered, and the server gets
// the expected number of requests.
func TestCboeSourceEndToEnd(t *testing.T) {
	clock := refresh.NewClock(ny(t, "2026-11-20 11:00"), 0)
	server := &cdn{simulated.New(simulated.Config{Seed: 7, Now: clock.Now, Calendar: calendar}), sync.Mutex{}, map[upstream.Name]int{}}
	srv := httptest.NewServer(server)
	defer srv.Close()
	client, err := cboe.NewClient(cboe.ClientConfig{
		BaseURL: srv.URL, SettlementURL: srv.URL + "/settlement", PerMinute: 6_000_000, Backoff: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	store, err := snapshots.Open(snapshots.Options{
		Dir: t.TempDir(), Source: "cboe", DatedProducts: refresh.DatedResources(), HistoryBytes: 1 << 20,
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	r := refresh.New(refresh.Config{
		Source: client, SourceName: "cboe", Store: store, Clock: clock, Calendar: calendar, RiskFreeRate: rate, ChainEvery: time.Minute,
		QuotesEvery: time.Minute, FlowEvery: time.Minute, FlowSymbols: []string{"XLF", "NOPE"}, Log: slog.New(slog.DiscardHandler),
	})
	if err := r.RefreshOnce(t.Context()); err == nil || !strings.Contains(err.Error(), "options/NOPE.json: upstream_refused") {
		t.Errorf("a symbol that the upstream refuses: %v", err)
	}
	for _, name := range allResources {
		e := store.Current(name)
		if e == nil {
			t.Errorf("%s has no answer", name)
			continue
		}
		if m := e.Default.Meta; m.Source != "cboe" || m.Freshness.State != "fresh" {
			t.Errorf("%s: %+v", name, m)
		}
	}
	if vix := store.Current(refresh.VIXResource).Default.Meta; vix.CapturedAt == nil || vix.SessionDate != "2026-11-19" {
		t.Errorf("settlements: %+v", vix)
	}
	for name, n := range server.asked {
		kind, _ := name.Split()
		if want := map[bool]int{true: 2, false: 1}[kind == upstream.QuotesKind]; n != want && name != upstream.Options("NOPE") {
			t.Errorf("%s was asked for %d times, want %d", name, n, want)
		}
	}
	if n := server.asked[upstream.Options("NOPE")]; n != 3 {
		t.Errorf("the unknown symbol was asked for %d times, want 3", n)
	}
}
