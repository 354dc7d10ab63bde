package server

import (
	"io"
	"math"
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// socket reads from and writes to a connection. The TCP sockets of Go are non-blocking, so socket makes raw system calls,
// which do not inform the scheduler: informing it takes a tenth of the time of a request. Deadlines work as usual.
type socket struct {
	conn net.Conn
	raw  syscall.RawConn // the TCP connection, if conn is TCP without TLS, else nil
	tcp  syscall.RawConn // the TCP connection, with or without TLS on it, else nil

	// The arguments and results of the current read and the current write, and the functions that make the system calls.
	buffer      []byte
	vectors     [3]syscall.Iovec
	rest        []syscall.Iovec // the part of vectors that is not written yet
	n           int
	errno       syscall.Errno
	read, write func(fd uintptr) bool

	// Used when raw is nil.
	buffers      net.Buffers
	bufferMemory [3][]byte
}

func newSocket(c net.Conn) *socket {
	s := &socket{conn: c}
	if tcp := tcpOf(c); tcp != nil {
		if raw, err := tcp.SyscallConn(); err == nil {
			s.tcp = raw
		}
	}
	if _, ok := c.(*net.TCPConn); ok {
		s.raw, s.read, s.write = s.tcp, s.readOnce, s.writeAll
	}
	return s
}

// Read implements [io.Reader].
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
	case s.errno != 0:
		return 0, os.NewSyscallError("read", s.errno)
	case s.n == 0:
		return 0, io.EOF
	}
	return s.n, nil
}

// readOnce reads the bytes that have arrived. It returns false when none have, so that the caller waits.
func (s *socket) readOnce(fd uintptr) bool {
	for {
		n, _, errno := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(&s.buffer[0])), uintptr(len(s.buffer)))
		if errno == syscall.EINTR {
			continue
		}
		s.n, s.errno = int(n), errno
		return errno != syscall.EAGAIN
	}
}

// Send writes up to three parts, one after another. After an error, some bytes may have been written. It does not keep the
// parts.
func (s *socket) Send(parts ...[]byte) error {
	if s.raw == nil {
		s.buffers = append(s.bufferMemory[:0], parts...)
		_, err := s.buffers.WriteTo(s.conn)
		return err
	}
	n := 0
	for _, p := range parts {
		if len(p) > 0 {
			s.vectors[n] = syscall.Iovec{Base: &p[0]}
			s.vectors[n].SetLen(len(p))
			n++
		}
	}
	s.rest, s.errno = s.vectors[:n], 0
	err := s.raw.Write(s.write)
	s.vectors, s.rest = [3]syscall.Iovec{}, nil // the parts are the caller's again
	if err == nil && s.errno != 0 {
		err = os.NewSyscallError("writev", s.errno)
	}
	return err
}

// writeAll writes until nothing is left. It returns false when the socket's buffer is full, so that the caller waits.
func (s *socket) writeAll(fd uintptr) bool {
	for len(s.rest) > 0 {
		n, _, errno := syscall.RawSyscall(syscall.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&s.rest[0])), uintptr(len(s.rest)))
		switch {
		case errno == syscall.EINTR:
			continue
		case errno == syscall.EAGAIN:
			return false
		case errno != 0:
			s.errno = errno
			return true
		}
		s.advance(uint64(n))
	}
	return true
}

// advance removes the first n bytes, which were written, from s.rest.
func (s *socket) advance(n uint64) {
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

// unsent says whether the kernel holds bytes that the client has not acknowledged.
func (s *socket) unsent() bool {
	n := 0
	if s.tcp != nil {
		_ = s.tcp.Control(func(fd uintptr) { // a closed connection has nothing unsent
			n, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ)
		})
	}
	return n > 0
}

// maxDescriptors returns how many files and connections the process may have open. At the start, Go raises this soft limit
// to the hard limit.
func maxDescriptors() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt
	}
	return int(min(limit.Cur, math.MaxInt32))
}
