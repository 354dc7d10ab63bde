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

// hammer is the generator of the side-by-side run: one thread, its own epoll loop, as little work a request as can
// be, so that the server on the other core is the bottleneck. It knows how long an answer is from a first one,
// which a full client has read and compared, and takes every further one by its length and status.
type hammer struct {
	epoll   int
	conns   map[int]*shot
	idle    []*shot
	request []byte
	status  []byte // how every answer begins
	length  int    // of every answer, head and body
	buf     []byte
	done    func(c *shot) // called when an answer is complete
}

// shot is one connection and the request it carries.
type shot struct {
	fd       int
	received int
	due      time.Duration
}

var (
	errAnswer = errors.New("answer differs from the first one")
	errStall  = errors.New("no answer on any connection for 10 seconds")
)

// aim connects. Close releases everything.
func aim(address string, connections int, request, first []byte) (*hammer, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	h := &hammer{conns: map[int]*shot{}, request: request, length: len(first), status: first[:12], buf: make([]byte, 256<<10)}
	if h.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	for range connections {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			h.close()
			return nil, err
		}
		c := &shot{fd: fd}
		h.conns[fd] = c
		h.idle = append(h.idle, c)
		err = errors.Join(
			unix.Connect(fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}),
			unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
			unix.SetNonblock(fd, true),
			unix.EpollCtl(h.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}))
		if err != nil {
			h.close()
			return nil, fmt.Errorf("connect to %s: %w", address, err)
		}
	}
	return h, nil
}

func (h *hammer) close() {
	for fd := range h.conns {
		_ = unix.Close(fd)
	}
	_ = unix.Close(h.epoll)
}

// send starts a request on an idle connection.
func (h *hammer) send(due time.Duration) error {
	c := h.idle[len(h.idle)-1]
	h.idle = h.idle[:len(h.idle)-1]
	c.due, c.received = due, 0
	n, err := unix.Write(c.fd, h.request)
	if err == nil && n != len(h.request) {
		err = unix.EAGAIN // a request is a few hundred bytes: an idle socket always has the room
	}
	return err
}

// poll takes the answers that are there.
func (h *hammer) poll(events []unix.EpollEvent) error {
	n, err := unix.EpollWait(h.epoll, events, 0)
	if errors.Is(err, unix.EINTR) {
		return nil
	}
	if err != nil {
		return os.NewSyscallError("epoll_wait", err)
	}
	for _, e := range events[:n] {
		c := h.conns[int(e.Fd)]
		got, err := unix.Read(c.fd, h.buf)
		switch {
		case errors.Is(err, unix.EAGAIN):
			continue
		case err != nil:
			return os.NewSyscallError("read", err)
		case got == 0:
			return errors.New("the server closed a connection")
		case c.received == 0 && got >= len(h.status) && !bytes.HasPrefix(h.buf, h.status):
			return fmt.Errorf("%w: %.40q", errAnswer, h.buf[:got])
		}
		if c.received += got; c.received > h.length {
			return fmt.Errorf("%w: longer than %d bytes", errAnswer, h.length)
		}
		if c.received == h.length {
			h.idle = append(h.idle, c)
			h.done(c)
		}
	}
	return nil
}

const (
	// stall is how long no connection may be answered.
	stall = 10 * time.Second
	// crowd is how many answers make it worth looking again at once.
	crowd = 16
	// breath is how long to wait for a crowd; the kernel adds its slack of 50 µs.
	breath = 20 * time.Microsecond
)

// closed sends n requests, each connection the next soon after it is answered: it takes answers in crowds and
// never waits in epoll. A bare loop is as fast as any generator, and with one that takes each answer at once it
// would go to sleep and be woken for every request, which costs it as much as the request. So the server always has
// a queue, whoever it is, and pays for requests only.
func (h *hammer) closed(n int) error {
	sent, answered := 0, 0
	var failed error
	next := func() {
		if sent < n && failed == nil {
			sent++
			failed = h.send(0)
		}
	}
	h.done = func(*shot) { answered++; next() }
	for range min(n, len(h.conns)) {
		next()
	}
	events := make([]unix.EpollEvent, 256)
	for last := time.Now(); answered < n && failed == nil; {
		before := answered
		if err := h.poll(events); err != nil {
			return err
		}
		if answered-before >= crowd {
			continue
		}
		if now := time.Now(); answered > before {
			last = now
		} else if now.Sub(last) > stall {
			return errStall
		}
		pause(breath)
	}
	return failed
}

// open sends at a constant rate for a duration and returns every request with its latency from the instant at
// which it was due. It takes a breath when there is nothing to take, which adds some 100 µs to every latency: one that
// never slept would take so much of a virtual machine's processors, together with a refresh, that the host stops them
// for milliseconds, and that would be read as the server's latency. (2026-11, a spinning loop of the idle class in place
// of the refresh: p99.9 5 × that without it when the generator spins, 1 × when it breathes.)
func (h *hammer) open(rate float64, duration time.Duration) (start time.Time, samples []sample, err error) {
	total := int(rate * duration.Seconds())
	samples = make([]sample, 0, total)
	start = time.Now()
	h.done = func(c *shot) { samples = append(samples, sample{c.due, time.Since(start) - c.due}) }
	events := make([]unix.EpollEvent, 256)
	sent, last := 0, time.Duration(0)
	for len(samples) < total {
		now := time.Since(start)
		for sent < total && len(h.idle) > 0 {
			due := time.Duration(float64(sent) / rate * float64(time.Second))
			if due > now {
				break
			}
			if err := h.send(due); err != nil {
				return start, nil, err
			}
			sent++
		}
		before := len(samples)
		if err := h.poll(events); err != nil {
			return start, nil, err
		}
		if len(samples) > before {
			last = now
		} else {
			pause(breath)
		}
		if now-last > stall {
			return start, nil, errStall
		}
	}
	return start, samples, nil
}
