package admin_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"go.uber.org/goleak"

	"strikecache/server"
	"strikecache/server/admin"
	"strikecache/snapshots"

	"strikecache/bench/testkit"
)

var must = testkit.Must

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write testdata/metrics.txt anew")

// sources are those of a member of a fleet whose answer for gex/spx is stale.
func sources(t testing.TB) admin.Sources {
	t.Helper()
	now := time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	current := map[string]*snapshots.Edition{}
	for resource, data := range map[string]string{
		"gex/spx":        `{"x":1}`,
		"gex/spx/levels": `{"symbol":"SPX","spot":6000.5,"effective_spot":6001,"levels":[{"name":"call_wall","price":6100},{"name":"put_wall","price":5900.25}]}`,
		"gex/ndx/levels": `{"symbol":"NDX","spot":21000,"effective_spot":21000,"levels":[]}`,
		"underlyings": `{"rows":[` + strings.Join([]string{
			`{"symbol":"SPX","net_gex_dollars":-2500000000,"gamma_regime":"negative","atm_30d":12.5}`,
			`{"symbol":"NDX","net_gex_dollars":0,"gamma_regime":"neutral","atm_30d":null}`,
			`{"symbol":"VIX","net_gex_dollars":null,"gamma_regime":null,"atm_30d":null}`,
			`{"symbol":"QQQ","net_gex_dollars":1,"gamma_regime":"positive","atm_30d":0}`,
		}, ",") + `]}`,
	} {
		s, err := snapshots.Seal([]byte(data), snapshots.Meta{
			Endpoint: resource, Source: "simulated", AsOf: now.Add(-20 * time.Minute), Quality: json.RawMessage("{}"),
			Freshness: snapshots.Freshness{State: "stale", Since: now}, Receipt: snapshots.Receipt{InputSHA256: []string{}},
		}, snapshots.Brotli, snapshots.Zstd)
		must(t, err)
		current[resource] = &snapshots.Edition{Default: s}
	}
	stats := server.New(server.Config{Log: slog.New(slog.DiscardHandler), Now: clock}).Stats() // with every error code
	stats.Errors["not_ready"] = 21
	stats.Responses = []server.Responses{{Resource: "gex/spx", Status: 200, Coding: "gzip", Count: 22}}
	stats.Bytes = []server.Bytes{{Resource: "gex/spx", Coding: "gzip", Count: 23}}
	stats.Durations = []server.Durations{{Resource: "gex/spx", Buckets: map[float64]uint64{.001: 24, 1: 25}, Count: 26, Sum: 2.7}}
	stats.ConnectionsOpen, stats.ConnectionsAccepted, stats.ConnectionsRefused, stats.TLSHandshakesFailed = 28, 29, 30, 31
	stats.AddressesHeld, stats.KeysKnown, stats.KeysRefused = 32, 33, map[string]uint64{"k_0123456789ab": 38}
	return admin.Sources{
		Version: "v1.2.3", Now: clock, Refreshes: admin.NewRefreshes(), CertificateExpires: clock, LogLinesLost: func() int64 { return 37 }, Server: func() server.Stats { return stats },
		Current:   func(resource string) *snapshots.Edition { return current[resource] },
		Resources: []string{"gex/spx", "gex/spx/levels", "gex/ndx/levels", "gex/iwm/levels", "underlyings"},
		Readiness: func() server.Readiness {
			return server.Readiness{Waiting: []string{"sectors/rotation"}, Degraded: []string{"usage", "disk"}}
		},
		Store: func() snapshots.Stats {
			return snapshots.Stats{
				FilesWritten: 5, BytesWritten: 1000, BadFiles: 2, FilesWaiting: 3, HistoryRejected: 34, HistoryDropped: 35, HistoryEvicted: 36,
				DiskErrors: map[string]int64{"create": 11, "write": 12, "sync": 13, "rename": 14, "sync_dir": 15},
			}
		},
		Fleet: func() admin.Fleet {
			return admin.Fleet{
				Role: "edge", Connected: true, Lease: 41, SilentSince: time.Now().Add(-time.Minute), Lag: 3 * time.Millisecond,
				Put: 51, Applied: 52, Refused: map[string]int64{"older": 53, "corrupt": 0}, Reconnects: 54,
			}
		},
	}
}

