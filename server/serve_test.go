package server_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"strikecache/bench/testkit"
	"strikecache/server"
	"strikecache/server/limits"
	"strikecache/server/loop"
)

// request sends one request and returns the status and body of the answer.
func request(c net.Conn, raw string) (int, []byte, error) {
	if _, err := io.WriteString(c, raw); err != nil {
		return 0, nil, err
	}
	return response(c)
}

func response(c net.Conn) (int, []byte, error) {
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, nil, err
	}
	body, err := io.ReadAll(resp.Body)
	if resp.StatusCode == http.StatusServiceUnavailable && (!resp.Close || resp.Header.Get("Retry-After") != "1") {
		err = errors.Join(err, errors.New("no Connection: close, or no Retry-After"))
	}
	return resp.StatusCode, body, err
}

// answered reports a request that is not answered with 200.
func answered(t testing.TB, c net.Conn) {
	t.Helper()
	if status, _, err := request(c, vix); status != 200 || err != nil {
		t.Errorf("%d %v", status, err)
	}
}

// Connections over the limit are refused with an answer, whether they send a request or not. With TLS, only clients that
// make the handshake get the answer. Meanwhile all connections within the limit are answered, even one in a handshake. A
// connection that ends makes room for another.
func TestFaultConnectionLimit(t *testing.T) {
	const limit = 3
	const refusal = `{"success":false,"error":{"code":"overloaded","message":"too many connections at once"},"meta":{"endpoint":"","source":"simulated"},"usage":{"tier":"anonymous"}}`
	for name, secure := range map[string]*tlsEnds{"plain": nil, "TLS": newTLSEnds(t)} {
		web := newServer(newFinder(t), func(c *server.Config) { c.MaxConnections, c.TLS, c.ReadTimeout = limit, secure.server(), time.Hour })
		address := listen(t, web)
		within := []net.Conn{secure.dial(t, address), secure.dial(t, address), dial(t, address)} // the last one is silent
		until(t, "all are admitted", func() bool { return web.Stats().ConnectionsOpen == limit })
		surplus := scaled(4000)
		if secure != nil {
			surplus = 1 // more handshakes might exceed their timeout
		}
		tried := 0
		for left := surplus; left > 0; tried++ {
			began, status, body := time.Now(), 0, []byte(nil)
			c, err := secure.handshake(dial(t, address))
			if err == nil {
				status, body, err = request(c, vix)
			}
			c.Close()
			if err != nil && time.Since(began) >= 500*time.Millisecond {
				continue // on a busy machine: the server waits no longer for a handshake or a request
			}
			if left--; status != 503 || string(body) != refusal || err != nil {
				t.Errorf("%s: %d %s %v", name, status, body, err)
			}
		}
		if secure == nil { // a refusal of HEAD has no body
			got := exchange(t, address, "HEAD"+strings.TrimPrefix(vix, "GET"), false)
			if tried++; statuses(got) != "503" || !strings.HasSuffix(got, "\r\n\r\n") {
				t.Errorf("%q", got)
			}
		}
		silent := make([]net.Conn, 100) // more than loop.MaxRejecting
		for i := range silent {
			silent[i] = dial(t, address)
		}
		for _, c := range silent {
			if secure != nil {
				if b, err := io.ReadAll(c); len(b) > 0 || err != nil && !isReset(err) {
					t.Errorf("%s, silent: %q %v", name, b, err)
				}
			} else if status, body, err := response(c); status != 503 || string(body) != refusal || err != nil {
				t.Errorf("%s, silent: %d %s %v", name, status, body, err)
			}
		}
		equal(t, web.Stats().ConnectionsRefused, uint64(tried+len(silent)), "%s: refused", name)
		t.Logf("figure: %s: %d asking and %d silent connections over the limit refused, %d served within it", name, surplus, len(silent), limit)
		for _, c := range within[:2] {
			answered(t, c)
		}
		within[2].Close()
		until(t, "room for one", func() bool { return web.Stats().ConnectionsOpen == limit-1 })
		answered(t, secure.dial(t, address))
	}
}

// exhausted is a listener that fails, if the engine is fasthttp, a few times: for lack of descriptors, or for one connection.
type exhausted struct {
	*net.TCPListener
	left, tried atomic.Int64
	fail        chan struct{} // closed to begin the failures; nil: they begin at once
	deadlines   atomic.Int64
	stalled     bool // a stopping server gets no processor during the first time in which it still accepts
}

