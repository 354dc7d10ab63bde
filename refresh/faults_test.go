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
	refuses string // the host whose connections are refused
	refused int
}

func newNetwork() *network {
	return &network{conns: map[net.Conn]bool{}, accept: make(chan net.Conn), closed: make(chan struct{})}
}

func (n *network) dial(ctx context.Context, _, host string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
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

// The hosts of the upstream.
const (
	cdnHost   = "127.0.0.1:1"
	filesHost = "127.0.0.2:1"
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
		f.server = newFaultyServer(c.Source.(*faultyMarket))
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
)

const (
	spxDocument = upstream.Name("options/_SPX.json")
	xlfDocument = upstream.Name("options/XLF.json")
	quotesDir   = upstream.Name("quotes/")
)

// faultCases are the faults of a connection, those of the short form first. TestWhatIsRefusedLeavesNoTrace has those of documents.
var faultCases = []faultCase{
	{"403", faultForbidden, spxDocument, upstream.Refused, onChain},
	{"quotes: reset mid-body", faultReset, quotesDir, upstream.Truncated, onQuotes},
	{"refuse", faultRefuse, spxDocument, upstream.Unreachable, onChain},
	{"stall", faultStall, spxDocument, upstream.TimedOut, onChain},
	{"reset mid-body", faultReset, spxDocument, upstream.Truncated, onChain},
	{"429 with Retry-After", faultThrottle, spxDocument, upstream.Throttled, onChain},
	{"redirect loop", faultRedirectLoop, spxDocument, upstream.Redirects, onChain},
	{"HTML instead of JSON", faultHTMLPage, spxDocument, upstream.HTML, onChain},
	{"truncated gzip", faultTruncatedGzip, spxDocument, upstream.Truncated, onChain},
	{"1 GB body", faultHugeBody, spxDocument, upstream.TooLarge, onChain},
	{"flow: stall", faultStall, xlfDocument, upstream.TimedOut, onFlow},
}

// At any fault of the upstream, the last good answers stay, turn stale with the reason of the fault, and recover at the
// next good document. Other feeds go on. The dated file stays fresh. The tests of package cboe show that no connection comes too early.
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

// injectFault lets a fault happen, and ends it. It returns how many requests the fault hit.
func injectFault(t *testing.T, c faultCase) (hit int) {
	f := newFaultRig(t, t.TempDir(), "2026-11-20 10:59", func(*refresh.Config, *faultyServer) {})
	defer f.stop()
	before := f.bodies(c.stale)
	f.requests()
	if c.fault == faultRefuse {
		f.net.refuse(cdnHost)
	}
	f.server.Fail(c.hits, c.fault)
	f.until(t, "stale", 25*time.Minute, func() bool { return f.all(c.stale, "stale") })
	for _, name := range allResources {
		switch _, reason := f.freshness(name); {
		case !slices.Contains(c.stale, name):
			if c.fault != faultRefuse && reason == string(c.reason) {
				t.Errorf("%s, of another feed, is stale for %q", name, reason)
			}
		case reason != string(c.reason):
			t.Errorf("%s is stale for %q, want %q", name, reason, c.reason)
		case !bytes.Equal(f.bodies(c.stale)[name], before[name]):
			t.Errorf("%s: the data changed", name)
		}
	}
	if dated := tree(t, f.dir)["/simulated/2026-11-20/gex-spx"]; !bytes.Contains(dated, []byte(`"state":"fresh"`)) {
		t.Error("the stale answer was written to the dated file")
	}
	for _, r := range f.requests() {
		if strings.HasPrefix(string(r.Name), string(c.hits)) && r.Fault == c.fault {
			hit++
			if c.fault == faultHugeBody && (r.Sent < 40<<20 || r.Sent > 41<<20) {
				t.Errorf("the client took %d bytes of a gigabyte", r.Sent)
			}
		}
	}
	if hit += f.net.refused; hit < 3 {
		t.Fatalf("the fault was injected %d times", hit)
	}
	f.net.refuse("")
	f.server.Fail(c.hits, noFault)
	f.until(t, "recovery", 6*time.Minute, func() bool { return f.all(c.stale, "fresh") })
	return hit
}

// all says whether resources are in a state.
func (f *faultRig) all(resources []string, want string) bool {
	return !slices.ContainsFunc(resources, func(name string) bool {
		state, _ := f.freshness(name)
		return state != want
	})
}

// bodies returns the data of resources, but for the flow: one of its two chains goes on.
func (f *faultRig) bodies(names []string) map[string][]byte {
	out := map[string][]byte{}
	for _, name := range names {
		if name != product.FlowResource {
			out[name] = f.store.Current(name).Default.Data()
		}
	}
	return out
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
