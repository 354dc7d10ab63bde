package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// contract is a server and the document that it serves.
type contract struct {
	*process
	mu  *sync.Mutex // protects doc
	doc *description
}

// ask sends a request and holds the answer against the document.
func (c *contract) ask(status int, method, target string, headers ...string) {
	c.t.Helper()
	req, err := http.NewRequest(method, c.url+target, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	c.check(status, req, resp)
}

func (c *contract) check(status int, req *http.Request, resp *http.Response) {
	c.t.Helper()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if resp.StatusCode != status {
		c.t.Errorf("%s %s: %d, want %d: %.300s", req.Method, req.URL, resp.StatusCode, status, body)
	}
	if len(body) > 0 {
		if body, err = decode(resp.Header.Get("Content-Encoding"), body); err != nil {
			c.t.Error(err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.doc.check(req, resp, body); err != nil {
		c.t.Errorf("%s %s: %d: %.2000v\n%.300s", req.Method, req.URL, resp.StatusCode, err, body)
	}
}

// raw sends a request that no client library would, and holds the answer against the document.
func (c *contract) raw(status int, method, path, request string) {
	c.t.Helper()
	conn, err := net.Dial("tcp", c.address())
	if err != nil {
		c.t.Error(err)
		return
	}
	defer conn.Close()
	if err := errors.Join(conn.SetDeadline(time.Now().Add(patience)), second(io.WriteString(conn, request))); err != nil {
		c.t.Error(err)
	}
	req := &http.Request{Method: method, URL: &url.URL{Path: path}, Header: http.Header{}}
	resp, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		c.t.Errorf("%s %s: %v", method, path, err)
		return
	}
	c.check(status, req, resp)
}

// resources are the paths that keys and limits concern.
func (c *contract) resources() (paths []string) {
	for _, path := range c.doc.paths() {
		if strings.HasPrefix(path, "/api/") {
			paths = append(paths, path)
		}
	}
	return paths
}

// served are the documented paths and methods.
func (c *contract) served(visit func(method, path string)) {
	for _, path := range c.doc.paths() {
		for _, method := range c.doc.methods(path) {
			visit(method, path)
		}
	}
}

var reading = []string{http.MethodGet, http.MethodHead}

// Every answer is as the document says: every resource with every parameter, every error, every header field. Every status,
// header field and code that the document has is shown by some answer.
func TestTheDocumentDescribesEveryAnswer(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "keys.json")
	keyed, _ := newKey(t, file, "keyed", "--per-minute", "6000", "--per-day", "100000")
	unlimited, _ := newKey(t, file, "unlimited", "--per-minute", "0", "--per-day", "0")
	slow, _ := newKey(t, file, "slow", "--per-minute", "1")
	spent, _ := newKey(t, file, "spent", "--per-day", "1")
	dir := storedDay(t)
	imported := importLevels(t, dir)
	p := serve(t, "--data-dir", dir, "--keys-file", file)
	p.ready()
	_, body := p.get("/openapi.json")
	doc := describe(t, body)
	c := &contract{p, &sync.Mutex{}, doc}
	dates := c.sessions()

	c.answers(dates)
	for _, date := range imported {
		c.ask(200, http.MethodGet, "/api/v1/gex/spx/historical?date="+date)
	}
	for _, path := range c.resources() {
		for _, method := range reading {
			c.ask(200, method, path, "X-API-Key", keyed)
			c.ask(200, method, path, "X-API-Key", unlimited)
			c.ask(304, method, path, "X-API-Key", keyed, "If-None-Match", "*")
			c.ask(401, method, path, "X-API-Key", "nobody's")
			c.get(path, "X-API-Key", slow) // the second one at the latest is too many
			c.ask(429, method, path, "X-API-Key", slow)
			c.get(path, "X-API-Key", spent)
			c.ask(429, method, path, "X-API-Key", spent)
		}
	}
	c.parameters(dates, keyed)
	c.protocol()
	c.impaired(file)
	for _, replay := range tinyReplays {
		c.replays(replay.ready, replay.files)
	}
	c.unseen()
	t.Logf("figure: %s", doc.figures())
}

// importLevels stores two dates: one of which little is known, before the verified calendar, and one of which all is.
func importLevels(t *testing.T, dir string) (dates []string) {
	t.Helper()
	cmd := command(t, "import", "-", "--data-dir", dir)
	cmd.Stdin = strings.NewReader(levelsHeader + "2013-01-07,SPX,1461.89,,,,,,,,,0\r\n" +
		"2015-01-05,SPX,2020.58,-6454130017,2041.5,2100,2000,2060,2050,negative,2015-01-02,15204\r\n")
	if stdout, stderr, code := run(t, cmd); code != 0 || !strings.Contains(stdout, "imported 2 dates") {
		t.Fatalf("import: exit %d, %s%s", code, stdout, stderr)
	}
	return []string{"2013-01-07", "2015-01-05"}
}

// The recorded chain has oddities that the simulated one has not.
func TestTheDocumentDescribesRecordedAnswers(t *testing.T) {
	t.Parallel()
	p := serve(t, "--data-dir", t.TempDir(), "--source", "replay", "--replay-dir", filepath.Join(recorded(t), "replay"), "--anonymous-rate", "600")
	p.ready()
	_, body := p.get("/openapi.json")
	doc := describe(t, body)
	c := &contract{p, &sync.Mutex{}, doc}
	c.ask(200, http.MethodGet, "/api/public/spx-max-pain?expiration=2026-09-17") // on which nothing is open
	for _, target := range targets {
		status := 200
		if target == "/api/v1/sectors/rotation" {
			status = 503 // no history is recorded
		}
		c.ask(status, http.MethodGet, target)
	}
	t.Log(doc.figures())
}

// answers asks for every resource and page as it is, and again.
func (c *contract) answers(dates []string) {
	c.t.Helper()
	c.served(func(method, path string) {
		switch {
		case method == http.MethodOptions:
			c.ask(204, method, path)
			return
		case path == "/healthz" || path == "/readyz":
			c.ask(200, method, path)
			return
		}
		c.ask(200, method, path)
		c.ask(304, method, path, "If-None-Match", "*")
		c.ask(200, method, path, "Accept-Encoding", "gzip")
	})
	var pain struct {
		Expirations []struct{ Expiration, Settlement string }
	}
	if err := json.Unmarshal(c.envelope("/api/public/spx-max-pain").Data, &pain); err != nil {
		c.t.Fatal(err)
	}
	mixed := slices.IndexFunc(pain.Expirations, func(e struct{ Expiration, Settlement string }) bool { return e.Settlement == "mixed" })
	targets := append([]string{
		"/api/public/spx-max-pain?expiration=" + pain.Expirations[mixed].Expiration,
		"/api/public/spx-max-pain?expiration=" + pain.Expirations[len(pain.Expirations)-1].Expiration,
		"/api/v1/gex/spx/historical?date=" + dates[0], "/api/v1/gex/spx/historical?date=" + dates[len(dates)-1],
	}, targets...)
	for _, target := range targets {
		c.ask(200, http.MethodGet, target)
	}
	c.ask(404, http.MethodGet, "/no/such/path")
}

// parameters asks with every parameter at and beyond its bounds: the document allows what the server does.
func (c *contract) parameters(dates []string, key string) {
	c.t.Helper()
	for _, bad := range []struct {
		status  int
		target  string
		allowed bool // by the document: what it cannot express
	}{
		{400, "/api/v1/options/flow/unusual?limit=0", false}, {400, "/api/v1/options/flow/unusual?limit=101", false},
		{400, "/api/v1/options/flow/unusual?limit=ten", false}, {400, "/api/v1/options/flow/unusual?limit=1&limit=2", true},
		{400, "/api/v1/options/flow/unusual?limit=1.5", false}, {400, "/api/v1/options/flow/unusual?limit=-1", false},
		{400, "/api/v1/gex/spx/historical?date=yesterday", false}, {400, "/api/v1/gex/spx/historical?date=20261119", false},
		{400, "/api/v1/gex/spx/historical?date=2999-01-01", true}, {404, "/api/v1/gex/spx/historical?date=2000-01-01", true},
		{400, "/api/public/spx-max-pain?expiration=soon", false}, {404, "/api/public/spx-max-pain?expiration=2000-01-01", true},
	} {
		c.ask(bad.status, http.MethodGet, bad.target, "X-API-Key", key)
		c.ask(bad.status, http.MethodHead, bad.target)
		target, err := url.Parse(bad.target)
		if err != nil {
			c.t.Fatal(err)
		}
		if err := c.doc.allows(target); (err == nil) != bad.allowed {
			c.t.Errorf("%s is answered %d; the document says %v", bad.target, bad.status, err)
		}
	}
	day, err := time.Parse(time.DateOnly, dates[0])
	if err != nil {
		c.t.Fatal(err)
	}
	for slices.Contains(dates, day.Format(time.DateOnly)) {
		day = day.AddDate(0, 0, 1)
	}
	c.ask(404, http.MethodGet, "/api/v1/gex/spx/historical?date="+day.Format(time.DateOnly))
}

// protocol provokes the errors that every path has in common.
func (c *contract) protocol() {
	c.t.Helper()
	var slow sync.WaitGroup
	c.served(func(method, path string) {
		head := " HTTP/1.1\r\nHost: x\r\n"
		slow.Go(func() { c.raw(408, method, path, method+" "+path+head) }) // and no end
		c.raw(400, method, path, method+" "+path+head+"Transfer-Encoding: chunked\r\n\r\n")
		c.raw(413, method, path, method+" "+path+head+"Content-Length: 1025\r\n\r\n")
		c.raw(414, method, path, method+" "+path+"?"+strings.Repeat("x", 4096)+head+"\r\n")
		c.raw(431, method, path, method+" "+path+head+"X: "+strings.Repeat("x", 8192)+"\r\n\r\n")
		c.raw(505, method, path, method+" "+path+" HTTP/9.9\r\nHost: x\r\n\r\n")
		if method == http.MethodGet {
			c.ask(405, http.MethodPost, path)
			if !slices.Contains(c.doc.methods(path), http.MethodOptions) {
				c.ask(405, http.MethodOptions, path)
			}
		}
	})
	slow.Wait()
}

func second[T any](_ T, err error) error { return err }

// impaired spoils the file of keys.
func (c *contract) impaired(keys string) {
	c.t.Helper()
	if err := os.WriteFile(keys, []byte("no keys"), 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.until("the spoilt file is noticed", func() bool {
		_, body := c.get("/readyz")
		return bytes.Contains(body, []byte(`"degraded":["keys"]`))
	})
	c.ask(200, http.MethodGet, "/readyz")
}

// tinyReplays are folders of documents so poor that most is unknown.
var tinyReplays = []struct {
	ready int // the status of /readyz
	files map[string]string
}{
	{200, map[string]string{"settlement/2026-10-21.csv": settlements + "VX,VX/V6,2026-10-21,17.4\nVX,VX/X6,2026-11-18,18.1\nVX,VX/Z6,2026-12-17,18.5\n"}},
	{200, map[string]string{ // beyond the verified calendar, with one month, one sector and no benchmark
		"settlement/2031-02-18.csv":  settlements + "VX,VX/G1,2031-02-19,18.1\n",
		"quotes/XLK.json":            `{"timestamp": "2031-02-19 20:00:00", "data": {"symbol": "XLK", "current_price": 250.5, "price_change_percent": null, "last_trade_time": "2031-02-19T14:45:00"}}`,
		"charts/historical/XLK.json": `{"symbol": "XLK", "data": [{"date": "2031-02-10", "open": 1, "high": 1, "low": 1, "close": 249.5, "volume": 0}]}`,
	}},
	{503, map[string]string{
		"options/_SPX.json": `{"timestamp": "2026-10-06 17:56:38", "data": {"options": []}}`,
		"quotes/_VIX.json":  `{"timestamp": "2026-10-06 17:56:38", "data": {"symbol": "^VIX", "current_price": 15.1, "last_trade_time": "2026-10-06T13:41:31"}}`,
	}},
}

const settlements = "Product,Symbol,Expiration Date,Price\n"

// replays holds the answers from a folder of documents against the document.
func (c *contract) replays(ready int, files map[string]string) {
	c.t.Helper()
	dir := c.t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			c.t.Fatal(err)
		}
	}
	r := &contract{serve(c.t, "--data-dir", c.t.TempDir(), "--source", "replay", "--replay-dir", dir, "--anonymous-rate", "6000"), c.mu, c.doc}
	if ready == 200 {
		r.ready()
	}
	for _, method := range reading {
		r.ask(ready, method, "/readyz")
		for _, path := range c.resources() {
			status := 503
			if name := filepath.Base(path); ready == 200 && (name == "vix-term-structure" || name == "rotation" && len(files) > 1) {
				status = 200
			}
			r.ask(status, method, path)
		}
	}
	r.kill()
}

// neverShown is what no answer of these servers shows, and why it is documented all the same.
var neverShown = []struct{ pattern, why string }{
	{` 500$|^Internal: |^code internal_error$`, "a fault of the server; provoked inside it, in its own test"},
	{`^code overloaded$`, "needs many slow disks at once; provoked inside the server, in its own test"},
}

// unseen names what is documented and was not shown.
func (c *contract) unseen() {
	c.t.Helper()
	excused := map[string]int{}
	for _, key := range c.doc.unseen() {
		i := slices.IndexFunc(neverShown, func(n struct{ pattern, why string }) bool { return regexp.MustCompile(n.pattern).MatchString(key) })
		switch {
		case i >= 0:
			excused[neverShown[i].pattern]++
		default:
			c.t.Errorf("documented and never shown: %s", key)
		}
	}
	for _, n := range neverShown {
		if excused[n.pattern] == 0 {
			c.t.Errorf("shown, though %s: %s", n.why, n.pattern)
		}
	}
}
