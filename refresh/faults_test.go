package refresh_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/refresh"
	"strikecache/refresh/cboe"
	"strikecache/refresh/product"
	"strikecache/refresh/upstream"
)

// network is a network in memory. While all goroutines wait for it, the clock of a bubble advances.
type network struct {
	mu      sync.Mutex
	conns   map[net.Conn]bool
	accept  chan net.Conn
	closed  chan struct{}
	dialed  []time.Time // when connections were asked for
	refuses string      // the host whose connections are refused
	refused int
}

func newNetwork() *network {
	return &network{conns: map[net.Conn]bool{}, accept: make(chan net.Conn), closed: make(chan struct{})}
}

func (n *network) dial(ctx context.Context, _, host string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dialed = append(n.dialed, time.Now())
	if host == n.refuses {
		n.refused++
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	ours, theirs := net.Pipe()
	n.conns[ours], n.conns[theirs] = true, true
	select {
	case n.accept <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// refuse refuses connections to a host, and cuts the open ones.
func (n *network) refuse(host string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refuses, n.refused = host, 0
	n.cut()
}

// cut closes all connections. n.mu is held.
func (n *network) cut() {
	for c := range n.conns {
		c.Close()
	}
	clear(n.conns)
}

func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.accept:
		return c, nil
	case <-n.closed:
		return nil, io.EOF
	}
}

func (n *network) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.closed)
	n.cut()
	return nil
}

func (n *network) Addr() net.Addr { return &net.TCPAddr{} }

// The hosts of the upstream, and the client's limits, which are the defaults.
const (
	cdnHost    = "127.0.0.1:1"
	filesHost  = "127.0.0.2:1"
	spacing    = 3 * time.Second
	patience   = 30 * time.Second
	retryAfter = 50 * time.Second
)

// faultRig is a refresher with the real client in front of an upstream that fails, in a bubble.
type faultRig struct {
	*rig
	net    *network
	server *faultyServer
	seen   int // how many requests [faultRig.requests] has returned
	stop   func()
}

