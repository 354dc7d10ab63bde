package e2e

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestTheSimulatedMarketAnswersEverything(t *testing.T) {
	t.Parallel()
	p := shared(t)
	if !strings.Contains(p.logged(), "SIMULATED") {
		t.Error("the log does not say that the market is simulated")
	}
	for _, target := range targets {
		if e := p.envelope(target); e.Meta.Source != "simulated" || e.Usage.Tier != "anonymous" {
			t.Errorf("%s: %+v", target, e.Meta)
		}
	}
	expirations := dataOf[painData](p, painPath).Expirations
	if len(expirations) < 50 {
		t.Fatalf("%d expirations", len(expirations))
	}
	for _, x := range expirations {
		p.envelope(painPath + "?expiration=" + x.Expiration)
	}
	for _, date := range p.sessions() {
		p.envelope(datePath + date)
	}
}

// A market whose clock runs, in an empty directory: everything is answered, then followed, with fewer lines in the log than
// refreshes, then stopped.
func TestFirstStart(t *testing.T) {
	t.Parallel()
	p := serve(t, "--sim-speed", "60", "--gex-every", "5s", "--flow-symbols", "XLF", "--admin-listen", "127.0.0.1:0")
	p.ready()
	first := p.envelope(gammaPath)
	p.until("a newer answer", func() bool { return p.envelope(gammaPath).Meta.Receipt.Data != first.Meta.Receipt.Data })
	refreshes := 0
	p.until("30 refreshes", func() bool {
		refreshes = 0
		for _, m := range regexp.MustCompile(`strikecache_refreshes_total\{code="ok",feed="\w+"\} (\d+)`).FindAllStringSubmatch(p.operator("/metrics"), -1) {
			n, _ := strconv.Atoi(m[1]) // digits, by the expression
			refreshes += n
		}
		return refreshes >= 30
	})
	if n := strings.Count(p.logged(), "msg=refreshed"); n > refreshes/2 {
		t.Errorf("%d of %d refreshes were logged", n, refreshes)
	}
	p.stopped()
	if log := p.logged(); !regexp.MustCompile(`msg=stopping[^\n]*\n(.*\n)*.*msg=stopped`).MatchString(log) {
		t.Errorf("the log does not end with stopping and stopped: %s", log)
	}
}

func TestReplayFromRecordedDocuments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := serve(t, "--data-dir", dir, "--source", "replay", "--replay-dir", filepath.Join(recorded(t), "replay"))
	p.ready()
	if spot := dataOf[gammaData](p, gammaPath).Spot; spot != 7728.20 {
		t.Errorf("spot %v", spot)
	}
	type side struct {
		MaxPain float64 `json:"max_pain"`
	}
	pain := dataOf[struct {
		side
		Sides struct{ AM, PM side } `json:"by_settlement"`
	}](p, painPath+"?expiration=2026-08-21")
	if pain.MaxPain != 7475 || pain.Sides.AM.MaxPain != 7400 || pain.Sides.PM.MaxPain != 7580 {
		t.Errorf("max pain %+v", pain)
	}
	if resp, body := p.get(sectorsPath); resp.StatusCode != 503 || !bytes.Contains(body, []byte("not_ready")) {
		t.Errorf("sectors without history: %d %s", resp.StatusCode, body)
	}
	if _, body := p.get("/readyz"); !bytes.Contains(body, []byte(`"unfed":["sectors/rotation"]`)) {
		t.Errorf("readyz: %s", body)
	}
	if e := p.envelope(datePath + "2026-08-11"); e.Meta.Source != "replay" {
		t.Errorf("historical: %+v", e.Meta)
	}
	p.stopped()
	for date, product := range map[string]string{"2026-08-11": "gex/spx identical\n", "2026-10-05": "vix-term-structure identical\n"} {
		if out, errs, code := recompute(t, dir, date, "--source", "replay"); code != 0 || !strings.Contains(out, product) {
			t.Errorf("%s: exit %d, %s%s", date, code, out, errs)
		}
	}
}

