package server_test

import (
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"strikecache/server"
	"strikecache/snapshots"
)

// statuses returns the statuses of the responses in raw bytes.
func statuses(raw string) string {
	var all []string
	for _, r := range strings.Split(raw, "HTTP/1.1 ")[1:] {
		all = append(all, r[:3])
	}
	return strings.Join(all, " ")
}

// A loop hands over all bytes that it has read and not answered, in their order, however many they are.
func TestLoopHandsOverLongPipelines(t *testing.T) {
	web := newServer(newFinder(t))
	raw, want := "OPTIONS /api/v1/gex/spx/series HTTP/1.1\r\nHost: a\r\n\r\n", "204"
	for len(raw) < 15_000 {
		raw += series + "GET /nosuch HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 61) + "\r\n\r\n"
		want += " 200 404"
	}
	if got := statuses(loopAnswers(t, web, raw)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// The body of a request is never read as a request, even if the buffer of fasthttp ends in it.
	const post = "POST /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\nX: "
	hidden := "GET /smuggled HTTP/1.1\r\nHost: a\r\nX: "
	hidden += strings.Repeat("y", 890-len(hidden)-4) + "\r\n\r\n"
	raw = post + strings.Repeat("x", 8192-10-len(post)-4) + "\r\n\r\n0123456789" + hidden
	for _, cut := range []int{len(raw), 8192, 8200, 100} {
		if got := statuses(loopAnswers(t, web, raw[:cut], raw[cut:]+series+series)); got != "405 200 200" {
			t.Errorf("cut at %d: %s", cut, got)
		}
	}
}

// A client that ends its side of the connection gets all answers, and then the end of the connection at once.
func TestLoopSeesTheEnd(t *testing.T) {
	f := newFinder(t)
	f.editions["gex/spx/series"] = &snapshots.Edition{Default: bigAnswer(t)}
	address := listen(t, newServer(f, func(c *server.Config) { c.IdleTimeout = time.Hour }))
	for _, parts := range [][]string{{strings.Repeat(vix, 1000)}, {series, vix}, {strings.Repeat(gamma, 400), vix + vix[:10]}} {
		c := dial(t, address)
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		for _, p := range parts {
			if _, err := io.WriteString(c, p); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond) // the buffers are full
		}
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(c)
		if n, want := strings.Count(string(all), "HTTP/1.1 200 "), strings.Count(strings.Join(parts, ""), "\r\n\r\n"); n != want || err != nil {
			t.Errorf("%d answers of %d: %v", n, want, err)
		}
	}
}

// Half a head behind an answer that the client takes late has the timeout of a head.
func TestLoopTimesOutAHeadBehindALateAnswer(t *testing.T) {
	f := newFinder(t)
	f.editions["gex/spx/series"] = &snapshots.Edition{Default: bigAnswer(t)}
	c := dial(t, listen(t, newServer(f, func(c *server.Config) {
		c.ReadTimeout, c.WriteTimeout, c.IdleTimeout = 4*time.Second, time.Hour, time.Hour
	})))
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{series[:20], series[20:] + "GET /api"} {
		if _, err := io.WriteString(c, p); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond) // a head in two parts, and then an answer that fills the buffers
	}
	if all, err := io.ReadAll(c); statuses(string(all)) != "200 408" || err != nil {
		t.Errorf("%s %v", statuses(string(all)), err)
	}
}

// panickingAt is a finder that calls before and panics when it is asked for the series.
type panickingAt struct {
	*finder
	before *atomic.Pointer[func()] // nil: nothing to call
}

func (f panickingAt) Current(resource string) *snapshots.Edition {
	if resource == "gex/spx/series" {
		if before := f.before.Load(); before != nil {
			(*before)()
		}
		panic("for the test")
	}
	return f.finder.Current(resource)
}

// After a panic, the answers before it arrive, the 500 to HEAD has no body, and a connection that is gone is counted once.
func TestLoopPanics(t *testing.T) {
	var before atomic.Pointer[func()]
	web := newServer(nil, func(c *server.Config) { c.Finder = panickingAt{newFinder(t), &before} })
	address := listen(t, web)
	for _, fields := range []string{"", twice} {
		got := exchange(t, address, vix+"HEAD /api/v1/gex/spx/series HTTP/1.1\r\nHost: a\r\n"+fields+"\r\n", false)
		if statuses(got) != "200 500" || !strings.HasSuffix(got, "\r\n\r\n") {
			t.Errorf("%q", got)
		}
	}
	c, gone := dial(t, address), make(chan struct{})
	reset := func() {
		_ = c.SetLinger(0) // so that the answer before cannot be sent
		_ = c.Close()
		time.Sleep(50 * time.Millisecond)
		close(gone)
	}
	before.Store(&reset)
	if _, err := io.WriteString(c, vix+series); err != nil {
		t.Fatal(err)
	}
	<-gone
	answered(t, dial(t, address))
	until(t, "one connection is open", func() bool { return web.Stats().ConnectionsOpen == 1 })
}

// Both engines send the same bytes, whatever the host, the connection fields and the method.
func TestBothEnginesAnswerAlike(t *testing.T) {
	web := newServer(newFinder(t))
	for _, fields := range []string{
		"Host: :80\r\n", "Host: a:\r\n", "Host: a:99999999\r\n", "Host: a..b\r\n", "Host: -\r\n", "Host: _\r\n", "Host: .\r\n", "Host: 1.2.3.4.5:1\r\n", "Host: :\r\n",
		"Host: a\r\nConnection: close\r\nConnection: keep-alive\r\n", "Host: a\r\nConnection: keep-alive\r\nConnection: close\r\n", "Host: a\r\nConnection: Close\r\n", "Host: a\r\nConnection:\r\n", "Host: a\r\nConnection: close, x\r\n",
		"Host: a\r\nConnection: keep-alive, close\r\n",
		"Host: a\r\nContent-Length: 0\r\n", "Host: a\r\nContent-Length: 00\r\n", "Host: a\r\nIf-None-Match:\r\n", "Host: a\r\nIf-None-Match: *\r\nIf-Modified-Since: x\r\n", "Host: a\r\nAccept-Encoding:\r\n", "Host: a\r\nX-API-Key:\r\n", "Host: a\r\nX-API-Key: x\r\n",
		"Host: a\r\nCookie: a=b; c\r\n", "Host: a\r\nProxy-Connection: close\r\n", "Host: a\r\nTrailer: x\r\n", "Host: a\r\nContent-Type: multipart/form-data; boundary=x\r\n", "Host: a\r\nRange: bytes=0-1\r\n", "Host: a\r\nExpect: 100-continue\r\n", "Host: a\r\nX: \xff\t\xfe\r\n", "Host: a\r\nTE: trailers\r\n", "Host: a\r\nKeep-Alive: 5\r\n",
		"Host: a\r\nIf-None-Match: \"a\", *\r\n",
	} {
		for _, method := range []string{"GET", "HEAD"} {
			for _, target := range []string{"/api/v1/gex/spx/series", "/api/v1/gex/spx/historical?date=2026-11-17", "/api/v1/gex/spx?a=//b", "/api/public/spx-max-pain?expiration=x", "/api/v1/gex/spx/series?x=%zz", "/nosuch", "/healthz"} {
				raw := method + " " + target + " HTTP/1.1\r\n" + fields + "\r\n"
				raw += raw
				fast, loop := engineAnswers(web, raw), loopAnswers(t, web, raw)
				if undated(fast) != undated(loop) {
					t.Errorf("%q:\nfasthttp %.300q\nloop %.300q", raw, undated(fast), undated(loop))
				}
			}
		}
	}
}
