package server

import (
	"crypto/tls"
	"io"
	"net"
	"time"
)

// secured puts TLS on a connection, if the server speaks it. The handshake is left to the goroutine that serves the
// connection: a client that is slow at it holds up nobody else.
func (s *Server) secured(c net.Conn) (net.Conn, *tls.Conn) {
	if s.cfg.TLS == nil {
		return c, nil
	}
	secure := tls.Server(c, s.cfg.TLS)
	return secure, secure
}

// handshake makes the handshake of a TLS connection. The client has the time of a head for it and for the first byte
// of its request. A connection that is to end meanwhile ends, as one that waits for a request does.
func (c *conn) handshake() error {
	c.shaken = true
	c.state.Store(waiting)
	defer c.state.Store(inside)
	if err := c.SetDeadline(time.Now().Add(c.server.cfg.ReadTimeout)); err != nil {
		return err
	}
	if c.last() {
		c.wake()
	}
	if err := c.tls.Handshake(); err != nil {
		c.server.traffic.unshaken.Add(1)
		return io.EOF // there is no way to answer
	}
	return nil
}

// cutOff closes a connection at once. The end of TLS would wait, for 5 seconds, until the client takes a last record.
func (c *conn) cutOff() {
	if c.tls != nil {
		_ = c.tls.NetConn().Close() // it ends either way
		return
	}
	_ = c.Conn.Close() // it ends either way
}

// tcpOf returns the connection of the kernel under c, nil when there is none.
func tcpOf(c net.Conn) *net.TCPConn {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	tcp, _ := c.(*net.TCPConn)
	return tcp
}
