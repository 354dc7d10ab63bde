package e2e

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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
	expirations := dataOf[painData](p, painPath).Expirations
	if len(expirations) < 50 {
		t.Fatalf("%d expirations", len(expirations))
	}
	all := slices.Clone(targets)
	for _, x := range expirations {
		all = append(all, painPath+"?expiration="+x.Expiration)
	}
	for _, date := range p.sessions() {
		all = append(all, datePath+date)
	}
	for _, target := range all {
		if e := p.envelope(target); e.Meta.Source != "simulated" || e.Usage.Tier != "anonymous" {
			t.Errorf("%s: %+v", target, e.Meta)
		}
	}
}

// The first start, in a directory that does not exist, with a running clock: everything is answered, refreshed and stored,
// the log has fewer lines than there are refreshes, and the server stops.
func TestFirstStart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	p := serveReady(t, "--data-dir", dir, "--sim-speed", "60", "--gex-every", "5s", "--flow-symbols", "XLF", "--admin-listen", "127.0.0.1:0")
	first := p.envelope(gammaPath)
	p.until("a newer answer", func() bool { return p.envelope(gammaPath).Meta.Receipt.Data != first.Meta.Receipt.Data })
	refreshes := 0
	p.until("30 refreshes", func() bool {
		refreshes = 0
		for _, m := range regexp.MustCompile(`strikecache_refreshes_total\{code="ok",feed="\w+"\} (\d+)`).FindAllStringSubmatch(p.operator("/metrics"), -1) {
			n, _ := strconv.Atoi(m[1]) // the expression matches only digits
			refreshes += n
		}
		return refreshes >= 30
	})
	if n := strings.Count(p.logged(), "msg=refreshed"); n > refreshes/2 {
		t.Errorf("%d of %d refreshes were logged", n, refreshes)
	}
	if got := p.degraded(); got != "" {
		t.Errorf("a new directory: %s", got)
	}
	p.stop()
	if log := p.logged(); !regexp.MustCompile(`msg=stopping[^\n]*\n(.*\n)*.*msg=stopped`).MatchString(log) {
		t.Errorf("the log does not end with stopping and stopped: %s", log)
	}
	if files, err := filepath.Glob(filepath.Join(dir, "simulated", "*", "gex-spx")); len(files) == 0 || err != nil {
		t.Errorf("nothing is stored: %v", err)
	}
}

func TestReplayFromRecordedDocuments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := serveReady(t, "--data-dir", dir, "--source", "replay", "--replay-dir", filepath.Join(recorded(t), "replay"), "--anonymous-rate", "600")
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
	if _, body := p.get("/readyz"); !strings.Contains(string(body), `"unfed":["sectors/rotation"]`) {
		t.Errorf("readyz: %s", body)
	}
	if e := p.envelope(datePath + "2026-08-11"); e.Meta.Source != "replay" {
		t.Errorf("historical: %+v", e.Meta)
	}
	// The recorded chain has oddities that the simulated chain does not have.
	c := newContract(p)
	c.ask(200, http.MethodGet, painPath+"?expiration=2026-09-17") // without open interest
	for _, target := range targets {
		status := 200
		if target == sectorsPath {
			status = 503 // no history is recorded
		}
		c.ask(status, http.MethodGet, target)
	}
	p.stop()
	for date, product := range map[string]string{"2026-08-11": "gex/spx identical\n", "2026-10-05": "vix-term-structure identical\n"} {
		if out := does(t, "recompute", "--data-dir", dir, "--date", date, "--source", "replay"); !strings.Contains(out, product) {
			t.Errorf("%s: %s", date, out)
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
	messages := make(chan string, 10_000)
	go func() { // reads at once, so that the queue of the socket never fills
		defer close(messages)
		b := make([]byte, 1<<10)
		for n, err := manager.Read(b); err == nil; n, err = manager.Read(b) {
			messages <- string(b[:n])
		}
	}()
	hear := func(wants ...string) string {
		t.Helper()
		got := <-messages
		if !slices.Contains(wants, got) {
			t.Fatalf("told %q, want %q", got, wants)
		}
		return got
	}
	cmd := command(t, append([]string{"serve"}, noUpstream...)...)
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+name, "WATCHDOG_USEC=100000")
	p := serveWith(t, cmd)
	hear("READY=1\nSTATUS=serving on " + p.address())
	if !p.answers("/readyz", 503) {
		t.Error("ready without an upstream")
	}
	for range 3 {
		hear("WATCHDOG=1")
	}
	p.stop()
	for hear("WATCHDOG=1", "STOPPING=1") != "STOPPING=1" {
	}
}

// verify --ready is a health check by the binary alone: it says whether the server is ready, and why it is not.
func TestVerifyReady(t *testing.T) {
	t.Parallel()
	ask := func(url string, code int, wants ...string) {
		t.Helper()
		out, stderr, got := run(t, command(t, "verify", "--ready", url, "--data-dir", "/nonexistent"))
		for _, want := range wants {
			if got != code || (code == 0) != (out != "") || !strings.Contains(out+stderr, want) {
				t.Errorf("exit %d, %s%s, want %d, %s", got, out, stderr, code, want)
			}
		}
	}
	ask(shared(t).url, 0, `ready: {"ready":true,"source":"simulated",`)
	starving := serveNothing(t)
	ask(starving.url, 1, `not ready: {"ready":false,`)
	starving.stop()
	ask(starving.url, 1, "not ready: ", "refused")
}

