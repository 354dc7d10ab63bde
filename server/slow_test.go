package server_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"strikecache/bench/need"
	"strikecache/server"
	"strikecache/snapshots"
)

// slowClient is a way to keep a connection for long.
type slowClient struct {
	name   string
	limits func(*server.Config, time.Duration) // sets the timeout that must end it
	full   time.Duration                       // that timeout by default
	status string                              // of the last response, "" for none
	drive  func(*slow) error
	linux  bool // there alone is known what a client has not taken
}

const post = "POST /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n"

var (
	byRead  = func(c *server.Config, d time.Duration) { c.ReadTimeout = d }
	byWrite = func(c *server.Config, d time.Duration) { c.WriteTimeout = d }
	byIdle  = func(c *server.Config, d time.Duration) { c.IdleTimeout = d }
)

var slowClients = []slowClient{
	{"silent", byRead, 5 * time.Second, "", func(c *slow) error { return c.drip("", "", "") }, false},
	{"idle", byIdle, 75 * time.Second, "", func(c *slow) error { return c.drip(vix, "", "") }, false},
	{"slow head", byRead, 5 * time.Second, "408", func(c *slow) error { return c.drip("", ask, "X: 1\r\n") }, false},
	{"slow head after a request", byRead, 5 * time.Second, "408", func(c *slow) error { return c.drip(vix, ask, "X: 1\r\n") }, false},
	{"slow body", byRead, 5 * time.Second, "408", func(c *slow) error { return c.drip("", post, "x") }, false},
	{"slow body after a request", byRead, 5 * time.Second, "408", func(c *slow) error { return c.drip(vix, post, "x") }, false},
	{"body that never comes", byRead, 5 * time.Second, "408", func(c *slow) error { return c.drip(vix, post, "") }, false},
	{"reader that never reads", byWrite, 30 * time.Second, "", func(c *slow) error { return c.read(gamma, bigBody, 0) }, false},
	{"slow reader", byWrite, 30 * time.Second, "", func(c *slow) error { return c.read(gamma, bigBody, 16) }, false},
	// The kernel takes the whole answer from the server, and then waits for the client.
	{"reader that never reads a small body", byIdle, 75 * time.Second, "", func(c *slow) error { return c.read(pain, smallBody, 0) }, true},
}

const vix = "GET /api/public/vix-term-structure HTTP/1.1\r\nHost: a\r\n\r\n"

// slow is a connection that a slow client holds.
type slow struct {
	net.Conn
	tcp     *net.TCPConn  // of the kernel, under Conn
	timeout time.Duration // that must end it
	every   time.Duration // between pieces
	began   time.Time     // when it began to be slow
	last    []byte        // what the server said at last
}

// drip sends one request and reads its answer, then the start of another, and then a piece of it at a time, until
// the server ends the connection.
func (c *slow) drip(first, start, piece string) error {
	if first != "" {
		if _, err := io.WriteString(c, first); err != nil {
			return err
		}
		if _, err := c.Read(make([]byte, 4<<10)); err != nil {
			return err
		}
	}
	c.began = time.Now()
	if _, err := io.WriteString(c, start); err != nil {
		return err
	}
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
	if reset(err) && len(c.last) > 0 {
		return nil // a piece was under way when the server had closed
	}
	return err
}

func reset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// bigBody is more bytes than the kernel buffers between both ends.
const bigBody = 8 << 20

// smallBody is more bytes than a slow reader's kernel takes, and fewer than the server's.
const smallBody = 128 << 10

