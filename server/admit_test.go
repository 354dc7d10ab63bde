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
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"strikecache/bench/need"
	"strikecache/server"
)

// dial opens a connection that is closed with the test, and that no operation on hangs for long.
func dial(t testing.TB, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}

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

// hogs opens connections up to a limit, each with one request answered.
func hogs(t testing.TB, address string, limit int) (held []net.Conn) {
	t.Helper()
	for range limit {
		c := dial(t, address)
		if status, _, err := request(c, vix); status != 200 || err != nil {
			t.Fatal(status, err)
		}
		held = append(held, c)
	}
	return held
}

// Connections over the limit are refused, clearly, whether they ask or not; those within it are answered all the
// while, and one that ends makes room for another.
func TestFaultConnectionLimit(t *testing.T) {
	const limit = 3
	web := newServer(newShelf(t), func(c *server.Config) { c.MaxConnections = limit })
	address := listen(t, web)
	held := hogs(t, address, limit)
	const refusal = `{"success":false,"error":{"code":"overloaded","message":"too many connections at once"},"meta":{"endpoint":"","source":"simulated"},"usage":{"tier":"anonymous"}}`
	surplus := need.Count(2000)
	var refused atomic.Int64
	var clients sync.WaitGroup
	for range 20 {
		clients.Go(func() {
			for range surplus / 20 {
				c, err := net.Dial("tcp", address)
				if err != nil {
					t.Error(err)
					return
				}
				status, body, err := request(c, vix)
				if status != 503 || string(body) != refusal || err != nil {
					t.Errorf("%d %s %v", status, body, err)
				} else {
					refused.Add(1)
				}
				c.Close()
			}
		})
	}
	clients.Wait()
	need.Figure(t, "%d of %d connections over the limit refused with the envelope", refused.Load(), surplus/20*20)

	// More silent ones than are waited for.
	silent := make([]net.Conn, 100)
	for i := range silent {
		silent[i] = dial(t, address)
	}
	for _, c := range silent {
		if status, body, err := response(c); status != 503 || string(body) != refusal || err != nil {
			t.Errorf("silent: %d %s %v", status, body, err)
		}
	}
	for _, c := range held {
		if status, _, err := request(c, vix); status != 200 || err != nil {
			t.Error(status, err)
		}
	}
	if n := web.Stats().ConnectionsOpen; n != limit {
		t.Errorf("%d connections, want %d", n, limit)
	}
	held[0].Close()
	need.Until(t, "room for one", func() bool { return web.Stats().ConnectionsOpen == limit-1 })
	if status, _, err := request(dial(t, address), vix); status != 200 || err != nil {
		t.Error(status, err)
	}
}

// lacking is a listener that fails for want of descriptors a few times.
type lacking struct {
	*net.TCPListener
	left, tried atomic.Int64
	fail        chan struct{} // the first failure comes when it is closed; nil for at once
}

func (l *lacking) Accept() (net.Conn, error) {
	l.tried.Add(1)
	if l.left.Add(-1) >= 0 {
		if l.fail != nil {
			<-l.fail
		}
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.TCPListener.Accept()
}

// A server that cannot accept for want of descriptors waits, without spinning, says so once, and goes on.
func TestFaultAccept(t *testing.T) {
	var log need.Log
	web := newServer(newShelf(t), func(c *server.Config) { c.Log = log.Logger(slog.LevelInfo) })
	tcp, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln := &lacking{TCPListener: tcp.(*net.TCPListener)}
	ln.left.Store(5)
	served := make(chan error, 1)
	began := time.Now()
	go func() { served <- web.Serve(ln) }()
	if status, _, err := request(dial(t, tcp.Addr().String()), vix); status != 200 || err != nil {
		t.Error(status, err)
	}
	if took := time.Since(began); took < 500*time.Millisecond {
		t.Errorf("5 failures took %v: it spins", took)
	}
	if n := ln.tried.Load(); n < 6 {
		t.Errorf("%d tries: the fault did not happen", n)
	}
	if err := web.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if n := log.Count("not accepted for now"); n != 1 || !strings.Contains(log.String(), "too many open files") {
		t.Errorf("logged %d times: %s", n, log.String())
	}
}

// Connections that the kernel has accepted when the server is told to stop are answered.
func TestShutdownServesTheBacklog(t *testing.T) {
	web := newServer(newShelf(t))
	tcp, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	// The accept loop is held up while the clients connect and ask, and then still pauses.
	ln := &lacking{TCPListener: tcp.(*net.TCPListener), fail: make(chan struct{})}
	ln.left.Store(1)
	served := make(chan error, 1)
	go func() { served <- web.Serve(ln) }()
	var clients []net.Conn
	for range 20 {
		c := dial(t, tcp.Addr().String())
		if _, err := io.WriteString(c, vix); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	if n := web.Stats().ConnectionsOpen; n != 0 {
		t.Errorf("%d connections are not in the backlog", n)
	}
	close(ln.fail)
	if err := web.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	for _, c := range clients {
		if status, _, err := response(c); status != 200 || err != nil {
			t.Error(status, err)
		}
	}
}

// A client that never takes its answer is cut off at the limit, and the error says so.
func TestShutdownEndsAtTheLimit(t *testing.T) {
	shelf := newShelf(t)
	shelf.editions["gex/spx"].Default = seal(t, "gex/spx", `{"filler":"`+strings.Repeat("gamma ", bigBody/6)+`"}`)
	web := newServer(shelf)
	tcp, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- web.Serve(tcp) }()
	stuck := dial(t, tcp.Addr().String())
	if _, err := io.WriteString(stuck, "GET /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stuck, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	limit, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err = web.Shutdown(limit)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1 connections cut off") {
		t.Errorf("shutdown: %v", err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	need.Until(t, "the connection is gone", func() bool { return web.Stats().ConnectionsOpen == 0 })
}
