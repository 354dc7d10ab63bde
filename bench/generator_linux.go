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

// pause sleeps in the kernel. Go's timers are up to a millisecond late in an idle process, and this delay would count as
// the server's latency.
func pause(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&t, nil) // a signal may end it early: the caller checks the time
}

// processTime returns the CPU time of a process, also of its threads that have ended, from the scheduler's account in
// nanoseconds. (/proc/PID/stat has only hundredths of a second, and the account of a thread goes when the thread ends.)
func processTime(pid int) (time.Duration, error) {
	const scheduled = 2 // the clock of clock_getcpuclockid
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &t); err != nil {
		return 0, fmt.Errorf("no such process: %w", err)
	}
	return time.Duration(t.Nano()), nil
}

// generator is the client of rivals: one thread with its own epoll loop, and as little work per request as possible, so
// that the server on the other core is the bottleneck. (The client of load speaks HTTP with any server, and uses more CPU
// time than a bare loop.) The first answer is read and compared in full. Of every later answer, the generator checks only
// the status and the length.
//
// The connections take turns. At most 64 requests wait for an answer at a time. Pipelined requests count as one request
// here, and their answers as one answer.
type generator struct {
	epoll   int
	conns   map[int]*generatorConn // by descriptor
	idle    []*generatorConn       // the one that was used last is the last one
	waiting int                    // requests without an answer
	request []byte
	status  []byte // first bytes of every answer
	length  int    // of every answer, head and body
	buf     []byte
	events  []unix.EpollEvent
}

// generatorConn is one connection and the request that it carries.
type generatorConn struct {
	fd       int
	received int
}

const (
	// longestSilence is the longest time without an answer on any connection.
	longestSilence = time.Minute
	// batch is the number of answers in one poll after which the generator polls again at once.
	batch = 16
	// rest is how long the generator sleeps after a poll with fewer answers. The kernel adds its slack of 50 µs.
	rest = 20 * time.Microsecond
)

var (
	errAnswer  = errors.New("answer differs from the first one")
	errSilence = errors.New("no answer on any connection for a minute")
)

// anyAddress lets the kernel choose the address of a client.
var anyAddress [4]byte

// newGenerator opens connections from an address, and close closes them.
func newGenerator(address string, from [4]byte, connections int, request, first []byte) (*generator, error) {
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
			unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1),
			unix.Bind(fd, &unix.SockaddrInet4{Addr: from}),
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
func (g *generator) write() error {
	c := g.idle[0]
	g.idle = g.idle[1:]
	c.received = 0
	g.waiting++
	n, err := unix.Write(c.fd, g.request)
	if err == nil && n != len(g.request) {
		err = unix.EAGAIN // a request is a few hundred bytes: an idle socket always has room for it
	}
	return err
}

// poll takes the answers that have arrived, and waits for none.
func (g *generator) poll(answered func() error) error {
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
		case c.received == 0 && !bytes.HasPrefix(g.buf[:got], g.status):
			return fmt.Errorf("%w: %.40q", errAnswer, g.buf[:got])
		}
		if c.received += got; c.received > g.length {
			return fmt.Errorf("%w: %d bytes, longer than %d bytes", errAnswer, c.received, g.length)
		}
		if c.received == g.length {
			g.idle = append(g.idle, c)
			g.waiting--
			if err := answered(); err != nil {
				return err
			}
		}
	}
	return nil
}

// send sends n requests, less those that wait for an answer, and returns when all are answered. Each connection sends its
// next request soon after its answer.
//
// Answers are taken in batches, because the bare loop is as fast as any generator. If the generator took each answer at once,
// the loop would sleep and wake up for every request, which uses as much CPU time as the request. With batches every server
// always has a queue, and uses CPU time for requests only.
func (g *generator) send(n int) error {
	sent, answered, last := g.waiting, 0, time.Now()
	sendIdle := func() error {
		for ; sent < n && len(g.idle) > 0 && sent-answered < rivalConnections; sent++ {
			if err := g.write(); err != nil {
				return err
			}
		}
		return nil
	}
	for answered < n {
		before := answered
		err := errors.Join(sendIdle(), g.poll(func() error {
			answered++
			return sendIdle()
		}))
		if err != nil {
			return err
		}
		taken := answered - before
		if taken > 0 {
			last = time.Now()
		} else if time.Since(last) > longestSilence {
			return errSilence
		}
		if taken < batch {
			pause(rest)
		}
	}
	return nil
}
