package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"strikecache/bench/need"
)

// refresher returns the process id of the server's child.
func (p *process) refresher() int {
	p.t.Helper()
	own := fmt.Sprintf("\nPPid:\t%d\n", p.cmd.Process.Pid)
	files, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil && strings.Contains(string(b), own) {
			if id, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
				return id
			}
		}
	}
	p.t.Skip("needs /proc, and a child in it")
	return 0
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