// testdata/metrics.txt has each metric with its help, labels and value. The tests of bench/e2e look up there what dashboards
// and alerts use. promlint is the linter of promtool check metrics: it wants help texts, base units and conventional suffixes.
func TestMetrics(t *testing.T) {
	from := sources(t)
	synctest.Test(t, func(t *testing.T) { // the clock stands still
		from.Refreshes.Expect([]string{"spx"}, []string{"price_jump", "shrunk"})
		from.Refreshes.Observe("spx", "ok", nil, 300*time.Millisecond)
		from.Refreshes.Observe("spx", "upstream_timeout", []string{"price_jump", "clock_ahead", "price_jump"}, 3*time.Second)
		answer := httptest.NewRecorder()
		promhttp.HandlerFor(admin.NewRegistry(from), promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
		problems, err := promlint.New(strings.NewReader(answer.Body.String())).Lint()
		if answer.Code != 200 || err != nil || len(problems) > 0 {
			t.Errorf("%d %v %v", answer.Code, err, problems)
		}
		var ours strings.Builder
		for line := range strings.Lines(answer.Body.String()) {
			if strings.Contains(line, "strikecache_") {
				ours.WriteString(strings.Replace(line, runtime.Version(), "go1.x", 1))
			}
		}
		for _, name := range []string{"go_goroutines", "process_resident_memory_bytes"} {
			if !strings.Contains(answer.Body.String(), "\n"+name+" ") {
				t.Errorf("no %s", name)
			}
		}
		tag, digits := from.Current("gex/spx").Default.ETag(snapshots.Identity), 0.0
		_, after, _ := strings.Cut(ours.String(), `strikecache_snapshot_etag{resource="gex/spx"} `)
		if _, err := fmt.Sscan(after, &digits); err != nil || fmt.Sprintf("%013x", uint64(digits)) != tag[1:14] {
			t.Errorf("%v %v for the tag %s", digits, err, tag)
		}
		const golden = "testdata/metrics.txt"
		if *update {
			must(t, os.WriteFile(golden, []byte(ours.String()), 0o644))
		}
		if want, err := os.ReadFile(golden); err != nil || string(want) != ours.String() {
			t.Errorf("%s is not up to date: go test ./server/admin -update: %v\n%s", golden, err, ours.String())
		}
	})
}

// stage is an admin server with a client.
type stage struct {
	t      *testing.T
	url    string
	client http.Client
}

func open(t *testing.T, address string) *stage {
	t.Helper()
	probe := func(status int) admin.Probe {
		return func() (int, []byte) { return status, []byte(`{"service":"strikecache"}`) }
	}
	operator, err := admin.Open(address, admin.Config{Healthz: probe(200), Readyz: probe(503), Log: slog.New(slog.DiscardHandler), Sources: sources(t)})
	must(t, err)
	t.Cleanup(operator.Close)
	st := &stage{t, "http://" + operator.Addr().String(), http.Client{Transport: &http.Transport{}, Timeout: 5 * time.Minute}}
	t.Cleanup(st.client.CloseIdleConnections)
	return st
}

func (st *stage) ask(method, url, host string) (*http.Response, string) {
	st.t.Helper()
	req, err := http.NewRequest(method, url, nil)
	must(st.t, err)
	req.Host = host
	resp, err := st.client.Do(req)
	must(st.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(st.t, err)
	return resp, string(body)
}

// The listener has metrics, profiles and probes, and nothing else. Only GET and HEAD are allowed.
func TestRoutes(t *testing.T) {
	st := open(t, "[::1]:0")
	for path, want := range map[string]int{
		"/metrics": 200, "/debug/pprof/": 200, "/debug/pprof/heap": 200, "/debug/pprof/goroutine?debug=1": 200, "/debug/pprof/cmdline": 200,
		"/debug/pprof/symbol": 200, "/debug/pprof/trace?seconds=0.01": 200, "/debug/pprof/profile?seconds=1": 200, "/debug/pprof/none": 404,
		"/healthz": 200, "/readyz": 503, "/": 404, "/api/v1/gex/spx": 404, "/debug": 404, "/debug/vars": 404, "/metrics/": 404,
	} {
		resp, body := st.ask("GET", st.url+path, "")
		if resp.StatusCode != want || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %.200s", path, resp.StatusCode, body)
		}
		if strings.HasSuffix(path, "z") && body != `{"service":"strikecache"}` {
			t.Errorf("%s: %s", path, body)
		}
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "TRACE"} {
		if resp, _ := st.ask(method, st.url+"/metrics", ""); resp.StatusCode != 405 || resp.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d", method, resp.StatusCode)
		}
	}
}

