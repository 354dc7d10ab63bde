//go:build linux

package loop

import (
	"cmp"
	"context"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Available says whether this system has loops.
const Available = true

// acceptsAtOnce is how many connections are accepted between two checks whether the server is stopping.
const acceptsAtOnce = 256

// Server serves the connections of listeners. Create it with [New].
type Server struct {
	cfg      Config
	timeouts [gone]time.Duration // of the states

	lifecycle Lifecycle
	cutOff    atomic.Bool // the time limit of Shutdown has passed
}

// acceptor is a call of [Server.Serve].
type acceptor struct {
	*Server
	all     []*loop
	refusal Handler
}

// New returns a server. Call [Server.Serve] to accept connections.
func New(cfg Config) *Server {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Server{cfg: cfg, lifecycle: Lifecycle{Stop: make(chan struct{})}}
	s.timeouts = [gone]time.Duration{idle: cfg.IdleTimeout, partial: cfg.ReadTimeout, sending: cfg.WriteTimeout, lingering: LingerTimeout}
	return s
}

// Serve answers requests on a listener of [Listen] until [Server.Shutdown], and then returns nil. It closes the listener. It may be called
// for several listeners, each of which gets loops of its own.
func (s *Server) Serve(ln Listener) error {
	return (&acceptor{Server: s, refusal: s.cfg.NewHandler()}).serve(ln)
}

func (s *acceptor) serve(ln Listener) error {
	defer func() { _ = ln.Close() }() // nothing more can be done
	if !s.lifecycle.Begin() {
		return nil
	}
	defer s.lifecycle.Running.Done()
	listener, err := ln.File() // a *net.TCPListener would add each connection to Go's poller
	if err != nil {
		return err
	}
	defer func() { // each loop ends with its last connection
		for _, l := range s.all {
			l.draining.Store(true)
		}
	}()
	defer func() { _ = listener.Close() }() // nothing more can be done
	raw, err := listener.SyscallConn()
	if err != nil {
		return err
	}
	for range s.cfg.Loops {
		l, err := s.newLoop()
		if err != nil {
			return err
		}
		s.all = append(s.all, l)
		s.lifecycle.Running.Go(l.run)
	}
	return s.lifecycle.Accept(ln, func() error { return s.accept(raw) }, listener.SetDeadline, s.cfg.Log)
}

func control(raw syscall.RawConn, f func(fd int) error) (err error) {
	failed := raw.Control(func(fd uintptr) { err = f(int(fd)) })
	return cmp.Or(failed, err)
}

// accept waits for connections and accepts at most acceptsAtOnce of them. It returns the first error.
func (s *acceptor) accept(raw syscall.RawConn) (err error) {
	failed := raw.Read(func(listener uintptr) bool {
		for range acceptsAtOnce {
			var from unix.RawSockaddrAny
			size := uint32(unix.SizeofSockaddrAny)
			fd, _, errno := syscall.RawSyscall6(unix.SYS_ACCEPT4, listener, uintptr(unsafe.Pointer(&from)), uintptr(unsafe.Pointer(&size)), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
			switch errno {
			case 0:
				s.admit(int(fd), addressOf(&from))
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

// admit gives a connection to the loop that has the fewest. If the connection is over the limit, the loop refuses it after its
// request has arrived. If [MaxRejecting] connections already are in this state, admit refuses the connection at once.
func (s *acceptor) admit(fd int, from netip.Addr) {
	p := &peer{fd: fd, from: from}
	now := s.cfg.Now()
	s.enter(p, idle, now)
	switch {
	case s.cfg.Connections.Enter(from):
		if first := now.Add(s.cfg.ReadTimeout); first.Before(p.due) {
			p.due = first
		}
	case s.cfg.Connections.BeginRejecting():
		p.rejecting, p.due = true, now.Add(LingerTimeout)
	default:
		var a Answer
		s.refusal.Refuse(TooManyConnections, nil, Request{From: from, Now: now}, &a)
		_, _ = unix.SendmsgN(fd, append(append(a.Head, a.Body...), a.Tail...), nil, nil, unix.MSG_NOSIGNAL) // fails only if the client is gone
		_ = unix.Close(fd)                                                                                  // nothing more can be done
		return
	}
	l := s.all[0]
	for _, other := range s.all[1:] {
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
	return netip.Addr{} // of a Unix socket
}

// Shutdown is [Lifecycle.Shutdown].
func (s *Server) Shutdown(ctx context.Context) error {
	return s.lifecycle.Shutdown(ctx, s.cfg.Connections, func() { s.cutOff.Store(true) })
}
