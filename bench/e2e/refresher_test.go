package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"syscall"
	"testing"

	"strikecache/bench/need"
)

// refresher returns the process id of the server's child.
func (p *process) refresher() int {
	p.t.Helper()
	return need.Child(p.t, p.cmd.Process.Pid)
}

// Whatever ends the process that refreshes, the one that serves goes on, says so, and starts another.
func TestFaultRefresherKilled(t *testing.T) {
	dir, kills, answered := t.TempDir(), need.Count(5), 0
	p := serve(t, "--data-dir", dir, "--sim-speed", "10", "--gex-every", "5s")
	p.ready()
	degraded := func() bool {
		var doc struct{ Degraded []string }
		resp, body := p.get("/readyz")
		if err := json.Unmarshal(body, &doc); err != nil || resp.StatusCode != 200 {
			t.Fatalf("readyz %d: %s", resp.StatusCode, body)
		}
		return slices.Contains(doc.Degraded, "refresher")
	}
	refreshed := func() int { return strings.Count(p.logged(), "msg=refreshed feed=spx") }
	for range kills {
		before := refreshed()
		if err := syscall.Kill(p.refresher(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		p.until("it says so", degraded)
		p.until("the next one refreshes", func() bool {
			for _, target := range targets {
				if resp, body := p.get(target); resp.StatusCode != 200 {
					t.Fatalf("%s: %d %s", target, resp.StatusCode, body)
				}
				answered++
			}
			return !degraded() && refreshed() > before
		})
	}
	if err := p.stop(syscall.SIGTERM); err != nil {
		t.Errorf("stopped with %v", err)
	}
	if out, _, code := run(t, command(t, "verify", "--data-dir", dir)); code != 0 || !strings.Contains(out, " 0 bad") {
		t.Errorf("verify: exit %d, %s", code, out)
	}
	need.Figure(t, "%d kills of the refresher alone: %d of %d answers meanwhile right, refreshing again after each", kills, answered, answered)
}

// A server that is killed leaves no refresher behind, and the next one takes its directory at once.
func TestRefresherEndsWithItsServer(t *testing.T) {
	dir := t.TempDir()
	p := serve(t, "--data-dir", dir)
	child := p.refresher()
	if err := p.cmd.Process.Kill(); err != nil { // not its group
		t.Fatal(err)
	}
	next := serve(t, "--data-dir", dir)
	next.ready()
	p.until("its end", func() bool { return syscall.Kill(child, 0) != nil })
	if strings.Contains(p.logged(), "panic") {
		t.Error(p.logged())
	}
}

// A server that is told to end while its refresher opens the store ends well, and so does the refresher.
func TestEndBeforeServing(t *testing.T) {
	for range 3 {
		cmd := command(t, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "", "--data-dir", t.TempDir())
		var log need.Log
		cmd.Stderr = &log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer killGroup(cmd)
		var child int
		need.Until(t, "a child", func() bool {
			ids := need.Children(cmd.Process.Pid)
			if len(ids) > 0 {
				child = ids[0]
			}
			return child != 0 || cmd.Process.Signal(syscall.Signal(0)) != nil
		}, log.String)
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %s", err, log.String())
		}
		need.Until(t, "no refresher", func() bool { return syscall.Kill(child, 0) != nil })
	}
}
