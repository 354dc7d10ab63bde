package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
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
	settlementBase = quotesBase + "/settlement"
)

// fault answers a request wrongly. It gets the document that was asked for.
type fault func(w http.ResponseWriter, body []byte)

// fakeUpstream is an upstream on loopback with the documents of a simulated market. It can fail, go away and come back.
// The tests of package refresh show how the refresh judges each fault of an upstream.
type fakeUpstream struct {
	t       *testing.T
	market  *simulated.Market
	address string
	http    *http.Server

	mu           sync.Mutex
	chain, quote fault          // of the SPX chain, and of every quote; nil: none
	hits         map[string]int // requests that failed, by what they asked for
	sent         int            // bytes of a huge body that the server took
}

func startUpstream(t *testing.T) *fakeUpstream {
	u := &fakeUpstream{t: t, address: "127.0.0.1:0", hits: map[string]int{}}
	u.market = simulated.New(simulated.Config{Seed: 7, Now: time.Now, Calendar: compute.NewCalendar(nil, nil)})
	u.open()
	t.Cleanup(func() { u.http.Close() })
	return u
}

// open listens, on the same port as before if it has listened before.
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

// fail sets the faults, nil for none, and resets the counts.
func (u *fakeUpstream) fail(chain, quote fault) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.chain, u.quote, u.sent = chain, quote, 0
	clear(u.hits)
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
	kind, _, _ := strings.Cut(string(name), "/")
	u.mu.Lock()
	var f fault
	if name == "options/_SPX.json" {
		f = u.chain
	} else if kind == "quotes" {
		f = u.quote
	}
	if f != nil {
		u.hits[kind]++
	}
	u.mu.Unlock()
	if f != nil {
		f(w, doc.Body)
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
	w.Write(doc.Body)
}

