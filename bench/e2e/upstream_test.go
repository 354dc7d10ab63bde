package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"strikecache/compute"
	"strikecache/refresh/simulated"
	"strikecache/refresh/upstream"
)

// The paths of an upstream: of chains, quotes and histories, and of settlement files.
const (
	quotesBase     = "/api/global/delayed_quotes"
	settlementBase = "/us/futures/settlement/csv"
)

// fault is how an upstream answers a request wrongly. It gets the document that was asked for, packed, so that it can send
// a part of it.
type fault func(w http.ResponseWriter, r *http.Request, packed []byte)

// fakeUpstream is an upstream on loopback with the documents of a simulated market. It can fail, go away and come back.
type fakeUpstream struct {
	t       *testing.T
	market  *simulated.Market
	address string
	http    *http.Server

	mu     sync.Mutex
	chain  fault          // of the SPX chain
	quote  fault          // of every quote
	hits   map[string]int // requests that failed, by what they asked for
	frozen []byte         // the chain that a fault of its rows began with
	sent   int            // bytes of a huge body that were taken
}

func startUpstream(t *testing.T) *fakeUpstream {
	u := &fakeUpstream{t: t, address: "127.0.0.1:0", hits: map[string]int{}}
	u.market = simulated.New(simulated.Config{Seed: 7, Now: time.Now, Calendar: compute.NewCalendar(nil, nil)})
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
	u.http = &http.Server{Handler: u, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	go u.http.Serve(listener)
}

// fail sets the faults of the chain and of the quotes, nil for none, and forgets what was hit.
func (u *fakeUpstream) fail(chain, quote fault) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.chain, u.quote, u.frozen, u.sent = chain, quote, nil, 0
	clear(u.hits)
}

// hit returns how many requests for the chain and for quotes failed.
func (u *fakeUpstream) hit() (chains, quotes int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.hits["options"], u.hits["quotes"]
}

// ServeHTTP implements [http.Handler].
func (u *fakeUpstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := upstream.Name(strings.TrimPrefix(r.URL.Path, quotesBase+"/"))
	if r.URL.Path == settlementBase {
		name = upstream.Settlement(r.URL.Query().Get("dt"))
	}
	doc, err := u.market.Fetch(r.Context(), name, nil)
	if err != nil {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	u.mu.Lock()
	wrong := map[bool]fault{name == "options/_SPX.json": u.chain, strings.HasPrefix(string(name), "quotes/"): u.quote}[true]
	if wrong != nil {
		kind, _, _ := strings.Cut(string(name), "/")
		u.hits[kind]++
	}
	u.mu.Unlock()
	if wrong != nil {
		wrong(w, r, doc.Body)
		return
	}
	h := w.Header()
	h.Set("ETag", doc.ETag)
	h.Set("Last-Modified", doc.LastModified)
	if doc.FileDate != "" {
		h.Set("Content-Disposition", "attachment; filename=FuturesSettlements_"+doc.FileDate+".csv")
	}
	if r.Header.Get("If-None-Match") == doc.ETag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Encoding", "gzip")
	w.Write(pack(doc.Body))
}

func pack(body []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed) // the level is good, and a buffer takes everything
	z.Write(body)
	z.Close()
	return b.Bytes()
}

// status answers with a status and fields, given as name and value.
func status(code int, fields ...string) fault {
	return func(w http.ResponseWriter, r *http.Request, _ []byte) { says(code, "", fields...)(w, r) }
}

func breakOff(http.ResponseWriter, *http.Request, []byte) { panic(http.ErrAbortHandler) }

func stall(_ http.ResponseWriter, r *http.Request, _ []byte) { <-r.Context().Done() }

// redirectLoop redirects for ever, never to the same address twice.
func redirectLoop(w http.ResponseWriter, r *http.Request, _ []byte) {
	hops, _ := strconv.Atoi(r.URL.Query().Get("hops")) // 0 at first
	http.Redirect(w, r, fmt.Sprintf("%s?hops=%d", r.URL.Path, hops+1), http.StatusTemporaryRedirect)
}

func htmlPage(w http.ResponseWriter, r *http.Request, _ []byte) {
	says(200, "<html><body>Access is temporarily restricted</body></html>", "Content-Type", "text/html")(w, r)
}

