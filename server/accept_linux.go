package server

import (
	"cmp"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// acceptsAtOnce is how many connections are accepted before the server looks whether it is stopping.
const acceptsAtOnce = 256

// loops answers the direct requests (see [head]) on the plain TCP connections of a listener. There is one loop for each
// core. A connection stays with its loop until it ends, or until it sends something else than a direct request. Then it
// moves to a [conn], with the bytes that were read and not answered, and fasthttp serves it from then on.
type loops struct {
	server   *Server
	listener *os.File // Go's listener cannot give out connections without its own poller
	all      []*loop
}

// openLoops returns loops for the connections of a listener; nil if the listener is not a TCP listener, or has TLS on it.
func (s *Server) openLoops(ln net.Listener) (*loops, error) {
	tcp, ok := ln.(*net.TCPListener)
	if !ok || s.cfg.TLS != nil {
		return nil, nil
	}
	listener, err := tcp.File()
	if err != nil {
		return nil, err
	}
	ls := &loops{server: s, listener: listener}
	raw, err := listener.SyscallConn()
	if err == nil {
		var failed error
		err = raw.Control(func(fd uintptr) { // accepted connections inherit the option
			failed = os.NewSyscallError("setsockopt", unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NODELAY, 1))
		})
		err = cmp.Or(err, failed)
	}
	if err != nil {
		ls.finish()
		return nil, err
	}
	for range s.cores {
		l, err := s.newLoop()
		if err != nil {
			ls.finish()
			return nil, err
		}
		ls.all = append(ls.all, l)
		s.run(l.run)
	}
	return ls, nil
}

// accept waits for connections and accepts up to acceptsAtOnce of them. It returns the error of the first that fails.
func (ls *loops) accept() error {
	raw, err := ls.listener.SyscallConn()
	if err != nil {
		return err
	}
	failed := raw.Read(func(listener uintptr) bool {
		for range acceptsAtOnce {
			var from unix.RawSockaddrAny
			size := uint32(unix.SizeofSockaddrAny)
			fd, _, errno := syscall.RawSyscall6(unix.SYS_ACCEPT4, listener, uintptr(unsafe.Pointer(&from)), uintptr(unsafe.Pointer(&size)), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
			switch errno {
			case 0:
				ls.admit(int(fd), addressOf(&from))
			case unix.EAGAIN:
				return false
			case unix.EINTR, unix.ECONNABORTED: // the client is gone
			default:
				err = os.NewSyscallError("accept4", errno)
				return true
			}
		}
		return true
	})
	return cmp.Or(failed, err)
}

// admit gives a connection to the loop that has the fewest.
func (ls *loops) admit(fd int, from netip.Addr) {
	p := &peer{fd: fd, remote: from, due: time.Now().Add(ls.server.cfg.ReadTimeout)}
	if !ls.server.enter() {
		if c := ls.server.adopt(p); c != nil {
			ls.server.refuseConn(c)
		}
		return
	}
	l := ls.all[0]
	for _, other := range ls.all[1:] {
		if other.open.Load() < l.open.Load() {
			l = other
		}
	}
	l.add(p)
}

func addressOf(from *unix.RawSockaddrAny) netip.Addr {
	switch from.Addr.Family {
	case unix.AF_INET:
		return netip.AddrFrom4((*unix.RawSockaddrInet4)(unsafe.Pointer(from)).Addr)
	case unix.AF_INET6:
		return netip.AddrFrom16((*unix.RawSockaddrInet6)(unsafe.Pointer(from)).Addr).Unmap()
	}
	return netip.Addr{}
}

// SetDeadline makes accept fail at an instant.
func (ls *loops) SetDeadline(t time.Time) error { return ls.listener.SetReadDeadline(t) }

// wake lets the loops look at once whether the server is stopping.
func (ls *loops) wake() {
	for _, l := range ls.all {
		_ = l.epoll.SetReadDeadline(time.Now()) // fails only after the end of the loop
	}
}

// finish says that no more connections come. Each loop ends with its last connection.
func (ls *loops) finish() {
	_ = ls.listener.Close() // nothing more can be done
	for _, l := range ls.all {
		l.last.Store(true)
	}
	ls.wake()
}