const (
	gamma = "GET /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\n\r\n"
	pain  = "GET /api/public/spx-max-pain HTTP/1.1\r\nHost: a\r\n\r\n"
)

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
			if taken += m; err != nil && !reset(err) {
				return fmt.Errorf("after %d bytes: %w", taken, err)
			}
		}
		if gone, err := resets(c.tcp); err != nil {
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

// However slow clients are, and however many, they are let go at the timeout, neither before nor much later, and
// others are answered all the while.
func TestFaultSlowClients(t *testing.T) {
	count := need.Count(400)
	need.Files(t, 2*len(slowClients)*count+200)
	var cases sync.WaitGroup
	for _, c := range slowClients {
		if c.linux && runtime.GOOS != "linux" {
			continue
		}
		cases.Go(func() { c.held(t, count, nil) })
	}
	cases.Wait()
}

// held lets slow clients hold connections of a server of their own, beside an ordinary client. Both speak TLS when
// they have a configuration for it.
func (c slowClient) held(t *testing.T, count int, secure *speech) {
	timeout := 2 * time.Second
	if need.Full() {
		timeout = c.full
	}
	shelf := newShelf(t)
	if strings.Contains(c.name, "read") {
		shelf.editions["gex/spx"].Default = seal(t, "gex/spx", `{"filler":"`+strings.Repeat("gamma ", bigBody/6)+`"}`)
		shelf.editions["spx-max-pain"].Default = seal(t, "spx-max-pain", `{"filler":"`+strings.Repeat("pain ", smallBody/5)+`"}`)
	}
	web := newServer(shelf, func(cfg *server.Config) {
		if !need.Full() {
			c.limits(cfg, timeout)
		}
		cfg.TLS = secure.server()
	})
	address := listen(t, web)
	stop := make(chan struct{})
	answered := make(chan int, 1)
	go func() { answered <- ordinary(t, address, shelf, secure, stop) }()
	held := c.hold(t, address, count, timeout, secure)
	close(stop)
	n := <-answered
	if n == 0 {
		t.Errorf("%s: no ordinary client was answered meanwhile", c.name)
	}
	need.Figure(t, "%d connections, %s: let go %.2f s to %.2f s after %v, with %d ordinary answers meanwhile",
		count, c.name, slices.Min(held)-timeout.Seconds(), slices.Max(held)-timeout.Seconds(), timeout, n)
}

// How much before and after its timeout a slow client may be let go. Deadlines are set once a second.
const early, late = 1100 * time.Millisecond, 5 * time.Second

// hold opens connections of slow clients, and returns how many seconds each was held.
func (c slowClient) hold(t *testing.T, address string, count int, timeout time.Duration, secure *speech) []float64 {
	held := make([]float64, count)
	var clients sync.WaitGroup
	for i := range count {
		plain, err := net.Dial("tcp", address)
		if err != nil {
			t.Error(err)
			break
		}
		clients.Go(func() {
			defer plain.Close()
			s := &slow{Conn: plain, tcp: plain.(*net.TCPConn), timeout: timeout, every: min(timeout/20, time.Second/2), began: time.Now()}
			if err := s.SetDeadline(time.Now().Add(timeout + late)); err != nil {
				t.Error(err)
			}
			var err error
			if secure != nil && !secure.bare {
				s.Conn, err = secure.shake(plain)
			}
			if err == nil {
				err = c.drive(s)
			}
			took := time.Since(s.began)
			held[i] = took.Seconds()
			if err != nil || took < timeout-early || took > timeout+late {
				t.Errorf("%s: ended after %v with %v", c.name, took, err)
			}
			if status, ok := strings.CutPrefix(string(s.last), "HTTP/1.1 "); ok != (c.status != "") || !strings.HasPrefix(status, c.status) {
				t.Errorf("%s: answered %.60q, want %q", c.name, s.last, c.status)
			}
		})
	}
	clients.Wait()
	return held
}

// ordinary asks again and again, on one connection and on new ones, until stop is closed, and returns how often it
// was answered.
func ordinary(t *testing.T, address string, shelf *shelf, secure *speech, stop <-chan struct{}) (n int) {
	want := shelf.editions["vix-term-structure"].Default.Body(snapshots.Identity)
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
		case <-time.After(5 * time.Millisecond):
		}
		if n%10 == 0 {
			transport.CloseIdleConnections()
		}
		resp, err := client.Get(scheme + address + "/api/public/vix-term-structure")
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

// A body that does not come is answered, although the time for the response before it has long passed.
func TestSlowBodyIsAnsweredAfterTheWriteTimeout(t *testing.T) {
	address := listen(t, newServer(newShelf(t), func(c *server.Config) {
		c.ReadTimeout, c.WriteTimeout = 400*time.Millisecond, 100*time.Millisecond
	}))
	c := dial(t, address)
	if status, _, err := request(c, vix); status != 200 || err != nil {
		t.Fatal(status, err)
	}
	if status, _, err := request(c, post); status != http.StatusRequestTimeout || err != nil {
		t.Errorf("%d %v, want 408", status, err)
	}
}
