package server_test

import (
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"strikecache/bench/testkit"
	"strikecache/server"
	"strikecache/snapshots"
)

// After a panic, the answers before it arrive, the answer has no detail, and to HEAD no body. The server keeps serving.
func TestPanicIsAnswered(t *testing.T) {
	var log testkit.Text
	const detail = "/srv/secret/place.go:17 goroutine 5"
	web := newServer(newFinder(t), func(c *server.Config) {
		c.Finder, c.Log = panicking{newFinder(t), "gex/spx", detail}, log.Logger(slog.LevelDebug)
	})
	address := listen(t, web)
	bodies := map[string]bool{}
	for range 2 {
		got := exchange(t, address, gamma+series, true)
		head, body, _ := strings.Cut(got, "\r\n\r\n")
		if !strings.HasPrefix(head, "HTTP/1.1 500 ") || !strings.Contains(head, "Connection: close") || strings.Count(got, "HTTP/1.1") != 1 {
			t.Errorf("%q", got)
		}
		bodies[body] = true
		for _, leak := range []string{"secret", ".go", "goroutine", "panic"} {
			if strings.Contains(got, leak) {
				t.Errorf("%q leaks: %q", leak, got)
			}
		}
	}
	if want := `{"success":false,"error":{"code":"internal_error","message":"internal error"},"meta":{"endpoint":"","source":"simulated"},"usage":{"tier":"anonymous"}}`; len(bodies) != 1 || !bodies[want] {
		t.Errorf("%v", bodies)
	}
	if n := strings.Count(log.String(), "request panicked"); n != 2 || !strings.Contains(log.String(), detail) {
		t.Errorf("%d log lines: %s", n, log.String())
	}
	if got := exchange(t, address, vix+"HEAD /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\n\r\n"+vix, false); statuses(got) != "200 500" || !strings.HasSuffix(got, "\r\n\r\n") {
		t.Errorf("%q", got)
	}
	if got := exchange(t, address, "GET /api/v1/gex/spx/historical HTTP/1.1\r\nHost: a\r\n\r\n", true); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
		t.Errorf("afterwards: %q", got)
	}
	equal(t, web.Stats().Errors["internal_error"], uint64(3), "internal errors counted")
}

// A file that cannot be read, is gone or has to wait is answered as documented. The text of an error is in the log, and never in
// an answer.
func TestErrorsCarryNoDetail(t *testing.T) {
	inside := &net.OpError{Op: "read", Err: io.ErrUnexpectedEOF, Addr: &net.TCPAddr{IP: net.IPv4(203, 0, 113, 9), Port: 443}}
	for _, c := range []struct {
		err          error // of a lookup
		target, want string
	}{
		{inside, "/api/v1/gex/spx/historical", `"internal_error"`},
		{inside, "/api/v1/gex/spx/historical?date=2026-11-17", `"internal_error"`},
		{inside, "/readyz", `"degraded":["disk"]`},
		{snapshots.ErrNoSnapshot, "/api/v1/gex/spx/historical", `"not_ready"`}, // the file of a stored date is damaged, or was removed
		{snapshots.ErrNoSnapshot, "/api/v1/gex/spx/historical?date=2026-11-19", `"nearest":{"earlier":"2026-11-17","later":"2026-11-20"}`},
		{snapshots.ErrBusy, "/api/v1/gex/spx/historical", `"overloaded"`},
	} {
		s := newFinder(t)
		s.err = c.err
		var log testkit.Text
		address := listen(t, newServer(s, func(cfg *server.Config) {
			cfg.Log = log.Logger(slog.LevelDebug)
			cfg.Readiness = func() (r server.Readiness) {
				r.Impaired("disk", &net.AddrError{Err: "/srv/data/simulated: no space left", Addr: "203.0.113.9"})
				return r
			}
		}))
		got := exchange(t, address, "GET "+c.target+" HTTP/1.1\r\nHost: a\r\n\r\n", true)
		if !strings.Contains(got, c.want) || strings.Contains(got, "203.0.113.9") || strings.Contains(got, "unexpected EOF") || strings.Contains(got, "/srv") {
			t.Errorf("%s: %q", c.target, got)
		}
		if (c.want == `"overloaded"`) != (strings.Contains(got, "503 ") && strings.Contains(got, "Retry-After: 1\r\n")) {
			t.Errorf("%v: %q", c.err, got)
		}
		equal(t, strings.Contains(log.String(), "unexpected EOF"), c.want == `"internal_error"`, "%s: the cause in the log %s", c.target, log.String())
	}
}
