package e2e

import (
	"bytes"
	"errors"
	"io"
	"net/http"
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

func newContract(p *process) *contract {
	p.t.Helper()
	_, body := p.get("/openapi.json")
	return &contract{p, &sync.Mutex{}, describe(p.t, body)}
}

// ask sends a request and compares the answer with the document.
func (c *contract) ask(status int, method, target string, headers ...string) {
	c.t.Helper()
	resp, body, err := fetch(method, c.url+target, headers...)
	c.check(status, method, target, resp, body, err)
}

// raw sends a request that no client library would send, and compares the answer with the document.
func (c *contract) raw(status int, method, path, request string) {
	c.t.Helper()
	conn, err := dial(c.address())
	if err != nil {
		c.t.Error(err)
		return
	}
	defer conn.Close()
	_, sent := io.WriteString(conn, request)
	resp, body, err := conn.receive(method)
	c.check(status, method, path, resp, body, errors.Join(sent, err))
}

func (c *contract) check(status int, method, target string, resp *http.Response, body []byte, err error) {
	c.t.Helper()
	if err == nil && len(body) > 0 {
		body, err = decode(resp, body, nil)
	}
	if err != nil || resp.StatusCode != status {
		c.t.Errorf("%s %s: %v, want %d: %v %.300s", method, target, resp, status, err, body)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.doc.check(method, target, resp, body); err != nil {
		c.t.Errorf("%s %s: %d: %.2000v\n%.300s", method, target, status, err, body)
	}
}

// resources returns the paths that keys and limits concern.
func (c *contract) resources() (paths []string) {
	for _, path := range c.doc.paths() {
		if strings.HasPrefix(path, "/api/") {
			paths = append(paths, path)
		}
	}
	return paths
}

// served visits the documented paths and methods.
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
	dir := storedDay(t)
	keyed, _ := newKey(t, dir, "keyed", "--per-minute", "6000", "--per-day", "100000")
	unlimited, _ := newKey(t, dir, "unlimited", "--per-minute", "0", "--per-day", "0")
	slow, _ := newKey(t, dir, "slow", "--per-minute", "1")
	spent, _ := newKey(t, dir, "spent", "--per-day", "1")
	c := newContract(serveReady(t, "--data-dir", dir, "--sim-speed", "0", "--sim-start", marketStart))
	dates := c.sessions()

	c.everything(dates)
	for _, path := range c.resources() {
		for _, method := range reading {
			c.ask(200, method, path, "X-API-Key", keyed)
			c.ask(200, method, path, "X-API-Key", unlimited)
			c.ask(304, method, path, "X-API-Key", keyed, "If-None-Match", "*")
			c.ask(412, method, path, "X-API-Key", keyed, "If-Match", `"x"`)
			c.ask(401, method, path, "X-API-Key", "nobody's")
			c.get(path, "X-API-Key", slow) // at the latest, the next request is over the limit
			resp, body, err := fetch(method, c.url+path, "X-API-Key", slow)
			if err == nil && resp.StatusCode == http.StatusOK { // a minute has ended since
				resp, body, err = fetch(method, c.url+path, "X-API-Key", slow)
			}
			c.check(429, method, path, resp, body, err)
			c.get(path, "X-API-Key", spent)
			c.ask(429, method, path, "X-API-Key", spent)
		}
	}
	c.parameters(dates, keyed)
	c.protocol()
	c.crowded()
	c.impaired(filepath.Join(dir, "keys.json"))
	for _, replay := range tinyReplays {
		c.replays(replay.ready, replay.files)
	}
	c.unseen()
	figure(t, "%d of %d documented statuses, header fields and codes shown", len(c.doc.documented())-len(c.doc.unseen()), len(c.doc.documented()))
}

// everything asks for every resource and page, also with conditions and codings.
func (c *contract) everything(dates []string) {
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
		c.ask(412, method, path, "If-Match", `"x"`)
		c.ask(200, method, path, "Accept-Encoding", "gzip")
	})
	type expiration struct{ Expiration, Settlement string }
	expirations := dataOf[struct{ Expirations []expiration }](c.process, painPath).Expirations
	mixed := slices.IndexFunc(expirations, func(e expiration) bool { return e.Settlement == "mixed" })
	targets := append([]string{
		painPath + "?expiration=" + expirations[mixed].Expiration,
		painPath + "?expiration=" + expirations[len(expirations)-1].Expiration,
		datePath + dates[0], datePath + dates[len(dates)-1], sectorsPath + "?date=" + dates[0], flowPath + "?limit=7&date=" + dates[0], vixPath + "?date=" + dates[0], painPath + "?date=" + dates[0],
	}, targets...)
	for _, target := range append(targets, forms...) {
		c.ask(200, http.MethodGet, target)
	}
	c.ask(304, http.MethodGet, levelsPath+"?format=line", "If-None-Match", "*")
	c.ask(404, http.MethodGet, "/no/such/path")
	c.served(func(method, path string) {
		if unknown := ofUnderlying.ReplaceAllString(path, "${1}${2}zzz${3}"); unknown != path && method != http.MethodOptions {
			c.ask(404, method, unknown)
		}
	})
}

