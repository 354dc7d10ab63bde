package main

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// epollSockets are sockets of one epoll set. One system call waits for answers and for the instant at which the next request
// is due, so that only the kernel's scheduler can delay either. The calls that cannot block are raw calls.
type epollSockets struct {
	epoll   int
	to      netip.AddrPort
	from    [4]byte // address of this side
	fds     []int   // by number; -1: closed
	events  []unix.EpollEvent
	ready   []unix.EpollEvent // those of events that next has not returned
	timeout unix.Timespec
	buf     []byte
}

// anyAddress lets the kernel choose the address of this side.
var anyAddress [4]byte

// newEpollSockets returns sockets between two addresses. All are closed.
func newEpollSockets(to netip.AddrPort, from [4]byte, connections int) (*epollSockets, error) {
	s := &epollSockets{to: to, from: from, fds: slices.Repeat([]int{-1}, connections),
		events: make([]unix.EpollEvent, 128), buf: make([]byte, 256<<10)}
	var err error
	if s.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err == nil && s.poll(0) == unix.ENOSYS {
		err = errors.New("no epoll_pwait2, which Linux has since 5.11")
	}
	return s, err
}

// newSockets returns the sockets of a load. The caller must stay on its thread.
func newSockets(t *target, connections int) sockets {
	others := newNetSockets(t, connections)
	if t.tls {
		return others
	}
	conn, err := t.dial() // its address is that of all connections, so that a name means the same as elsewhere
	if err != nil {
		return others // they have the same error
	}
	_ = conn.Close()
	s, err := newEpollSockets(conn.RemoteAddr().(*net.TCPAddr).AddrPort(), anyAddress, connections)
	if err != nil {
		s.end()
		return others
	}
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // otherwise the kernel may wait 50 µs longer
	return s
}

func (s *epollSockets) open(id int) error {
	var to unix.Sockaddr = &unix.SockaddrInet6{Port: int(s.to.Port()), Addr: s.to.Addr().As16()}
	family := unix.AF_INET6
	if ip := s.to.Addr().Unmap(); ip.Is4() {
		family, to = unix.AF_INET, &unix.SockaddrInet4{Port: int(s.to.Port()), Addr: ip.As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	s.fds[id] = fd
	if s.from != anyAddress { // the kernel chooses the port only when it knows both addresses
		if err := errors.Join(unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1),
			unix.Bind(fd, &unix.SockaddrInet4{Addr: s.from})); err != nil {
			return os.NewSyscallError("bind", err)
		}
	}
	if err := unix.Connect(fd, to); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		return os.NewSyscallError("connect", err)
	}
	return errors.Join(
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
		unix.EpollCtl(s.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLOUT, Fd: int32(id)}))
}

func (s *epollSockets) write(id int, request []byte) error {
	n, errno := rawCall(unix.SYS_WRITE, s.fds[id], unsafe.Pointer(&request[0]), len(request), 0)
	if errno == 0 && n != len(request) {
		errno = unix.EMSGSIZE // an idle socket has room for any usual request
	}
	if errno != 0 {
		return os.NewSyscallError("write", errno)
	}
	return nil
}

// poll waits for events.
func (s *epollSockets) poll(d time.Duration) syscall.Errno {
	s.timeout = unix.NsecToTimespec(int64(max(d, 0)))
	n, _, errno := syscall.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(s.epoll), uintptr(unsafe.Pointer(&s.events[0])),
		uintptr(len(s.events)), uintptr(unsafe.Pointer(&s.timeout)), 0, 0)
	s.ready = s.events[:max(int(n), 0)] // n is -1 after an error, such as EINTR
	return errno
}

func (s *epollSockets) next(d time.Duration) (int, []byte, error) {
	if len(s.ready) == 0 {
		_ = s.poll(d)
	}
	for len(s.ready) > 0 {
		id := int(s.ready[0].Fd)
		fd, opening := s.fds[id], s.ready[0].Events&unix.EPOLLOUT != 0
		s.ready = s.ready[1:]
		if opening {
			if code, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR); code != 0 {
				return id, nil, os.NewSyscallError("connect", syscall.Errno(code))
			}
			return id, nil, unix.EpollCtl(s.epoll, unix.EPOLL_CTL_MOD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(id)})
		}
		switch n, errno := rawCall(unix.SYS_READ, fd, unsafe.Pointer(&s.buf[0]), len(s.buf), 0); {
		case errno == unix.EAGAIN:
		case errno != 0:
			return id, nil, os.NewSyscallError("read", errno)
		case n == 0:
			return id, nil, io.EOF
		default:
			return id, s.buf[:n], nil
		}
	}
	return -1, nil, nil
}

func (s *epollSockets) close(id int) {
	if s.fds[id] >= 0 {
		_ = unix.Close(s.fds[id])
		s.fds[id] = -1
		s.ready = slices.DeleteFunc(s.ready, func(e unix.EpollEvent) bool { return e.Fd == int32(id) })
	}
}

func (s *epollSockets) end() {
	for id := range s.fds {
		s.close(id)
	}
	_ = unix.Close(s.epoll)
}