func (l *exhausted) SetDeadline(t time.Time) error {
	switch n := l.deadlines.Add(1); { // the first one ends the wait for connections
	case l.stalled && n == 2:
		t = time.Now().Add(-time.Second)
	case l.stalled && n == 3, n == 2: // on a busy machine, what is accepted in 100 ms may not be all
		t = time.Now().Add(time.Second)
	}
	return l.TCPListener.SetDeadline(t)
}

func newExhausted(t testing.TB, failures int64) *exhausted {
	t.Helper()
	ln, err := loop.Listen("127.0.0.1:0")
	must(t, err)
	e := &exhausted{TCPListener: ln.(*net.TCPListener)}
	e.left.Store(failures)
	return e
}

func (l *exhausted) Accept() (net.Conn, error) {
	l.tried.Add(1)
	if l.left.Add(-1) >= 0 {
		if l.fail != nil {
			<-l.fail
		}
		errno := []error{syscall.EMFILE, syscall.EPROTO, syscall.EPERM}[(l.tried.Load()-1)%3]
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", errno)}
	}
	return l.TCPListener.Accept()
}

// onlyFasthttp skips a test in the run with the other engine, which does not call Accept of a listener.
func onlyFasthttp(t *testing.T) {
	if engine != server.EngineFasthttp {
		t.Skip("needs the engine fasthttp")
	}
}

// A server without free descriptors, or with a connection that fails, pauses between its tries to accept, logs this once, and
// later accepts again.
func TestFaultAccept(t *testing.T) {
	t.Parallel()
	onlyFasthttp(t)
	var log testkit.Text
	web, ln, began := newServer(newFinder(t), func(c *server.Config) { c.Log = log.Logger(slog.LevelDebug) }), newExhausted(t, 5), time.Now()
	shutdown := serveOn(t, web, ln)
	answered(t, dial(t, ln.Addr().String()))
	if took := time.Since(began); took < 500*time.Millisecond {
		t.Errorf("5 failures took %v: it spins", took)
	}
	if n := ln.tried.Load(); n < 6 {
		t.Errorf("%d tries: the fault did not happen", n)
	}
	must(t, shutdown(t.Context()))
	if text := log.String(); strings.Count(text, "not accepted for now") != 1 || !strings.Contains(text, "too many open files") {
		t.Errorf("log %s", text)
	}
}

// Connections that the kernel has accepted when the server is told to stop are answered.
func TestShutdownServesTheBacklog(t *testing.T) {
	t.Parallel()
	onlyFasthttp(t)
	for _, stalled := range []bool{false, true} {
		web, ln := newServer(newFinder(t)), newExhausted(t, 1)
		ln.stalled = stalled
		ln.fail = make(chan struct{}) // the accept loop waits while the clients connect and ask, and then still pauses
		shutdown := serveOn(t, web, ln)
		var clients []net.Conn
		for range 20 {
			c := dial(t, ln.Addr().String())
			write(t, c, vix)
			clients = append(clients, c)
		}
		until(t, "the server accepts", func() bool { return ln.tried.Load() > 0 }) // one that is stopped before it accepts closes the listener at once
		equal(t, web.Stats().ConnectionsOpen, 0, "connections that are not in the backlog")
		close(ln.fail)
		must(t, shutdown(t.Context()))
		for _, c := range clients {
			if status, _, err := response(c); status != 200 || err != nil {
				t.Errorf("stalled %v: %d %v", stalled, status, err)
			}
		}
	}
}

// A client that never reads its answer is cut off at the time limit of Shutdown, and the error says so.
func TestShutdownEndsAtTheLimit(t *testing.T) {
	f := newFinder(t)
	f.editions["gex/spx"].Default = fill(t, "gamma ", bigBody)
	web := newServer(f)
	address, shutdown := serve(t, web)
	stuck := dial(t, address)
	write(t, stuck, gamma)
	if _, err := io.ReadFull(stuck, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	limit, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err := shutdown(limit)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1 connections cut off") {
		t.Errorf("shutdown: %v", err)
	}
	until(t, "the connection is gone", func() bool { return web.Stats().ConnectionsOpen == 0 })
}

