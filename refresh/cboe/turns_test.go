package cboe

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/refresh/upstream"
)

func TestSpacingPrefers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpacing(3 * time.Second)
		start := time.Now()
		var mu sync.Mutex
		var order []int
		var at []time.Duration
		pass := func(priority int) {
			if err := s.wait(t.Context(), strconv.Itoa(priority), priority); err != nil { // all hosts share the turns
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			order, at = append(order, priority), append(at, time.Since(start))
		}
		pass(4) // the first passes at once, whatever its priority
		var wg sync.WaitGroup
		for _, p := range []int{4, 3, 2, 2} {
			wg.Go(func() { pass(p) })
			synctest.Wait()
		}
		time.Sleep(4 * time.Second) // a request of priority 2 has passed; now one of priority 0 comes
		wg.Go(func() { pass(0) })
		wg.Wait()
		if want := []int{4, 2, 0, 2, 3, 4}; !slices.Equal(order, want) {
			t.Errorf("order %v, want %v: priority 0 waits for at most one request", order, want)
		}
		for i, d := range at {
			if want := time.Duration(i) * 3 * time.Second; d != want {
				t.Errorf("request %d passed after %v, want %v", i, d, want)
			}
		}
	})
}

func TestSpacingPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpacing(time.Second)
		start := time.Now()
		must(t, s.wait(t.Context(), "a", 0))
		var wg sync.WaitGroup
		wg.Go(func() { // it waits already when the pause comes
			if err := s.wait(t.Context(), "a", 0); err != nil {
				t.Error(err)
			}
			if d := time.Since(start); d != time.Minute {
				t.Errorf("passed after %v, want 1m", d)
			}
		})
		synctest.Wait()
		s.pause("a", time.Minute)
		s.pause("a", time.Second) // does not shorten the longer pause
		must(t, s.wait(t.Context(), "b", 5))
		if d := time.Since(start); d != time.Second {
			t.Errorf("another host passed after %v, want 1s", d)
		}
		wg.Wait()
		if s.pause("b", time.Second); len(s.paused) != 1 {
			t.Errorf("pauses that have ended are kept: %v", s.paused)
		}
	})
}

func TestSpacingForgetsRequestsThatGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpacing(10 * time.Second)
		must(t, s.wait(t.Context(), "a", 0))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := s.wait(ctx, "a", 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("gave up with %v", err)
		}
		start := time.Now()
		must(t, s.wait(t.Context(), "a", 5))
		if d := time.Since(start); d != 8*time.Second {
			t.Errorf("the next waited %v, want 8s: the turn of the request that gave up is free", d)
		}
		if err := s.wait(ctx, "a", 0); err == nil {
			t.Error("an ended context passes")
		}
	})
}

// listener is an upstream in memory that misbehaves. It counts what reaches it under any address.
type listener struct {
	tls       *tls.Config // nil: it speaks plain HTTP
	misbehave func(l *listener, conn net.Conn)

	mu    sync.Mutex
	conns []time.Time // when connections were made
	heads int         // of requests
}

// dial makes a connection, until there are so many that the test has failed.
func (l *listener) dial(t *testing.T) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conns = append(l.conns, time.Now()); len(l.conns) > 200 {
		return nil, errors.New("connection refused")
	}
	ours, theirs := net.Pipe()
	t.Cleanup(func() { theirs.Close() }) // what is written to a client that gave up ends
	go func() {
		defer theirs.Close()
		conn := theirs
		if l.tls != nil {
			conn = tls.Server(theirs, l.tls)
		}
		l.misbehave(l, conn)
		if secure, ok := conn.(*tls.Conn); ok && secure.ConnectionState().NegotiatedProtocol == "h2" {
			t.Error("the client speaks HTTP/2: its transport repeats requests by itself")
		}
	}()
	return ours, nil
}

func (l *listener) head() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heads++
	return l.heads
}

// answers sends text after the head of a request of HTTP/1. In the text, N is the number of the request.
func answers(text string) func(*listener, net.Conn) {
	return func(l *listener, conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			io.WriteString(conn, strings.ReplaceAll(text, "N", fmt.Sprint(l.head())))
		}
	}
}

func redirects(to string) func(*listener, net.Conn) {
	return answers("HTTP/1.1 307 Temporary Redirect\r\nContent-Length: 0\r\nLocation: " + to + "\r\n\r\n")
}

