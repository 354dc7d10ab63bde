//go:build linux

package loop

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"strikecache/bench/testkit"
)

var must, until = testkit.Must, testkit.Until

// patience is a bound that only a hang reaches.
const patience = 5 * time.Minute

// big is more than both kernels buffer.
var big = bytes.Repeat([]byte("0123456789abcdef"), 1<<19)

// medium is what the kernel of the server takes at once, and that of a client that does not read does not.
var medium = bytes.Repeat([]byte("0123456789abcdef"), 10_000)

// echo is a handler: it answers the head of a request, "big" and "medium" with a body, and "close" as the last one that the
// client asks for.
type echo struct{}

func (echo) Answer(b []byte, r Request, a *Answer) int {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		return 0
	}
	a.Head = append(a.Head, "A:"...)
	switch a.Tail = append([]byte(nil), b[:end]...); {
	case bytes.HasPrefix(b, []byte("big")):
		a.Body = big
	case bytes.HasPrefix(b, []byte("medium")):
		a.Body = medium
	}
	a.Close = r.Stopping || bytes.Contains(b[:end], []byte("close"))
	a.Linger = r.Stopping
	return end + 4
}
func (echo) Again(*Answer, time.Time) bool { return true }
func (echo) Refuse(why Refusal, b []byte, _ Request, a *Answer) {
	a.Head, a.Close = append(append(a.Head, []string{"too many:", "too late:"}[why]...), b...), true
}

// clock is moved by the test.
type clock struct{ nanos atomic.Int64 }

func (c *clock) now() time.Time      { return time.Unix(0, c.nanos.Load()) }
func (c *clock) add(d time.Duration) { c.nanos.Add(int64(d)) }

// start serves with timeouts of 5 s for a head, 30 s for what is unsent, and 75 s of idleness.
func start(t *testing.T, most int) (*acceptor, *clock, string) {
	t.Helper()
	return startWith(t, most, 2, func(*clock) Handler { return echo{} })
}

// startWith is start with a number of loops and a handler.
func startWith(t *testing.T, most, loops int, handler func(*clock) Handler) (*acceptor, *clock, string) {
	t.Helper()
	ln, err := Listen("127.0.0.1:0")
	must(t, err)
	c := &clock{}
	c.add(time.Hour)
	s := &acceptor{Server: New(Config{
		NewHandler: func() Handler { return handler(c) }, Loops: loops, Connections: &Connections{Max: most}, Log: slog.New(slog.DiscardHandler), Now: c.now,
		ReadTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 75 * time.Second,
	}), refusal: handler(c)}
	served := make(chan error, 1)
	go func() { served <- s.serve(ln) }()
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
	must(t, err)
	t.Cleanup(func() { c.Close() })
	must(t, c.SetDeadline(time.Now().Add(patience)))
	write(t, c, send)
	return c.(*net.TCPConn)
}

func write(t *testing.T, c net.Conn, send string) {
	t.Helper()
	_, err := io.WriteString(c, send)
	must(t, err)
}

func read(t *testing.T, c net.Conn, n int) string {
	t.Helper()
	b := make([]byte, n)
	if _, err := io.ReadFull(c, b); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// ends fails the test unless exactly these bytes come until the server has ended a connection.
func ends(t *testing.T, c net.Conn, want string) {
	t.Helper()
	if b, err := io.ReadAll(c); string(b) != want || err != nil {
		t.Errorf("%d bytes, want %d: %.60q, want %.60q, %v", len(b), len(want), b, want, err)
	}
}

// open says whether a connection has not ended after the loops have looked for timeouts several times.
func open(t *testing.T, c net.Conn) bool {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(4 * sweepEvery))
	_, err := c.Read(make([]byte, 1))
	_ = c.SetReadDeadline(time.Now().Add(patience))
	return errors.Is(err, os.ErrDeadlineExceeded)
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
			ends(t, c, "") // without a move of the clock
			continue
		}
		if clock.add(74 * time.Second); !open(t, c) {
			t.Error("an idle connection ends before 75 s")
		}
		clock.add(2 * time.Second)
		ends(t, c, "")
		if n := s.cfg.Connections.Open.Load(); n > 1 {
			t.Errorf("%d connections", n)
		}
	}
}

// Requests that are sent while a stopping server answers do not tear the answers that are on their way, and connections over
// the limit are refused.
func TestLinger(t *testing.T) {
	s, _, address := start(t, 1)
	c := dial(t, address, "a\r\n\r\n")
	read(t, c, 3)
	ends(t, dial(t, address, "a\r\n\r\n"), "too many:a\r\n\r\n")
	s.lifecycle.Stopping.Store(true)
	defer s.lifecycle.Stopping.Store(false)
	write(t, c, strings.Repeat("b\r\n\r\n", 20_000))
	ends(t, c, "A:b")
}

