//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// goClient builds the Go client once.
var goClient = sync.OnceValues(func() (string, error) { return build("client", "./bench/clients") })

// example is a client of bench/clients.
type example struct {
	name, file string
	programs   []string // that it needs; the first runs the file
}

var examples = []example{
	{"curl", "curl.sh", []string{"sh", "curl", "jq"}},
	{"python", "client.py", []string{"python3"}},
	{"javascript", "client.mjs", []string{"node"}},
	{"go", "client.go", nil},
}

// command returns the client's command line. The test is skipped if a program that it needs is not installed.
func (x example) command(t testing.TB) []string {
	t.Helper()
	if x.programs == nil {
		path, err := goClient()
		must(t, err)
		return []string{path}
	}
	for _, name := range x.programs {
		installed(t, name)
	}
	return []string{installed(t, x.programs[0]), filepath.Join(root, "bench", "clients", x.file)}
}

// eachClient runs a test with every example, all at once, because they mostly wait. start starts the client.
func eachClient(t *testing.T, test func(t *testing.T, start func(args ...string) *process)) {
	var running sync.WaitGroup
	for _, x := range examples {
		running.Go(func() {
			t.Run(x.name, func(t *testing.T) {
				argv := x.command(t)
				test(t, func(args ...string) *process {
					if strings.HasPrefix(args[0], "API_KEY=") { // in the environment
						return follow(t, slices.Concat([]string{"env", args[0]}, argv, args[1:])...)
					}
					return follow(t, slices.Concat(argv, args)...)
				})
			})
		})
	}
	running.Wait()
}

// follow starts a program that runs beside a server. It ends with the test.
func follow(t testing.TB, argv ...string) *process {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "API_KEY=", "TMPDIR="+t.TempDir(), "no_proxy=127.0.0.1", "NO_PROXY=127.0.0.1")
	p := launch(t, cmd)
	t.Cleanup(p.kill)
	return p
}

// ended waits for the end, and checks the exit code and what was printed.
func (p *process) ended(code int, out ...string) (errs []string) {
	p.t.Helper()
	_ = p.wait()
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Errorf("exit code %d, want %d\n%s\n%s", got, code, p.out, p.log)
	}
	sameLines(p.t, p.out.lines(), out...)
	return p.log.lines()
}

// serves waits until a proxy at an address passes on the answers of its server.
func (p *process) serves(address string) *process {
	p.t.Helper()
	p.url = "http://" + address
	p.until(p.cmd.Path+" answers", func() bool {
		if p.hasEnded() {
			p.t.Fatalf("%s ended: %s", p.cmd.Path, p.logged())
		}
		resp, _, err := fetch(http.MethodGet, p.url+"/healthz")
		return err == nil && resp.StatusCode == http.StatusOK
	})
	return p
}

// exchange is a request and its answer.
type exchange struct {
	at       time.Time
	asked    http.Header
	answered http.Header
	status   int
	path     string
}

// front is a proxy in front of a server that records every exchange. Its script answers the first requests.
type front struct {
	*httptest.Server
	request func(*http.Request) // changes every request; set before the first one

	mu     sync.Mutex
	script []http.HandlerFunc // nil: the server answers
	seen   []exchange
}

// newFront starts a front. Without a server, it answers 404 after the end of the script. change may alter the server's
// answers.
func newFront(t *testing.T, server string, change func(*http.Response), script ...http.HandlerFunc) *front {
	t.Helper()
	f := &front{script: script, request: func(*http.Request) {}}
	if change == nil {
		change = func(*http.Response) {}
	}
	behind := http.NotFound
	if server != "" {
		target, err := url.Parse(server)
		must(t, err)
		proxy := httputil.NewSingleHostReverseProxy(target)
		proxy.Transport = &http.Transport{DisableCompression: true}
		proxy.ModifyResponse = func(r *http.Response) error { change(r); return nil }
		proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
		behind = proxy.ServeHTTP
	}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at, asked := time.Now(), r.Header.Clone()
		f.mu.Lock()
		answer := behind
		if len(f.script) > 0 {
			if f.script[0] != nil {
				answer = f.script[0]
			}
			f.script = f.script[1:]
		}
		f.mu.Unlock()
		n := &recorder{ResponseWriter: w, record: func(status int) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.seen = append(f.seen, exchange{at, asked, w.Header().Clone(), status, r.URL.Path})
		}}
		defer n.begin(http.StatusOK) // there was no answer
		f.request(r)
		answer(n, r)
	}))
	t.Cleanup(f.Close)
	return f
}

// recorder records an answer before the client has any of it.
type recorder struct {
	http.ResponseWriter
	record func(status int) // nil afterwards
}

func (n *recorder) begin(status int) {
	if n.record != nil {
		n.record(status)
		n.record = nil
	}
}

func (n *recorder) WriteHeader(status int) {
	n.begin(status)
	n.ResponseWriter.WriteHeader(status)
}

