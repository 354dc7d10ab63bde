package admin_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"go.uber.org/goleak"

	"strikecache/server"
	"strikecache/server/admin"
	"strikecache/snapshots"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, // fasthttp never stops these
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

var now = time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC)

// finder serves one resource, which describes an instant 20 minutes ago.
type finder struct{ edition *snapshots.Edition }

func (f finder) Current(resource string) *snapshots.Edition {
	if resource != "gex/spx" {
		return nil
	}
	return f.edition
}

func (f finder) Historical(string, string) (*snapshots.Snapshot, error) {
	return nil, snapshots.ErrNoSnapshot
}
func (f finder) DatesOf(string) []string { return nil }

func (f finder) Publications() uint64 { return 0 }

func newFinder(t testing.TB, state string) finder {
	t.Helper()
	s, err := snapshots.Seal([]byte(`{"x":1}`), snapshots.Meta{
		Endpoint: "gex/spx", Source: "simulated", AsOf: now.Add(-20 * time.Minute), Quality: json.RawMessage("{}"),
		Freshness: snapshots.Freshness{State: state, Since: now}, Receipt: snapshots.Receipt{InputSHA256: []string{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return finder{&snapshots.Edition{Default: s}}
}

var member = admin.Fleet{
	Role: "edge", Connected: true, Lease: 41, Lag: 3 * time.Millisecond,
	Put: 51, Applied: 52, Refused: map[string]int64{"older": 53, "corrupt": 0}, Reconnects: 54,
}

// stage is a public server with its admin server.
type stage struct {
	t             *testing.T
	public, admin string // URLs
	refreshes     *admin.Refreshes
	client        *http.Client
}

func readiness() server.Readiness {
	return server.Readiness{Waiting: []string{"sectors/rotation"}, Degraded: []string{"usage", "disk"}}
}

func open(t *testing.T, address string) *stage {
	t.Helper()
	find := newFinder(t, "stale")
	log := slog.New(slog.DiscardHandler)
	web := server.New(server.Config{Finder: find, Source: "simulated", Now: func() time.Time { return now }, Readiness: readiness, Log: log})
	st := &stage{t: t, refreshes: admin.NewRefreshes(), client: &http.Client{Transport: &http.Transport{}, Timeout: 5 * time.Minute}}
	operator, err := admin.Open(address, admin.Config{Healthz: web.Healthz, Readyz: web.Readyz, Log: log, Sources: admin.Sources{
		Version: "v1.2.3", Now: func() time.Time { return now }, Current: find.Current, Readiness: readiness, Server: web.Stats,
		Refreshes: st.refreshes, CertificateExpires: func() time.Time { return now }, Fleet: func() admin.Fleet { return member },
		Store: func() snapshots.Stats {
			return snapshots.Stats{
				FilesWritten: 5, BytesWritten: 1000, BadFiles: 2, FilesWaiting: 3, HistoryRejected: 31, HistoryDropped: 32, HistoryEvicted: 33,
				DiskErrors: map[string]int64{"create": 11, "write": 12, "sync": 13, "rename": 14, "sync_dir": 15},
			}
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(operator.Close)
	public, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- web.Serve(public) }()
	st.public, st.admin = "http://"+public.Addr().String(), "http://"+operator.Addr().String()
	t.Cleanup(func() {
		st.client.CloseIdleConnections()
		_ = web.Shutdown(t.Context()) // the context has ended
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return st
}

func (st *stage) ask(method, url, host string) (*http.Response, string) {
	st.t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		st.t.Fatal(err)
	}
	if host != "" {
		req.Host = host
	}
	resp, err := st.client.Do(req)
	if err != nil {
		st.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		st.t.Fatal(err)
	}
	return resp, string(body)
}

// scrape returns the samples of strikecache's metrics by name and labels.
func (st *stage) scrape() map[string]string {
	st.t.Helper()
	resp, body := st.ask("GET", st.admin+"/metrics", "")
	if resp.StatusCode != 200 {
		st.t.Fatalf("%d %s", resp.StatusCode, body)
	}
	samples := map[string]string{}
	for line := range strings.Lines(body) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.HasPrefix(name, "strikecache_") {
			samples[name] = value
		}
	}
	return samples
}

// This is the linter of promtool check metrics. It wants help texts, base units and conventional suffixes.
func TestMetricsAreConventional(t *testing.T) {
	st := open(t, "127.0.0.1:0")
	st.refreshes.Observe("spx", "ok", nil, time.Second)
	st.ask("GET", st.public+"/api/v1/gex/spx", "")
	_, body := st.ask("GET", st.admin+"/metrics", "")
	problems, err := promlint.New(strings.NewReader(body)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	for _, name := range []string{"go_goroutines", "process_resident_memory_bytes"} {
		if !strings.Contains(body, "\n"+name+" ") {
			t.Errorf("no %s", name)
		}
	}
}

// No client can choose a label or its value.
func TestLabels(t *testing.T) {
	st := open(t, "127.0.0.1:0")
	st.refreshes.Observe("spx", "upstream_timeout", nil, time.Second)
	const odd = "2026-11-19"
	for _, target := range []string{"/api/v1/gex/spx", "/api/v1/gex/spx/historical?date=" + odd, "/api/v1/gex/spx?x=" + odd, "/" + odd, "/"} {
		st.ask("GET", st.public+target, odd)
		st.ask("QUERY", st.public+target, odd)
	}
	allowed := map[string]*regexp.Regexp{
		"resource": regexp.MustCompile(`^(` + strings.Join(append(server.Resources(), "page", "other", "healthz", "readyz"), "|") + `)$`),
		"coding":   regexp.MustCompile(`^(identity|gzip|br|zstd)$`),
		"code":     regexp.MustCompile(`^([0-9]{3}|[a-z_]+)$`),
		"feed":     regexp.MustCompile(`^[a-z]+$`),
		"role":     regexp.MustCompile(`^edge$`),
		"reason":   regexp.MustCompile(`^(older|corrupt)$`),
		"step":     regexp.MustCompile(`^(create|write|sync|rename|sync_dir)$`),
		"le":       regexp.MustCompile(`^([0-9.e+-]+|\+Inf)$`),
		"version":  regexp.MustCompile(`^v1\.2\.3$`), "goversion": regexp.MustCompile(`^go[0-9.]+`),
	}
	label := regexp.MustCompile(`([a-z_]+)="([^"]*)"`)
	seen := 0
	for name := range st.scrape() {
		for _, m := range label.FindAllStringSubmatch(name, -1) {
			if form := allowed[m[1]]; form == nil || !form.MatchString(m[2]) {
				t.Errorf("label %s in %s", m[0], name)
			}
			seen++
		}
	}
	if seen < 40 {
		t.Errorf("%d labels seen", seen)
	}
}

func TestMetricsFollowWhatHappens(t *testing.T) {
	st := open(t, "127.0.0.1:0")
	before := st.scrape()
	for range 3 {
		st.ask("GET", st.public+"/api/v1/gex/spx", "")
	}
	st.ask("GET", st.public+"/api/v1/sectors/rotation", "")
	st.ask("GET", st.public+"/api/v1/options/flow/unusual?limit=x", "")
	st.ask("GET", st.public+"/", "")
	st.refreshes.Observe("spx", "ok", nil, 300*time.Millisecond)
	st.refreshes.Observe("spx", "upstream_timeout", []string{"price_jump", "clock_ahead", "price_jump"}, 3*time.Second)
	after := st.scrape()
	for name, want := range map[string]string{
		`strikecache_http_requests_total{code="200",coding="gzip",resource="gex/spx"}`:              "3", // what Go's client accepts
		`strikecache_http_requests_total{code="503",coding="identity",resource="sectors/rotation"}`: "1",
		`strikecache_http_requests_total{code="200",coding="gzip",resource="page"}`:                 "1",
		`strikecache_http_request_duration_seconds_count{resource="gex/spx"}`:                       "1",
		`strikecache_api_errors_total{code="not_ready"}`:                                            "2", // flow has no answer either
		`strikecache_api_errors_total{code="rate_limited"}`:                                         "0",
		`strikecache_connections_accepted_total`:                                                    "1",
		`strikecache_connections_open`:                                                              "1",
		`strikecache_connections_refused_total`:                                                     "0",
		`strikecache_refreshes_total{code="ok",feed="spx"}`:                                         "1",
		`strikecache_refreshes_total{code="upstream_timeout",feed="spx"}`:                           "1",
		`strikecache_documents_refused_total{code="price_jump",feed="spx"}`:                         "2",
		`strikecache_documents_refused_total{code="clock_ahead",feed="spx"}`:                        "1",
		`strikecache_refresh_duration_seconds_bucket{feed="spx",le="0.5"}`:                          "1",
		`strikecache_refresh_duration_seconds_sum{feed="spx"}`:                                      "3.3",
		`strikecache_snapshot_age_seconds{resource="gex/spx"}`:                                      "1200",
		`strikecache_snapshot_stale{resource="gex/spx"}`:                                            "1",
		`strikecache_snapshot_as_of_timestamp_seconds{resource="gex/spx"}`:                          "1.7951892e+09",
		`strikecache_fleet_role{role="edge"}`:                                                       "1",
		`strikecache_fleet_connected`:                                                               "1",
		`strikecache_fleet_lease`:                                                                   "41",
		`strikecache_fleet_refresher_silent_seconds`:                                                "0",
		`strikecache_fleet_lag_seconds`:                                                             "0.003",
		`strikecache_fleet_objects_put_total`:                                                       "51",
		`strikecache_fleet_objects_applied_total`:                                                   "52",
		`strikecache_fleet_objects_refused_total{reason="older"}`:                                   "53",
		`strikecache_fleet_objects_refused_total{reason="corrupt"}`:                                 "0",
		`strikecache_fleet_reconnects_total`:                                                        "54",
		`strikecache_ready`:                                                                         "0",
		`strikecache_resources_waiting`:                                                             "1",
		`strikecache_degraded{code="disk"}`:                                                         "1",
		`strikecache_degraded{code="usage"}`:                                                        "1",
		`strikecache_files_written_total`:                                                           "5",
		`strikecache_file_bytes_written_total`:                                                      "1000",
		`strikecache_bad_files_total`:                                                               "2",
		`strikecache_files_waiting`:                                                                 "3",
		`strikecache_disk_errors_total{step="create"}`:                                              "11",
		`strikecache_disk_errors_total{step="write"}`:                                               "12",
		`strikecache_disk_errors_total{step="sync"}`:                                                "13",
		`strikecache_disk_errors_total{step="rename"}`:                                              "14",
		`strikecache_disk_errors_total{step="sync_dir"}`:                                            "15",
		`strikecache_history_cache_rejected_sets_total`:                                             "31",
		`strikecache_history_cache_dropped_sets_total`:                                              "32",
		`strikecache_history_cache_evictions_total`:                                                 "33",
		`strikecache_build_info{goversion="` + runtime.Version() + `",version="v1.2.3"}`:            "1",
		`strikecache_tls_handshakes_failed_total`:                                                   "0",
		`strikecache_tls_certificate_expiry_timestamp_seconds`:                                      "1.7951904e+09",
		`strikecache_rate_limit_addresses`:                                                          "0",
		`strikecache_api_keys`:                                                                      "0",
	} {
		if after[name] != want {
			t.Errorf("%s is %q, want %s", name, after[name], want)
		}
	}
	member.SilentSince = time.Now().Add(-time.Minute)
	defer func() { member.SilentSince = time.Time{} }()
	if silent, err := strconv.ParseFloat(st.scrape()[`strikecache_fleet_refresher_silent_seconds`], 64); err != nil || silent < 60 || silent > 600 {
		t.Errorf("silent for %v seconds, %v", silent, err)
	}
	for name := range before {
		if strings.Contains(name, "http_requests_total") {
			t.Errorf("before any request there is %s", name)
		}
	}
	if after[`strikecache_refresh_last_success_timestamp_seconds{feed="spx"}`] == "" {
		t.Error("no last success")
	}
}

// The metric of an answer's tag has the first 52 bits of the tag that a client gets.
func TestTag(t *testing.T) {
	st := open(t, "127.0.0.1:0")
	st.client.Transport.(*http.Transport).DisableCompression = true
	resp, _ := st.ask("GET", st.public+"/api/v1/gex/spx", "")
	shown, err := strconv.ParseFloat(st.scrape()[`strikecache_snapshot_etag{resource="gex/spx"}`], 64)
	if tag := resp.Header.Get("ETag"); err != nil || len(tag) != 34 || fmt.Sprintf("%013x", uint64(shown)) != tag[1:14] {
		t.Errorf("%v %v for the tag %s", shown, err, tag)
	}
}

// A process outside a fleet has no metric of a fleet.
func TestNoFleet(t *testing.T) {
	registry := admin.NewRegistry(admin.Sources{
		Now: time.Now, Current: func(string) *snapshots.Edition { return nil }, Readiness: readiness, Refreshes: admin.NewRefreshes(),
		CertificateExpires: func() time.Time { return time.Time{} }, Server: func() server.Stats { return server.Stats{} },
		Store: func() snapshots.Stats { return snapshots.Stats{} },
	})
	families, err := registry.Gather()
	if err != nil || len(families) < 20 {
		t.Fatal(len(families), err)
	}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "strikecache_fleet") {
			t.Errorf("%s", f.GetName())
		}
	}
}

// The listener has metrics, profiles and probes, and nothing else. Only GET and HEAD are allowed.
func TestRoutes(t *testing.T) {
	st := open(t, "[::1]:0")
	for path, want := range map[string]int{
		"/metrics": 200, "/debug/pprof/": 200, "/debug/pprof/heap": 200, "/debug/pprof/goroutine?debug=1": 200, "/debug/pprof/cmdline": 200,
		"/debug/pprof/symbol": 200, "/debug/pprof/trace?seconds=0.01": 200, "/debug/pprof/profile?seconds=1": 200, "/debug/pprof/none": 404,
		"/healthz": 200, "/readyz": 503, "/": 404, "/api/v1/gex/spx": 404, "/debug": 404, "/debug/vars": 404, "/metrics/": 404,
	} {
		resp, body := st.ask("GET", st.admin+path, "")
		if resp.StatusCode != want || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %.200s", path, resp.StatusCode, body)
		}
		if path == "/readyz" && !strings.Contains(body, `"waiting":["sectors/rotation"]`) {
			t.Errorf("%s", body)
		}
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "TRACE"} {
		if resp, _ := st.ask(method, st.admin+"/metrics", ""); resp.StatusCode != 405 || resp.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d", method, resp.StatusCode)
		}
	}
	for _, path := range []string{"/metrics", "/debug/pprof/"} {
		if resp, _ := st.ask("GET", st.public+path, ""); resp.StatusCode != 404 {
			t.Errorf("the public listener answers %s: %d", path, resp.StatusCode)
		}
	}
}

// A web page whose name was made to point to this machine (DNS rebinding) reads nothing.
func TestRebinding(t *testing.T) {
	st := open(t, "127.0.0.1:0")
	_, port, err := net.SplitHostPort(st.admin[len("http://"):])
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{
		"127.0.0.1:" + port: 200, "localhost:" + port: 200, "LOCALHOST": 200, "[::1]:" + port: 200, "[::1]": 200, "127.9.9.9": 200,
		"evil.test:" + port: 421, "evil.test": 421, "localhost.evil.test": 421, "127.0.0.1.evil.test": 421, "local": 421,
	} {
		for _, path := range []string{"/metrics", "/debug/pprof/", "/readyz"} {
			resp, body := st.ask("GET", st.admin+path, host)
			if path == "/readyz" && want == 200 {
				continue
			}
			if resp.StatusCode != want || want != 200 && strings.Contains(body, "strikecache") {
				t.Errorf("%s for %s: %d %.100s", path, host, resp.StatusCode, body)
			}
		}
	}
	everywhere := open(t, "0.0.0.0:0") // a listener that other machines reach answers for any name
	if resp, body := everywhere.ask("GET", "http://127.0.0.1"+everywhere.admin[strings.LastIndex(everywhere.admin, ":"):]+"/metrics", "scraped.test"); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	empty, err := net.Dial("tcp", st.admin[len("http://"):])
	if err != nil {
		t.Fatal(err)
	}
	defer empty.Close()
	fmt.Fprint(empty, "GET /metrics HTTP/1.0\r\n\r\n")
	line, err := bufio.NewReader(empty).ReadString('\n')
	if err != nil || !strings.Contains(line, " 421 ") {
		t.Errorf("without a Host: %q %v", line, err)
	}
}

// Clients that send half a head do not delay a probe, and at most 64 connections are open: the one that has waited longest is
// closed for a new one.
func TestHalfHeadsDoNotDelayAProbe(t *testing.T) {
	st := open(t, "127.0.0.1:0")
	var half []net.Conn
	for range 300 {
		c, err := net.Dial("tcp", st.admin[len("http://"):])
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprint(c, "GET /healthz HTTP/1.1\r\nHost: local")
		half = append(half, c)
	}
	if resp, body := st.ask("GET", st.admin+"/healthz", ""); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	for i, c := range half {
		if i >= 300-63 {
			fmt.Fprint(c, "host\r\n\r\n")
		}
		line, _ := bufio.NewReader(c).ReadString('\n') // "" when the connection is closed
		if open := line == "HTTP/1.1 200 OK\r\n"; open != (i >= 300-63) {
			t.Errorf("half head %d: %q", i, line)
		}
	}
}

// A panic is answered with 500, is logged without the client's address, and ends only its own request.
func TestPanicIsAnswered(t *testing.T) {
	var log strings.Builder
	s, err := admin.Open("127.0.0.1:0", admin.Config{
		Sources: admin.Sources{Refreshes: admin.NewRefreshes()}, Log: slog.New(slog.NewTextHandler(&log, nil)),
		Healthz: func() (int, []byte) { panic("a fault in /srv/place.go") },
	})
	if err != nil {
		t.Fatal(err)
	}
	st := &stage{t: t, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	for range 2 {
		if resp, body := st.ask("GET", "http://"+s.Addr().String()+"/healthz", ""); resp.StatusCode != 500 || body != "internal error\n" {
			t.Errorf("%d %q", resp.StatusCode, body)
		}
	}
	s.Close()
	text := log.String()
	_, text, _ = strings.Cut(text, "\n") // the first line has the server's own address
	if strings.Count(text, "a fault in /srv/place.go") != 2 || strings.Contains(text, "127.0.0.1") {
		t.Errorf("log: %s", text)
	}
}