// Requests and the end of a client's sending, which arrive while an answer is on its way, do not tear the answer.
func TestHalfCloseTearsNothing(t *testing.T) {
	for _, together := range []bool{false, true} { // the last request and those behind it
		s, _, address := start(t, 1)
		c := dial(t, address, "a\r\n\r\n")
		must(t, c.SetReadBuffer(64<<10))
		read(t, c, 3)
		s.lifecycle.Stopping.Store(true)
		want, behind := "A:"+string(medium)+"medium", strings.Repeat("b\r\n\r\n", 1000)
		if together {
			cork(t, c, "medium\r\n\r\n"+strings.Repeat(behind, 5))
		} else {
			write(t, c, "medium\r\n\r\n")
			want = strings.TrimPrefix(want, read(t, c, 100)) // the whole answer is in the kernels
			cork(t, c, behind)
		}
		until(t, "the server has closed", func() bool { return s.cfg.Connections.Open.Load() == 0 })
		ends(t, c, want)
		s.lifecycle.Stopping.Store(false)
	}
}

// cork sends bytes and the end of sending, the last bytes in one packet with the end.
func cork(t *testing.T, c *net.TCPConn, send string) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err == nil {
		err = control(raw, func(fd int) error { return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_CORK, 1) })
	}
	if err == nil {
		_, err = io.WriteString(c, send)
	}
	must(t, errors.Join(err, c.CloseWrite()))
}

// stall keeps the loops from working while f runs. A connection has been made.
func stall(t *testing.T, s *acceptor, f func()) {
	t.Helper()
	until(t, "a connection is admitted", func() bool { return s.cfg.Connections.Accepted.Load() > 0 })
	for _, l := range s.all {
		l.mu.Lock()
		defer l.mu.Unlock()
	}
	time.Sleep(2 * sweepEvery) // each loop waits for its mutex: a sweep has begun
	f()
}

// What has arrived in time counts, even if the loop had to wait for a processor and finds it after the deadline.
func TestArrivedInTime(t *testing.T) {
	for name, x := range map[string]struct {
		first, answer, rest, last string
	}{
		"new":     {"", "", "b\r\n\r\n", "A:b"},
		"idle":    {"a\r\n\r\n", "A:a", "b\r\n\r\n", "A:b"},
		"partial": {"a\r\n\r\nb", "A:a", "c\r\n\r\n", "A:bc"},
	} {
		t.Run(name, func(t *testing.T) {
			s, clock, address := start(t, 10)
			c := dial(t, address, x.first)
			read(t, c, len(x.answer))
			stall(t, s, func() {
				write(t, c, x.rest)
				clock.add(time.Hour)
			})
			if got := read(t, c, len(x.last)); got != x.last {
				t.Errorf("%q", got)
			}
		})
	}
}

// A client that has made room in time gets the rest of its answer, even if the loop finds the room after the deadline.
func TestTakenInTime(t *testing.T) {
	s, clock, address := start(t, 10)
	c := dial(t, address, "")
	must(t, c.SetReadBuffer(64<<10))
	const requests = 12 // of which the kernels hold some
	write(t, c, strings.Repeat("medium\r\n\r\n", requests))
	want := strings.Repeat("A:"+string(medium)+"medium", requests)
	read(t, c, 1)
	time.Sleep(2 * sweepEvery) // the kernels hold all that they take
	got := 1
	stall(t, s, func() {
		for b := make([]byte, 16<<10); got < len(want) && queued(s); { // until the kernel has room for an answer
			n, err := c.Read(b)
			if got += n; err != nil {
				t.Error(err)
				break
			}
		}
		clock.add(31 * time.Second)
	})
	if got >= len(want) {
		t.Fatal("the kernels hold all answers")
	}
	rest := read(t, c, len(want)-got)
	if !strings.HasSuffix(want, rest) {
		t.Error("another answer")
	}
}

// slowly is a handler whose answers take 60 ms each. It notes the requests.
type slowly struct {
	echo
	clock *clock
	asked chan<- string
}

func (h slowly) Answer(b []byte, r Request, a *Answer) int {
	h.clock.add(60 * time.Millisecond)
	n := h.echo.Answer(b, r, a)
	h.asked <- string(a.Tail)
	return n
}

// An urgent byte is no part of a request, and does not hold up the bytes behind it.
func TestUrgentByte(t *testing.T) {
	s, _, address := start(t, 10)
	c := dial(t, address, "a\r\n\r\n")
	read(t, c, 3)
	raw, err := c.SyscallConn()
	must(t, err)
	stall(t, s, func() { // so that all of it arrives before the loop looks
		write(t, c, "b\r\n")
		must(t, control(raw, func(fd int) error {
			_, err := unix.SendmsgN(fd, []byte("!"), nil, nil, unix.MSG_OOB)
			return err
		}))
		write(t, c, "\r\n")
	})
	if got := read(t, c, 3); got != "A:b" {
		t.Errorf("%q", got)
	}
}

