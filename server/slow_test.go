//go:build unix

package server_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"strikecache/server"
	"strikecache/snapshots"
)

// needFiles skips a test that needs more open files than the system allows a process.
func needFiles(t testing.TB, n int) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < uint64(n) {
		t.Skipf("needs %d open files: the limit is %d (%v)", n, limit.Cur, err)
	}
}

// resetPending says whether the other end has reset a connection, without a read or a write.
func resetPending(c *net.TCPConn) (yes bool, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return false, err
	}
	var code int
	controlled := raw.Control(func(fd uintptr) { code, err = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_ERROR) })
	return code != 0, errors.Join(controlled, err)
}

// slowClient is a way to keep a connection for long.
type slowClient struct {
	name   string
	by     byTimeout // the timeout that must end it
	status string    // of the last response, "" for none
	drive  func(*slow) error
}

// byTimeout is a timeout of a server: its value by default, and how to set it.
type byTimeout struct {
	full time.Duration
	set  func(*server.Config, time.Duration)
}

var (
	byRead  = byTimeout{5 * time.Second, func(c *server.Config, d time.Duration) { c.ReadTimeout = d }}
	byWrite = byTimeout{30 * time.Second, func(c *server.Config, d time.Duration) { c.WriteTimeout = d }}
	byIdle  = byTimeout{75 * time.Second, func(c *server.Config, d time.Duration) { c.IdleTimeout = d }}
)

var slowClients = []slowClient{
	{"silent", byRead, "", func(c *slow) error { return c.drip("", "", "") }},
	{"idle", byIdle, "", func(c *slow) error { return c.drip(vix, "", "") }},
	{"slow head", byRead, "408", func(c *slow) error { return c.drip("", seriesLine, "X: 1\r\n") }},
	{"slow head after a request", byRead, "408", func(c *slow) error { return c.drip(vix, seriesLine, "X: 1\r\n") }},
	{"reader that never reads", byWrite, "", func(c *slow) error { return c.read(gamma, bigBody, 0) }},
	{"slow reader", byWrite, "", func(c *slow) error { return c.read(gamma, bigBody, 16) }},
	{unacknowledged, byIdle, "", func(c *slow) error { return c.read(pain, halfTakenBody, 0) }},
}

// unacknowledged is a client whose whole answer is in the kernel's buffer, because the client does not read it. Only on Linux
// the server knows that bytes are not acknowledged.
const unacknowledged = "reader that never reads a small body"

// bareClients are slow before the TLS handshake is complete.
var bareClients = []slowClient{
	{"silent before the handshake", byRead, "", func(c *slow) error { return c.drip("", "", "") }},
	{"slow handshake", byRead, "", func(c *slow) error {
		if err := c.drip("", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "x"); !isReset(err) {
			return err
		}
		return nil // the server closed while the client was sending a piece
	}},
}

// slow is a connection that a slow client holds.
type slow struct {
	net.Conn
	tcp     *net.TCPConn  // of the kernel, under Conn
	timeout time.Duration // that must end it
	every   time.Duration // between pieces
	began   time.Time     // when it began to be slow; zero: not yet
	last    []byte        // the last bytes from the server
}

