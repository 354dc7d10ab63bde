package server_test

import (
	"io"
	"net"
	"strings"
	"testing"

	"strikecache/server"
	"strikecache/snapshots"
)

// After a panic, the answers before it arrive, the answer has no detail, and to HEAD no body. The server keeps serving.
func TestPanicIsAnswered(t *testing.T) {
	var log logText
	const detail = "/srv/secret/place.go:17 goroutine 5"
	web := newServer(newFinder(t), func(c *server.Config) { c.Finder, c.Log = panicking{newFinder(t), "gex/spx", detail}, log.logger() })
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
	if n := web.Stats().Errors["internal_error"]; n != 3 {
		t.Errorf("%d internal errors counted", n)
	}
}

// The text of a lookup error is in the log, and never in the answer.
func TestErrorsCarryNoDetail(t *testing.T) {
	s := newFinder(t)
	var log logText
	s.err = &net.OpError{Op: "read", Err: io.ErrUnexpectedEOF, Addr: &net.TCPAddr{IP: net.IPv4(203, 0, 113, 9), Port: 443}}
	address := listen(t, newServer(s, func(c *server.Config) {
		c.Log = log.logger()
		c.Readiness = func() server.Readiness {
			r := server.Readiness{}
			r.Impaired("disk", &net.AddrError{Err: "/srv/data/simulated: no space left", Addr: "203.0.113.9"})
			return r
		}
	}))
	for _, target := range []string{"/api/v1/gex/spx/historical", "/api/v1/gex/spx/historical?date=2026-11-17", "/readyz"} {
		got := exchange(t, address, "GET "+target+" HTTP/1.1\r\nHost: a\r\n\r\n", true)
		want := "internal_error"
		if target == "/readyz" {
			want = `"degraded":["disk"]`
		}
		if !strings.Contains(got, want) || strings.Contains(got, "203.0.113.9") || strings.Contains(got, "unexpected EOF") || strings.Contains(got, "/srv") {
			t.Errorf("%s: %q", target, got)
		}
	}
	if !strings.Contains(log.String(), "unexpected EOF") {
		t.Errorf("the log does not have the error: %s", log.String())
	}
	gone := newFinder(t) // the file of a stored date is damaged, or was removed
	gone.err = snapshots.ErrNoSnapshot
	address = listen(t, newServer(gone))
	for target, want := range map[string]string{"": `"not_ready"`, "?date=2026-11-19": `"nearest":{"earlier":"2026-11-17","later":"2026-11-20"}`} {
		if got := exchange(t, address, "GET /api/v1/gex/spx/historical"+target+" HTTP/1.1\r\nHost: a\r\n\r\n", true); !strings.Contains(got, want) {
			t.Errorf("%s: %q", target, got)
		}
	}
	busy := newFinder(t)
	busy.err = snapshots.ErrBusy
	address = listen(t, newServer(busy))
	if got := exchange(t, address, "GET /api/v1/gex/spx/historical HTTP/1.1\r\nHost: a\r\n\r\n", true); !strings.Contains(got, "503 ") ||
		!strings.Contains(got, `"overloaded"`) || !strings.Contains(got, "Retry-After: 1\r\n") {
		t.Errorf("busy: %q", got)
	}
}
