package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

const (
	// acceptPause is the pause between two tries to accept while descriptors or memory are exhausted.
	acceptPause = 100 * time.Millisecond
	warnEvery   = time.Minute
	// drainTimeout is how long a stopping server accepts connections that the kernel has already accepted, and waits for a
	// request that is already on its way on an idle connection.
	drainTimeout = 100 * time.Millisecond
	// shutdownPoll is the interval at which Shutdown looks whether connections are left.
	shutdownPoll = 5 * time.Millisecond
	// patientRefusals is how many refused connections at a time may send their request before they are answered, see
	// [Server.refuseConn].
	patientRefusals = 64
	// reservedDescriptors is how many descriptors are left to stored files, connections to the upstream, and refusals.
	reservedDescriptors = 64 + patientRefusals
)

// Serve answers requests on a listener until [Server.Shutdown], and then returns nil. It closes the listener. It keeps
// accepting after errors that may pass, such as a lack of descriptors.
func (s *Server) Serve(ln net.Listener) error {
	s.active.Add(1)
	defer s.active.Add(-1)
	done := make(chan struct{})
	defer close(done)
	go s.logSamples(done)
	go func() {
		select {
		case <-s.stop:
			if !interrupt(ln, 0) {
				_ = ln.Close() // makes Accept fail, too
			}
		case <-done:
		}
	}()
	defer func() { _ = ln.Close() }() // nothing more can be done
	draining, warned := false, time.Time{}
	for {
		c, err := ln.Accept()
		switch {
		case err == nil:
			if admitted := s.admit(c); admitted != nil {
				s.run(func() { _ = s.http.ServeConn(admitted) }) // the error says how the connection ended
			}
		case exhausted(err):
			if now := time.Now(); now.Sub(warned) >= warnEvery {
				warned = now
				s.cfg.Log.Warn("connections are not accepted for now", "next_try", acceptPause, "err", err)
			}
			time.Sleep(acceptPause)
		case s.stopping.Load():
			// The connections that the kernel has accepted by now are served: closing the listener would reset them, with
			// the requests that were sent on them.
			if draining || !interrupt(ln, drainTimeout) {
				return nil
			}
			draining = true
		default:
			return fmt.Errorf("serve: %w", err)
		}
	}
}

// interrupt makes Accept fail after a time. It returns false if the listener has no deadlines.
func interrupt(ln net.Listener, after time.Duration) bool {
	d, ok := ln.(interface{ SetDeadline(time.Time) error })
	return ok && d.SetDeadline(time.Now().Add(after)) == nil
}

// exhausted says whether an accept failed for lack of descriptors or memory, which may be free again in a moment.
func exhausted(err error) bool {
	for _, cause := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}

// run calls f in a goroutine for which Shutdown waits.
func (s *Server) run(f func()) {
	s.active.Add(1)
	go func() {
		defer s.active.Add(-1)
		f()
	}()
}

// Shutdown stops accepting connections and waits for the requests under way, at most until ctx ends. If ctx ends first,
// Shutdown closes the remaining connections and returns an error with their number.
func (s *Server) Shutdown(ctx context.Context) error {
	if !s.stopping.Swap(true) {
		close(s.stop)
	}
	s.conns.each((*conn).wake)
	ticker := time.NewTicker(shutdownPoll)
	defer ticker.Stop()
	for s.active.Load() > 0 {
		select {
		case <-ctx.Done():
			return fmt.Errorf("shut down: %d connections cut off at the time limit: %w", s.conns.each((*conn).cutOff), ctx.Err())
		case <-ticker.C:
		}
	}
	return nil
}

// admit returns a connection for fasthttp. If there are too many connections, it refuses this one and returns nil.
func (s *Server) admit(accepted net.Conn) *conn {
	c := &conn{Conn: accepted, server: s}
	if tcp, ok := accepted.RemoteAddr().(*net.TCPAddr); ok {
		c.remote = tcp.AddrPort().Addr().Unmap()
	}
	if s.cfg.TLS != nil {
		// The goroutine that serves the connection makes the handshake, so that a slow client does not delay Accept.
		c.tls = tls.Server(accepted, s.cfg.TLS)
		c.Conn = c.tls
	}
	c.socket = newSocket(c.Conn)
	if !s.conns.add(c, s.cfg.MaxConnections) {
		s.traffic.refused.Add(1)
		s.refuseConn(c)
		return nil
	}
	s.traffic.accepted.Add(1)
	return c
}

// refuseConn answers a connection over the limit with 503 and closes it. A client that gets the response before it has sent
// its request may take the connection for broken. A client whose request is never read may lose the response to a reset. So
// up to 64 refused connections at a time are read first, for up to 500 ms, each in a goroutine of its own. Further ones are
// answered and closed at once.
func (s *Server) refuseConn(c *conn) {
	select {
	case s.refusing <- struct{}{}:
		s.run(func() {
			var first [1 << 10]byte
			_ = c.SetReadDeadline(time.Now().Add(lingerTimeout)) // fails only on a closed connection
			if _, err := c.Conn.Read(first[:]); !errors.Is(err, io.EOF) {
				_ = c.refuseAndLinger(errConnections) // fails only if the client is gone
			}
			_ = c.Conn.Close() // nothing more can be done
			<-s.refusing
		})
	default:
		if c.tls == nil { // a handshake would delay the next connections
			_ = c.refuse(errConnections) // fails only if the client is gone
		}
		c.cutOff()
	}
}
