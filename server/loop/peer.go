//go:build linux

package loop

import (
	"net/netip"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// state is what a connection waits for.
//
//	state      waits for                                  deadline, from the start of the state   at the deadline
//	idle       the first byte of a request                IdleTimeout, but see below              ended, see [loop.timeOut]
//	partial    the rest of a head                         ReadTimeout                             408, then lingering
//	sending    room for its answers in the kernel         WriteTimeout                            reset
//	lingering  the end of what the client sends           LingerTimeout                           closed
//	gone       nothing: the descriptor is closed
//
// The deadline of a new connection is ReadTimeout, if that is shorter. A connection over the limit is idle for LingerTimeout, and gets
// 503 at its first byte or at the deadline. In a stopping server, idle lasts FirstDrainTimeout before the first request of the
// connection, and DrainTimeout after a request.
//
// A connection becomes idle again, or lingering, only when all its answers are sent. A connection whose turn has ended is sending,
// too, until epoll has reported the other connections.
type state uint8

const (
	idle state = iota
	partial
	sending
	lingering
	gone
)

// enter changes the state of a connection and sets the deadline.
func (s *Server) enter(p *peer, to state, now time.Time) {
	p.state = to
	timeout := s.timeouts[to]
	if to == idle && s.lifecycle.Stopping.Load() {
		if timeout = DrainTimeout; !p.asked {
			timeout = FirstDrainTimeout
		}
	}
	p.due = now.Add(timeout)
}

type peer struct {
	fd      int
	from    netip.Addr
	state   state
	due     time.Time  // deadline of the state
	rest    []byte     // bytes read and not answered
	unsent  *remainder // nil except in sending
	dropped int        // bytes read in lingering

	asked     bool // the connection has had a request
	rejecting bool // the connection is over the limit, see [MaxRejecting]
	toEnd     bool // a short read does not say that nothing more has arrived: the client has ended its sending, or sent an urgent byte
	closing   bool // the connection ends when the answers made so far are sent
	linger    bool // with closing: the next state is lingering
}

// remainder is the rest of answers that the kernel has not taken yet, in three parts, possibly empty.
type remainder [3][]byte

// add makes the loop serve a new connection. Any goroutine may call it.
func (l *loop) add(p *peer) {
	l.mu.Lock()
	if more := p.fd + 1 - len(l.peers); more > 0 {
		l.peers = append(l.peers, make([]*peer, more)...)
	}
	l.peers[p.fd] = p
	l.open.Add(1)
	// epoll reports each change once (EPOLLET), so the loop reads a connection until nothing is left.
	if l.watch(unix.EPOLL_CTL_ADD, p, unix.EPOLLIN) != nil { // out of memory
		l.remove(p)
	}
	l.mu.Unlock() // from now on, the loop may close the connection
}

func (l *loop) watch(op int, p *peer, events uint32) error {
	return control(l.raw, func(epoll int) error {
		return unix.EpollCtl(epoll, op, p.fd, &unix.EpollEvent{Events: events | unix.EPOLLRDHUP | unix.EPOLLPRI | unix.EPOLLET&0xffffffff, Fd: int32(p.fd)}) //nolint:gosec // G115: a descriptor
	})
}

func receive(p *peer, b []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall(unix.SYS_READ, uintptr(p.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		if errno != unix.EINTR {
			return int(n), errno
		}
	}
}

// transmit sends bytes and returns how many the kernel has taken. If the connection is broken, transmit closes it.
func (l *loop) transmit(p *peer, b []byte, flags int) (sent int) {
	for sent < len(b) {
		n, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(p.fd), uintptr(unsafe.Pointer(&b[sent])), uintptr(len(b)-sent), uintptr(flags|unix.MSG_NOSIGNAL), 0, 0)
		switch errno {
		case 0:
			sent += int(n)
			l.sent += int(n)
		case unix.EINTR:
		case unix.EAGAIN:
			return sent
		default:
			l.close(p)
			return sent
		}
	}
	return sent
}

// end ends a connection whose answers are all sent.
func (l *loop) end(p *peer) {
	if !p.linger && len(p.rest) == 0 || unix.Shutdown(p.fd, unix.SHUT_WR) != nil {
		l.close(p)
		return
	}
	p.rest = nil
	l.server.enter(p, lingering, l.now)
	l.drop(p)
}

// drop reads and drops the bytes that arrive on a lingering connection. It closes the connection at the end or at [LingerBytes].
func (l *loop) drop(p *peer) {
	for p.dropped < LingerBytes {
		n, errno := receive(p, l.in[:])
		if errno == unix.EAGAIN {
			return
		}
		if errno != 0 || n == 0 {
			break
		}
		p.dropped += n
	}
	l.close(p)
}

func (l *loop) close(p *peer) {
	l.mu.Lock()
	l.remove(p)
	l.mu.Unlock()
}

// remove closes a connection. l.mu is locked.
func (l *loop) remove(p *peer) {
	p.state = gone
	l.peers[p.fd] = nil // before a new connection can get the same descriptor
	l.open.Add(-1)
	_, _, _ = syscall.RawSyscall(unix.SYS_CLOSE, uintptr(p.fd), 0, 0) // nothing more can be done
	if p.rejecting {
		l.server.cfg.Connections.EndRejecting()
	} else {
		l.server.cfg.Connections.Exit(p.from)
	}
}

// reset closes a connection whose client does not read. Otherwise the kernel would keep the unsent bytes in memory for
// minutes.
func (l *loop) reset(p *peer) {
	_ = unix.SetsockoptLinger(p.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}) // if this fails, the connection ends without a reset
	l.close(p)
}

// unacknowledged says whether the kernel holds bytes that the client has not acknowledged.
func unacknowledged(p *peer) bool {
	n, _ := unix.IoctlGetInt(p.fd, unix.SIOCOUTQ) // a closed connection has none
	return n > 0
}