// A connection whose answers take long does not get them all before another connection has its turn.
func TestLongTurn(t *testing.T) {
	asked := make(chan string, 8)
	s, _, address := startWith(t, 10, 1, func(c *clock) Handler { return slowly{clock: c, asked: asked} })
	first, second := dial(t, address, "a\r\n\r\n"), dial(t, address, "b\r\n\r\n")
	read(t, first, 3)
	read(t, second, 3)
	stall(t, s, func() {
		for c, requests := range map[*net.TCPConn]string{first: "1\r\n\r\n2\r\n\r\n3\r\n\r\n", second: "4\r\n\r\n5\r\n\r\n6\r\n\r\n"} {
			write(t, c, requests)
		}
	})
	read(t, first, 9)
	read(t, second, 9)
	order := ""
	for range 8 {
		order += <-asked
	}
	if order = order[2:]; order == "123456" || order == "456123" {
		t.Errorf("answered in the order %s", order)
	}
}

// queued says whether the kernel holds bytes for a client. The loops are stalled.
func queued(s *acceptor) bool {
	return slices.ContainsFunc(s.all, func(l *loop) bool {
		return slices.ContainsFunc(l.peers, func(p *peer) bool { return p != nil && unacknowledged(p) })
	})
}

// Connections that the kernel has accepted when the server is told to stop are answered.
func TestBacklog(t *testing.T) {
	s, _, address := start(t, 100)
	read(t, dial(t, address, "a\r\n\r\n"), 3)
	var clients []*net.TCPConn
	stopped := make(chan error, 1)
	stall(t, s, func() { // the second connection waits for a loop
		for range 20 {
			clients = append(clients, dial(t, address, "b\r\n\r\n"))
		}
		go func() { stopped <- s.Shutdown(context.Background()) }()
		until(t, "it is stopping", s.lifecycle.Stopping.Load)
	})
	for _, c := range clients {
		ends(t, c, "A:b")
	}
}

// A stopping server waits a second for the first request of a connection, and 100 ms for a later one.
func TestFirstRequestHasLonger(t *testing.T) {
	s, clock, address := start(t, 10)
	fresh, silent := dial(t, address, ""), dial(t, address, "")
	kept := dial(t, address, "a\r\n\r\n")
	read(t, kept, 3) // the loops have the connections that were accepted before
	until(t, "all are admitted", func() bool { return s.cfg.Connections.Open.Load() == 3 })
	s.lifecycle.Stopping.Store(true)
	defer s.lifecycle.Stopping.Store(false)
	for _, l := range s.all {
		until(t, "the deadlines are set", func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.sawStopping
		})
	}
	clock.add(FirstDrainTimeout - time.Millisecond)
	ends(t, kept, "")
	write(t, fresh, "b\r\n\r\n")
	ends(t, fresh, "A:b")
	if !open(t, silent) {
		t.Error("the silent connection ends before a second")
	}
	clock.add(2 * time.Millisecond)
	ends(t, silent, "")
}

// Once the server stops, the connections of a passed listener are left to the next process.
func TestAcceptLeavesPassedConnections(t *testing.T) {
	for want, ln := range map[int]Listener{3: &net.TCPListener{}, 1: Passed{}} {
		lifecycle, tries := Lifecycle{Stop: make(chan struct{})}, 0
		must(t, lifecycle.Shutdown(t.Context(), nil, nil))
		err := lifecycle.Accept(ln, func() error { tries++; return os.ErrDeadlineExceeded }, func(time.Time) error { return nil }, slog.New(slog.DiscardHandler))
		if tries != want || err != nil {
			t.Errorf("%T: accepts %d times, want %d; %v", ln, tries, want, err)
		}
	}
}

// repeating answers every request with the same body and tail, which never change, and says so.
type repeating struct {
	echo
	answered chan bool
}

func (h repeating) Answer(b []byte, _ Request, a *Answer) int {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		return 0
	}
	a.Head, a.Body, a.Tail, a.Repeats = append(a.Head, "A:"...), big[:40<<10], medium[1:30<<10], true
	return end + 4
}

func (h repeating) Again(*Answer, time.Time) bool {
	h.answered <- true
	return true
}

// A client that reads late gets all parts of the answers that repeat. Each request comes alone, until the kernel takes no more.
func TestAnswersThatRepeatHaveATail(t *testing.T) {
	h, sent := repeating{answered: make(chan bool, 1000)}, 1
	_, _, address := startWith(t, 10, 1, func(*clock) Handler { return h })
	conn := dial(t, address, "x\r\n\r\n")
	want := string(slices.Concat([]byte("A:"), big[:40<<10], medium[1:30<<10]))
	read(t, conn, 1)
	for full := false; !full && sent < 500; sent++ {
		write(t, conn, "x\r\n\r\n")
		select {
		case <-h.answered:
		case <-time.After(time.Second):
			full = true
		}
	}
	got := "A" + read(t, conn, len(want)-1)
	for i := range sent {
		if i > 0 {
			got = read(t, conn, len(want))
		}
		if got != want {
			t.Fatalf("answer %d of %d differs", i, sent)
		}
	}
}
