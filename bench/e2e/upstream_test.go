package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
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

// fakeUpstream is an upstream on loopback with the documents of a simulated market. The tests of package refresh
// show how the refresh judges each fault of an upstream.
type fakeUpstream struct {
	market  *simulated.Market
	address string
	chain   func(w http.ResponseWriter, body []byte) // answers requests for the SPX chain; nil: no change
}

func startUpstream(t *testing.T) *fakeUpstream {
	u := &fakeUpstream{}
	u.market = simulated.New(simulated.Config{Seed: 7, Every: 5, Now: time.Now, Calendar: compute.NewCalendar(nil, nil)})
	server := httptest.NewServer(u)
	t.Cleanup(server.Close)
	u.address = server.Listener.Addr().String()
	return u
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
	if u.chain != nil && name == "options/_SPX.json" {
		u.chain(w, doc.Body)
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

// The server serves the largest chain that it accepts, in bounded memory.
func TestTheLargestChain(t *testing.T) {
	t.Parallel()
	u := startUpstream(t)
	u.chain = largest
	p := serve(t, "--data-dir", t.TempDir(), "--source", "cboe", "--cboe-base-url", "http://"+u.address+quotesBase,
		"--cboe-requests-per-minute", "6000")
	p.until("a chain of 79,872 rows is served", func() bool {
		resp, body := p.get(gammaPath)
		return resp.StatusCode == http.StatusOK && bytes.Contains(body, []byte(`"listed":79872`))
	})
	p.get(painPath)
	memory := p.status("VmHWM")
	if memory > 300<<20 {
		t.Errorf("peak resident memory %d MiB", memory>>20)
	}
	figure(t, "a chain of 128 expirations and 39,936 strikes served, peak resident memory %d MiB", memory>>20)
	p.stop()
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
