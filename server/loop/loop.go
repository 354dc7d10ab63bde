//go:build linux

package loop

import (
	"hash/maphash"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// readSize is how many bytes of one connection are read at a time: several requests, or the largest head.
	readSize = 2 * MaxHead
	// writeSize is the most bytes of answers that are collected for one write. A larger body is not copied.
	writeSize = 32 << 10
	// A connection's turn ends after maxTurn bytes, or after longTurn: an answer may have waited for the disk. Then the loop serves
	// the other connections.
	maxTurn  = 256 << 10
	longTurn = 50 * time.Millisecond
	// eventsAtOnce is how many connections are served between two reads of the clock.
	eventsAtOnce = 128
	// sweepEvery is the interval between two checks of the timeouts, and drainSweep the interval in a stopping server.
	sweepEvery = 100 * time.Millisecond
	drainSweep = 10 * time.Millisecond
)

// loop serves connections in one goroutine, which alone reads, writes and closes them. The goroutine waits in Go's poller until epoll
// has events, so it blocks no thread. The system calls of the loop never block, so they are raw: informing Go's scheduler would cost a
// tenth of the time of a request.
type loop struct {
	server   *Server
	epoll    *os.File
	raw      syscall.RawConn // of epoll
	poll     func(uintptr) bool
	draining atomic.Bool  // no more connections are added
	open     atomic.Int64 // connections

	mu    sync.Mutex // guards peers; held only briefly
	peers []*peer    // by descriptor

	// Only the goroutine of the loop uses these.
	handler     Handler
	now         time.Time // of the last call of epoll_wait
	swept       time.Time // of the last sweep
	sawStopping bool      // a sweep has seen that the server is stopping
	events      [eventsAtOnce]unix.EpollEvent
	batch       [eventsAtOnce]*peer // of events
	sent        int                 // bytes in the turn of the current connection
	in          [readSize]byte
	out         []byte // answers to the current connection, collected for one write
	answer      Answer
	memo        memo
}

func (s *Server) newLoop() (*loop, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // so that Go's poller takes it
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	l := &loop{server: s, handler: s.cfg.NewHandler(), epoll: os.NewFile(uintptr(fd), "epoll"), out: make([]byte, 0, writeSize), memo: memo{seed: maphash.MakeSeed()}}
	l.poll = l.serveReady
	if l.raw, err = l.epoll.SyscallConn(); err != nil {
		_ = l.epoll.Close()
		return nil, err
	}
	return l, nil
}

// run serves the connections until the loop is draining and the last connection has ended.
func (l *loop) run() {
	for !l.draining.Load() || l.open.Load() > 0 {
		every := sweepEvery
		if l.server.lifecycle.Stopping.Load() {
			every = drainSweep
		}
		_ = l.epoll.SetReadDeadline(time.Now().Add(every)) // fails only on a closed descriptor
		_ = l.raw.Read(l.poll)                             // returns when a sweep is due
		l.sweep()
	}
	_ = l.epoll.Close() // nothing is buffered
}

// serveReady serves the connections that have events. It returns true when a sweep is due, and false when no connection has events:
// then the caller waits for events.
func (l *loop) serveReady(epoll uintptr) bool {
	for {
		l.now = l.server.cfg.Now()
		if l.now.Sub(l.swept) >= sweepEvery {
			return true
		}
		n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, epoll, uintptr(unsafe.Pointer(&l.events[0])), eventsAtOnce, 0, 0, 0)
		if errno != 0 {
			n = 0 // interrupted
		}
		if n == 0 {
			return errno != 0
		}
		events := l.events[:n]
		// Only this goroutine closes connections, so each descriptor still belongs to the connection that had the event.
		l.mu.Lock()
		for i := range events {
			l.batch[i] = l.peers[events[i].Fd]
		}
		l.mu.Unlock()
		for i := range events {
			if p := l.batch[i]; p != nil {
				l.serve(p, events[i].Events)
			}
			l.batch[i] = nil
		}
	}
}

