package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

var adminLine = regexp.MustCompile(`msg="serving admin" address=(http://\S+)`)

// operator serves with an admin listener and returns its URL.
func operator(t *testing.T, args ...string) (*process, string) {
	t.Helper()
	p := serve(t, append([]string{"--admin-listen", "127.0.0.1:0"}, args...)...)
	m := adminLine.FindStringSubmatch(p.logged())
	if m == nil {
		t.Fatalf("no admin listener\n%s", p.logged())
	}
	return p, m[1]
}

// fetch returns the body of a URL.
func fetch(t *testing.T, url string) string {
	t.Helper()
	client := http.Client{Timeout: 30 * time.Second}
	defer client.CloseIdleConnections()
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %v %.200s", url, resp.StatusCode, err, body)
	}
	return string(body)
}

// metric returns the value of a sample in a scrape, "" without one.
func metric(scrape, sample string) string {
	for line := range strings.Lines(scrape) {
		if value, ok := strings.CutPrefix(line, sample+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// The metrics of a running server say what it did, exactly.
func TestMetrics(t *testing.T) {
	p, admin := operator(t, "--data-dir", t.TempDir())
	p.ready()
	const sample = `strikecache_http_requests_total{code="200",coding="identity",resource="vix-term-structure"}`
	if before := metric(fetch(t, admin+"/metrics"), sample); before != "" {
		t.Errorf("before any request: %s", before)
	}
	for range 130 {
		p.get("/api/public/vix-term-structure", "Accept-Encoding", "identity")
	}
	// Freshness may be sealed again meanwhile, but no job of a feed runs twice in these seconds but flow.
	p.until("every feed is refreshed", func() bool {
		scrape := fetch(t, admin+"/metrics")
		for _, feed := range []string{"spx", "vix", "sectors", "flow"} {
			if metric(scrape, `strikecache_refreshes_total{code="ok",feed="`+feed+`"}`) == "" {
				return false
			}
		}
		return true
	})
	scrape := fetch(t, admin+"/metrics")
	for name, want := range map[string]string{
		sample: "130", "strikecache_ready": "1", "strikecache_resources_waiting": "0", `strikecache_snapshot_stale{resource="gex/spx"}`: "0",
		`strikecache_http_request_duration_seconds_count{resource="vix-term-structure"}`: "3", // 1, 65, 129
		"strikecache_connections_refused_total":                                          "0", "strikecache_latest_cache_rejected_sets_total": "0", "strikecache_bad_files_total": "0",
	} {
		if got := metric(scrape, name); got != want {
			t.Errorf("%s is %q, want %s", name, got, want)
		}
	}
	for _, resource := range []string{"gex/spx", "gex/spx/series", "sectors/rotation", "spx-max-pain", "options/flow/unusual", "vix-term-structure"} {
		if metric(scrape, `strikecache_snapshot_age_seconds{resource="`+resource+`"}`) == "" {
			t.Errorf("no age of %s", resource)
		}
	}
	fetch(t, admin+"/debug/pprof/goroutine?debug=1")
	if err := p.stop(syscall.SIGTERM); err != nil {
		t.Errorf("%v\n%s", err, p.logged())
	}
}

// An admin listener that cannot be had is an error that names the flag; none is none.
func TestAdminListen(t *testing.T) {
	p, admin := operator(t, "--data-dir", t.TempDir())
	taken := strings.TrimPrefix(admin, "http://")
	for _, c := range []struct{ listen, want string }{{taken, "in use"}, {"here", "missing port"}, {"127.0.0.1:99999", "invalid port"}} {
		stdout, stderr, code := run(t, command(t, "serve", "--listen", "127.0.0.1:0", "--data-dir", t.TempDir(), "--admin-listen", c.listen))
		if code == 0 || !strings.Contains(stderr, "--admin-listen") || !strings.Contains(stderr, c.want) || strings.Contains(stdout+stderr, "msg=serving") {
			t.Errorf("%s: exit %d, %s", c.listen, code, stderr)
		}
	}
	for _, path := range []string{"/metrics", "/debug/pprof/"} {
		if resp, _ := p.get(path); resp.StatusCode != http.StatusNotFound {
			t.Errorf("the public listener answers %s: %d", path, resp.StatusCode)
		}
	}
	off := command(t, "serve", "--listen", "127.0.0.1:0", "--data-dir", t.TempDir())
	off.Env = append(off.Env, "STRIKECACHE_ADMIN_LISTEN=")
	if q := serveWith(t, off); strings.Contains(q.logged(), "serving admin") {
		t.Errorf("%s", q.logged())
	}
	if q := serve(t, "--data-dir", t.TempDir(), "--admin-listen", "[::]:0"); !strings.Contains(q.logged(), "open to other machines") {
		t.Errorf("no warning: %s", q.logged())
	}
}

// from asks with raw bytes from an address of this machine and returns the answer.
func from(t *testing.T, address, url, raw string) string {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}, Timeout: 10 * time.Second}
	c, err := dialer.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Skipf("needs to speak from %s: %v", address, err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, raw); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// No secret and no client address reaches the log, the disk, the metrics or a profile, with the most talkative log
// there is; an address reaches the log when it is asked for, and nothing else.
func TestNothingSecretLeaves(t *testing.T) {
	const peer, client, invalid = "127.9.8.7", "198.51.100.7", "sk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	for _, named := range []bool{false, true} {
		dir := t.TempDir()
		file := filepath.Join(dir, "keys.json")
		secret, id := newKey(t, file, "dashboard", "--per-minute", "3", "--per-day", "100")
		args := []string{
			"--data-dir", filepath.Join(dir, "data"), "--keys-file", file, "--log-level", "debug", "--log-every", "1", "--trusted-proxies", peer, "--anonymous-rate", "5",
		}
		if named {
			args = append(args, "--log-client-addr")
		}
		p, admin := operator(t, args...)
		p.ready()
		const get = "GET /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: " + client + "\r\n"
		answered := ""
		for _, raw := range []string{
			get + "X-API-Key: " + secret + "\r\n\r\n", get + "X-API-Key: " + secret + "\r\n\r\n", get + "X-API-Key: " + secret + "\r\n\r\n",
			get + "X-API-Key: " + secret + "\r\n\r\n",                              // over the rate
			get + "X-API-Key: " + secret + "\r\nX-API-Key: " + secret + "\r\n\r\n", // the general path
			get + "X-API-Key: " + invalid + "\r\n\r\n", get + "X-API-Key: " + secret + invalid + "\r\n\r\n",
			get + "\r\n", get + "\r\n", get + "\r\n", get + "\r\n", get + "\r\n", get + "\r\n", // over the rate
			"GET /" + secret + " HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: " + client + "\r\n\r\n",
			"GET /api/public/spx-max-pain?expiration=" + secret + " HTTP/1.1\r\nHost: " + secret + "\r\nX-Forwarded-For: " + client + "\r\n\r\n",
			"GET / HTTP/9.9\r\nX-API-Key: " + secret + "\r\n\r\n", get + "X-API-Key: " + secret + "\r\n", "\x16\x03\x01" + secret,
		} {
			answered += from(t, peer, p.url, raw)
		}
		// The faults were met: a key that is known, over its rate, unknown; an address over its rate.
		for _, want := range []string{`"key":"` + id, "invalid_api_key", "rate_limited", "not_found", "http_version_not_supported", "bad_request"} {
			if !strings.Contains(answered, want) {
				t.Fatalf("no answer has %s:\n%s", want, answered)
			}
		}
		secrets := []string{secret, strings.TrimPrefix(secret, "sk_"), invalid, digestOf(secret), digestOf(invalid)}
		for _, path := range []string{"/metrics", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2", "/debug/pprof/heap?debug=1"} {
			absent(t, "the admin's "+path, fetch(t, admin+path), append(secrets, peer+":", client)...)
		}
		if strings.Contains(fetch(t, admin+"/metrics"), id) {
			t.Error("the metrics name a key")
		}
		p.until("the requests are logged", func() bool {
			return strings.Contains(p.logged(), "key="+id) && strings.Contains(p.logged(), "status=505")
		})
		if err := p.stop(syscall.SIGTERM); err != nil {
			t.Errorf("%v\n%s", err, p.logged())
		}
		absent(t, "the log", p.logged(), secrets...)
		if log := p.logged(); named != strings.Contains(log, "client="+client) || !named && (strings.Contains(log, client) || strings.Contains(log, peer)) {
			t.Errorf("--log-client-addr %v: %s", named, log)
		}
		files := 0
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			files++
			what := append(secrets[:3:3], peer, client)
			if path != file { // which holds the digest, and nothing else does
				what = append(secrets, peer, client)
			}
			absent(t, path, string(text), what...)
			if name := d.Name(); err == nil && (name == "keys.json" || name == "usage.json") {
				if info, err := d.Info(); err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("%s: %v %v", path, info.Mode(), err)
				}
				files += 100
			}
			return err
		})
		if err != nil || files < 205 {
			t.Errorf("%d files looked at, the keys and their usage among them: %v", files, err)
		}
	}
}