// newFaultRig starts everything at a time of New York, with what is stored in dir and what prepare sets, and waits
// until every resource has an answer.
func newFaultRig(t *testing.T, dir, start string, prepare func(*refresh.Config, *faultyServer)) *faultRig {
	t.Helper()
	f := &faultRig{net: newNetwork()}
	f.rig = newRig(t, dir, start, func(c *refresh.Config) {
		f.server = newFaultyServer(c.Source.(*faultyMarket), retryAfter)
		client, err := cboe.NewClient(cboe.ClientConfig{
			BaseURL: "http://" + cdnHost + servedBase, SettlementURL: "http://" + filesHost + servedSettlement, Dial: f.net.dial,
		})
		must(t, err)
		c.Source, c.ChainEvery, c.TurnEvery = client, time.Minute, time.Minute
		prepare(c, f.server)
	})
	must(t, f.Restore())
	srv := &http.Server{Handler: f.server, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	var running sync.WaitGroup
	running.Go(func() { srv.Serve(f.net) })
	ctx, cancel := context.WithCancel(t.Context())
	running.Go(func() { f.Run(ctx) })
	f.stop = func() {
		cancel()
		srv.Close()
		running.Wait()
		f.close()
	}
	f.until(t, "every resource is answered", 5*time.Minute, func() bool {
		for _, name := range allResources {
			if f.store.Current(name) == nil {
				return false
			}
		}
		return true
	})
	if f.meta(product.VIXResource).CapturedAt == nil {
		t.Error("the settlement file has lost its Last-Modified")
	}
	if m := f.meta(product.SectorsResource); m.ComputedAt.Before(*m.CapturedAt) { // a round of quotes takes a minute
		t.Errorf("computed at %s of a quote that was made at %s", m.ComputedAt, m.CapturedAt)
	}
	return f
}

// until polls every second of the bubble's clock.
func (f *faultRig) until(t *testing.T, what string, limit time.Duration, holds func() bool) {
	t.Helper()
	for start := time.Now(); ; time.Sleep(time.Second) {
		synctest.Wait()
		if holds() {
			return
		}
		if time.Since(start) > limit {
			t.Fatalf("%s: not within %v", what, limit)
		}
	}
}

func (f *faultRig) freshness(resource string) (state, reason string) {
	m := f.meta(resource).Freshness
	if m.Reason != nil {
		reason = *m.Reason
	}
	return m.State, reason
}

// requests returns the requests to the upstream since the last call.
func (f *faultRig) requests() []seenRequest {
	got := f.server.Requests(f.seen)
	f.seen += len(got)
	return got
}

// faultCase is a fault, the documents that it hits, and the resources that become stale.
type faultCase struct {
	name   string
	fault  fault
	hits   upstream.Name
	reason upstream.Reason
	stale  []string
}

var (
	onChain  = []string{product.GammaResource, product.PainResource, product.SeriesResource, product.FlowResource}
	onFlow   = []string{product.FlowResource}
	onQuotes = []string{product.SectorsResource}
	onVIX    = []string{product.VIXResource}
)

const (
	spxDocument = upstream.Name("options/_SPX.json")
	xlfDocument = upstream.Name("options/XLF.json")
	quotesDir   = upstream.Name("quotes/")
	filesDir    = upstream.Name("settlement/")
)

// faultCases are the faults, those of the short form first.
var faultCases = []faultCase{
	{"a chain that shrinks to a tenth", faultShrink, spxDocument, upstream.Shrunk, onChain},
	{"403", faultForbidden, spxDocument, upstream.Refused, onChain},
	{"refuse", faultRefuse, spxDocument, upstream.Unreachable, onChain},
	{"stall", faultStall, spxDocument, upstream.TimedOut, onChain},
	{"reset mid-body", faultReset, spxDocument, upstream.Truncated, onChain},
	{"429 with Retry-After", faultThrottle, spxDocument, upstream.Throttled, onChain},
	{"redirect loop", faultRedirectLoop, spxDocument, upstream.Redirects, onChain},
	{"HTML instead of JSON", faultHTMLPage, spxDocument, upstream.HTML, onChain},
	{"truncated gzip", faultTruncatedGzip, spxDocument, upstream.Truncated, onChain},
	{"1 GB body", faultHugeBody, spxDocument, upstream.TooLarge, onChain},
	{"empty options", faultEmptyOptions, spxDocument, upstream.Empty, onChain},
	{"yesterday's settlement file", faultStaleSettlement, filesDir, upstream.Older, onVIX},
	{"garbage prices", faultGarbagePrice, spxDocument, upstream.Empty, onChain},
	{"a clock that runs backwards", faultBackwardClock, spxDocument, upstream.Backwards, onChain},
	// The same at the other feeds.
	{"flow: a chain that shrinks to a tenth", faultShrink, xlfDocument, upstream.Shrunk, onFlow},
	{"flow: a clock that runs backwards", faultBackwardClock, xlfDocument, upstream.Backwards, onFlow},
	{"flow: stall", faultStall, xlfDocument, upstream.TimedOut, onFlow},
	{"quotes: reset mid-body", faultReset, quotesDir, upstream.Truncated, onQuotes},
	{"quotes: garbage prices", faultGarbagePrice, quotesDir, upstream.Empty, onQuotes},
	{"settlements: 403", faultForbidden, filesDir, upstream.Refused, onVIX},
	// Documents with false times, prices or quotes.
	{"a chain made next week", faultClockAhead, spxDocument, upstream.ClockAhead, onChain},
	{"a chain of an index that traded next week", faultTradeAhead, spxDocument, upstream.ClockAhead, onChain},
	{"flow: a fund that traded next week", faultTradeAhead, xlfDocument, upstream.ClockAhead, onFlow},
	{"5,000 expirations more", faultManyExpirations, spxDocument, upstream.TooMany, onChain},
	{"a chain without bids", faultQuotesMissing, spxDocument, upstream.QuotesMissing, onChain},
	{"a price 30 % higher", faultPriceJump, spxDocument, upstream.PriceJump, onChain},
	{"an absurd price", faultAbsurdPrice, spxDocument, upstream.Empty, onChain},
	{"quotes: made next week", faultClockAhead, quotesDir, upstream.ClockAhead, onQuotes},
	{"quotes: absurd prices", faultAbsurdPrice, quotesDir, upstream.Empty, onQuotes},
	{"settlements: dated next week", faultClockAhead, filesDir, upstream.ClockAhead, onVIX},
	{"settlements: header alone", faultEmptyOptions, filesDir, upstream.Empty, onVIX},
}

// At any fault of the upstream, the last good answers stay, turn stale with the reason of the fault, and recover at the
// next good document. Other feeds go on. The dated file stays fresh. The upstream gets no connection earlier than is allowed.
func TestFaultUpstream(t *testing.T) {
	injected := 0
	cases := faultCases
	if !full() {
		cases = cases[:2]
	}
	if testing.Short() { // the race detector makes a case cost 25 s of processor time
		cases = cases[:1]
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { injected += injectFault(t, c) })
		})
	}
	t.Logf("figure: "+"%d requests failed by the upstream in %d cases", injected, len(cases))
}

