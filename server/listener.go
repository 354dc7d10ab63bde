package server

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// listener gives fasthttp the connections that the server admits, and keeps accepting through errors that pass.
type listener struct {
	net.Listener
	server   *Server
	ended    <-chan struct{} // closed when nothing is accepted any more
	draining bool            // only what the kernel has already accepted is fetched
	warned   time.Time
}

const (
	// acceptPause is between two tries to accept while descriptors or memory are exhausted. fasthttp would take such an
	// error for the end of the listener.
	acceptPause = 100 * time.Millisecond
	warnEvery   = time.Minute
	// patientRefusals is how many connections over the limit may be refused patiently at a time, see [Server.refuseConn].
	patientRefusals = 64
	// reservedDescriptors are kept from connections, for stored files, the upstream's connections, and refusals.
	reservedDescriptors = 64 + patientRefusals
)

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		switch {
		case err == nil:
			if admitted := l.server.admit(c); admitted != nil {
				return admitted, nil
			}
		case l.server.stopping.Load():
			if l.draining || !l.interrupt(drainTimeout) {
				return nil, io.EOF
			}
			l.draining = true
		case exhausted(err):
			if now := time.Now(); now.Sub(l.warned) >= warnEvery {
				l.warned = now
				l.server.cfg.Log.Warn("connections are not accepted for now", "err", err)
			}
			time.Sleep(acceptPause)
		default:
			return nil, err
		}
	}
}

// exhausted says whether an accept failed for lack of something that may be free again in a moment.
func exhausted(err error) bool {
	for _, cause := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}

// interrupt makes Accept fail after a while. It returns false where the listener cannot.
func (l *listener) interrupt(after time.Duration) bool {
	ln, ok := l.Listener.(interface{ SetDeadline(time.Time) error })
	return ok && ln.SetDeadline(time.Now().Add(after)) == nil
}

// Close implements net.Listener. fasthttp calls it when the server stops. Connections that the kernel has accepted by
// then are served first: closing the listener would reset them, with the requests that were sent on them.
func (l *listener) Close() error {
	if l.interrupt(0) {
		<-l.ended
	}
	return l.Listener.Close()
}

// admit returns a connection for fasthttp, or refuses it and returns nil when there are too many.
func (s *Server) admit(accepted net.Conn) *conn {
	c := &conn{Conn: accepted, server: s}
	if tcp, ok := accepted.RemoteAddr().(*net.TCPAddr); ok {
		c.remote = tcp.AddrPort().Addr().Unmap()
	}
	if s.cfg.TLS != nil {
		// The handshake is left to the goroutine that serves the connection, so that a slow client delays no other.
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

// refuseConn answers a connection over the limit with an error. A client that has not sent its request yet may take an
// early answer for a broken connection. A client whose request is never read may lose the answer to a reset. So a few
// clients at a time are waited for, in goroutines of their own. The others are answered and closed at once.
func (s *Server) refuseConn(c *conn) {
	select {
	case s.refusing <- struct{}{}:
		s.refusals.Go(func() {
			c.refuseWhenAsked(errConnections)
			_ = c.Conn.Close() // it ends either way
			<-s.refusing
		})
	default:
		if c.tls == nil { // a handshake would delay the next connections
			_ = c.refuse(errConnections) // a client that is gone misses nothing
		}
		c.cutOff()
	}
}

// refuseWhenAsked waits a moment for the first bytes of a connection, and answers with an error.
func (c *conn) refuseWhenAsked(e *apiError) {
	if c.SetReadDeadline(time.Now().Add(lingerTimeout)) != nil {
		return
	}
	var first [1 << 10]byte
	if _, err := c.Conn.Read(first[:]); !errors.Is(err, io.EOF) {
		_ = c.refuseAndLinger(e) // a client that is gone misses nothing
	}
}

// cutOff closes a connection at once. The end of TLS would wait 5 seconds for a client that does not read.
func (c *conn) cutOff() {
	if c.tls != nil {
		_ = c.tls.NetConn().Close() // it ends either way
		return
	}
	_ = c.Conn.Close() // it ends either way
}

// tcpOf returns the TCP connection under a connection, nil when there is none.
func tcpOf(c net.Conn) *net.TCPConn {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	tcp, _ := c.(*net.TCPConn)
	return tcp
}

// connSet is the open connections. Its methods may be called at the same time.
type connSet struct {
	mu   sync.Mutex
	open map[*conn]struct{}
}

// add says whether there was room for one more.
func (s *connSet) add(c *conn, limit int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= limit {
		return false
	}
	if s.open == nil {
		s.open = map[*conn]struct{}{}
	}
	s.open[c] = struct{}{}
	return true
}

func (s *connSet) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

func (s *connSet) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// wake wakes every connection that waits for a request.
func (s *connSet) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		c.wake()
	}
}

// cutOff closes every connection at once, and returns how many there were.
func (s *connSet) cutOff() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		c.cutOff()
	}
	return len(s.open)
}