func (n *recorder) Write(b []byte) (int, error) {
	n.begin(http.StatusOK)
	return n.ResponseWriter.Write(b)
}

// Unwrap lets a response controller reach the writer.
func (n *recorder) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// exchanges returns the exchanges with a status, or all exchanges for 0.
func (f *front) exchanges(status int) (some []exchange) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range f.seen {
		if status == 0 || x.status == status {
			some = append(some, x)
		}
	}
	return some
}

// asked returns the exchanges of a path, without the first mark exchanges of all paths.
func (f *front) asked(mark int, path string) (some []exchange) {
	for _, x := range f.exchanges(0)[mark:] {
		if x.path == path {
			some = append(some, x)
		}
	}
	return some
}

// says returns a handler that answers with a status, a body and header fields, given as names and values.
func says(status int, body string, fields ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(fields); i += 2 {
			w.Header().Set(fields[i], fields[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// cut answers with half a document.
func cut(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("ETag", `"cut"`)
	w.Header().Set("Content-Length", strconv.Itoa(2*len(staleDocument)))
	io.WriteString(w, staleDocument)
	http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// noAnswer ends the connection, as a server that is killed.
func noAnswer(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

const (
	plainDocument = `{"success":true,"data":{"spot":7500,"zero_gamma_flip":7526.53,"gamma_regime":"negative","profile":[{"spot":1}]},"meta":{"source":"cboe","as_of":"2026-11-20T15:44:39Z","freshness":{"state":"fresh","reason":null}},"usage":{}}`
	staleDocument = `{"success":true,"data":{"spot":7500.5,"zero_gamma_flip":null,"gamma_regime":null},"meta":{"source":"cboe","as_of":"2026-11-20T15:45:04Z","freshness":{"state":"stale","reason":"upstream_lag"}},"usage":{}}`
	plainLine     = "changed as_of=2026-11-20T15:44:39Z spot=7500 flip=7526.53 regime=negative source=cboe"
	staleLine     = "changed as_of=2026-11-20T15:45:04Z spot=7500.5 flip=null regime=null source=cboe WARNING: stale, upstream_lag"
)

// conditional checks the If-None-Match of every exchange, in order. "" means none.
func (f *front) conditional(t *testing.T, tags ...string) {
	t.Helper()
	seen := f.exchanges(0)
	if len(seen) != len(tags) {
		t.Fatalf("%d requests, want %d", len(seen), len(tags))
	}
	for i, want := range tags {
		if got := seen[i].asked.Get("If-None-Match"); got != want {
			t.Errorf("request %d has If-None-Match %q, want %q", i+1, got, want)
		}
	}
}

func sameLines(t testing.TB, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("printed %q, want %q", got, want)
	}
}

// Every client fetches the document from the real server once, and then asks whether it has changed, with a key and
// without a key.
func TestClients(t *testing.T) {
	t.Parallel()
	p := shared(t)
	g := dataOf[struct {
		Spot   json.Number
		Flip   json.Number `json:"zero_gamma_flip"`
		Regime string      `json:"gamma_regime"`
	}](p, gammaPath)
	changed := fmt.Sprintf("changed as_of=%s spot=%s flip=%s regime=%s source=simulated WARNING: simulated, no number is real",
		p.envelope(gammaPath).Meta.AsOf.Format(time.RFC3339), g.Spot, g.Flip, g.Regime)
	eachClient(t, func(t *testing.T, start func(args ...string) *process) {
		secret, _ := keyed(t, p, filepath.Base(t.Name()))
		for _, key := range []string{"", secret} {
			f := newFront(t, p.url, nil)
			args := []string{"--count", "3", "--max-wait", "0.1", f.URL + "/"}
			if key != "" {
				args = append(args, key)
			}
			sameLines(t, start(args...).ended(0, changed, "unchanged", "unchanged"))
			seen := f.exchanges(0)
			if len(seen) != 3 || seen[0].status != 200 {
				t.Fatalf("%+v", seen)
			}
			tag := seen[0].answered.Get("ETag")
			f.conditional(t, "", tag, tag)
			if strings.HasPrefix(tag, "W/") != (key != "") || seen[0].answered.Get("Content-Encoding") == "" {
				t.Errorf("the tag is %s, the coding %q", tag, seen[0].answered.Get("Content-Encoding"))
			}
			for _, x := range seen {
				if x.asked.Get("X-Api-Key") != key {
					t.Errorf("the key is %q", x.asked.Get("X-Api-Key"))
				}
			}
			if n := len(f.exchanges(http.StatusNotModified)); n != 2 {
				t.Errorf("%d answers were 304", n)
			}
		}
	})
}

// Clients print each change, and end when another request cannot help.
func TestClientsTell(t *testing.T) {
	t.Parallel()
	eachClient(t, func(t *testing.T, start func(args ...string) *process) {
		f := newFront(t, "", nil, says(200, plainDocument, "ETag", `"a"`), says(304, "", "ETag", `"a"`), says(200, staleDocument, "ETag", `W/"b"`),
			says(304, "", "ETag", `W/"b"`), says(200, plainDocument), says(200, plainDocument))
		sameLines(t, start("--count", "6", "--max-wait", "0.05", f.URL).ended(0, plainLine, "unchanged", staleLine, "unchanged", plainLine, plainLine))
		f.conditional(t, "", `"a"`, `"a"`, `W/"b"`, `W/"b"`, "")

		elsewhere := newFront(t, "", nil)
		for status, want := range map[int]string{401: "unknown", 302: ""} { // a redirect would send the key elsewhere
			f := newFront(t, "", nil, says(status, want, "Location", elsewhere.URL))
			errs := start("API_KEY=secret", "--max-wait", "0.05", f.URL).ended(1)
			if seen := f.exchanges(0); len(seen) != 1 || seen[0].asked.Get("X-Api-Key") != "secret" || !strings.Contains(strings.Join(errs, "\n"), fmt.Sprintf("refused: status %d %s", status, want)) {
				t.Errorf("%d: %+v, %q", status, seen, errs)
			}
		}
		if len(elsewhere.exchanges(0)) != 0 {
			t.Error("the key went to another host")
		}
		if errs := start("--max-wait").ended(map[bool]int{true: 1, false: 2}[strings.HasSuffix(t.Name(), "javascript")]); len(errs) == 0 {
			t.Error("no message about missing arguments")
		}
	})
}

// Clients ask a failing or silent server again: at the time of its Retry-After, and at growing intervals without Retry-After.
func TestFaultClientsRefused(t *testing.T) {
	t.Parallel()
	var injected atomic.Int64
	eachClient(t, func(t *testing.T, start func(args ...string) *process) {
		var date time.Time // of Retry-After; read after the next request
		dated := func(w http.ResponseWriter, r *http.Request) {
			date = time.Now().Truncate(time.Second).Add(2 * time.Second)
			says(503, "", "Retry-After", date.UTC().Format(http.TimeFormat))(w, r)
		}
		refusals := []http.HandlerFunc{says(429, "", "Retry-After", "1"), dated, says(200, "<html>", "ETag", `"html"`), says(200, "", "ETag", `"empty"`), cut, noAnswer,
			says(502, "", "ETag", `"502"`), says(500, "", "Retry-After", "never")}
		if full() { // a client gives up after 10 seconds
			refusals = append(refusals, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		}
		f := newFront(t, "", nil, slices.Concat([]http.HandlerFunc{says(200, plainDocument, "ETag", `"a"`)}, refusals, []http.HandlerFunc{says(304, ""), says(503, "", "Retry-After", "99999999999")})...)
		told := start("--max-wait", "0.3", f.URL)

		script := []http.HandlerFunc{says(200, plainDocument, "Cache-Control", "Public, S-MaxAge=9, Max-Age=90, stale-if-error=86400", "Age", "88"), says(500, ""), says(500, "")}
		want := []string{"failed: status 500; again in 1 s", "failed: status 500; again in 2 s"}
		if full() {
			script = append(script, says(500, ""), says(500, ""))
			want = append(want, "failed: status 500; again in 4 s", "failed: status 500; again in 8 s")
		}
		script, want = append(script, says(503, "", "Retry-After", "600")), append(want, "failed: status 503; again in 600 s")
		g := newFront(t, "", nil, script...)
		untold := start(g.URL)

		told.until("the last refusal", func() bool { return strings.HasSuffix(told.logged(), "again in 86400 s\n") })
		told.until("both answers", func() bool { return len(told.out.lines()) == 2 })
		sameLines(t, told.out.lines(), plainLine, "unchanged")
		errs := told.log.lines()
		if len(errs) != len(refusals)+1 {
			t.Errorf("%q", errs)
		}
		f.conditional(t, append([]string{""}, slices.Repeat([]string{`"a"`}, len(refusals)+2)...)...)
		seen := f.exchanges(0)
		if gap := seen[10].at.Sub(seen[9].at); full() && gap < 9*time.Second {
			t.Errorf("gave up after %v", gap)
		}
		if gap := seen[2].at.Sub(seen[1].at); gap < time.Second {
			t.Errorf("waited %v, was told 1 s", gap)
		}
		if at := seen[3].at; at.Before(date) {
			t.Errorf("asked again at %v, was told %v", at, date)
		}

		untold.until("longer and longer pauses", func() bool { return len(untold.log.lines()) == len(want) })
		sameLines(t, untold.log.lines(), want...)
		pause := 2 * time.Second // max-age less Age; then the printed waits
		seen = g.exchanges(0)
		for i := 1; i < len(seen); i++ {
			if gap := seen[i].at.Sub(seen[i-1].at); gap < pause {
				t.Errorf("pause %d took %v, want %v", i, gap, pause)
			}
			pause = time.Second << (i - 1)
		}
		injected.Add(int64(len(errs) + len(seen) - 1))
	})
	figure(t, "the example clients got %d answers that were refused, cut off or no document, and asked again at the right time, with their tag", injected.Load())
}
