package server

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// socket reads from and writes to a connection. A TCP socket never blocks, so its system calls are made without the
// preparations of the scheduler for one that does, which cost a tenth of a whole request. Deadlines hold as ever.
type socket struct {
	conn net.Conn
	raw  syscall.RawConn // nil: not TCP, or TLS over it
	tcp  syscall.RawConn // nil: not even below TLS

	// The arguments and results of the one read and the one write under way, and the functions that make them.
	buffer       []byte
	parts        [3]syscall.Iovec
	rest         []syscall.Iovec // of parts, what is still to be written
	n            int
	failed       syscall.Errno
	read, write  func(fd uintptr) bool
	vector       net.Buffers
	vectorBuffer [3][]byte
}

func newSocket(c net.Conn) *socket {
	s := &socket{conn: c}
	if tcp := tcpOf(c); tcp != nil {
		if raw, err := tcp.SyscallConn(); err == nil {
			s.tcp = raw
		}
	}
	if _, plain := c.(*net.TCPConn); plain {
		s.raw, s.read, s.write = s.tcp, s.readOnce, s.writeAll
	}
	return s
}

// Read is net.Conn's.
func (s *socket) Read(p []byte) (int, error) {
	if s.raw == nil || len(p) == 0 {
		return s.conn.Read(p)
	}
	s.buffer = p
	err := s.raw.Read(s.read)
	s.buffer = nil
	switch {
	case err != nil:
		return 0, err
	case s.failed != 0:
		return 0, os.NewSyscallError("read", s.failed)
	case s.n == 0:
		return 0, io.EOF
	}
	return s.n, nil
}

// readOnce reads what there is, and says false when there is nothing yet.
func (s *socket) readOnce(fd uintptr) bool {
	for {
		n, _, errno := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(&s.buffer[0])), uintptr(len(s.buffer)))
		if errno == syscall.EINTR {
			continue
		}
		s.n, s.failed = int(n), errno
		return errno != syscall.EAGAIN
	}
}

// Send writes the parts, all of them or as many as go until an error.
func (s *socket) Send(parts ...[]byte) error {
	if s.raw == nil {
		s.vector = append(s.vectorBuffer[:0], parts...)
		_, err := s.vector.WriteTo(s.conn)
		return err
	}
	n := 0
	for _, p := range parts {
		if len(p) > 0 {
			s.parts[n] = syscall.Iovec{Base: &p[0]}
			s.parts[n].SetLen(len(p))
			n++
		}
	}
	s.rest, s.failed = s.parts[:n], 0
	err := s.raw.Write(s.write)
	s.parts, s.rest = [3]syscall.Iovec{}, nil
	if err == nil && s.failed != 0 {
		err = os.NewSyscallError("writev", s.failed)
	}
	return err
}

// writeAll writes until nothing is left, and says false when the socket takes no more for now.
func (s *socket) writeAll(fd uintptr) bool {
	for len(s.rest) > 0 {
		n, _, errno := syscall.RawSyscall(syscall.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&s.rest[0])), uintptr(len(s.rest)))
		switch {
		case errno == syscall.EINTR:
			continue
		case errno == syscall.EAGAIN:
			return false
		case errno != 0:
			s.failed = errno
			return true
		}
		s.written(uint64(n))
	}
	return true
}

// written takes n bytes off what is left.
func (s *socket) written(n uint64) {
	for len(s.rest) > 0 && n >= s.rest[0].Len {
		n -= s.rest[0].Len
		s.rest = s.rest[1:]
	}
	if n > 0 {
		first := &s.rest[0]
		first.Base = (*byte)(unsafe.Add(unsafe.Pointer(first.Base), n))
		first.Len -= n
	}
}

// unsent says whether the client has not taken all that was sent.
func (s *socket) unsent() bool {
	n := 0
	if s.tcp != nil {
		_ = s.tcp.Control(func(fd uintptr) { // of what is closed, nothing is left
			n, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ)
		})
	}
	return n > 0
}