// injectFault lets a fault happen and returns how many requests it hit.
func injectFault(t *testing.T, c faultCase) int {
	dir, start := t.TempDir(), "2026-11-20 10:59"
	prepare := func(*refresh.Config, *faultyServer) {}
	if c.hits == filesDir {
		// The file of the 20th comes out at 18:30 and is overdue at 11:00 of the next session.
		earlier := newRig(t, dir, "2026-11-20 17:00")
		earlier.once()
		earlier.close()
		start = "2026-11-23 11:01"
		prepare = func(cfg *refresh.Config, s *faultyServer) {
			cfg.ChainEvery, cfg.QuotesEvery, cfg.TurnEvery = 10*time.Minute, 10*time.Minute, 10*time.Minute
			s.Fail(c.hits, c.fault)
		}
	}
	f := newFaultRig(t, dir, start, prepare)
	defer f.stop()
	if c.hits != filesDir {
		f.requests()
		f.until(t, "a quiet instant", time.Minute, func() bool { return f.clock.Now().Second() == 55 })
	}
	if c.hits == filesDir { // a start serves what was stored until the first quotes
		f.until(t, "the curve of this session", 5*time.Minute, func() bool { return f.meta(product.VIXResource).ComputedAt.After(ny(t, start)) })
	}
	before := f.bodies(c.stale)
	if c.fault == faultRefuse {
		f.net.refuse(cdnHost)
	}
	if c.hits != filesDir {
		f.server.Fail(c.hits, c.fault)
	}
	f.until(t, "stale", 25*time.Minute, func() bool {
		for _, name := range c.stale {
			if state, reason := f.freshness(name); state != "stale" || reason == "upstream_lag" { // settlements lag from 09:45
				return false
			}
		}
		return true
	})
	if c.fault == faultThrottle { // the whole host waits: give every other document time for a turn
		later := f.clock.Now().Add(3 * time.Minute)
		f.until(t, "three minutes later", 4*time.Minute, func() bool { return f.clock.Now().After(later) })
	}
	for _, name := range c.stale {
		if _, reason := f.freshness(name); reason != string(c.reason) {
			t.Errorf("%s is stale for %q, want %q", name, reason, c.reason)
		}
		if now := f.bodies([]string{name})[name]; !bytes.Equal(now, before[name]) {
			t.Errorf("%s: the data changed:\n%.200s\n%.200s", name, before[name], now)
		}
	}
	for _, name := range allResources {
		if state, reason := f.freshness(name); !slices.Contains(c.stale, name) && c.fault != faultRefuse && reason == string(c.reason) {
			t.Errorf("%s, of another feed, is %s for %q", name, state, reason)
		}
	}
	if dated := tree(t, f.dir)["/simulated/2026-11-20/gex-spx"]; c.hits == spxDocument && !bytes.Contains(dated, []byte(`"state":"fresh"`)) {
		t.Error("the stale answer was written to the dated file")
	}
	during := f.requests()
	hit := f.checkFault(t, c, during)
	f.checkOthers(t, c, during)
	f.recover(t, c)
	return hit
}

// bodies returns the data of resources, without the parts that other documents change.
func (f *faultRig) bodies(names []string) map[string][]byte {
	out := map[string][]byte{}
	for _, name := range names {
		if name != product.FlowResource { // one of its two chains goes on
			out[name], _, _ = bytes.Cut(f.store.Current(name).Default.Data(), []byte(`,"cash":`)) // the last field of the VIX curve
		}
	}
	return out
}

// about says whether a request is for the documents of the case.
func (c *faultCase) about(r seenRequest) bool {
	return strings.HasPrefix(string(r.Name), string(c.hits))
}

// checkFault checks that the fault was injected, and how the client took it.
func (f *faultRig) checkFault(t *testing.T, c faultCase, requests []seenRequest) (hit int) {
	t.Helper()
	for _, r := range requests {
		if c.about(r) && r.Fault == c.fault {
			hit++
		}
		if c.fault == faultHugeBody && c.about(r) {
			if bound := int64(40<<20) + 1<<20; r.Sent < 40<<20 || r.Sent > bound {
				t.Errorf("the client took %d bytes of a gigabyte, bound %d", r.Sent, bound)
			}
		}
	}
	if c.fault == faultRefuse {
		hit = f.net.refused
	}
	if hit < 3 {
		t.Fatalf("the fault was injected %d times", hit)
	}
	f.net.checkSpacing(t)
	if c.hits == spxDocument && c.fault != faultRefuse {
		checkBackoff(t, c, requests)
	}
	return hit
}