// The metrics of a running server are exact, promtool accepts them, and the alert rules name feeds that exist.
func TestMetrics(t *testing.T) {
	t.Parallel()
	p := serveStored(t, "--admin-listen", "127.0.0.1:0")
	const sample = `strikecache_http_requests_total{code="200",coding="identity",resource="vix-term-structure"}`
	if before := metric(p.operator("/metrics"), sample); before != "" {
		t.Errorf("before any request: %s", before)
	}
	for range 130 {
		p.get(vixPath)
	}
	rules, err := os.ReadFile(filepath.Join(root, "server", "deploy", "alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	feeds := regexp.MustCompile(`last_success_timestamp_seconds\{feed=~"([a-z|]+)"\}`).FindStringSubmatch(string(rules))
	if feeds == nil {
		t.Fatal("no rule about the feeds")
	}
	scrape := ""
	for _, feed := range strings.Split(feeds[1], "|") {
		p.until("a success of "+feed, func() bool { // a run ends a moment after its answers are there
			scrape = p.operator("/metrics")
			return metric(scrape, `strikecache_refreshes_total{code="ok",feed="`+feed+`"}`) != "" && strings.Contains(scrape, `strikecache_refresh_last_success_timestamp_seconds{feed="`+feed+`"}`)
		})
	}
	for name, want := range map[string]string{
		sample: "130", "strikecache_ready": "1", "strikecache_resources_waiting": "0", `strikecache_snapshot_stale{resource="gex/spx"}`: "0",
		`strikecache_http_request_duration_seconds_count{resource="vix-term-structure"}`: "3", // 1, 65, 129
		"strikecache_connections_refused_total":                                          "0", "strikecache_bad_files_total": "0",
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
	t.Run("promtool", func(t *testing.T) {
		cmd := exec.Command(installed(t, "promtool"), "check", "metrics")
		cmd.Stdin = strings.NewReader(scrape)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool: %v\n%s", err, out)
		}
	})
}

// A bad --admin-listen is an error that names the flag. An empty one opens no admin listener. The log has a warning when
// other machines can reach the admin listener.
func TestAdminListen(t *testing.T) {
	t.Parallel()
	taken := strings.TrimPrefix(shared(t).admin, "http://")
	for listen, want := range map[string]string{taken: "in use", "here": "missing port", "127.0.0.1:99999": "invalid port"} {
		stdout, stderr, code := run(t, command(t, "serve", "--admin-listen", listen))
		if code == 0 || !strings.Contains(stderr, "--admin-listen") || !strings.Contains(stderr, want) || strings.Contains(stdout+stderr, "msg=serving") {
			t.Errorf("%s: exit %d, %s", listen, code, stderr)
		}
	}
	if p := serveNothing(t); p.admin != "" {
		t.Errorf("%s", p.logged())
	}
	if p := serveNothing(t, "--admin-listen", "[::]:0"); !strings.Contains(p.logged(), "open to other machines") {
		t.Errorf("no warning: %s", p.logged())
	}
}

// A server that gets SIGTERM while it opens its store ends without an error.
func TestEndBeforeServing(t *testing.T) {
	t.Parallel()
	for range 3 {
		p := launch(t, command(t, "serve"), nil)
		t.Cleanup(p.kill)
		p.until("a first line", func() bool { return strings.Contains(p.logged(), "\n") })
		p.stop()
	}
}

// A limit of open files that is too low for --max-connections lowers the number of connections, and the log says so.
// Further connections are refused.
func TestFewDescriptors(t *testing.T) {
	t.Parallel()
	cmd := command(t, "serve", "--sim-speed", "0")
	cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `ulimit -n 200 && exec "$0" "$@"`}, cmd.Args...)
	p := serveWith(t, cmd)
	if !strings.Contains(p.logged(), "served=72") {
		t.Errorf("%s", p.logged())
	}
	for range 72 {
		p.dial(asking)
	}
	p.until("the limit is reached", func() bool {
		resp, body, err := p.dial(asking).receive(http.MethodGet)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode == 503 && strings.Contains(string(body), `"code":"overloaded"`)
	})
	if strings.Contains(p.logged(), "not accepted for now") {
		t.Errorf("%s", p.logged())
	}
}

// stuckAtStop starts a server with a client that never reads, and sends SIGTERM to the server.
func stuckAtStop(t *testing.T) *process {
	p := serveStored(t)
	if _, err := p.dial(stuck).Read(make([]byte, 100)); err != nil { // the server is sending answers
		t.Fatal(err)
	}
	p.signal(syscall.SIGTERM)
	p.until("stopping", func() bool { return strings.Contains(p.logged(), "msg=stopping") })
	return p
}

// A client that never reads its answers delays the end of the server by no more than the limit.
func TestFaultDrainLimit(t *testing.T) {
	t.Parallel()
	if !full() {
		t.Skip("needs a full run: the limit is 10 seconds")
	}
	p, began := stuckAtStop(t), time.Now()
	err := p.wait()
	if took := time.Since(began); err == nil || p.cmd.ProcessState.ExitCode() != 1 || took < 9*time.Second || !strings.Contains(p.logged(), "1 connections cut off") {
		t.Errorf("ended with %v after %v: %s", err, took, p.logged())
	}
	figure(t, "ended %.1f s after SIGTERM with a client that never reads", time.Since(began).Seconds())
}

// The second signal ends the process at once.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	p := stuckAtStop(t)
	p.signal(syscall.SIGTERM)
	if err := p.wait(); err == nil || p.cmd.ProcessState.ExitCode() != -1 || strings.Contains(p.logged(), "cut off") {
		t.Errorf("ended with %v: %s", err, p.logged())
	}
}
