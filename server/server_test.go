package server_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp/fasthttputil"

	"strikecache/server"
	"strikecache/snapshots"
)

// shelf is a Finder with a few sealed snapshots.
type shelf struct {
	editions map[string]*snapshots.Edition
	dated    map[string]*snapshots.Snapshot
	err      error
}

func (s *shelf) Current(resource string) *snapshots.Edition { return s.editions[resource] }

func (s *shelf) Dates() []string {
	var dates []string
	for d := range s.dated {
		dates = append(dates, d)
	}
	slices.Sort(dates)
	return dates
}

func (s *shelf) Historical(date string) (*snapshots.Snapshot, error) {
	if s.err != nil {
		return nil, s.err
	}
	if dates := s.Dates(); date == "" && len(dates) > 0 {
		date = dates[len(dates)-1]
	}
	if snapshot := s.dated[date]; snapshot != nil {
		return snapshot, nil
	}
	return nil, snapshots.ErrNoSnapshot
}

func seal(t testing.TB, endpoint, data string) *snapshots.Snapshot {
	t.Helper()
	s, err := snapshots.Seal([]byte(data), snapshots.Meta{
		Endpoint: endpoint, Source: "simulated", RefreshSeconds: 60, Quality: json.RawMessage("{}"), Receipt: snapshots.Receipt{InputSHA256: []string{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// now is the market time of all tests: past midnight UTC, when the date before is not closed for good yet.
var now = time.Date(2026, 11, 20, 0, 14, 59, 0, time.UTC)

func newShelf(t testing.TB) *shelf {
	gamma := seal(t, "gex/spx", `{"spot":7000,"filler":"`+strings.Repeat("gamma ", 500)+`"}`)
	pain := seal(t, "spx-max-pain", `{"expiration":"2026-12-18"}`)
	flow := map[string]*snapshots.Snapshot{}
	for _, n := range []string{"1", "20", "100"} {
		flow[n] = seal(t, "options/flow/unusual", `{"count":`+n+`}`)
	}
	one := func(endpoint string) *snapshots.Edition {
		return &snapshots.Edition{Default: seal(t, endpoint, `{"x":1}`)}
	}
	return &shelf{
		editions: map[string]*snapshots.Edition{
			"gex/spx":              {Default: gamma},
			"gex/spx/series":       one("gex/spx/series"),
			"sectors/rotation":     one("sectors/rotation"),
			"vix-term-structure":   one("vix-term-structure"),
			"spx-max-pain":         {Default: pain, Variants: map[string]*snapshots.Snapshot{"2026-12-18": pain, "2026-11-27": seal(t, "spx-max-pain", `{"expiration":"2026-11-27"}`)}},
			"options/flow/unusual": {Default: flow["20"], Variants: flow},
		},
		dated: map[string]*snapshots.Snapshot{
			"2026-11-17": seal(t, "gex/spx", `{"day":17}`), "2026-11-19": seal(t, "gex/spx", `{"day":19}`), "2026-11-20": seal(t, "gex/spx", `{"day":20}`),
		},
	}
}

// newServer returns a server of a shelf that listens nowhere yet.
func newServer(s *shelf, change ...func(*server.Config)) *server.Server {
	cfg := server.Config{
		Finder: s, Source: "simulated", Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler),
		Readiness: func() server.Readiness { return server.Readiness{} },
	}
	for _, c := range change {
		c(&cfg)
	}
	return server.New(cfg)
}

// start serves a shelf in memory and returns a client of it.
func start(t testing.TB, s *shelf, unfed ...string) *http.Client {
	t.Helper()
	return serveInMemory(t, newServer(s, func(c *server.Config) {
		c.Readiness = func() server.Readiness { return server.Readiness{Unfed: unfed} }
	}))
}

// serveInMemory serves without a network and returns a client.
func serveInMemory(t testing.TB, web *server.Server) *http.Client {
	t.Helper()
	ln := fasthttputil.NewInmemoryListener()
	done := make(chan error, 1)
	go func() { done <- web.Serve(ln) }()
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return ln.Dial() }, DisableCompression: true}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := web.Shutdown(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
		ln.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return &http.Client{Transport: transport}
}

func do(t testing.TB, c *http.Client, method, target string, headers ...string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequest(method, "http://strikecache"+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, body
}

func TestEveryResourceSendsItsSnapshot(t *testing.T) {
	s := newShelf(t)
	c := start(t, s)
	for target, want := range map[string]*snapshots.Snapshot{
		"/api/v1/gex/spx":                                    s.editions["gex/spx"].Default,
		"/api/v1/gex/spx?anything=ignored&date=x":            s.editions["gex/spx"].Default,
		"/api/v1/gex/spx/series":                             s.editions["gex/spx/series"].Default,
		"/api/v1/gex/spx/historical":                         s.dated["2026-11-20"],
		"/api/v1/gex/spx/historical?date=2026-11-17":         s.dated["2026-11-17"],
		"/api/v1/gex/spx/historical?date=2026%2D11%2d17":     s.dated["2026-11-17"],
		"/api/v1/gex/spx/historical?limit=0&date=2026-11-19": s.dated["2026-11-19"],
		"/api/v1/sectors/rotation":                           s.editions["sectors/rotation"].Default,
		"/api/public/spx-max-pain":                           s.editions["spx-max-pain"].Default,
		"/api/public/spx-max-pain?expiration=2026-11-27":     s.editions["spx-max-pain"].Variants["2026-11-27"],
		"/api/v1/options/flow/unusual":                       s.editions["options/flow/unusual"].Variants["20"],
		"/api/v1/options/flow/unusual?limit=100":             s.editions["options/flow/unusual"].Variants["100"],
		"/api/v1/options/flow/unusual?limit=%31":             s.editions["options/flow/unusual"].Variants["1"],
		"/api/public/vix-term-structure":                     s.editions["vix-term-structure"].Default,
	} {
		resp, body := do(t, c, "GET", target)
		if resp.StatusCode != 200 || !bytes.Equal(body, want.Body(snapshots.Identity)) {
			t.Errorf("%s: %d %s", target, resp.StatusCode, body)
		}
		if resp.Header.Get("Content-Type") != "application/json" || resp.Header.Get("ETag") != want.ETag(snapshots.Identity) {
			t.Errorf("%s: headers %v", target, resp.Header)
		}
		resp, body = do(t, c, "GET", target, "Accept-Encoding", "gzip")
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			t.Fatalf("%s: %v", target, err)
		}
		if plain, err := io.ReadAll(z); err != nil || !bytes.Equal(plain, want.Body(snapshots.Identity)) || resp.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: gzip does not unpack to the identity body: %v", target, err)
		}
	}
}

func TestHeadEqualsGet(t *testing.T) {
	c := start(t, newShelf(t))
	for _, target := range []string{"/api/v1/gex/spx", "/api/v1/options/flow/unusual?limit=0", "/nowhere", "/healthz", "/readyz"} {
		for _, coding := range []string{"identity", "gzip"} {
			get, body := do(t, c, "GET", target, "Accept-Encoding", coding)
			head, none := do(t, c, "HEAD", target, "Accept-Encoding", coding)
			if len(none) != 0 || head.StatusCode != get.StatusCode || head.ContentLength != int64(len(body)) {
				t.Errorf("%s: HEAD %d, length %d, body %q", target, head.StatusCode, head.ContentLength, none)
			}
			get.Header.Del("Date")
			head.Header.Del("Date")
			for name := range get.Header {
				if get.Header.Get(name) != head.Header.Get(name) {
					t.Errorf("%s: %s differs: %q and %q", target, name, get.Header.Get(name), head.Header.Get(name))
				}
			}
		}
	}
}

func TestErrors(t *testing.T) {
	s := newShelf(t)
	c := start(t, s, "sectors/rotation")
	delete(s.editions, "sectors/rotation")
	delete(s.editions, "vix-term-structure")
	for _, e := range []struct {
		method, target string
		status         int
		code, contains string
	}{
		{"GET", "/nowhere", 404, "not_found", "/api/v1/gex/spx"},
		{"GET", "/api/v1/gex/spx/", 404, "not_found", ""},
		{"GET", "/API/V1/GEX/SPX", 404, "not_found", ""},
		{"POST", "/nowhere", 404, "not_found", ""},
		{"POST", "/api/v1/gex/spx", 405, "method_not_allowed", ""},
		{"DELETE", "/api/public/spx-max-pain", 405, "method_not_allowed", ""},
		{"PUT", "/healthz", 405, "method_not_allowed", "only GET and HEAD are"},
		{"OPTIONS", "/healthz", 405, "method_not_allowed", "only GET and HEAD are"},
		{"OPTIONS", "/readyz", 405, "method_not_allowed", "only GET and HEAD are"},
		{"OPTIONS", "/openapi.json", 405, "method_not_allowed", "only GET and HEAD are"},
		{"OPTIONS", "/", 405, "method_not_allowed", "only GET and HEAD are"},
		{"OPTIONS", "/nowhere", 404, "not_found", ""},
		{"GET", "/api/v1/options/flow/unusual?limit=0", 400, "invalid_parameter", "from 1 to 100"},
		{"GET", "/api/v1/options/flow/unusual?limit=101", 400, "invalid_parameter", "limit"},
		{"GET", "/api/v1/options/flow/unusual?limit=", 400, "invalid_parameter", "limit"},
		{"GET", "/api/v1/options/flow/unusual?limit", 400, "invalid_parameter", "limit"},
		{"GET", "/api/v1/options/flow/unusual?limit=020", 400, "invalid_parameter", "limit"},
		{"GET", "/api/v1/options/flow/unusual?limit=+20", 400, "invalid_parameter", "limit"},
		{"GET", "/api/v1/options/flow/unusual?limit=2%30%", 400, "invalid_parameter", "limit"},
		{"GET", "/api/v1/options/flow/unusual?limit=%E2%91%A0", 400, "invalid_parameter", "limit"},
		{"GET", "/api/v1/options/flow/unusual?limit=20&limit=20", 400, "invalid_parameter", "more than once"},
		{"GET", "/api/v1/options/flow/unusual?limit=20&lim%69t=20", 400, "invalid_parameter", "more than once"},
		{"GET", "/api/public/spx-max-pain?expiration=2026-12-19", 404, "expiration_not_found", `"expirations":["2026-11-27","2026-12-18"]`},
		{"GET", "/api/public/spx-max-pain?expiration=2026-12-32", 400, "invalid_parameter", "YYYY-MM-DD"},
		{"GET", "/api/public/spx-max-pain?expiration=../../etc/passwd", 400, "invalid_parameter", "expiration"},
		{"GET", "/api/public/spx-max-pain?expiration=", 400, "invalid_parameter", "expiration"},
		{"GET", "/api/v1/gex/spx/historical?date=2026-11-18", 404, "snapshot_not_found", `"nearest":{"earlier":"2026-11-17","later":"2026-11-19"}`},
		{"GET", "/api/v1/gex/spx/historical?date=2020-01-01", 404, "snapshot_not_found", `"nearest":{"earlier":null,"later":"2026-11-17"}`},
		{"GET", "/api/v1/gex/spx/historical?date=2026-11-21", 400, "invalid_parameter", "future"},
		{"GET", "/api/v1/gex/spx/historical?date=2026-1-1", 400, "invalid_parameter", "date"},
		{"GET", "/api/v1/gex/spx/historical?date=2026-02-29", 400, "invalid_parameter", "date"},
		{"GET", "/api/v1/gex/spx/historical?date=2026-11-17&date=2026-11-17", 400, "invalid_parameter", "more than once"},
		{"GET", "/api/v1/gex/spx/historical?date=" + strings.Repeat("9", 4000), 400, "invalid_parameter", "date"},
		{"GET", "/api/public/vix-term-structure", 503, "not_ready", "no answer yet"},
		{"GET", "/api/v1/sectors/rotation", 503, "not_ready", "no documents"},
	} {
		resp, body := do(t, c, e.method, e.target)
		var doc struct {
			Success *bool
			Error   struct{ Code, Message, Parameter string }
			Meta    struct{ Endpoint, Source string }
			Usage   struct{ Tier string }
		}
		if err := json.Unmarshal(body, &doc); err != nil {
			t.Errorf("%s %s: %v in %q", e.method, e.target, err, body)
			continue
		}
		if resp.StatusCode != e.status || doc.Error.Code != e.code || !strings.Contains(string(body), e.contains) {
			t.Errorf("%s %.80s: %d %s, want %d %s with %q", e.method, e.target, resp.StatusCode, body, e.status, e.code, e.contains)
		}
		if doc.Success == nil || *doc.Success || doc.Meta.Source != "simulated" || doc.Usage.Tier != "anonymous" || doc.Error.Message == "" {
			t.Errorf("%s %.80s: envelope %s", e.method, e.target, body)
		}
		if resp.Header.Get("Cache-Control") != "no-store" || resp.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s %.80s: headers %v", e.method, e.target, resp.Header)
		}
		allow := ""
		if e.status == 405 {
			allow = "GET, HEAD"
			if strings.HasPrefix(e.target, "/api/") {
				allow = "GET, HEAD, OPTIONS"
			}
		}
		if resp.Header.Get("Allow") != allow || (e.status == 503) != (resp.Header.Get("Retry-After") != "") {
			t.Errorf("%s %.80s: Allow %q, Retry-After %q", e.method, e.target, resp.Header.Get("Allow"), resp.Header.Get("Retry-After"))
		}
	}
}

func TestAKeyThatIsUnknownIsRefused(t *testing.T) {
	c := start(t, newShelf(t))
	resp, body := do(t, c, "GET", "/api/v1/gex/spx", "X-API-Key", "guess")
	if resp.StatusCode != 401 || !strings.Contains(string(body), "invalid_api_key") || resp.Header.Get("WWW-Authenticate") != "ApiKey" {
		t.Errorf("%d %s %v", resp.StatusCode, body, resp.Header)
	}
}

func TestBusyHistoryIs503(t *testing.T) {
	s := newShelf(t)
	s.err = snapshots.ErrBusy
	resp, body := do(t, start(t, s), "GET", "/api/v1/gex/spx/historical?date=2026-11-17")
	if resp.StatusCode != 503 || !strings.Contains(string(body), "overloaded") || resp.Header.Get("Retry-After") == "" {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

func TestCacheControl(t *testing.T) {
	c := start(t, newShelf(t))
	for target, want := range map[string]string{
		"/api/v1/gex/spx":                            "public, max-age=25, stale-while-revalidate=25, stale-if-error=86400",
		"/api/public/spx-max-pain":                   "public, max-age=60",
		"/api/v1/gex/spx/historical":                 "public, max-age=25",
		"/api/v1/gex/spx/historical?date=2026-11-20": "public, max-age=25", // today
		"/api/v1/gex/spx/historical?date=2026-11-19": "public, max-age=25", // closes at 00:10, immutable from 00:15
		"/api/v1/gex/spx/historical?date=2026-11-17": "public, max-age=31536000, immutable",
	} {
		resp, _ := do(t, c, "GET", target)
		if got := resp.Header.Get("Cache-Control"); got != want {
			t.Errorf("%s: %q, want %q", target, got, want)
		}
		if resp.Header.Get("Vary") != "Accept-Encoding, X-API-Key" || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: headers %v", target, resp.Header)
		}
	}
}

func TestPreflight(t *testing.T) {
	resp, body := do(t, start(t, newShelf(t)), "OPTIONS", "/api/v1/gex/spx", "Origin", "https://example.org",
		"Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "x-api-key")
	h := resp.Header
	if resp.StatusCode != 204 || len(body) != 0 || h.Get("Access-Control-Allow-Origin") != "*" || !strings.Contains(h.Get("Access-Control-Allow-Headers"), "X-API-Key") ||
		!strings.Contains(h.Get("Access-Control-Allow-Methods"), "GET") {
		t.Errorf("%d %v", resp.StatusCode, h)
	}
}

func TestReadiness(t *testing.T) {
	resp, body := do(t, start(t, newShelf(t), "sectors/rotation"), "GET", "/readyz")
	if resp.StatusCode != 200 || !strings.Contains(string(body), `"unfed":["sectors/rotation"]`) || resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}
