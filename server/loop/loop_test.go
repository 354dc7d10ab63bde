//go:build linux

package loop

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience is a bound that only a hang reaches.
const patience = 5 * time.Minute

// big is more than both kernels buffer.
var big = bytes.Repeat([]byte("0123456789abcdef"), 1<<19)

// echo is a handler: it answers the path of a request, "big" with a big body, and "close" as the last one that the client
// asks for.
type echo struct{}

func (echo) Answer(b []byte, r Request, a *Answer) int {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		return 0
	}
	a.Head = append(a.Head, "A:"...)
	if a.Tail = append([]byte(nil), b[:end]...); bytes.HasPrefix(b, []byte("big")) {
		a.Body = big
	}
	a.Last = r.Last || bytes.Contains(b[:end], []byte("close"))
	a.Linger = r.Last
	return end + 4
}
func (echo) Again(*Answer) bool { return true }
func (echo) Refuse(why Refusal, _ []byte, _ Request, a *Answer) {
	a.Head, a.Last = append(a.Head, []string{"too many", "too late"}[why]...), true
}
func (echo) Took(uint32, time.Duration) {}

// clock is moved by the test.
type clock struct{ nanos atomic.Int64 }

func (c *clock) now() time.Time      { return time.Unix(0, c.nanos.Load()) }
func (c *clock) add(d time.Duration) { c.nanos.Add(int64(d)) }

// start serves with timeouts of 5 s for a head, 30 s for what is unsent, and 75 s of idleness.
func start(t *testing.T, most int) (*Server, *clock, string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &clock{}
	c.add(time.Hour)
	s := New(Config{
		NewHandler: func() Handler { return echo{} }, Loops: 2, Connections: &Connections{Max: most}, Log: slog.New(slog.DiscardHandler), Now: c.now,
		ReadTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 75 * time.Second,
	})
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		ended := make(chan error, 1)
		go func() { ended <- s.Shutdown(context.Background()) }()
		for {
			select {
			case err := <-ended:
				if err = errors.Join(err, <-served); err != nil {
					t.Error(err)
				}
				return
			case <-time.After(10 * time.Millisecond):
				c.add(time.Second)
			}
		}
	})
	return s, c, ln.Addr().String()
}

func dial(t *testing.T, address, send string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, send); err != nil {
		t.Fatal(err)
	}
	return c.(*net.TCPConn)
}

func read(t *testing.T, c net.Conn, n int) string {
	t.Helper()
	b := make([]byte, n)
	if _, err := io.ReadFull(c, b); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// open says whether a connection has not ended after the loops have looked for timeouts several times.
func open(t *testing.T, c net.Conn) bool {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(4 * sweepEvery))
	n, err := c.Read(make([]byte, 1))
	_ = c.SetReadDeadline(time.Now().Add(patience))
	return n == 0 && errors.Is(err, syscall.EAGAIN) || errors.Is(err, context.DeadlineExceeded) || isTimeout(err)
}

func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// Each state ends at its deadline and not before.
func TestDeadlines(t *testing.T) {
	for name, x := range map[string]struct {
		send, answer string
		before       time.Duration
		last         string
	}{
		"fresh":   {"", "", 5 * time.Second, ""},
		"idle":    {"a\r\n\r\n", "A:a", 75 * time.Second, ""},
		"partial": {"a\r\n\r\nb", "A:a", 5 * time.Second, "too late"},
	} {
		t.Run(name, func(t *testing.T) {
			_, clock, address := start(t, 10)
			c := dial(t, address, x.send)
			read(t, c, len(x.answer))
			if !open(t, c) {
				t.Fatal("it ends at once")
			}
			if clock.add(x.before - time.Second); !open(t, c) {
				t.Fatalf("it ends before %v", x.before)
			}
			clock.add(2 * time.Second)
			if b, err := io.ReadAll(c); string(b) != x.last || err != nil {
				t.Errorf("%q %v, want %q", b, err, x.last)
			}
		})
	}
}

// A client that takes its last answer late, in several writes: the connection ends at once when the client asked for that,
// else 75 s after the answer is sent.
func TestLastAnswerUnsent(t *testing.T) {
	for _, send := range []string{"big close\r\n\r\n", "big\r\n\r\n"} {
		s, clock, address := start(t, 10)
		c := dial(t, address, send)
		read(t, c, 100)
		clock.add(29 * time.Second) // the answer has 30 s
		read(t, c, 2+len(big)+len(send)-4-100)
		if strings.Contains(send, "close") {
			if b, err := io.ReadAll(c); len(b) > 0 || err != nil { // without a move of the clock
				t.Errorf("%q %v", b, err)
			}
			continue
		}
		if clock.add(74 * time.Second); !open(t, c) {
			t.Error("an idle connection ends before 75 s")
		}
		clock.add(2 * time.Second)
		if b, err := io.ReadAll(c); len(b) > 0 || err != nil {
			t.Errorf("%q %v", b, err)
		}
		if n := s.cfg.Connections.Open.Load(); n > 1 {
			t.Errorf("%d connections", n)
		}
	}
}

// A client that does not take its answer is reset after 30 s.
func TestUnsentIsReset(t *testing.T) {
	_, clock, address := start(t, 10)
	c := dial(t, address, "big\r\n\r\n")
	read(t, c, 100)
	time.Sleep(4 * sweepEvery) // the buffers are full
	clock.add(31 * time.Second)
	if n, err := io.Copy(io.Discard, c); !errors.Is(err, unix.ECONNRESET) || n >= int64(len(big)) {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// Requests that are sent while a stopping server answers do not tear the answers that are on their way, and connections over
// the limit are refused.
func TestLinger(t *testing.T) {
	s, _, address := start(t, 1)
	c := dial(t, address, "a\r\n\r\n")
	read(t, c, 3)
	if b, err := io.ReadAll(dial(t, address, "a\r\n\r\n")); string(b) != "too many" || err != nil {
		t.Errorf("%q %v", b, err)
	}
	s.stopping.Store(true)
	defer s.stopping.Store(false)
	if _, err := io.WriteString(c, strings.Repeat("b\r\n\r\n", 20_000)); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(c); string(b) != "A:b" || err != nil {
		t.Errorf("%.50q %v", b, err)
	}
}

// Accept pauses while descriptors are exhausted, and accepts again later.
func TestAcceptWithoutDescriptors(t *testing.T) {
	tried, stop := 0, make(chan struct{})
	err := Accept(func() error {
		switch tried++; {
		case tried < 4:
			return syscall.EMFILE
		case tried == 4:
			close(stop)
			return nil
		}
		return net.ErrClosed
	}, func(time.Time) error { return nil }, stop, slog.New(slog.DiscardHandler))
	if err != nil || tried < 5 {
		t.Errorf("%d tries, %v", tried, err)
	}
}
