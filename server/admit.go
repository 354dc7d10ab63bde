package server

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"
)

const (
	// patientRefusals is how many refused connections at a time may send their request before they are answered, see
	// [Server.refuseConn].
	patientRefusals = 64
	// maxFiles is how many files in memory large responses are sent from.
	maxFiles = 16
	// reservedDescriptors is how many descriptors are left to stored files, connections to the upstream, refusals, and files in
	// memory.
	reservedDescriptors = 64 + patientRefusals + maxFiles
)

// admit serves a connection through fasthttp, or refuses it if there are too many.
func (s *Server) admit(accepted net.Conn) {
	var remote netip.Addr
	if tcp, ok := accepted.RemoteAddr().(*net.TCPAddr); ok {
		remote = tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	c := s.newConn(accepted, remote)
	if !s.enter() {
		s.refuseConn(c)
		return
	}
	s.serve(c)
}

// newConn returns a connection for fasthttp. The goroutine that serves it makes the TLS handshake, so that a slow client does
// not delay others.
func (s *Server) newConn(accepted net.Conn, remote netip.Addr) *conn {
	c := &conn{Conn: accepted, server: s, remote: remote}
	if s.cfg.TLS != nil {
		c.tls = tls.Server(accepted, s.cfg.TLS)
		c.Conn = c.tls
	}
	return c
}

// serve lets fasthttp serve a connection, in a goroutine of its own.
func (s *Server) serve(c *conn) {
	s.conns.add(c)
	if s.cutOff.Load() { // after Shutdown has cut off the others
		c.cutOff()
	}
	s.run(func() { _ = s.http.ServeConn(c) }) // the error says how the connection ended
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

// run calls f in a goroutine for which Shutdown waits.
func (s *Server) run(f func()) {
	s.active.Add(1)
	go func() {
		defer s.active.Add(-1)
		f()
	}()
}