// parameters asks with every parameter at and beyond its bounds: the document must allow what the server allows.
func (c *contract) parameters(dates []string, key string) {
	c.t.Helper()
	for _, bad := range []struct {
		status  int
		target  string
		allowed bool // by the document, which cannot express the rule
	}{
		{400, "/api/v1/options/flow/unusual?limit=0", false}, {400, "/api/v1/options/flow/unusual?limit=101", false},
		{400, "/api/v1/options/flow/unusual?limit=ten", false}, {400, "/api/v1/options/flow/unusual?limit=1&limit=2", true},
		{400, "/api/v1/options/flow/unusual?limit=1.5", false}, {400, "/api/v1/options/flow/unusual?limit=-1", false},
		{400, "/api/v1/gex/spx/historical?date=yesterday", false}, {400, "/api/v1/gex/spx/historical?date=20261119", false},
		{400, "/api/v1/gex/spx/historical?date=2999-01-01", true}, {404, "/api/v1/gex/spx/historical?date=2000-01-01", true},
		{404, "/api/v1/gex/spx/intraday?date=2000-01-01", true},
		{400, gammaPath + "?format=line", false}, {400, gammaPath + "/summary?format=csv", true}, {400, gammaPath + "/summary?date=" + marketDay, true},
		{400, levelsPath + "?format=xml", false}, {400, seriesPath + "?format=line", false}, {400, flowPath + "?limit=5&format=csv", true},
		{404, flowPath + "?date=2000-01-01", true}, {404, chainFlowPath + "?date=2000-01-01", true}, {400, flowPath + "?underlying=SPX", true},
		{404, sectorsPath + "?date=2000-01-01", true}, {400, sectorsPath + "?date=2999-01-01", true}, {400, sectorsPath + "?date=today", false},
		{404, vixPath + "?date=2000-01-01", true}, {400, vixPath + "?date=2999-01-01", true}, {400, vixPath + "?date=2026-1-1", false},
		{400, "/api/v1/gex/spx?date=2026-11-19", true}, {400, "/api/v1/underlyings?limit=5", true},
		{400, "/api/public/spx-max-pain?expiration=soon", false}, {404, "/api/public/spx-max-pain?expiration=2000-01-01", true},
		{404, painPath + "?date=2000-01-01", true}, {404, painPath + "?expiration=2000-01-01&date=" + dates[0], true}, {400, painPath + "?expiration=2026-12-18&format=csv", true},
		{404, gammaPath + "?underlying=zzz", true}, {404, flowPath + "?symbol=zzz", true}, {404, "/api/v1/underlyings?symbol=zzz", true},
	} {
		c.ask(bad.status, http.MethodGet, bad.target, "X-API-Key", key)
		c.ask(bad.status, http.MethodHead, bad.target)
		if err := c.doc.allows(bad.target); (err == nil) != bad.allowed {
			c.t.Errorf("%s is answered %d; the document says %v", bad.target, bad.status, err)
		}
	}
	day, err := time.Parse(time.DateOnly, dates[0])
	must(c.t, err)
	for slices.Contains(dates, day.Format(time.DateOnly)) {
		day = day.AddDate(0, 0, 1)
	}
	c.ask(404, http.MethodGet, datePath+day.Format(time.DateOnly))
}