// Whatever an upstream does, no connection and no request reaches it without a turn.
func TestTurns(t *testing.T) {
	const plain, secure = "http://cdn.test", "https://cdn.test"
	for name, c := range map[string]struct {
		base      string
		proxied   bool
		misbehave func(*listener, net.Conn)
	}{
		"closed":                    {plain, false, func(*listener, net.Conn) {}},
		"closed before a handshake": {secure, false, func(*listener, net.Conn) {}},
		"closed after a handshake":  {secure, false, func(_ *listener, conn net.Conn) { conn.(*tls.Conn).Handshake() }},
		"closed after a request":    {secure, false, answers("")},
		"no TLS": {secure, false, func(_ *listener, conn net.Conn) {
			io.WriteString(conn.(*tls.Conn).NetConn(), "HTTP/1.1 400 Bad\r\n\r\n")
		}},
		"no TLS after all":           {secure, true, answers("HTTP/1.1 200 OK\r\n\r\n")},
		"the proxy refuses":          {secure, true, answers("HTTP/1.1 503 Service Unavailable\r\n\r\n")},
		"the proxy wants a password": {plain, true, answers("HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n")},
		"408 before a request": {plain, false, func(_ *listener, conn net.Conn) {
			io.WriteString(conn, "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n")
		}},
		"421":                      {secure, false, answers("HTTP/1.1 421 Misdirected Request\r\nContent-Length: 0\r\n\r\n")},
		"101":                      {plain, false, answers("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n")},
		"a flood of 103":           {plain, false, answers(strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 1000))},
		"redirect to itself":       {plain, false, redirects("/quotes/N")},
		"redirect to capitals":     {plain, false, redirects("http://CDN.test/N")},
		"redirect to a dot":        {plain, false, redirects("http://cdn.test./N")},
		"redirect to port 80":      {plain, false, redirects("http://cdn.test:80/N")},
		"redirect to HTTPS":        {plain, false, redirects("https://cdn.test/N")},
		"redirect to a user":       {plain, false, redirects("http://a:b@cdn.test/N")},
		"redirect to wide letters": {plain, false, redirects("http://\uff43\uff44\uff4e.test/N")},
		"redirect to an address":   {plain, false, redirects("http://192.0.2.1/N")},
		"redirect to a mapped one": {plain, false, redirects("http://[::ffff:192.0.2.1]/N")},
		"redirect to many hosts":   {plain, false, redirects("http://N.test/")},
	} {
		t.Run(name, func(t *testing.T) { turnsAreKept(t, c.base, c.proxied, c.misbehave) })
	}
}

// turnsAreKept lets eight jobs ask for a minute of a bubble.
func turnsAreKept(t *testing.T, base string, proxied bool, misbehave func(*listener, net.Conn)) {
	srv := httptest.NewTLSServer(nil) // its certificate is of use in the bubble
	srv.Close()
	synctest.Test(t, func(t *testing.T) {
		l := &listener{misbehave: misbehave}
		if base[:5] == "https" && !proxied {
			l.tls = &tls.Config{Certificates: srv.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}}
		}
		c, err := NewClient(base, 20, func(context.Context, string, string) (net.Conn, error) { return l.dial(t) })
		must(t, err)
		transport := c.http.Transport.(*http.Transport)
		transport.TLSClientConfig = &tls.Config{RootCAs: srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com"}
		transport.Proxy = nil
		if proxied {
			transport.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy.test"})
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var jobs sync.WaitGroup
		for i := range 8 {
			jobs.Go(func() {
				for ; ctx.Err() == nil; time.Sleep(time.Second) {
					if _, err := c.Fetch(ctx, upstream.Quotes(fmt.Sprint("X", i)), nil); err == nil {
						t.Error("no error")
					}
				}
			})
		}
		jobs.Wait()
		synctest.Wait()
		for i := range l.conns[1:] {
			if after := l.conns[i+1].Sub(l.conns[i]); after < 3*time.Second {
				t.Fatalf("%d connections and %d requests in a minute, two of them %v apart", len(l.conns), l.heads, after)
			}
		}
		if n := len(l.conns); n < 10 || l.heads > n {
			t.Errorf("%d connections and %d requests in a minute", n, l.heads)
		}
	})
}
