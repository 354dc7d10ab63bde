package server

import (
	"bytes"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// readSize is how many bytes are read at a time, of one connection: several requests, or the greatest head.
	readSize = 2 * maxHeader
	// writeSize is up to how many bytes of responses are collected for one write. A larger body is not copied.
	writeSize = 32 << 10
	// maxTurn is how many bytes one connection is sent before other connections have their turn.
	maxTurn = 256 << 10
	// eventsAtOnce is how many connections are served between two looks at the clock.
	eventsAtOnce = 128
	// sweepEvery is the interval at which timeouts are looked for, and drainSweep the interval in a stopping server.
	sweepEvery = 100 * time.Millisecond
	drainSweep = 10 * time.Millisecond
)

// loop serves connections in one goroutine, which owns them. It waits in Go's own poller until epoll has events, so it needs
// no thread of its own. Its system calls never block, and do not inform the scheduler: that would take a tenth of the time of
// a request.
type loop struct {
	server *Server
	epoll  *os.File
	raw    syscall.RawConn // of epoll
	poll   func(uintptr) bool
	last   atomic.Bool  // no more connections are added
	open   atomic.Int64 // connections

	mu    sync.Mutex // guards the fields below; held only briefly
	peers []*peer    // by descriptor
	armed bool       // the next sweep has a time

	// Of the goroutine of the loop.
	now      time.Time // when epoll was asked for events
	swept    time.Time
	events   [eventsAtOnce]unix.EpollEvent
	batch    [eventsAtOnce]*peer
	again    []*peer // have more to answer or to read
	turn     []*peer // those of again that are served now
	sent     int     // bytes to the connection that is served
	in       [readSize]byte
	out      []byte // responses to one connection, collected for one write
	whole    int    // how many bytes of out are whole responses
	timed    *counts
	memo     memo
	head     head
	response response
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
	l := &loop{server: s, epoll: os.NewFile(uintptr(fd), "epoll"), out: make([]byte, 0, writeSize), memo: newMemo(&s.files)}
	l.poll = l.serveReady
	if l.raw, err = l.epoll.SyscallConn(); err != nil {
		_ = l.epoll.Close()
		return nil, err
	}
	return l, nil
}

// adopt makes a connection for fasthttp of a peer that no loop has. It returns nil, and closes the peer, if that fails: there
// is no free descriptor.
func (s *Server) adopt(p *peer) *conn {
	f := os.NewFile(uintptr(p.fd), "")
	c, err := net.FileConn(f)
	_ = f.Close() // c has a descriptor of its own
	if err != nil {
		return nil
	}
	return s.newConn(c, p.remote)
}

// run serves the connections until finish is called and the last one has ended.
func (l *loop) run() {
	for {
		l.mu.Lock()
		next := time.Time{}
		if l.armed = l.open.Load() > 0; l.armed {
			next = time.Now().Add(sweepEvery)
			if l.server.stopping.Load() {
				next = time.Now().Add(drainSweep)
			}
		}
		_ = l.epoll.SetReadDeadline(next) // fails only after the end of the loop
		l.mu.Unlock()
		if next.IsZero() {
			l.memo.expire(time.Time{}) // the next sweep may be far away
		}
		if l.last.Load() && l.open.Load() == 0 {
			_ = l.epoll.Close() // nothing is buffered
			return
		}
		_ = l.raw.Read(l.poll) // ends when it is time for a sweep
		l.sweep()
	}
}

// serveReady serves the connections that have events, until it is time for a sweep. It returns false when no connection has,
// so that the caller waits.
func (l *loop) serveReady(epoll uintptr) bool {
	for {
		l.now = time.Now()
		if l.now.Sub(l.swept) >= sweepEvery {
			return true
		}
		n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, epoll, uintptr(unsafe.Pointer(&l.events[0])), eventsAtOnce, 0, 0, 0)
		if errno != 0 {
			n = 0 // interrupted
		}
		if n == 0 && len(l.again) == 0 {
			return errno != 0
		}
		events := l.events[:n]
		// Only this goroutine closes a connection, so the peers are those that the events are of.
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
		l.turn, l.again = l.again, l.turn[:0]
		for _, p := range l.turn {
			p.queued = false
			l.serve(p, 0)
		}
		clear(l.turn)
	}
}

// serve serves a connection that has events, or that is in turn again.
func (l *loop) serve(p *peer, events uint32) {
	defer func() {
		if panicked := recover(); panicked != nil {
			l.panicked(p, panicked)
		}
	}()
	l.sent = 0
	p.hungUp = p.hungUp || events&unix.EPOLLRDHUP != 0
	switch {
	case p.gone:
	case events&(unix.EPOLLERR|unix.EPOLLHUP) != 0:
		l.close(p)
	case p.queued: // its turn comes
	case p.unsent != nil && (events&unix.EPOLLOUT == 0 || !l.resume(p)):
	case p.begun.IsZero() && len(p.rest) > 0 && !l.handle(p, p.rest): // whole requests, which had to wait
	default:
		l.read(p)
	}
}