// serve serves a connection that has events or whose deadline has passed.
func (l *loop) serve(p *peer, events uint32) {
	l.sent = 0
	p.toEnd = p.toEnd || events&(unix.EPOLLRDHUP|unix.EPOLLPRI) != 0
	switch {
	case p.state == gone:
	case p.state == lingering: // before EPOLLHUP, because a close with unread bytes would reset the connection
		l.drop(p)
	case events&(unix.EPOLLERR|unix.EPOLLHUP) != 0:
		l.close(p)
	case p.rejecting && p.state == idle:
		if n, errno := receive(p, l.in[:]); errno == 0 && n > 0 {
			l.refuse(p, TooManyConnections, l.in[:n])
		} else if errno != unix.EAGAIN {
			l.close(p)
		}
	case p.state == sending:
		if events&unix.EPOLLOUT != 0 && l.resume(p) {
			l.read(p)
		}
	default:
		l.read(p)
	}
}

// read answers the requests that were left in p.rest when the last turn ended, and then the requests that have arrived.
func (l *loop) read(p *peer) {
	if p.state != partial && len(p.rest) > 0 && !l.handle(p, p.rest) { // in partial, p.rest is a part of a head
		return
	}
	for {
		begun := copy(l.in[:], p.rest)
		n, errno := receive(p, l.in[begun:])
		switch {
		case errno == unix.EAGAIN:
			return
		case errno != 0, n == 0:
			l.close(p)
			return
		}
		if !l.handle(p, l.in[:begun+n]) {
			return
		}
		if begun+n < len(l.in) && !p.toEnd { // nothing more has arrived
			return
		}
	}
}

// handle answers the requests in b, keeps the rest of b, and enters the next state. It returns whether the loop may read the
// connection again at once.
func (l *loop) handle(p *peer, b []byte) bool {
	used := l.answerAll(p, b)
	p.asked = p.asked || used > 0
	if p.state == gone {
		return false
	}
	if p.rest = append(p.rest[:0], b[used:]...); len(p.rest) == 0 {
		p.rest = nil
	}
	switch {
	case p.unsent != nil: // the state is sending
		return false
	case p.closing:
		l.end(p)
		return false
	case l.sent >= maxTurn:
		l.suspend(p, nil, nil, nil)
		return false
	case len(p.rest) == 0:
		l.server.enter(p, idle, l.now)
	case used > 0 || p.state != partial:
		l.server.enter(p, partial, l.now)
	}
	return true
}

// refuse sends the last answer of a connection. b holds the part of a head that has arrived, possibly empty.
func (l *loop) refuse(p *peer, why Refusal, b []byte) {
	l.answer = Answer{Head: l.out[:0]}
	l.handler.Refuse(why, b, Request{From: p.from, Now: l.now}, &l.answer)
	p.rest, p.closing, p.linger = nil, true, true
	l.write(p, l.answer.Head, l.answer.Body, l.answer.Tail)
	if p.state != gone && p.unsent == nil {
		l.end(p)
	}
}

// sweep ends the connections whose deadline has passed. In a stopping server, the first sweep shortens the deadlines of idle
// connections. After the time limit of Shutdown, sweep closes all connections.
func (l *loop) sweep() {
	l.swept = l.server.cfg.Now()
	l.now = l.swept
	l.memo.expire(l.swept)
	stopping, cutOff := l.server.lifecycle.Stopping.Load(), l.server.cutOff.Load()
	var due []*peer
	l.mu.Lock()
	for _, p := range l.peers {
		if p == nil {
			continue
		}
		if stopping && !l.sawStopping && p.state == idle {
			l.server.enter(p, idle, l.now)
		}
		if cutOff || p.due.Before(l.now) {
			due = append(due, p)
		}
	}
	l.sawStopping = stopping
	l.mu.Unlock()
	for _, p := range due {
		if cutOff {
			l.close(p)
		} else {
			l.timeOut(p, stopping)
		}
	}
}

// timeOut ends a connection whose deadline has passed. On a busy machine, bytes that arrived in time may not be read yet, and the
// kernel may take more bytes by now. So timeOut first reads and sends.
func (l *loop) timeOut(p *peer, stopping bool) {
	if l.serve(p, unix.EPOLLOUT); p.state == gone || !p.due.Before(l.now) {
		return
	}
	switch p.state {
	case idle:
		switch {
		case p.rejecting:
			l.refuse(p, TooManyConnections, nil)
		case !stopping && unacknowledged(p):
			l.reset(p)
		default:
			p.linger = stopping // the client may be sending a request
			l.end(p)
		}
	case partial:
		l.refuse(p, TooLate, p.rest)
	case sending:
		l.reset(p)
	case lingering:
		l.close(p)
	}
}
