package e2e

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"strikecache/compute"
	"strikecache/refresh"
	"strikecache/refresh/cboe"
	"strikecache/refresh/simulated"
	"strikecache/server"
	"strikecache/snapshots"
)

// The time from the instant at which a fetch of the SPX chain is due to the first new bytes over HTTP. The upstream, on
// loopback, has a new chain before each fetch, as gzip, and answers at once. So this is the time that the project itself
// adds: fetch, decode, compute, seal, write to the disk, publish and answer. It runs in this process, and not in the binary,
// because the schedule of a live market has a fetch every few seconds only while the exchange is open. Here the clock of the
// market is 11:00 in New York and runs 15 times as fast, so that a fetch is due every second.
func TestDocumentToBytes(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(40)) // as the binary does
	const every, speed = 15 * time.Second, 15
	cal := compute.NewCalendar(nil, nil)
	start := time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC)
	clock := refresh.NewClock(start, speed)
	market := simulated.New(simulated.Config{Seed: 7, Now: clock.Now, Calendar: cal})
	chains := simulated.New(simulated.Config{Seed: 7, Calendar: cal, Gzip: true}) // documents are gzip already
	chain := &preparedChain{other: &fakeUpstream{market: market}}
	upstream := httptest.NewServer(chain)
	defer upstream.Close()
	chain.document.Store(chainAt(t, chains, start))
	dir := t.TempDir()
	address := serveInProcess(t, dir, refresh.Config{
		SourceName: "cboe", Clock: clock, Calendar: cal, RiskFreeRate: 0.04,
		ChainEvery: every, QuotesEvery: time.Hour, FlowEvery: time.Hour, FlowSymbols: []string{"XLF"},
	}, cboe.ClientConfig{BaseURL: upstream.URL + quotesBase, SettlementURL: upstream.URL + settlementBase, PerMinute: 6000})

	c, err := dial(address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tag := ""
	changed := func() bool {
		c.write(t, "GET "+gammaPath+" HTTP/1.1\r\nHost: a\r\nAccept-Encoding: br\r\nIf-None-Match: "+tag+"\r\n\r\n")
		resp, _, err := c.receive("GET")
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode == http.StatusOK {
			tag = resp.Header.Get("ETag")
		}
		return resp.StatusCode == http.StatusOK
	}
	until(t, "the first chain is served", changed)
	var delays []time.Duration
	samples := 5
	if full() {
		samples = 100 // the connection has a deadline of 5 minutes
	}
	for len(delays) < samples {
		next := clock.Now().Truncate(every).Add(2 * every) // leaves more than a second to make the document
		due, doc := clock.Wall(next), chainAt(t, chains, next)
		if time.Until(due) < 50*time.Millisecond {
			continue // the machine is slow
		}
		time.Sleep(time.Until(due) - 30*time.Millisecond) // the fetch that was due a second ago has ended
		changed()                                         // a new freshness also changes the tag
		chain.document.Store(doc)
		time.Sleep(time.Until(due))
		for !changed() { // [until] waits up to 50 ms between two looks
			if time.Sleep(2 * time.Millisecond); time.Since(due) > patience {
				t.Fatalf("the chain that was due is not served within %s", patience)
			}
		}
		delays = append(delays, time.Since(due))
	}
	if stored, err := filepath.Glob(filepath.Join(dir, "cboe", "objects", "*.gz")); err != nil || !slices.ContainsFunc(stored, func(path string) bool {
		file, err := os.ReadFile(path)
		return err == nil && bytes.Equal(file, chain.document.Load().body)
	}) {
		t.Errorf("the store does not have what the upstream sent last: %q, %v", stored, err)
	}
	slices.Sort(delays)
	n := len(delays)
	figure(t, "document to bytes, %d scheduled fetches of a chain: p50 %s, p99 %s after the fetch was due", n,
		delays[n/2].Round(time.Millisecond), delays[(n*99+99)/100-1].Round(time.Millisecond))
}

// preparedChain is an upstream whose SPX chain is the stored document. It has every other document, too.
type preparedChain struct {
	other    http.Handler
	document atomic.Pointer[preparedDocument]
}

type preparedDocument struct {
	etag, modified string
	body           []byte // gzip
}

const chainPath = quotesBase + "/options/_SPX.json"

// chainAt returns the chain that the market has at an instant.
func chainAt(t *testing.T, market *simulated.Market, at time.Time) *preparedDocument {
	doc, err := market.At("options/_SPX.json", at)
	if err != nil {
		t.Fatal(err)
	}
	return &preparedDocument{doc.ETag, doc.LastModified, doc.Gzip}
}

// ServeHTTP implements [http.Handler].
func (p *preparedChain) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	doc := p.document.Load()
	if r.URL.Path != chainPath {
		p.other.ServeHTTP(w, r)
		return
	}
	w.Header().Set("ETag", doc.etag)
	w.Header().Set("Last-Modified", doc.modified)
	if r.Header.Get("If-None-Match") == doc.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.WriteHeader(http.StatusNotAcceptable)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.Write(doc.body)
}

// serveInProcess refreshes and serves until the test ends, on a data directory, and returns the address of the server.
func serveInProcess(t *testing.T, dir string, cfg refresh.Config, from cboe.ClientConfig) (address string) {
	client, err := cboe.NewClient(from)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	store, err := snapshots.Open(snapshots.Options{Dir: dir, Source: cfg.SourceName, DatedProducts: refresh.DatedResources(), HistoryBytes: 64 << 20, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Source, cfg.Store, cfg.Log = client, store, log
	refresher := refresh.New(cfg)
	listener, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := server.New(server.Config{Finder: store, Source: cfg.SourceName, Now: refresher.Now, Log: log,
		Readiness: func() server.Readiness { return server.Readiness{} }})
	stop := refresher.Start(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(listener) }()
	t.Cleanup(func() {
		if err := web.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		<-ended
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}