func absent(t *testing.T, where, text string, secrets ...string) {
	t.Helper()
	for _, s := range secrets {
		if i := strings.Index(text, s); i >= 0 {
			t.Errorf("%s has %s: %.200q", where, s, text[max(0, i-100):])
		}
	}
}

func digestOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// Others may read the file of keys: the server does not start, and says what to do.
func TestOpenKeyFileIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.json")
	newKey(t, file, "k")
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	_, stderr, code := run(t, command(t, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "", "--data-dir", t.TempDir(), "--keys-file", file))
	if code == 0 || !strings.Contains(stderr, "has mode 0644") || !strings.Contains(stderr, "chmod 600 "+file) || strings.Contains(stderr, "goroutine") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// No answer says where anything lies, how it is made or what the upstream said: with an upstream that is not there,
// and for every way to be refused.
func TestErrorsSayNothingOfTheInside(t *testing.T) {
	upstream, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{}, 1)
	served := make(chan error, 1)
	go func() {
		served <- http.Serve(upstream, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			select {
			case asked <- struct{}{}:
			default:
			}
			http.Error(w, "upstream-detail in /var/upstream", http.StatusInternalServerError)
		}))
	}()
	defer func() { upstream.Close(); <-served }()
	dir := t.TempDir()
	p := serve(t, "--data-dir", dir, "--source", "cboe", "--cboe-base-url", "http://"+upstream.Addr().String(), "--cboe-settlement-url", "http://"+upstream.Addr().String())
	<-asked
	p.until("a refresh has failed", func() bool { return strings.Contains(p.logged(), "refresh failed") })
	for _, c := range []struct{ raw, code string }{
		{"GET /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\n\r\n", "not_ready"},
		{"GET /api/v1/gex/spx/historical HTTP/1.1\r\nHost: a\r\n\r\n", "not_ready"},
		{"GET /api/v1/gex/spx/historical?date=2020-01-02 HTTP/1.1\r\nHost: a\r\n\r\n", "snapshot_not_found"},
		{"GET /api/v1/gex/spx/historical?date=../../../etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n", "invalid_parameter"},
		{"GET /api/public/spx-max-pain?expiration=2020-01-02 HTTP/1.1\r\nHost: a\r\n\r\n", "not_ready"},
		{"GET /api/v1/options/flow/unusual?limit=0 HTTP/1.1\r\nHost: a\r\n\r\n", "not_ready"},
		{"GET /api/v1/sectors/rotation HTTP/1.1\r\nHost: a\r\n\r\n", "not_ready"},
		{"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n", `"ready":false`},
		{"GET /../../etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n", "not_found"},
		{"GET /debug/pprof/ HTTP/1.1\r\nHost: a\r\n\r\n", "not_found"},
		{"PUT /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\n\r\n", "method_not_allowed"},
		{"GET /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\nX-API-Key: ../x\r\n\r\n", "invalid_api_key"},
		{"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: a\r\n\r\n", "bad_request"},
		{"GET / HTTP/9.9\r\nHost: a\r\n\r\n", "http_version_not_supported"},
		{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999\r\n\r\n", "body_too_large"},
		{"GET /" + strings.Repeat("a", 5000), "uri_too_long"},
		{"GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("a", 9000), "headers_too_large"},
	} {
		got := from(t, "127.0.0.1", p.url, c.raw)
		if !strings.Contains(got, c.code) {
			t.Errorf("%.60q: %q, want %s", c.raw, got, c.code)
		}
		absent(t, c.raw[:20], got, dir, "upstream-detail", "/var/upstream", upstream.Addr().String(), ".go:", "goroutine", "dial tcp", "passwd", "refused")
	}
}