// A stopping server waits a second for a client that has sent no request, or is in a TLS handshake, and less for other idle
// clients. It closes their connections properly.
func TestShutdown(t *testing.T) {
	t.Parallel()
	for _, secure := range []*tlsEnds{nil, newTLSEnds(t)} {
		web := newServer(newFinder(t), func(c *server.Config) { c.TLS, c.ReadTimeout, c.IdleTimeout = secure.server(), time.Hour, time.Hour })
		address, shutdown := serve(t, web)
		silent, idle := dial(t, address), secure.dial(t, address)
		answered(t, idle)
		until(t, "both are admitted", func() bool { return web.Stats().ConnectionsOpen >= 2 })
		began := time.Now()
		must(t, shutdown(t.Context()))
		if took := time.Since(began); took < time.Second {
			t.Errorf("a client that has connected had %v for its first request", took)
		}
		for name, c := range map[string]net.Conn{"idle": idle, "silent": silent} {
			if b, err := io.ReadAll(c); len(b) > 0 || err != nil {
				t.Errorf("%s: %q %v", name, b, err)
			}
		}
	}
}

// One address has a quarter of the connections. What is more is refused like a connection over the limit, while others are served.
func TestQuarterForOneAddress(t *testing.T) {
	for name, secure := range map[string]*tlsEnds{"loop": nil, "fasthttp": nil, "TLS": newTLSEnds(t)} {
		web := newServer(newFinder(t), func(c *server.Config) { c.MaxConnections, c.TLS = 8, secure.server() })
		if name == "fasthttp" {
			web = newServer(newFinder(t), func(c *server.Config) { c.MaxConnections, c.Engine = 8, server.EngineFasthttp })
		}
		server.ExemptNobody(web)
		address := listen(t, web)
		first := secure.dial(t, address)
		answered(t, first)
		answered(t, secure.dial(t, address))
		if status, _, err := request(secure.dial(t, address), vix); status != 503 || err != nil {
			t.Errorf("%s: the third: %d %v", name, status, err)
		}
		elsewhere := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
		c, err := elsewhere.Dial("tcp", address)
		if err != nil {
			t.Skipf("needs to speak from 127.0.0.2: %v", err)
		}
		other, err := secure.handshake(c.(*net.TCPConn))
		must(t, err)
		answered(t, other)
		other.Close()
		first.Close()
		until(t, "the third is served", func() bool {
			c := secure.dial(t, address)
			defer c.Close()
			status, _, err := request(c, vix)
			return status == 200 && err == nil
		})
	}
}

// 0.0.0.0 is every IPv4 address and no IPv6 address, which a firewall may not expect (https://github.com/golang/go/issues/17615).
func TestListenOnIPv4(t *testing.T) {
	ln, err := loop.Listen("0.0.0.0:0")
	must(t, err)
	defer ln.Close()
	if at := ln.Addr().(*net.TCPAddr); len(at.IP) != net.IPv4len {
		t.Errorf("listens on %v", at)
	}
}

// Each engine serves a Unix socket beside TCP, which the group of its file may use. Its connections are those of a trusted proxy. At the
// end, the file is gone.
func TestUnixSocket(t *testing.T) {
	for _, engine := range []string{server.EngineLoop, server.EngineFasthttp} {
		path := filepath.Join(t.TempDir(), "socket")
		var listeners []loop.Listener
		for _, address := range []string{"127.0.0.1:0", "unix:" + path} {
			ln, err := loop.Listen(address)
			must(t, err)
			listeners = append(listeners, ln)
		}
		shutdown := serveOn(t, newServer(newFinder(t), func(c *server.Config) {
			c.Engine, c.MaxConnections, c.Addresses = engine, 8, limits.NewAddresses(1)
		}), listeners...)
		answered(t, dial(t, listeners[0].Addr().String()))
		if info, err := os.Stat(path); err != nil || info.Mode() != os.ModeSocket|0o660 {
			t.Errorf("%v %v", info.Mode(), err)
		}
		for _, ask := range []struct {
			from string
			want int
		}{{"192.0.2.1", 200}, {"192.0.2.2", 200}, {"192.0.2.1", 429}, {"192.0.2.3", 200}} {
			c, err := net.Dial("unix", path)
			must(t, err)
			defer c.Close() // four, half of all
			if status, _, err := request(c, strings.Replace(vix, "\r\n\r\n", "\r\nX-Forwarded-For: "+ask.from+"\r\n\r\n", 1)); status != ask.want || err != nil {
				t.Errorf("%s: from %s: %d %v, want %d", engine, ask.from, status, err, ask.want)
			}
		}
		must(t, shutdown(t.Context()))
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s: after the end: %v", engine, err)
		}
	}
}
