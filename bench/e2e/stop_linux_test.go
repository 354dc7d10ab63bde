package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// hanging changes a command so that a system call on a path does not return for an hour.
func hanging(t *testing.T, cmd *exec.Cmd, call, path string) *exec.Cmd {
	t.Helper()
	tampered(t, cmd, call, "delay_enter=3600000000", path)
	t.Cleanup(func() { killGroup(cmd) })
	return cmd
}

// While the disk does not answer, requests are answered, refreshes go on, and /readyz says disk. TERM then ends the process after its limit, with an
// error, and a second TERM at once.
func TestFaultDiskDoesNotAnswer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	current := filepath.Join(dir, "simulated", "current")
	must(t, os.MkdirAll(current, 0o700))
	p := serveWith(t, hanging(t, command(t, "serve", "--data-dir", dir, "--gex-every", "5s", "--sim-start", marketStart), "fsync", current))
	p.ready()
	p.until("the disk does not answer", func() bool { return p.degraded() == "disk" })
	for range 2 {
		before := p.envelope(gammaPath).Meta.Computed
		p.until("gamma goes on", func() bool { return p.envelope(gammaPath).Meta.Computed.After(before) })
	}
	if codes := p.degraded(); codes != "disk" {
		t.Errorf("degraded is %q", codes)
	}
	p.endsByTerm()
}

// endsByTerm sends TERM to a process that hangs. In the short form it sends TERM again and again, and in the full one it waits for the limit.
func (p *process) endsByTerm() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	p.until("the process ends", func() bool {
		if !full() {
			_ = p.cmd.Process.Signal(syscall.SIGTERM) // unless it has ended
		}
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
		if strings.Contains(string(stat), ") Z ") {
			killGroup(p.cmd) // strace, which does not see the end of a thread that hangs
		}
		return p.hasEnded()
	})
	if p.err == nil {
		p.t.Error("it ends without an error although files are not written")
	}
}

// A process whose disk does not answer at its start ends like any other.
func TestStopAtTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := launch(t, hanging(t, command(t, "serve", "--data-dir", dir), "openat", filepath.Join(dir, "simulated", "objects")))
	t.Cleanup(p.kill)
	p.until("it has taken the directory", func() bool {
		owner, err := os.ReadFile(filepath.Join(dir, "simulated", ".lock"))
		return err == nil && strings.HasSuffix(string(owner), "\n") || p.hasEnded()
	})
	p.endsByTerm()
}

// TERM ends a process at once, without an error, whatever its refreshes wait for.
func TestStopWhileARefreshWaits(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{"no answer": "", "half a head": "HTTP/1.1 200 OK\r\nContent-", "half a body": "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upstream, err := net.Listen("tcp", "127.0.0.1:0")
			must(t, err)
			t.Cleanup(func() { upstream.Close() })
			asked := make(chan struct{}, 100)
			go func() {
				for {
					c, err := upstream.Accept()
					if err != nil {
						return
					}
					t.Cleanup(func() { c.Close() })
					_, _ = c.Read(make([]byte, 1000))
					_, _ = c.Write([]byte(answer))
					asked <- struct{}{}
				}
			}()
			p := serve(t, "--source", "cboe", "--cboe-base-url", "http://"+upstream.Addr().String())
			<-asked
			p.stop()
		})
	}
	t.Run("history", func(t *testing.T) {
		t.Parallel()
		p := serve(t, "--sim-start", marketStart)
		p.until("gamma is served", func() bool { return p.answers(gammaPath, http.StatusOK) })
		p.stop()
	})
}
