package server

import (
	"cmp"
	"net/netip"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// peer is a connection of a loop.
type peer struct {
	fd      int
	remote  netip.Addr
	due     time.Time  // when it times out
	rest    []byte     // read and not answered
	begun   time.Time  // when the first bytes of an incomplete head arrived, else zero
	unsent  *remainder // nil: nothing
	queued  bool       // it is in loop.again
	hungUp  bool       // the client will send nothing more than it has sent
	writing bool       // epoll reports when the connection takes bytes again
	ended   bool       // the last response is sent, or in unsent
	gone    bool       // the loop does not have the connection any more
}

// remainder is what a client has not taken yet.
type remainder struct {
	parts [3][]byte
	timed *counts   // where the duration counts when all is sent; nil: nowhere
	asked time.Time // when the duration began
}

// add begins to serve a connection. Any goroutine may call it.
func (l *loop) add(p *peer) {
	l.mu.Lock()
	if more := p.fd + 1 - len(l.peers); more > 0 {
		l.peers = append(l.peers, make([]*peer, more)...)
	}
	l.peers[p.fd] = p
	l.open.Add(1)
	if !l.armed {
		l.armed = true
		_ = l.epoll.SetReadDeadline(time.Now().Add(sweepEvery)) // fails only after the end of the loop
	}
	// An event is reported once for each change (EPOLLET), so a connection is read until nothing is left.
	err := l.control(unix.EPOLL_CTL_ADD, p, unix.EPOLLIN|unix.EPOLLRDHUP)
	if err != nil { // there is no memory
		l.peers[p.fd] = nil
		l.open.Add(-1)
	}
	l.mu.Unlock() // from now on, the loop may close the connection
	if err != nil {
		_ = unix.Close(p.fd)
		l.server.exit()
	}
}

func (l *loop) control(op int, p *peer, events uint32) (err error) {
	failed := l.raw.Control(func(fd uintptr) {
		err = unix.EpollCtl(int(fd), op, p.fd, &unix.EpollEvent{Events: events | unix.EPOLLET&0xffffffff, Fd: int32(p.fd)}) //nolint:gosec // G115: a descriptor
	})
	return cmp.Or(failed, err)
}

// receive reads the bytes that have arrived.
func (l *loop) receive(p *peer, b []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall(unix.SYS_READ, uintptr(p.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		if errno != unix.EINTR {
			return int(n), errno
		}
	}
}

// transmit sends bytes and returns how many the kernel has taken. If file is not 0, it is the descriptor of a file that has the
// same bytes, and they are sent from there. If the connection is broken, transmit closes it.
func (l *loop) transmit(p *peer, b []byte, flags int, file int) (sent int) {
	for sent < len(b) {
		var n uintptr
		var errno syscall.Errno
		if left := uintptr(len(b) - sent); file != 0 {
			offset := int64(sent)
			n, _, errno = syscall.RawSyscall6(unix.SYS_SENDFILE, uintptr(p.fd), uintptr(file), uintptr(unsafe.Pointer(&offset)), left, 0, 0)
		} else {
			n, _, errno = syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(p.fd), uintptr(unsafe.Pointer(&b[sent])), left, uintptr(flags|unix.MSG_NOSIGNAL), 0, 0)
		}
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

func (l *loop) remove(p *peer) {
	l.mu.Lock()
	l.peers[p.fd] = nil
	l.mu.Unlock()
	p.gone = true
	l.open.Add(-1)
}

func (l *loop) close(p *peer) {
	l.remove(p)                                                       // before another connection can have the descriptor
	_, _, _ = syscall.RawSyscall(unix.SYS_CLOSE, uintptr(p.fd), 0, 0) // nothing more can be done
	l.server.exit()
}

// reset closes a connection whose client does not read. Otherwise the kernel would keep the unsent bytes in memory for
// minutes.
func (l *loop) reset(p *peer) {
	_ = unix.SetsockoptLinger(p.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}) // if this fails, the connection ends without a reset
	l.close(p)
}
