package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// epollCommand is the bare epoll loop that other servers are measured against: one thread, one read and one write a
// request, always the same bytes, no parsing beyond the end of the head. Nothing that speaks HTTP over sockets can
// cost much less, which makes it a unit of measure. It serves the bytes of each file, a whole HTTP response, on the
// file's address. A request must come whole, and after the answer to the one before it, as the generator sends them.
type epollCommand struct {
	Responses []string `arg:"" placeholder:"ADDRESS=FILE"`
}

// bareConn is one connection of the loop.
type bareConn struct {
	answer []byte // what this connection's listener answers
	left   []byte // what the socket has not taken yet
}

// bareLoop owns every descriptor. One goroutine runs it.
type bareLoop struct {
	epoll     int
	listeners map[int][]byte // the answer, by descriptor
	conns     []*bareConn    // by descriptor
	in        [16 << 10]byte
}

// maxDescriptors bounds the connections.
const maxDescriptors = 4096

// Run serves until the process ends.
func (c epollCommand) Run() error {
	debug.SetGCPercent(-1) // see rawCall
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	l := &bareLoop{epoll: epoll, listeners: map[int][]byte{}, conns: make([]*bareConn, maxDescriptors)}
	for _, r := range c.Responses {
		address, file, ok := strings.Cut(r, "=")
		if !ok {
			return fmt.Errorf("%q is not ADDRESS=FILE", r)
		}
		answer, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := l.listen(address, answer); err != nil {
			return fmt.Errorf("listen on %s: %w", address, err)
		}
	}
	return l.serve()
}

// rawCall makes a system call without telling the scheduler, which saves a seventh of the CPU time of a request
// (2026-11-21). It may block because there is one goroutine and garbage is never collected.
func rawCall(call uintptr, fd int, p unsafe.Pointer, n, last int) (int, syscall.Errno) {
	r, _, errno := syscall.RawSyscall6(call, uintptr(fd), uintptr(p), uintptr(n), uintptr(last), 0, 0)
	return int(r), errno
}

func (l *bareLoop) serve() error {
	events := make([]unix.EpollEvent, 256)
	for {
		n, errno := rawCall(unix.SYS_EPOLL_PWAIT, l.epoll, unsafe.Pointer(&events[0]), len(events), -1)
		if errno != 0 && errno != unix.EINTR {
			return os.NewSyscallError("epoll_pwait", errno)
		}
		for _, e := range events[:max(n, 0)] {
			fd := int(e.Fd)
			if c := l.conns[fd]; c != nil {
				if !l.step(fd, c, e.Events) {
					l.conns[fd] = nil
					_ = unix.Close(fd)
				}
			} else if answer, ok := l.listeners[fd]; ok {
				l.accept(fd, answer)
			}
		}
	}
}

func (l *bareLoop) listen(at string, answer []byte) error {
	address, err := netip.ParseAddrPort(at)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	l.listeners[fd] = answer
	return errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
		unix.Bind(fd, &unix.SockaddrInet4{Port: int(address.Port()), Addr: address.Addr().As4()}),
		unix.Listen(fd, 1024),
		unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}))
}

func (l *bareLoop) accept(listener int, answer []byte) {
	fd, _, err := unix.Accept4(listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
	if err != nil {
		return
	}
	// Edge-triggered for both directions: a full socket wakes the loop without a further epoll_ctl.
	events := uint32(unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET&0xffffffff)
	if fd >= maxDescriptors ||
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) != nil ||
		unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)}) != nil {
		_ = unix.Close(fd)
		return
	}
	l.conns[fd] = &bareConn{answer: answer}
}

var blankLine = []byte("\r\n\r\n")

// step reads and answers. It says whether the connection lives on.
func (l *bareLoop) step(fd int, c *bareConn, events uint32) bool {
	if len(c.left) > 0 && !c.write(fd) {
		return false
	}
	if events&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) == 0 {
		return true
	}
	n, errno := rawCall(unix.SYS_READ, fd, unsafe.Pointer(&l.in[0]), len(l.in), 0)
	if errno == unix.EAGAIN {
		return true
	}
	if n <= 0 || errno != 0 || n == len(l.in) || !bytes.HasSuffix(l.in[:n], blankLine) || len(c.left) > 0 {
		return false
	}
	c.left = c.answer
	return c.write(fd)
}

// write sends as much of what is left as the socket takes.
func (c *bareConn) write(fd int) bool {
	for len(c.left) > 0 {
		n, errno := rawCall(unix.SYS_WRITE, fd, unsafe.Pointer(&c.left[0]), len(c.left), 0)
		if errno == unix.EAGAIN {
			return true
		}
		if errno != 0 {
			return false
		}
		c.left = c.left[n:]
	}
	return true
}