// half sends half of the packed body, as a whole one or as one that breaks off.
func half(breaks bool) fault {
	return func(w http.ResponseWriter, _ *http.Request, body []byte) {
		packed := pack(body)
		w.Header().Set("Content-Encoding", "gzip")
		if breaks {
			w.Header().Set("Content-Length", strconv.Itoa(len(packed)))
		}
		w.Write(packed[:len(packed)/2])
		if breaks {
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
	}
}

// huge sends a gigabyte of white space, and counts what is taken of it.
func (u *fakeUpstream) huge(w http.ResponseWriter, _ *http.Request, _ []byte) {
	blank := bytes.Repeat([]byte{' '}, 64<<10)
	for sent := 0; sent < 1<<30; {
		n, err := w.Write(blank)
		sent += n
		u.mu.Lock()
		u.sent = max(u.sent, sent)
		u.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// altered answers with the document after a change, and goes on with the first one that it changed.
func (u *fakeUpstream) altered(change func(doc map[string]any)) fault {
	return func(w http.ResponseWriter, r *http.Request, body []byte) {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.frozen == nil || !strings.Contains(r.URL.Path, "options") {
			var doc map[string]any
			d := json.NewDecoder(bytes.NewReader(body))
			d.UseNumber()
			if err := d.Decode(&doc); err != nil {
				u.t.Errorf("%s: %v", r.URL, err)
				return
			}
			change(doc)
			body, _ = json.Marshal(doc) // what was decoded
			if strings.Contains(r.URL.Path, "options") {
				u.frozen = body
			}
		} else {
			body = u.frozen
		}
		w.Header().Set("ETag", fmt.Sprintf(`"altered-%d"`, len(body)))
		w.Write(body)
	}
}

func rows(doc map[string]any) []any { return doc["data"].(map[string]any)["options"].([]any) }

func shrink(doc map[string]any) {
	doc["data"].(map[string]any)["options"] = rows(doc)[:len(rows(doc))/10]
}

func emptied(doc map[string]any) { doc["data"].(map[string]any)["options"] = []any{} }

// backwards makes the document an hour older.
func backwards(doc map[string]any) {
	const layout = "2006-01-02 15:04:05"
	if at, err := time.Parse(layout, fmt.Sprint(doc["timestamp"])); err == nil {
		doc["timestamp"] = at.Add(-time.Hour).Format(layout)
	}
}

// garbagePrice gives the underlying no price.
func garbagePrice(doc map[string]any) {
	data := doc["data"].(map[string]any)
	data["current_price"], data["close"] = "n/a", "n/a"
}

// ordeal is what one run of the binary suffers: a fault of the SPX chain, and one of the quotes.
type ordeal struct {
	chain       fault
	chainReason upstream.Reason
	quote       fault
	quoteReason upstream.Reason
}

// ordeals begin with that of the short form.
func (u *fakeUpstream) ordeals() []ordeal {
	return []ordeal{
		{u.altered(shrink), upstream.Shrunk, half(true), upstream.Truncated},
		{u.altered(backwards), upstream.Backwards, redirectLoop, upstream.Redirects},
		{u.altered(emptied), upstream.Empty, htmlPage, upstream.HTML},
		{stall, upstream.TimedOut, half(false), upstream.Truncated},
		{status(403), upstream.Refused, u.altered(garbagePrice), upstream.Empty},
		{u.huge, upstream.TooLarge, breakOff, upstream.Unreachable},
		{status(429, "Retry-After", "2"), upstream.Throttled, nil, ""},
		{nil, upstream.Unreachable, nil, upstream.Unreachable}, // nobody listens
	}
}

// The binary starts with good documents, and again with an upstream that fails: it serves what it had, says that it is
// stale and why, and recovers by itself. A start rather than a fault in flight, because outside the hours of the exchange
// chains are asked for every 5 minutes alone.
func TestFaultUpstreamThroughHTTP(t *testing.T) {
	t.Parallel()
	u, files := startUpstream(t), startUpstream(t)
	args := []string{
		"--data-dir", t.TempDir(), "--source", "cboe", "--cboe-base-url", "http://" + u.address + quotesBase, "--cboe-settlement-url", "http://" + files.address + settlementBase,
		"--cboe-requests-per-minute", "6000", "--cboe-timeout", "10s",
		"--gex-every", "5s", "--quotes-every", "5s", "--flow-every", "5s", "--flow-symbols", "XLF",
	}
	p := serve(t, args...)
	p.ready()
	p.stopped()
	runs := u.ordeals()
	if !full() {
		runs = runs[:1]
	}
	faults, peak := 0, 0
	for _, o := range runs {
		t.Run(fmt.Sprintf("%s and %s", o.chainReason, o.quoteReason), func(t *testing.T) {
			hit, memory := endure(t, u, o, args)
			faults, peak = faults+hit, max(peak, memory)
		})
	}
	figure(t, "%d requests of the binary failed in %d starts, peak resident memory %d MiB", faults, len(runs), peak>>20)
}

// endure starts the binary with an upstream that fails, and mends that. It returns the requests that failed, and the peak of
// the binary's memory where the system tells.
func endure(t *testing.T, u *fakeUpstream, o ordeal, args []string) (hit, memory int) {
	u.fail(o.chain, o.quote)
	nobody := o.chain == nil
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
	if memory = int(statusBytes(p.cmd.Process.Pid, "VmHWM")); memory > 512<<20 {
		t.Errorf("peak resident memory %d MiB", memory>>20)
	}
	if nobody {
		hit = strings.Count(p.logged(), "connection refused")
		u.open()
	} else {
		chains, quotes := u.hit()
		if hit = chains + quotes; chains < 3 || o.quote != nil && quotes < 3 {
			t.Errorf("%d requests for the chain failed, %d for quotes", chains, quotes)
		}
		if u.sent > 80<<20 { // 64 MiB and the sockets' buffers
			t.Errorf("the binary took %d bytes of a gigabyte", u.sent)
		}
	}
	if hit < 3 {
		t.Fatalf("the fault was injected %d times\n%s", hit, p.logged())
	}
	u.fail(nil, nil)
	for path := range want {
		p.until(path+" recovers", func() bool { return p.freshness(path).State != "stale" })
	}
	p.stopped()
	return hit, memory
}
