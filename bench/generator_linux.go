package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// pause sleeps in the kernel. The runtime's own timers are up to a millisecond late when nothing else is going on,
// and that would be read as the server's latency.
func pause(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&t, nil) // interrupted: the caller looks at the time
}

// processTime returns the CPU time of a process and of all threads that it has had, by the scheduler's account, which has
// nanoseconds. (/proc/PID/stat has hundredths of a second, and a thread that ends takes its own account along.)
func processTime(pid int) (time.Duration, error) {
	const scheduled = 2 // the clock of clock_getcpuclockid
	var t unix.Timespec
	err := unix.ClockGettime(int32(^pid<<3|scheduled), &t)
	return time.Duration(t.Nano()), err
}

// generator is the client of rivals: one thread with its own epoll loop, and as little work a request as possible, so
// that the server on the other core is the bottleneck. (The client of load speaks HTTP with any server, and costs more
// than a bare loop.) It knows how long an answer is from a first one, which was read and compared in full, and accepts
// every further one by its status and length.
type generator struct {
	epoll   int
	conns   map[int]*generatorConn // by descriptor
	idle    []*generatorConn
	request []byte
	status  []byte // how every answer begins
	length  int    // of every answer, head and body
	buf     []byte
	events  []unix.EpollEvent
}

// generatorConn is one connection and the request that it carries.
type generatorConn struct {
	fd       int
	received int
	due      time.Duration
}

const (
	// longestSilence is how long no connection may be answered.
	longestSilence = 10 * time.Second
	// batch is how many answers make it worth polling again at once.
	batch = 16
	// rest is how long the generator sleeps when there is less to take. The kernel adds its slack of 50 µs.
	rest = 20 * time.Microsecond
)

var (
	errAnswer  = errors.New("answer differs from the first one")
	errSilence = errors.New("no answer on any connection for 10 seconds")
)

// newGenerator connects. Close releases everything.
func newGenerator(address string, connections int, request, first []byte) (*generator, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	g := &generator{conns: map[int]*generatorConn{}, request: request, length: len(first), status: first[:12],
		buf: make([]byte, 256<<10), events: make([]unix.EpollEvent, 256)}
	if g.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	for range connections {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			g.close()
			return nil, err
		}
		c := &generatorConn{fd: fd}
		g.conns[fd] = c
		g.idle = append(g.idle, c)
		err = errors.Join(
			unix.Connect(fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}),
			unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
			unix.SetNonblock(fd, true),
			unix.EpollCtl(g.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}))
		if err != nil {
			g.close()
			return nil, fmt.Errorf("connect to %s: %w", address, err)
		}
	}
	return g, nil
}

func (g *generator) close() {
	for fd := range g.conns {
		_ = unix.Close(fd)
	}
	_ = unix.Close(g.epoll)
}

// write sends the request on an idle connection.
func (g *generator) write(due time.Duration) error {
	c := g.idle[len(g.idle)-1]
	g.idle = g.idle[:len(g.idle)-1]
	c.due, c.received = due, 0
	n, err := unix.Write(c.fd, g.request)
	if err == nil && n != len(g.request) {
		err = unix.EAGAIN // a request is a few hundred bytes: an idle socket always has the room
	}
	return err
}

// poll takes the answers that are there, and does not wait for any.
func (g *generator) poll(answered func(*generatorConn) error) error {
	n, err := unix.EpollWait(g.epoll, g.events, 0)
	if errors.Is(err, unix.EINTR) {
		return nil
	}
	if err != nil {
		return os.NewSyscallError("epoll_wait", err)
	}
	for _, e := range g.events[:n] {
		c := g.conns[int(e.Fd)]
		got, err := unix.Read(c.fd, g.buf)
		switch {
		case errors.Is(err, unix.EAGAIN):
			continue
		case err != nil:
			return os.NewSyscallError("read", err)
		case got == 0:
			return errors.New("the server closed a connection")
		case c.received == 0 && got >= len(g.status) && !bytes.HasPrefix(g.buf, g.status):
			return fmt.Errorf("%w: %.40q", errAnswer, g.buf[:got])
		}
		if c.received += got; c.received > g.length {
			return fmt.Errorf("%w: longer than %d bytes", errAnswer, g.length)
		}
		if c.received == g.length {
			g.idle = append(g.idle, c)
			if err := answered(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// sample is one request: when it was due, since the start, and its latency since then.
type sample struct{ due, latency time.Duration }

// send sends n requests and returns them all.
//
// At a rate, a request is due at a fixed instant, and the generator rests when there is nothing to take, which adds some
// 100 µs to every latency. A generator that never rests keeps both processors of a virtual machine busy, together with
// a refresh. Then the host stops them for milliseconds, which would be read as the server's latency. (2026-11, with a
// spinning loop of the idle class in place of the refresh: p99.9 is 5 times that without the loop when the generator
// spins, and the same when it rests.)
//
// Without a rate, each connection sends its next request soon after it is answered. Answers are taken in batches. A
// bare loop is as fast as any generator. If the generator took each answer at once, the loop would go to sleep and be
// woken for every request, which costs it as much as the request. With batches every server always has a queue, and
// pays for requests only.
func (g *generator) send(n int, rate float64) (start time.Time, samples []sample, err error) {
	interval, enough := 0.0, batch
	if rate > 0 {
		interval, enough = float64(time.Second)/rate, 1
	}
	start, samples = time.Now(), make([]sample, 0, n)
	sent, last := 0, time.Duration(0)
	sendDue := func(now time.Duration) error {
		for ; sent < n && len(g.idle) > 0; sent++ {
			due := time.Duration(float64(sent) * interval)
			if due > now {
				break
			}
			if err := g.write(due); err != nil {
				return err
			}
		}
		return nil
	}
	answered := func(c *generatorConn) error {
		now := time.Since(start)
		samples = append(samples, sample{c.due, now - c.due})
		return sendDue(now)
	}
	for len(samples) < n {
		now, before := time.Since(start), len(samples)
		if err := errors.Join(sendDue(now), g.poll(answered)); err != nil {
			return start, nil, err
		}
		taken := len(samples) - before
		if taken > 0 {
			last = now
		} else if now-last > longestSilence {
			return start, nil, errSilence
		}
		if taken < enough {
			pause(rest)
		}
	}
	return start, samples, nil
}
