//go:build unix

package e2e

import (
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A service manager hears that the server listens, although it has no data yet, that it is alive, and that it stops.
func TestServiceManagerIsTold(t *testing.T) {
	name := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	if err := manager.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
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
	cmd := command(t, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "", "--data-dir", t.TempDir(),
		"--source", "cboe", "--cboe-base-url", "http://127.0.0.1:1", "--cboe-settlement-url", "http://127.0.0.1:1")
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+name, "WATCHDOG_USEC=100000")
	p := serveWith(t, cmd)
	if got := hear(); got != "READY=1\nSTATUS=serving on "+strings.TrimPrefix(p.url, "http://") {
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
	if err := p.stop(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	for got := ""; got != "STOPPING=1"; {
		if got = hear(); got != "WATCHDOG=1" && got != "STOPPING=1" {
			t.Fatalf("at the end %q", got)
		}
	}
}