// drip sends one request and reads its answer, then the start of another, and then a piece of it at a time, until the
// server ends the connection.
func (c *slow) drip(first, start, piece string) error {
	if first != "" {
		if _, err := io.WriteString(c, first); err != nil {
			return err
		}
		if _, err := c.Read(make([]byte, 4<<10)); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(c, start); err != nil {
		return err
	}
	c.began = time.Now()
	ended := make(chan struct{})
	var dripping sync.WaitGroup
	dripping.Go(func() {
		tick := time.NewTicker(c.every)
		defer tick.Stop()
		for piece != "" {
			select {
			case <-ended:
				return
			case <-tick.C:
				if _, err := io.WriteString(c, piece); err != nil {
					return
				}
			}
		}
	})
	var err error
	c.last, err = io.ReadAll(c)
	close(ended)
	dripping.Wait()
	if isReset(err) && len(c.last) > 0 {
		return nil // the server had closed while the client was sending a piece
	}
	return err
}

// halfTakenBody is more bytes than the kernel of a slow reader takes, and fewer than that of the server.
const halfTakenBody = 128 << 10

// read asks for a body and takes n bytes of it at a time, 0 for never, until the server resets the connection.
func (c *slow) read(raw string, size int64, n int) error {
	if err := c.tcp.SetReadBuffer(4 << 10); err != nil {
		return err
	}
	c.began = time.Now()
	if _, err := io.WriteString(c, raw); err != nil {
		return err
	}
	taken, tick := int64(0), time.NewTicker(c.every)
	defer tick.Stop()
	for range tick.C {
		if n > 0 {
			m, err := io.CopyN(io.Discard, c, int64(n))
			if taken += m; err != nil && !isReset(err) {
				return fmt.Errorf("after %d bytes: %w", taken, err)
			}
		}
		if gone, err := resetPending(c.tcp); err != nil {
			return err
		} else if gone {
			break
		} else if time.Since(c.began) > c.timeout+late {
			return fmt.Errorf("no reset; %d bytes taken", taken)
		}
	}
	rest, _ := io.Copy(io.Discard, c) // the reset has been seen
	if taken += rest; taken == 0 || taken >= size {
		return fmt.Errorf("%d bytes came", taken)
	}
	return nil
}

// Any number of slow clients are disconnected at their timeout, and other clients are answered meanwhile, with TLS and
// without.
func TestFaultSlowClients(t *testing.T) {
	t.Parallel()
	count, secure := scaled(400), newTLSEnds(t)
	needFiles(t, 2*(2*len(slowClients)+len(bareClients))*count+200)
	f := newFinder(t)
	f.editions["gex/spx"].Default, f.editions["spx-max-pain"].Default = fill(t, "gamma ", bigBody), fill(t, "pain ", halfTakenBody)
	var cases sync.WaitGroup
	for _, c := range slowClients {
		if c.name == unacknowledged && runtime.GOOS != "linux" {
			continue
		}
		cases.Go(func() { c.run(t, f, count, nil, nil) })
		if engine == server.EngineFasthttp {
			cases.Go(func() { c.run(t, f, count, secure, secure) })
		}
	}
	for _, c := range bareClients {
		if engine != server.EngineFasthttp {
			break // with TLS, the engine is always fasthttp
		}
		cases.Go(func() { c.run(t, f, count, secure, nil) })
	}
	cases.Wait()
}

// A slow client may be disconnected a little before its timeout, because deadlines are set once a second. How much later it
// may be depends on the load of the machine.
const early, late = 1100 * time.Millisecond, time.Minute

// run starts a server, and lets slow clients hold connections beside an ordinary client. secure is the TLS of the server,
// and own is the TLS of the slow clients.
func (c slowClient) run(t *testing.T, f *finder, count int, secure, own *tlsEnds) {
	timeout := 4 * time.Second
	if full() {
		timeout = c.by.full
	}
	web := newServer(f, func(cfg *server.Config) {
		cfg.TLS = secure.server()
		if !full() {
			cfg.ReadTimeout = time.Minute
			c.by.set(cfg, timeout)
		}
	})
	address, stop, others := listen(t, web), make(chan struct{}), make(chan int, 1)
	go func() { others <- ordinary(t, address, f, secure, timeout, stop) }()
	var clients sync.WaitGroup
	for range count {
		clients.Go(func() {
			for range 10 {
				if c.hold(t, address, timeout, own) {
					return
				}
			}
			t.Errorf("%s: a client took half of its timeout to begin, 10 times", c.name)
		})
	}
	clients.Wait()
	close(stop)
	n := <-others
	if n == 0 {
		t.Errorf("%s: no ordinary client was answered meanwhile", c.name)
	}
	t.Logf("figure: %d connections, %s, TLS %v: ended at the timeout of %v, with %d ordinary answers meanwhile", count, c.name, secure != nil, timeout, n)
}

// hold holds a connection until the server ends it. It returns false if the client, on a busy machine, began too late to tell.
func (c slowClient) hold(t *testing.T, address string, timeout time.Duration, own *tlsEnds) bool {
	dialed := time.Now() // before the server sets any deadline
	plain, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return true
	}
	defer plain.Close()
	s := &slow{tcp: plain.(*net.TCPConn), timeout: timeout, every: min(timeout/20, time.Second/2)}
	if err = plain.SetDeadline(time.Now().Add(timeout + late)); err == nil {
		s.Conn, err = own.handshake(plain)
	}
	if err == nil {
		err = c.drive(s)
	}
	if s.began.IsZero() {
		s.began = time.Now()
	}
	took, total := time.Since(s.began), time.Since(dialed)
	if s.began.Sub(dialed) > timeout/2 {
		return false
	}
	if err != nil || total < timeout-early || took > timeout+late {
		t.Errorf("%s: ended after %v, of %v in all, with %v", c.name, took, total, err)
	}
	if status, ok := strings.CutPrefix(string(s.last), "HTTP/1.1 "); ok != (c.status != "") || !strings.HasPrefix(status, c.status) {
		t.Errorf("%s: answered %.60q, want %q", c.name, s.last, c.status)
	}
	return true
}

// ordinary makes requests, on one connection and on new ones, until stop is closed, and returns how many were answered.
func ordinary(t *testing.T, address string, f *finder, secure *tlsEnds, timeout time.Duration, stop <-chan struct{}) (n int) {
	want := f.editions["vix-term-structure"].Default.Body(snapshots.Identity)
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	client, scheme := &http.Client{Transport: transport}, "http://"
	if secure != nil {
		transport.TLSClientConfig, scheme = secure.client, "https://"
	}
	for ; ; n++ {
		select {
		case <-stop:
			return n
		case <-time.After(50 * time.Millisecond):
		}
		if n%10 == 0 {
			transport.CloseIdleConnections()
		}
		began := time.Now()
		resp, err := client.Get(scheme + address + "/api/public/vix-term-structure")
		if err != nil && time.Since(began) > timeout/2 {
			continue // on a busy machine: the server waits no longer for a request
		}
		if err != nil {
			t.Error(err)
			return n
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || !bytes.Equal(body, want) {
			t.Errorf("%d %.100q %v", resp.StatusCode, body, err)
		}
	}
}
