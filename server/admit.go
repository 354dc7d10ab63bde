package server

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// gate stands between a listener and fasthttp. Every byte of every request passes it: heads are checked by one
// strict parser, plain requests for a resource are answered right there, and all others reach fasthttp one at a
// time, whole and checked, so that no two parsers can disagree about where a request ends.
type gate struct {
	net.Listener
	server *Server
	ended  <-chan struct{} // nothing is accepted any more
	last   bool            // what the kernel has accepted already is being fetched
	warned time.Time
}

const (
	// acceptPause is between two tries to accept while descriptors or memory are lacking. fasthttp would take such an
	// error for the end of the listener.
	acceptPause = 100 * time.Millisecond
	// politeRefusals is how many connections over the limit may be refused at a time with patience.
	politeRefusals = 64
	// reservedDescriptors are kept from connections, for stored files, the upstream's connections, and refusals.
	reservedDescriptors = 64 + politeRefusals
)

// Accept implements net.Listener.
func (g *gate) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		switch {
		case err == nil:
			if admitted := g.server.admit(c); admitted != nil {
				return admitted, nil
			}
		case g.server.stopping.Load():
			if g.last || !g.interrupt(drainTimeout) {
				return nil, io.EOF
			}
			g.last = true
		case lacking(err):
			g.warn(err)
			time.Sleep(acceptPause)
		default:
			return nil, err
		}
	}
}

// lacking says whether an accept failed for want of something that may be there again in a moment.
func lacking(err error) bool {
	for _, want := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, want) {
			return true
		}
	}
	return false
}

// warn logs, once a minute, that connections have to wait.
func (g *gate) warn(err error) {
	if now := time.Now(); now.Sub(g.warned) >= reportEvery {
		g.warned = now
		g.server.cfg.Log.Warn("connections are not accepted for now", "err", err)
	}
}

// interrupt makes Accept fail after a while, where the listener can.
func (g *gate) interrupt(after time.Duration) bool {
	ln, ok := g.Listener.(interface{ SetDeadline(time.Time) error })
	return ok && ln.SetDeadline(time.Now().Add(after)) == nil
}

// Close implements net.Listener for fasthttp, which calls it when the server stops. Connections that the kernel has
// accepted by then are served: closing the listener would reset them, with the requests that were sent on them.
func (g *gate) Close() error {
	if g.interrupt(0) {
		<-g.ended
	}
	return g.Listener.Close()
}

// admit returns a connection behind the gate, or nil when there are too many: then it has turned it away.
func (s *Server) admit(c net.Conn) *conn {
	remote := addressOf(c)
	c, secure := s.secured(c)
	gated := &conn{Conn: c, tls: secure, server: s, socket: newSocket(c), remote: remote}
	if !s.conns.add(gated, s.cfg.MaxConnections) {
		s.traffic.turnedAway.Add(1)
		s.turnAway(gated)
		return nil
	}
	s.traffic.accepted.Add(1)
	return gated
}

// turnAway refuses a connection over the limit. A client that has not sent its request yet may take an early answer
// for a broken connection, and one whose request is never read may lose the answer to a reset; so a few at a time
// are waited for, apart from the goroutine that accepts. The others are answered and closed at once.
func (s *Server) turnAway(c *conn) {
	select {
	case s.refusing <- struct{}{}:
		s.refusals.Go(func() {
			c.refuseWhenAsked(errConnections)
			_ = c.Conn.Close() // it ends either way
			<-s.refusing
		})
	default:
		if c.tls == nil { // a handshake would hold up the next connections
			_ = c.refuse(errConnections) // there is nobody left to tell
		}
		c.cutOff()
	}
}

// refuseWhenAsked answers the first bytes of a connection, or their absence for a moment, with an error.
func (c *conn) refuseWhenAsked(e *apiError) {
	if c.SetReadDeadline(time.Now().Add(lingerTimeout)) != nil {
		return
	}
	var first [1 << 10]byte
	if _, err := c.Conn.Read(first[:]); !errors.Is(err, io.EOF) {
		_ = c.refuseHead(e) // there is nobody left to tell
	}
}

// addressOf returns the address of the client.
func addressOf(c net.Conn) netip.Addr {
	if tcp, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// connSet is the open connections.
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

// cut closes every connection, whatever it does, and returns how many there were.
func (s *connSet) cut() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		c.cutOff()
	}
	return len(s.open)
}
