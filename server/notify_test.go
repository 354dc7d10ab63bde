//go:build unix

package server_test

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"strikecache/server"
)

// manager listens as a service manager does.
func manager(t *testing.T, name string) *net.UnixConn {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NOTIFY_SOCKET", name)
	return conn
}

func heard(t *testing.T, conn *net.UnixConn) string {
	t.Helper()
	b := make([]byte, 1<<10)
	n, err := conn.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

// hear reads messages at once, so that the queue of the socket never fills.
func hear(conn *net.UnixConn) <-chan string {
	messages := make(chan string, 1000)
	go func() {
		defer close(messages)
		b := make([]byte, 1<<10)
		for n, err := conn.Read(b); err == nil; n, err = conn.Read(b) {
			messages <- string(b[:n])
		}
	}()
	return messages
}

// The process tells the manager that it serves, that it is alive, and that it stops. On Linux the socket may be abstract.
func TestConversation(t *testing.T) {
	names := []string{filepath.Join(t.TempDir(), "notify")}
	if runtime.GOOS == "linux" {
		names = append(names, "@strikecache-test-"+strconv.Itoa(os.Getpid()))
	}
	for _, name := range names {
		conn := manager(t, name)
		messages := hear(conn)
		t.Setenv("WATCHDOG_USEC", "20000")
		t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
		s := server.OpenNotifier(slog.New(slog.DiscardHandler))
		s.Ready("serving")
		wants := []string{"READY=1\nSTATUS=serving", "WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1", "STOPPING=1", "WATCHDOG=1"}
		for i, want := range wants {
			if want == "STOPPING=1" {
				s.Stopping()
			}
			got := <-messages
			for want == "STOPPING=1" && got == "WATCHDOG=1" { // sent before
				got = <-messages
			}
			if got != want {
				t.Errorf("%s: message %d is %q, want %q", name, i, got, want)
			}
		}
		s.Close()
	}
}

// Nothing fails without a manager, with one that is gone, and with one that does not watch or watches another process.
func TestOtherManagers(t *testing.T) {
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	t.Setenv("NOTIFY_SOCKET", "")
	s := server.OpenNotifier(logger)
	s.Ready("")
	s.Stopping()
	s.Close()
	if s != nil || log.Len() > 0 {
		t.Errorf("without a manager: %v %s", s, log.String())
	}
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "nobody"))
	if s := server.OpenNotifier(logger); s != nil || !strings.Contains(log.String(), "service manager not notified") {
		t.Errorf("a manager that is gone: %v %s", s, log.String())
	}
	conn := manager(t, filepath.Join(t.TempDir(), "notify"))
	for _, watch := range [][2]string{{"", ""}, {"1000000", "1"}, {"soon", ""}, {"1", ""}, {"-5", ""}} {
		t.Setenv("WATCHDOG_USEC", watch[0])
		t.Setenv("WATCHDOG_PID", watch[1])
		log.Reset()
		s := server.OpenNotifier(logger)
		s.Ready("x")
		s.Stopping()
		s.Close()
		if got := []string{heard(t, conn), heard(t, conn)}; got[0] != "READY=1\nSTATUS=x" || got[1] != "STOPPING=1" {
			t.Errorf("%q: %q", watch, got)
		}
		if bad := watch[0] != "" && watch[1] == ""; strings.Contains(log.String(), "no watchdog") != bad {
			t.Errorf("%q: log %s", watch, log.String())
		}
	}
}

// A manager that does not read its socket delays each message by one second, and nothing else.
func TestManagerThatDoesNotRead(t *testing.T) {
	conn := manager(t, filepath.Join(t.TempDir(), "notify"))
	var log strings.Builder
	s := server.OpenNotifier(slog.New(slog.NewTextHandler(&log, nil)))
	for n := 0; n < 10_000 && log.Len() == 0; n++ {
		s.Stopping()
	}
	if !strings.Contains(log.String(), "timeout") {
		t.Errorf("the socket never filled: %s", log.String())
	}
	s.Close()
	if got := heard(t, conn); got != "STOPPING=1" {
		t.Errorf("%q", got)
	}
}