// panicked logs a panic. fasthttp answers the request with 500 and ends the connection, unless a response is not sent yet.
func (l *loop) panicked(p *peer, value any) {
	l.server.logPanic(value)
	if p.gone {
		return
	}
	l.out = l.out[:l.whole]
	switch l.flush(p); {
	case p.gone:
	case p.unsent != nil:
		l.close(p)
	default:
		l.leave(p, nil, bytes.Clone(l.head.method))
	}
}

// read reads and answers what has arrived.
func (l *loop) read(p *peer) {
	begun := copy(l.in[:], p.rest)
	n, errno := l.receive(p, l.in[begun:])
	switch {
	case errno == unix.EAGAIN:
		return
	case errno != 0, n == 0:
		l.close(p)
		return
	}
	if b := l.in[:begun+n]; !l.handle(p, b) {
		return
	} else if len(b) == len(l.in) {
		l.queue(p) // other connections come first
	} else if p.hungUp {
		l.close(p)
	}
}

// handle answers the requests in b, and keeps the rest of b. It returns whether the connection can be read again at once. If
// not, the client must take the responses first, or it is the turn of others, or the loop does not have the connection any
// more.
func (l *loop) handle(p *peer, b []byte) bool {
	used, other := l.answer(p, b)
	rest := b[used:]
	switch {
	case p.gone:
		return false
	case p.ended && p.unsent == nil:
		l.close(p)
		return false
	case p.unsent != nil, l.sent >= maxTurn && len(rest) > 0:
		if p.rest, p.begun = append(p.rest[:0], rest...), (time.Time{}); p.unsent == nil {
			p.due = l.now.Add(l.server.cfg.IdleTimeout)
			l.queue(p)
		}
		return false
	case other, len(rest) >= maxHeader:
		l.leave(p, bytes.Clone(rest), nil)
		return false
	case len(rest) == 0:
		p.rest, p.begun, p.due = nil, time.Time{}, l.now.Add(l.server.cfg.IdleTimeout)
	default:
		if p.rest = append(p.rest[:0], rest...); used > 0 || p.begun.IsZero() {
			p.begun, p.due = l.now, l.now.Add(l.server.cfg.ReadTimeout)
		}
	}
	return true
}

// queue gives a connection another turn.
func (l *loop) queue(p *peer) {
	p.queued = true
	l.again = append(l.again, p)
}

// leave takes a connection out of the loop and gives it to fasthttp, with bytes that it reads first. If panicked is not nil, a
// request with this method has panicked.
func (l *loop) leave(p *peer, unread, panicked []byte) {
	l.remove(p)
	_ = l.control(unix.EPOLL_CTL_DEL, p, 0) // the descriptor is closed, too
	s := l.server
	s.run(func() {
		c := s.adopt(p)
		if c == nil {
			s.exit()
			return
		}
		c.next, c.begun = unread, p.begun
		c.failed, c.head.method = panicked != nil, panicked
		s.serve(c)
	})
}

// sweep ends the connections that have timed out, and in a stopping server those without a request under way.
func (l *loop) sweep() {
	l.swept = time.Now()
	l.now = l.swept
	l.memo.expire(l.swept)
	stopping, cutOff := l.server.stopping.Load(), l.server.cutOff.Load()
	var due []*peer
	l.mu.Lock()
	for _, p := range l.peers {
		if p == nil {
			continue
		}
		if drained := l.swept.Add(drainTimeout); stopping && len(p.rest) == 0 && p.unsent == nil && p.due.After(drained) {
			p.due = drained
		}
		if cutOff || p.due.Before(l.swept) {
			due = append(due, p)
		}
	}
	l.mu.Unlock()
	for _, p := range due {
		unacknowledged, _ := unix.IoctlGetInt(p.fd, unix.SIOCOUTQ) // bytes
		switch {
		case cutOff:
			l.close(p)
		case p.unsent == nil && !p.begun.IsZero(): // fasthttp answers 408
			l.leave(p, p.rest, nil)
		case p.unsent != nil, unacknowledged > 0 && !stopping:
			l.reset(p)
		default:
			// When this goroutine had to wait for a processor, a request may have arrived in time and not be read yet.
			if l.serve(p, 0); !p.gone && p.due.Before(l.swept) {
				l.close(p)
			}
		}
	}
}
