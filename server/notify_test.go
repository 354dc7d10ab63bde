//go:build unix

package server_test

import (
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"strikecache/server"
)

// The process tells the manager that it serves and that it stops. Nothing fails without a manager.
func TestNotify(t *testing.T) {
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	t.Setenv("NOTIFY_SOCKET", "")
	server.NotifyReady("x", logger)
	if server.NotifyStopping(logger); log.Len() > 0 {
		t.Error(log.String())
	}
	name := filepath.Join(t.TempDir(), "notify")
	t.Setenv("NOTIFY_SOCKET", name)
	server.NotifyReady("x", logger)
	if !strings.Contains(log.String(), "service manager not notified") {
		t.Errorf("a manager that is gone: %s", log.String())
	}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	server.NotifyReady("serving", logger)
	server.NotifyStopping(logger)
	b := make([]byte, 1<<10)
	for _, want := range []string{"READY=1\nSTATUS=serving", "STOPPING=1"} {
		if n, err := conn.Read(b); string(b[:n]) != want || err != nil {
			t.Errorf("%q, want %q, %v", b[:n], want, err)
		}
	}
}