// A web page whose name was made to point to this machine (DNS rebinding) reads nothing.
func TestRebinding(t *testing.T) {
	st := open(t, "127.0.0.1:0")
	_, port, err := net.SplitHostPort(st.url[len("http://"):])
	must(t, err)
	for host, want := range map[string]int{
		"127.0.0.1:" + port: 200, "localhost:" + port: 200, "LOCALHOST": 200, "[::1]:" + port: 200, "[::1]": 200, "127.9.9.9": 200,
		"evil.test:" + port: 421, "evil.test": 421, "localhost.evil.test": 421, "127.0.0.1.evil.test": 421, "local": 421,
	} {
		for _, path := range []string{"/metrics", "/debug/pprof/", "/readyz"} {
			resp, body := st.ask("GET", st.url+path, host)
			if path == "/readyz" && want == 200 {
				continue
			}
			if resp.StatusCode != want || want != 200 && strings.Contains(body, "strikecache") {
				t.Errorf("%s for %s: %d %.100s", path, host, resp.StatusCode, body)
			}
		}
	}
	everywhere := open(t, "0.0.0.0:0") // a listener that other machines reach answers for any name
	if resp, body := everywhere.ask("GET", "http://127.0.0.1"+everywhere.url[strings.LastIndex(everywhere.url, ":"):]+"/metrics", "scraped.test"); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	empty, err := net.Dial("tcp", st.url[len("http://"):])
	must(t, err)
	defer empty.Close()
	fmt.Fprint(empty, "GET /metrics HTTP/1.0\r\n\r\n")
	line, err := bufio.NewReader(empty).ReadString('\n')
	if err != nil || !strings.Contains(line, " 200 ") { // a health check of HTTP/1.0; every browser sends a Host
		t.Errorf("without a Host: %q %v", line, err)
	}
}

// Clients that send half a head do not delay a probe, and at most 64 connections are open: the one that has waited longest is
// closed for a new one.
func TestHalfHeadsDoNotDelayAProbe(t *testing.T) {
	st := open(t, "127.0.0.1:0")
	var half []net.Conn
	var sent []time.Time
	for range 300 {
		c, err := net.Dial("tcp", st.url[len("http://"):])
		must(t, err)
		defer c.Close()
		fmt.Fprint(c, "GET /healthz HTTP/1.1\r\nHost: local")
		half, sent = append(half, c), append(sent, time.Now())
	}
	if resp, body := st.ask("GET", st.url+"/healthz", ""); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	for i, c := range half {
		if i >= 300-63 {
			fmt.Fprint(c, "host\r\n\r\n")
		}
		line, _ := bufio.NewReader(c).ReadString('\n') // "" when the connection is closed
		if line == "" && time.Since(sent[i]) > 5*time.Second {
			continue // on a busy machine: the server waits no longer for a head
		}
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
	must(t, err)
	st := &stage{t: t, client: http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
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
