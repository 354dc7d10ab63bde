package e2e

import (
	"errors"
	"io"
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

// The first start, in a directory that does not exist, with a running clock: everything is answered, refreshed and stored,
// the log has fewer lines than there are refreshes, the metrics have values for each feed that the alert rules name, and the
// server stops.
func TestFirstStart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	p := serveReady(t, "--data-dir", dir, "--sim-speed", "60", "--gex-every", "5s", "--underlyings", "SPX,XLF", "--admin-listen", "127.0.0.1:0")
	if !strings.Contains(p.logged(), "SIMULATED") {
		t.Error("the log does not say that the market is simulated")
	}
	first := p.envelope(gammaPath)
	p.until("a newer answer", func() bool { return p.envelope(gammaPath).Meta.Receipt.Data != first.Meta.Receipt.Data })
	others := regexp.MustCompile(`last_success_timestamp_seconds\{feed!~"([a-z|]+)"\}`).FindStringSubmatch(text(t, "server/deploy/alerts.yml"))
	for _, feed := range []string{"spx", "xlf", "sectors", "vix"} {
		if others == nil || slices.Contains(strings.Split(others[1], "|"), feed) {
			t.Fatalf("the rule about the feeds leaves out %s", feed)
		}
		p.until("a success of "+feed, func() bool { // a run ends a moment after its answers are there
			return strings.Contains(p.operator("/metrics"), `strikecache_refresh_last_success_timestamp_seconds{feed="`+feed+`"}`)
		})
	}
	scrape := p.operator("/metrics")
	if asked := metric(scrape, `strikecache_http_requests_total{code="200",coding="identity",resource="gex/spx"}`); asked == "" || metric(scrape, "strikecache_ready") != "1" {
		t.Errorf("requests %q in %s", asked, scrape)
	}
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

// A service manager is told that the server listens, although it has no data yet, and that it stops.
func TestServiceManagerIsTold(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	must(t, err)
	defer manager.Close()
	cmd := command(t, append([]string{"serve"}, noUpstream...)...)
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+name)
	p := serveWith(t, cmd)
	if !p.answers("/readyz", 503) {
		t.Error("ready without an upstream")
	}
	p.stop()
	must(t, manager.SetReadDeadline(time.Now().Add(patience)))
	b := make([]byte, 1<<10)
	for _, want := range []string{"READY=1\nSTATUS=serving on " + p.address(), "STOPPING=1"} {
		if n, err := manager.Read(b); string(b[:n]) != want {
			t.Errorf("told %q, %v, want %q", b[:n], err, want)
		}
	}
}

// A server that gets SIGTERM while it opens its store ends without an error.
func TestEndBeforeServing(t *testing.T) {
	t.Parallel()
	for range 3 {
		p := launch(t, command(t, "serve"))
		t.Cleanup(p.kill)
		p.until("a first line", func() bool { return strings.Contains(p.logged(), "\n") })
		p.stop()
	}
}

// A limit of open files that is too low for --max-connections lowers the number of connections, and the log says so.
// Further connections are refused.
func TestFewDescriptors(t *testing.T) {
	t.Parallel()
	cmd := command(t, append([]string{"serve"}, noUpstream...)...)
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
		must(t, err)
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

// A server listens at a Unix socket beside TCP. After a kill, the next start replaces the file, which a living server keeps for itself and
// removes at its end. An idle connection ends after --idle-timeout.
func TestUnixSocket(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "socket")
	flags := append([]string{"serve", "--listen", "127.0.0.1:0,unix:" + socket, "--idle-timeout", "1s"}, noUpstream...)
	serveWith(t, command(t, flags...)).kill()
	if _, err := os.Lstat(socket); err != nil {
		t.Fatal(err)
	}
	p := serveWith(t, command(t, flags...))
	if !p.answers("/healthz", 200) || !strings.Contains(p.logged(), "msg=serving address=unix:"+socket) {
		t.Errorf("%s", p.logged())
	}
	if out, err := exec.Command(installed(t, "curl"), "-sS", "--unix-socket", socket, "http://localhost/healthz").CombinedOutput(); err != nil || !strings.Contains(string(out), `"ok"`) {
		t.Errorf("%s %v", out, err)
	}
	if _, stderr, code := run(t, command(t, flags...)); code != 1 || !strings.Contains(stderr, socket+": bind: address already in use") {
		t.Errorf("a second server: exit %d, %s", code, stderr)
	}
	began := time.Now()
	c := p.dial("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
	if _, _, err := c.receive(http.MethodGet); err != nil {
		t.Error(err)
	}
	if _, err := c.r.ReadByte(); !errors.Is(err, io.EOF) || time.Since(began) < time.Second || time.Since(began) > 70*time.Second {
		t.Errorf("idle for %v: %v", time.Since(began), err)
	}
	p.stop()
	if _, err := os.Lstat(socket); !os.IsNotExist(err) {
		t.Errorf("after the end: %v", err)
	}
}
