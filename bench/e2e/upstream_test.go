package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"strikecache/bench/need"
	"strikecache/compute"
	"strikecache/refresh"
	"strikecache/refresh/cboe"
	"strikecache/refresh/simulated"
	"strikecache/refresh/upstream"
	"strikecache/server"
	"strikecache/snapshots"
)

// fakeUpstream is an upstream on loopback that can go away and come back.
type fakeUpstream struct {
	*faultyServer
	t       *testing.T
	address string
	http    *http.Server
}

func startUpstream(t *testing.T, s *faultyServer) *fakeUpstream {
	u := &fakeUpstream{faultyServer: s, t: t, address: "127.0.0.1:0"}
	u.open()
	t.Cleanup(func() { u.http.Close() })
	return u
}

// open listens, on the same port as before.
func (u *fakeUpstream) open() {
	u.t.Helper()
	listener, err := net.Listen("tcp", u.address)
	if err != nil {
		u.t.Fatal(err)
	}
	u.address = listener.Addr().String()
	u.http = &http.Server{Handler: u.faultyServer, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	go u.http.Serve(listener)
}

func (u *fakeUpstream) base() string       { return "http://" + u.address + servedBase }
func (u *fakeUpstream) settlement() string { return "http://" + u.address + servedSettlement }

const (
	spxDocument = upstream.Name("options/_SPX.json")
	quotesDir   = upstream.Name("quotes/")
	gammaPath   = "/api/v1/gex/spx"
	painPath    = "/api/public/spx-max-pain"
	sectorsPath = "/api/v1/sectors/rotation"
	vixPath     = "/api/public/vix-term-structure"
)

// ordeal is what one run of the binary suffers: a fault of the SPX chain, and one of the quotes.
type ordeal struct {
	chain       fault
	chainReason upstream.Reason
	quote       fault
	quoteReason upstream.Reason
}

// ordeals begin with that of the short form.
var ordeals = []ordeal{
	{faultShrink, upstream.Shrunk, faultReset, upstream.Truncated},
	{faultBackwardClock, upstream.Backwards, faultRedirectLoop, upstream.Redirects},
	{faultEmptyOptions, upstream.Empty, faultHTMLPage, upstream.HTML},
	{faultStall, upstream.TimedOut, faultTruncatedGzip, upstream.Truncated},
	{faultForbidden, upstream.Refused, faultGarbagePrice, upstream.Empty},
	{faultHugeBody, upstream.TooLarge, faultRefuse, upstream.Unreachable}, // a connection that breaks
	{faultThrottle, upstream.Throttled, noFault, ""},
	{noFault, upstream.Unreachable, noFault, upstream.Unreachable}, // nobody listens
}

// The binary starts with good documents, and again with an upstream that fails: it serves what it had, says that it is
// stale and why, and recovers by itself. A start rather than a fault in flight, because outside the hours of the exchange
// chains are asked for every 5 minutes alone.
func TestFaultUpstreamThroughHTTP(t *testing.T) {
	cal := compute.NewCalendar(nil, nil)
	market := simulated.New(simulated.Config{Seed: 7, Now: time.Now, Calendar: cal})
	u := startUpstream(t, newFaultyServer(market, cal, 2*time.Second))
	files := startUpstream(t, u.faultyServer)
	args := []string{
		"--data-dir", t.TempDir(), "--source", "cboe", "--cboe-base-url", u.base(), "--cboe-settlement-url", files.settlement(),
		"--cboe-requests-per-minute", "6000", "--cboe-timeout", "10s",
		"--gex-every", "5s", "--quotes-every", "5s", "--flow-every", "5s", "--flow-symbols", "XLF",
	}
	p := serve(t, args...)
	p.ready()
	p.stop(syscall.SIGTERM)
	runs := ordeals
	if !need.Full() {
		runs = runs[:1]
	}
	faults, peak := 0, 0
	for _, o := range runs {
		name := fmt.Sprintf("%s and %s", o.chainReason, o.quoteReason)
		t.Run(name, func(t *testing.T) {
			hit, memory := endure(t, u, o, args)
			faults, peak = faults+hit, max(peak, memory)
		})
	}
	need.Figure(t, "%d requests of the binary failed in %d starts, peak resident memory %d MiB", faults, len(runs), peak>>20)
}

// endure starts the binary with an upstream that fails, and mends that. It returns the requests that failed, and the peak of
// the binary's memory where the system tells.
func endure(t *testing.T, u *fakeUpstream, o ordeal, args []string) (hit, memory int) {
	seen := len(u.Requests(0))
	u.Fail(spxDocument, o.chain)
	u.Fail(quotesDir, o.quote)
	nobody := o.chain == noFault
	if nobody {
		u.http.Close()
	}
	p := serve(t, args...)
	want := map[string]upstream.Reason{gammaPath: o.chainReason, painPath: o.chainReason, sectorsPath: o.quoteReason}
	before := map[string]json.RawMessage{}
	for path := range want {
		before[path] = p.envelope(path).Data
	}
	for path, reason := range want {
		if reason == "" {
			continue
		}
		p.until(path+" is stale", func() bool { return p.freshness(path).State == "stale" })
		if f := p.freshness(path); f.Reason == nil || *f.Reason != string(reason) {
			t.Errorf("%s: %+v, want the reason %s", path, f, reason)
		}
		if now := p.envelope(path).Data; !bytes.Equal(now, before[path]) {
			t.Errorf("%s: the data changed:\n%.200s\n%.200s", path, before[path], now)
		}
	}
	if f := p.freshness(vixPath); f.State == "stale" {
		t.Errorf("another feed is %+v", f)
	}
	hit, memory = injected(t, u, o, seen), int(statusBytes(p.cmd.Process.Pid, "VmHWM")+statusBytes(p.refresher(), "VmHWM"))
	if memory > 512<<20 {
		t.Errorf("peak resident memory %d MiB", memory>>20)
	}
	if nobody {
		hit = len(regexp.MustCompile("connection refused").FindAllString(p.logged(), -1))
		u.open()
	}
	if hit < 3 {
		t.Fatalf("the fault was injected %d times\n%s", hit, p.logged())
	}
	u.Fail(spxDocument, noFault)
	u.Fail(quotesDir, noFault)
	for path := range want {
		p.until(path+" recovers", func() bool { return p.freshness(path).State != "stale" })
	}
	if err := p.stop(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	return hit, memory
}

// injected counts the requests that were failed, and checks what was taken of huge bodies.
func injected(t *testing.T, u *fakeUpstream, o ordeal, seen int) (hit int) {
	t.Helper()
	chains, quotes := 0, 0
	for _, r := range u.Requests(seen) {
		switch {
		case r.Fault == noFault:
		case r.Name == spxDocument:
			chains++
			if bound := int64(80 << 20); o.chain == faultHugeBody && r.Sent > bound { // 64 MiB and the sockets' buffers
				t.Errorf("the binary took %d bytes of a gigabyte, bound %d", r.Sent, bound)
			}
		default:
			quotes++
		}
	}
	if o.chain != noFault && chains < 3 || o.quote != noFault && quotes < 3 {
		t.Errorf("%d requests for the chain failed, %d for quotes", chains, quotes)
	}
	return chains + quotes
}

// freshness is what an answer says of its own.
type freshness struct {
	State  string
	Reason *string
}

func (p *process) freshness(path string) freshness {
	p.t.Helper()
	_, body := p.get(path)
	return freshnessOf(p.t, body)
}

func freshnessOf(t *testing.T, body []byte) freshness {
	t.Helper()
	var e struct {
		Meta struct{ Freshness freshness }
	}
	if err := json.Unmarshal(body, &e); err != nil {
		t.Fatalf("%v: %.200s", err, body)
	}
	return e.Meta.Freshness
}

// The file of the session before is a failure from 11:00 New York on, on the day after the one that it lacks: the machine's
// clock would have to be there. So refresher and server run in this process, by a clock of their own, which runs 60 times
// as fast.
func TestFaultUpstreamOlderSettlement(t *testing.T) {
	cal := compute.NewCalendar(nil, nil)
	log := slog.New(slog.DiscardHandler)
	store, err := snapshots.Open(snapshots.Options{
		Dir: t.TempDir(), Source: "cboe", Feeds: refresh.Feeds(), HistoricalProduct: refresh.GammaResource, HistoryBytes: 1 << 20, Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	// compose returns a refresher whose clock starts at a time, and its upstream.
	compose := func(start time.Time) (*refresh.Refresher, *fakeUpstream, refresh.Clock) {
		clock := refresh.NewClock(start, 60)
		u := startUpstream(t, newFaultyServer(simulated.New(simulated.Config{Seed: 7, Now: clock.Now, Calendar: cal}), cal, time.Second))
		client, err := cboe.NewClient(cboe.ClientConfig{BaseURL: u.base(), SettlementURL: u.settlement(), PerMinute: 6000})
		if err != nil {
			t.Fatal(err)
		}
		return refresh.New(refresh.Config{
			Source: client, SourceName: "cboe", Store: store, Clock: clock, Calendar: cal, RiskFreeRate: 0.04,
			ChainEvery: time.Hour, QuotesEvery: time.Hour, FlowEvery: time.Hour, Log: log,
		}), u, clock
	}
	// The file of Friday, November 20, comes out at 18:30.
	r, _, _ := compose(compute.NewDate(2026, 11, 20).At(17, 0, 0, compute.NewYork))
	if err := r.RefreshOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, u, clock := compose(compute.NewDate(2026, 11, 23).At(11, 1, 0, compute.NewYork))
	if err := r.Restore(); err != nil {
		t.Fatal(err)
	}
	friday := upstream.Settlement("2026-11-20")
	u.Fail(friday, faultStaleSettlement)
	listener, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := server.New(server.Config{
		Finder: store, Source: "cboe", Now: clock.Now, Log: log, Readiness: func() server.Readiness { return server.Readiness{} },
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	running.Go(func() { web.Serve(listener) })
	defer func() {
		cancel()
		if err := web.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		running.Wait()
	}()
	get := func() []byte {
		resp, err := http.Get("http://" + listener.Addr().String() + vixPath)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	until := func(what string, holds func(body []byte) bool) []byte {
		var body []byte
		need.Until(t, what, func() bool { body = get(); return holds(body) }, func() string { return fmt.Sprintf("%.500s", body) })
		return body
	}
	thursday, monday := []byte(`"settlement_date":"2026-11-19"`), []byte(`"settlement_date":"2026-11-20"`)
	body := until("stale for an older file", func(body []byte) bool {
		f := freshnessOf(t, body)
		return f.State == "stale" && f.Reason != nil && *f.Reason == string(upstream.Older)
	})
	if !bytes.Contains(body, thursday) {
		t.Errorf("the last good answer is gone: %.300s", body)
	}
	hit := 0
	for _, r := range u.Requests(0) {
		if r.Name == friday && r.Fault == faultStaleSettlement {
			hit++
		}
	}
	if hit < 3 {
		t.Fatalf("the fault was injected %d times", hit)
	}
	u.Fail(friday, noFault)
	until("recovered", func(body []byte) bool { return freshnessOf(t, body).State != "stale" && bytes.Contains(body, monday) })
	need.Figure(t, "an older day's settlement file came %d times", hit)
}