// A service manager is told that the server listens, although it has no data yet, that it is alive, and that it stops.
func TestServiceManagerIsTold(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	if err := manager.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	hear := func() string {
		b := make([]byte, 1<<10)
		n, err := manager.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	cmd := command(t, append([]string{"serve"}, noUpstream...)...)
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+name, "WATCHDOG_USEC=100000")
	p := serveWith(t, cmd)
	if got := hear(); got != "READY=1\nSTATUS=serving on "+p.address() {
		t.Errorf("first %q", got)
	}
	if resp, body := p.get("/readyz"); resp.StatusCode != 503 {
		t.Errorf("readyz: %d %s", resp.StatusCode, body)
	}
	for range 3 {
		if got := hear(); got != "WATCHDOG=1" {
			t.Errorf("then %q", got)
		}
	}
	p.stopped()
	for got := ""; got != "STOPPING=1"; {
		if got = hear(); got != "WATCHDOG=1" && got != "STOPPING=1" {
			t.Fatalf("at the end %q", got)
		}
	}
}

// A health check that has nothing but the binary: it says when the server is ready, and why it is not.
func TestVerifyReady(t *testing.T) {
	t.Parallel()
	ask := func(url string) (string, string, int) {
		return run(t, command(t, "verify", "--ready", url, "--data-dir", "/nonexistent"))
	}
	if out, stderr, code := ask(shared(t).url); code != 0 || !strings.HasPrefix(out, `ready: {"ready":true,"source":"simulated",`) {
		t.Errorf("ready: exit %d, %s%s", code, out, stderr)
	}
	starving := serve(t, noUpstream...)
	if out, stderr, code := ask(starving.url); code != 1 || out != "" || !strings.Contains(stderr, `not ready: {"ready":false,`) {
		t.Errorf("without an upstream: exit %d, %s%s", code, out, stderr)
	}
	starving.stopped()
	if out, stderr, code := ask(starving.url); code != 1 || out != "" || !strings.Contains(stderr, "not ready: ") || !strings.Contains(stderr, "refused") {
		t.Errorf("stopped: exit %d, %s%s", code, out, stderr)
	}
}