// cutOff sends half of a body and then closes the connection.
func cutOff(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Write(body[:len(body)/2])
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

func breakOff(http.ResponseWriter, []byte) { panic(http.ErrAbortHandler) }

// emptied sends a chain without a contract.
func emptied(w http.ResponseWriter, body []byte) {
	var doc map[string]any
	if json.Unmarshal(body, &doc) == nil {
		doc["data"].(map[string]any)["options"] = []any{}
		body, _ = json.Marshal(doc) // what was decoded
	}
	w.Write(body)
}

// huge sends a gigabyte of white space, and counts the bytes that the server takes.
func (u *fakeUpstream) huge(w http.ResponseWriter, _ []byte) {
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

// manyExpirations sends a chain with 5,000 more expirations, 195,000 rows.
func manyExpirations(w http.ResponseWriter, body []byte) {
	end := bytes.IndexByte(body, ']') // of the options: a row has no array
	w.Write(body[:end])
	for i := range 5_000 {
		day := time.Date(2027, 1, 1+i, 0, 0, 0, 0, time.UTC).Format("060102")
		for strike := range 33 {
			fmt.Fprintf(w, `,{"option":"SPXW%sC%08d","bid":1.0,"ask":1.1,"iv":0.2,"open_interest":5000.0,"volume":1000.0}`, day, 5_000_000+1000*strike)
		}
	}
	w.Write(body[end:])
}

// largest sends the largest chain that is served: 128 expirations and 39,936 strike rows, in a body of nearly 40 MiB.
func largest(w http.ResponseWriter, body []byte) {
	begin, end := bytes.IndexByte(body, '[')+1, bytes.IndexByte(body, ']')
	out := bytes.Clone(body[:begin])
	for i := range 128 {
		day := time.Now().AddDate(0, 0, 3+i).Format("060102")
		for strike := 2_000; strike < 2_000+312*30; strike += 30 {
			out = fmt.Appendf(out, `{"option":"SPXW%sC%08d","bid":%d.0,"ask":%d.5,"iv":0.2,"open_interest":5000.0,"volume":1000.0},`, day, 1000*strike, max(0, 7000-strike)+50, max(0, 7000-strike)+50)
			out = fmt.Appendf(out, `{"option":"SPXW%sP%08d","bid":%d.0,"ask":%d.5,"iv":0.2,"open_interest":5000.0,"volume":1000.0},`, day, 1000*strike, max(0, strike-7000)+50, max(0, strike-7000)+50)
		}
	}
	out = append(out[:len(out)-1], body[end:]...)
	w.Write(append(out, bytes.Repeat([]byte{' '}, 40<<20-len(out))...))
}

// ofNextWeek sends a quote with a timestamp that has not come yet.
func ofNextWeek(w http.ResponseWriter, body []byte) {
	const member, layout = `"timestamp":"`, "2006-01-02 15:04:05"
	at := bytes.Index(body, []byte(member)) + len(member)
	next := time.Now().UTC().Add(7 * 24 * time.Hour).Format(layout)
	w.Write(slices.Concat(body[:at], []byte(next), body[at+len(layout):]))
}

// ordeal has the faults of one run of the binary, in the SPX chain and in the quotes, and the reasons that they must give.
type ordeal struct {
	chain       fault
	chainReason upstream.Reason
	quote       fault
	quoteReason upstream.Reason
}

// The binary starts with good documents, and again with a failing upstream: it serves the last answers, says that they are
// stale and why, in bounded memory, and recovers by itself. The faults begin with a start, because out of session a running
// server fetches chains only every 5 minutes. Package refresh tests the same with a clock that it moves.
func TestFaultUpstreamThroughHTTP(t *testing.T) {
	t.Parallel()
	if !full() {
		t.Skip("it lasts minutes: make faults runs it")
	}
	u := startUpstream(t)
	args := []string{
		"--data-dir", t.TempDir(), "--source", "cboe", "--cboe-base-url", "http://" + u.address + quotesBase,
		"--cboe-requests-per-minute", "6000",
		"--gex-every", "5s", "--flow-symbols", "XLF",
	}
	serveReady(t, args...).stop()
	runs := []ordeal{
		{emptied, upstream.Empty, cutOff, upstream.Truncated},
		{u.huge, upstream.TooLarge, breakOff, upstream.Unreachable},
		{manyExpirations, upstream.TooMany, ofNextWeek, upstream.ClockAhead},
		{nil, upstream.Unreachable, nil, upstream.Unreachable}, // nobody listens
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

// The server serves the largest chain that it accepts, in bounded memory.
func TestTheLargestChain(t *testing.T) {
	t.Parallel()
	u := startUpstream(t)
	u.fail(largest, nil)
	p := serve(t, "--data-dir", t.TempDir(), "--source", "cboe", "--cboe-base-url", "http://"+u.address+quotesBase,
		"--cboe-requests-per-minute", "6000", "--flow-symbols", "XLF")
	p.until("a chain of 79,872 rows is served", func() bool {
		resp, body := p.get(gammaPath)
		return resp.StatusCode == http.StatusOK && bytes.Contains(body, []byte(`"listed":79872`))
	})
	p.get(painPath)
	memory := p.status("VmHWM")
	if memory > maxMemory {
		t.Errorf("peak resident memory %d MiB", memory>>20)
	}
	figure(t, "a chain of 128 expirations and 39,936 strikes served, peak resident memory %d MiB", memory>>20)
	p.stop()
}

// maxMemory bounds the resident memory of the binary under every document that an upstream can send.
const maxMemory = 300 << 20

// endure starts the binary with a failing upstream, and then repairs the upstream. It returns the number of failed requests,
// and the binary's peak memory, or 0 where the system does not tell.
func endure(t *testing.T, u *fakeUpstream, o ordeal, args []string) (hit, memory int) {
	u.fail(o.chain, o.quote)
	if o.chain == nil {
		u.http.Close()
	}
	p := serve(t, args...)
	want := map[string]upstream.Reason{gammaPath: o.chainReason, painPath: o.chainReason, sectorsPath: o.quoteReason}
	for path, reason := range want {
		before := p.envelope(path).Data
		p.until(path+" is stale", func() bool { return p.envelope(path).Meta.Freshness.State == "stale" })
		now := p.envelope(path)
		if f := now.Meta.Freshness; f.Reason == nil || *f.Reason != string(reason) {
			t.Errorf("%s: %+v, want the reason %s", path, f, reason)
		}
		if !bytes.Equal(now.Data, before) {
			t.Errorf("%s: the data changed:\n%.200s\n%.200s", path, before, now.Data)
		}
	}
	if f := p.envelope(vixPath).Meta.Freshness; o.chain != nil && f.State == "stale" {
		t.Errorf("a feed without a fault is %+v", f)
	}
	if memory = p.status("VmHWM"); memory > maxMemory {
		t.Errorf("peak resident memory %d MiB", memory>>20)
	}
	u.mu.Lock()
	chains, quotes, sent := u.hits["options"], u.hits["quotes"], u.sent
	u.mu.Unlock()
	if hit = chains + quotes; o.chain == nil {
		hit = strings.Count(p.logged(), "connection refused")
		u.open()
	} else if chains < 3 || quotes < 3 || sent > 56<<20 { // 40 MiB and the sockets' buffers
		t.Errorf("%d requests for the chain failed, %d for quotes; the binary took %d bytes of a gigabyte", chains, quotes, sent)
	}
	if hit < 3 {
		t.Fatalf("the fault was injected %d times\n%s", hit, p.logged())
	}
	u.fail(nil, nil)
	for path := range want {
		p.until(path+" recovers", func() bool { return p.envelope(path).Meta.Freshness.State != "stale" })
	}
	p.stop()
	return hit, memory
}

// status returns a value of /proc/PID/status in bytes; 0 where the system does not tell.
func (p *process) status(name string) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	m := regexp.MustCompile(name + `:\s+(\d+) kB`).FindSubmatch(b)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(string(m[1])) // the expression matches only digits
	return n << 10
}
