package server_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strikecache/server"
	"strikecache/snapshots"
)

// panicking is a finder that panics.
type panicking struct {
	*finder
	detail string
}

func (f panicking) Current(string) *snapshots.Edition { panic(f.detail) }

// A panic is answered without any detail, on both ways, and the server goes on.
func TestPanicIsAnswered(t *testing.T) {
	var log logText
	const detail = "/srv/secret/place.go:17 goroutine 5"
	web := newServer(newFinder(t), func(c *server.Config) { c.Finder, c.Log = panicking{newFinder(t), detail}, log.logger() })
	address := listen(t, web)
	bodies := map[string]bool{}
	for _, fields := range []string{"", "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-For: 192.0.2.1\r\n"} {
		got := exchange(t, address, "GET /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\n"+fields+"\r\n"+seriesLine+"Host: a\r\n\r\n", true)
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
	if got := exchange(t, address, "GET /api/v1/gex/spx/historical HTTP/1.1\r\nHost: a\r\n\r\n", true); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
		t.Errorf("afterwards: %q", got)
	}
	if n := web.Stats().Errors["internal_error"]; n != 2 {
		t.Errorf("%d internal errors counted", n)
	}
}

// An error of a lookup never shows in the answer, whatever it says.
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
		t.Errorf("the log does not say it either: %s", log.String())
	}
}

// A disk that refuses files costs clients nothing: the newest answers are served, and past ones. /readyz stays 200 and
// says disk, which is all that it says.
func TestFaultDiskOverHTTP(t *testing.T) {
	dir, date := t.TempDir(), "2026-11-19"
	store, err := snapshots.Open(snapshots.Options{
		Dir: dir, Source: "simulated", HistoricalProduct: "gex/spx", HistoryBytes: 1 << 20,
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	web := newServer(newFinder(t), func(c *server.Config) {
		c.Finder = store
		c.Readiness = func() (r server.Readiness) {
			r.Impaired("disk", store.DiskError())
			return r
		}
	})
	c := clientOf(t, web)
	save := func(date, data string) error {
		e := &snapshots.Edition{Default: seal(t, "gex/spx", data)}
		err := store.Save("gex/spx", date, snapshots.File{Edition: e})
		if publish := store.Publish(map[string]*snapshots.Edition{"gex/spx": e}); publish != nil {
			t.Fatal(publish)
		}
		return err
	}
	expect := func(when, data string, degraded ...string) {
		t.Helper()
		for _, target := range []string{"/api/v1/gex/spx", "/api/v1/gex/spx/historical", "/api/v1/gex/spx/historical?date=" + date} {
			if resp, body := do(t, c, "GET", target); resp.StatusCode != 200 || !strings.Contains(string(body), data) {
				t.Errorf("%s: %s: %d %s", when, target, resp.StatusCode, body)
			}
		}
		var ready struct {
			Ready    bool
			Degraded []string
		}
		resp, body := do(t, c, "GET", "/readyz")
		if err := json.Unmarshal(body, &ready); err != nil || resp.StatusCode != 200 || !ready.Ready || !slices.Equal(ready.Degraded, degraded) {
			t.Errorf("%s: readyz %d %s, want %q", when, resp.StatusCode, body, degraded)
		}
		for _, detail := range []string{dir, "gex-spx", "directory", "file"} {
			if strings.Contains(string(body), detail) {
				t.Errorf("%s: readyz tells %q: %s", when, detail, body)
			}
		}
	}
	if err := save("2026-11-17", `{"n":0}`); err != nil {
		t.Fatal(err)
	}
	inTheWay := filepath.Join(dir, "simulated", date)
	if err := os.WriteFile(inTheWay, nil, 0o644); err != nil { // also root cannot make a directory of it
		t.Fatal(err)
	}
	for _, data := range []string{`{"n":1}`, `{"n":2}`} {
		if err := save(date, data); err == nil {
			t.Fatal("nothing failed")
		}
		expect("while the disk refuses", data, "disk")
	}
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	if err := store.SaveState("any", "2026-11-17", nil); err != nil {
		t.Fatal(err)
	}
	expect("when it is back", `{"n":2}`)
	if _, bad, err := snapshots.Verify(dir); err != nil || len(bad) != 0 {
		t.Errorf("bad %v, %v", bad, err)
	}
	t.Logf("figure: %d failed writes seen over HTTP as 200 and a degraded disk", store.Stats().DiskErrors.Create)
}