// The server speaks TLS with a pair of files, follows their change, and keeps its certificate, and says so, when the
// new one is bad.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir, first, second := t.TempDir(), issue(t, "first"), issue(t, "second")
	certFile, keyFile := first.write(t, dir)
	p := serveStored(t, "--tls-cert", certFile, "--tls-key", keyFile)
	if !strings.HasPrefix(p.url, "https://") {
		t.Fatalf("serving on %s", p.url)
	}
	ask := func(path string) (name, body string) {
		t.Helper()
		resp, body := askTLS(t, p.url+path, first, second)
		if resp.Proto != "HTTP/1.1" {
			t.Error(resp.Proto)
		}
		return resp.TLS.PeerCertificates[0].Subject.CommonName, body
	}
	p.until("ready", func() bool { _, body := ask("/readyz"); return strings.Contains(body, `"ready":true`) })
	if name, body := ask(gammaPath); name != "first" || !strings.Contains(body, `"success":true`) {
		t.Errorf("%s %.200s", name, body)
	}
	if _, stderr, code := run(t, command(t, "verify", "--ready", p.url)); code != 1 || !strings.Contains(stderr, "certificate") {
		t.Errorf("a health check that does not know the issuer: exit %d, %s", code, stderr)
	}
	trusting := command(t, "verify", "--ready", p.url)
	trusting.Env = append(trusting.Env, "SSL_CERT_FILE="+certFile)
	if out, stderr, code := run(t, trusting); code != 0 || !strings.HasPrefix(out, "ready: ") {
		t.Errorf("one that does: exit %d, %s", code, stderr)
	}
	if err := os.WriteFile(certFile, []byte("-----BEGIN"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.until("degraded", func() bool { _, body := ask("/readyz"); return strings.Contains(body, `"degraded":["tls"]`) })
	second.write(t, dir)
	p.until("the new one is served", func() bool { name, _ := ask("/healthz"); return name == "second" })
	p.until("no longer degraded", func() bool { _, body := ask("/readyz"); return strings.Contains(body, `"degraded":[]`) })
	if log := p.logged(); !strings.Contains(log, "TLS certificate not loaded") {
		t.Errorf("log %s", log)
	}
	p.stopped()
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

// The metrics of a running server say what it did, exactly; Prometheus takes them, and its alert rules watch feeds that
// there are.
func TestMetrics(t *testing.T) {
	t.Parallel()
	p := serve(t, "--admin-listen", "127.0.0.1:0")
	p.ready()
	const sample = `strikecache_http_requests_total{code="200",coding="identity",resource="vix-term-structure"}`
	if before := metric(p.operator("/metrics"), sample); before != "" {
		t.Errorf("before any request: %s", before)
	}
	for range 130 {
		p.get(vixPath, "Accept-Encoding", "identity")
	}
	scrape := ""
	for _, feed := range alertedFeeds(t) {
		p.until("a success of "+feed, func() bool { // a run ends a moment after its answers are there
			scrape = p.operator("/metrics")
			return metric(scrape, `strikecache_refreshes_total{code="ok",feed="`+feed+`"}`) != "" && strings.Contains(scrape, `strikecache_refresh_last_success_timestamp_seconds{feed="`+feed+`"}`)
		})
	}
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
	p.operator("/debug/pprof/goroutine?debug=1")
	p.stopped()
	t.Run("promtool", func(t *testing.T) {
		cmd := exec.Command(program(t, "promtool"), "check", "metrics")
		cmd.Stdin = strings.NewReader(scrape)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool: %v\n%s", err, out)
		}
	})
}

// alertedFeeds are those that the alert rules watch.
func alertedFeeds(t *testing.T) []string {
	t.Helper()
	rules, err := os.ReadFile(filepath.Join(root, "server", "deploy", "alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	feeds := regexp.MustCompile(`last_success_timestamp_seconds\{feed=~"([a-z|]+)"\}`).FindStringSubmatch(string(rules))
	if feeds == nil {
		t.Fatal("no rule about the feeds")
	}
	return strings.Split(feeds[1], "|")
}

// An admin listener that cannot be had is an error that names the flag; none is none.
func TestAdminListen(t *testing.T) {
	t.Parallel()
	p := shared(t)
	taken := strings.TrimPrefix(p.admin, "http://")
	for _, c := range []struct{ listen, want string }{{taken, "in use"}, {"here", "missing port"}, {"127.0.0.1:99999", "invalid port"}} {
		stdout, stderr, code := run(t, command(t, "serve", "--admin-listen", c.listen))
		if code == 0 || !strings.Contains(stderr, "--admin-listen") || !strings.Contains(stderr, c.want) || strings.Contains(stdout+stderr, "msg=serving") {
			t.Errorf("%s: exit %d, %s", c.listen, code, stderr)
		}
	}
	if q := serve(t, noUpstream...); strings.Contains(q.logged(), "serving admin") {
		t.Errorf("%s", q.logged())
	}
	if q := serve(t, append([]string{"--admin-listen", "[::]:0"}, noUpstream...)...); !strings.Contains(q.logged(), "open to other machines") {
		t.Errorf("no warning: %s", q.logged())
	}
}

// A server that is told to end while it opens its store ends well.
func TestEndBeforeServing(t *testing.T) {
	t.Parallel()
	for range 3 {
		cmd := command(t, "serve")
		var log output
		cmd.Stderr = &log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer killGroup(cmd)
		until(t, "a first line", func() bool { return strings.Contains(log.String(), "\n") }, log.String)
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %s", err, log.String())
		}
	}
}