// protocol provokes the errors that every path has in common.
func (c *contract) protocol() {
	c.t.Helper()
	var slow sync.WaitGroup
	c.served(func(method, path string) {
		head := " HTTP/1.1\r\nHost: x\r\n"
		slow.Go(func() { c.raw(408, method, path, method+" "+path+head) }) // a head without end
		c.raw(400, method, path, method+" "+path+head+"Transfer-Encoding: gzip\r\n\r\n")
		c.raw(413, method, path, method+" "+path+head+"Content-Length: 1025\r\n\r\n")
		c.raw(414, method, path, method+" "+path+"?"+strings.Repeat("x", 4096)+head+"\r\n")
		c.raw(431, method, path, method+" "+path+head+"X: "+strings.Repeat("x", 16384)+"\r\n\r\n")
		c.raw(505, method, path, method+" "+path+" HTTP/9.9\r\nHost: x\r\n\r\n")
		if method == http.MethodGet {
			c.ask(405, http.MethodPost, path)
		}
	})
	slow.Wait()
}

// crowded asks a server whose one connection is in use.
func (c *contract) crowded() {
	c.t.Helper()
	const line = " HTTP/1.1\r\nHost: x\r\n\r\n"
	r := &contract{serve(c.t, append([]string{"--max-connections", "1"}, noUpstream...)...), c.mu, c.doc}
	one := r.dial("GET /healthz" + line)
	c.served(func(method, path string) {
		if resp, _, err := one.receive(http.MethodGet); err != nil || resp.StatusCode != 200 {
			c.t.Fatalf("the one connection: %v %v", resp, err)
		}
		r.raw(503, method, path, method+" "+path+line)
		one.write(c.t, "GET /healthz"+line) // else the server would close it after a while
	})
	r.kill()
}

// impaired damages the key file and asks /readyz.
func (c *contract) impaired(keys string) {
	c.t.Helper()
	must(c.t, os.WriteFile(keys, []byte("no keys"), 0o600))
	c.until("the damaged file is noticed", func() bool {
		_, body := c.get("/readyz")
		return bytes.Contains(body, []byte(`"degraded":["keys"]`))
	})
	c.ask(200, http.MethodGet, "/readyz")
}

// tinyReplays are folders with so few documents that most values are unknown.
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

// replays compares the answers from a folder of upstream documents with the OpenAPI document.
func (c *contract) replays(ready int, files map[string]string) {
	c.t.Helper()
	dir := c.t.TempDir()
	for name, text := range files {
		writeFile(c.t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
	r := &contract{serve(c.t, "--data-dir", c.t.TempDir(), "--source", "replay", "--folder", dir, "--anonymous-rate", "6000"), c.mu, c.doc}
	if ready == 200 {
		r.ready()
	}
	for _, method := range reading {
		r.ask(ready, method, "/readyz")
		for _, path := range c.resources() {
			status := 503
			if ready == 200 && (strings.HasPrefix(path, vixPath) || strings.HasPrefix(path, sectorsPath) && len(files) > 1) {
				status = 200
			}
			r.ask(status, method, path)
		}
	}
	r.kill()
}

// faultOfTheServer matches what is documented although no answer here shows it: it is provoked inside the server, in its own test.
var faultOfTheServer = regexp.MustCompile(` 500$|^Internal: |^code internal_error$`)

// unseen reports what is documented but was not shown.
func (c *contract) unseen() {
	c.t.Helper()
	for _, key := range c.doc.unseen() {
		if !faultOfTheServer.MatchString(key) {
			c.t.Errorf("documented and never shown: %s", key)
		}
	}
}