// checkSpacing checks that no connection was asked for earlier than is allowed.
func (n *network) checkSpacing(t *testing.T) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.dialed[1:] {
		if after := n.dialed[i+1].Sub(n.dialed[i]); after < spacing {
			t.Errorf("connection %d was asked for %v after the one before", i+2, after)
		}
	}
}

// checkBackoff checks the intervals between the runs of a failing job, each of which may make several requests.
func checkBackoff(t *testing.T, c faultCase, requests []seenRequest) {
	t.Helper()
	const maxPause = 20 * time.Second // longest pause within a run, between redirects or tries
	var first, last []time.Time
	for _, r := range requests {
		switch {
		case !c.about(r) || r.Fault == noFault:
		case len(last) == 0 || r.At.Sub(last[len(last)-1]) > maxPause:
			first, last = append(first, r.At), append(last, r.At)
		default:
			last[len(last)-1] = r.At
		}
	}
	for i := 1; i < len(first); i++ {
		most := min(time.Minute<<(i-1), 5*time.Minute)
		took := map[fault]time.Duration{faultStall: patience, faultThrottle: retryAfter}[c.fault] + 3*spacing
		if gap := first[i].Sub(last[i-1]); gap < most/2 || gap > most+took {
			t.Errorf("try %d came %v after the one before, want %v to %v and at most %v more", i+1, gap, most/2, most, took)
		}
	}
}

// checkOthers checks that a failing document delays the request of another feed by at most one request: between two
// requests for the failing document, every waiting request has a turn. A host that does not throttle never idles during a
// round of quotes.
func (f *faultRig) checkOthers(t *testing.T, c faultCase, requests []seenRequest) {
	t.Helper()
	others := map[upstream.Name][]time.Time{}
	var quotes []seenRequest
	for _, r := range requests {
		if !c.about(r) {
			others[r.Name] = append(others[r.Name], r.At)
			if strings.HasPrefix(string(r.Name), string(quotesDir+"XL")) {
				quotes = append(quotes, r)
			}
		}
	}
	if c.hits != spxDocument || c.fault == faultRefuse {
		return // it shares its feed, or its host refuses all
	}
	if n := len(others[xlfDocument]); n == 0 {
		t.Error("the other chain was not asked for")
	}
	limit := 2 * spacing
	if c.fault == faultThrottle {
		limit += retryAfter
	}
	for i := 1; i < len(quotes); i++ {
		sameRound := quotes[i].Name > quotes[i-1].Name // a round goes through the funds in order
		if gap := quotes[i].At.Sub(quotes[i-1].At); sameRound && gap > limit {
			t.Errorf("%s came %v after %s, want at most %v", quotes[i].Name, gap, quotes[i-1].Name, limit)
		}
	}
	if len(quotes) < 11 {
		t.Errorf("%d quotes were asked for meanwhile", len(quotes))
	}
}

// recover ends the fault. The next good document must end the staleness.
func (f *faultRig) recover(t *testing.T, c faultCase) {
	t.Helper()
	f.net.refuse("")
	f.server.Fail(c.hits, noFault)
	limit := 6 * time.Minute
	if c.fault == faultForbidden && c.hits != spxDocument {
		limit += time.Hour // a symbol that stays refused is not asked for during this time
	}
	f.until(t, "recovery", limit, func() bool {
		for _, name := range c.stale {
			if state, _ := f.freshness(name); state != "fresh" {
				return false
			}
		}
		return true
	})
	good := map[upstream.Name]int{}
	after := f.requests()
	for _, r := range after {
		if c.about(r) && r.Fault == noFault {
			good[r.Name]++
		}
	}
	for name, n := range good {
		// After a refusal of the whole host, flow waits for the next try of its other chain.
		if c.fault != faultRefuse && (n > 1 && c.hits != quotesDir || n > 2) {
			t.Errorf("%s was fetched %d times before it ended the staleness", name, n)
		}
	}
	if len(good) == 0 {
		t.Error("recovered without a good document")
	}
	f.net.checkSpacing(t)
}

// After a restart, documents are still compared with those accepted before it.
func TestRefusalsSurviveARestart(t *testing.T) {
	long(t)
	play(t, "2026-11-20 11:00", func(t *testing.T, r *rig) {
		r.once()
		for fault, reason := range map[fault]string{
			faultShrink: "shrunk", faultBackwardClock: "clock_backwards", faultPriceJump: "price_jump", faultQuotesMissing: "quotes_missing",
		} {
			r = r.again("2026-11-20 11:01").restored()
			r.market.Fail("", fault, -1)
			err := r.RefreshOnce(t.Context())
			for _, name := range []upstream.Name{spxDocument, xlfDocument} {
				if want := string(name) + ": " + reason; err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("after the restart: %v, want %s", err, want)
				}
			}
		}
	})
}
