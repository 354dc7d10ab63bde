package server

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"strikecache/server/loop"
)

// socket is a *net.TCPConn or a *net.UnixConn.
type socket interface {
	net.Conn
	syscall.Conn
	CloseWrite() error
	SetWriteBuffer(bytes int) error
}

// fastConn is a connection that fasthttp serves. Any goroutine may call wake and cutOff. Only the goroutine that serves the
// connection may call the other methods.
type fastConn struct {
	net.Conn           // tls, or socket without TLS
	socket   socket    // from the listener
	tls      *tls.Conn // on socket; nil without TLS
	engine   *fastEngine
	remote   netip.Addr  // the zero address for a Unix socket
	idle     atomic.Bool // the connection waits for a handshake or for the first byte of a request
	asked    atomic.Bool // the connection has had a request

	handler        // head is at the start of raw; it has the length 0 unless fasthttp has read it
	raw     []byte // the bytes that have arrived and are not answered
	out     []byte // answers, and parts of them, that are not sent
	broken  error  // of the first write that failed

	headDue  bool // the deadline of reads is that of the next head
	timedOut bool // the last read failed at its deadline
	linger   bool // the client may still be sending after the last answer
}

func (c *fastConn) handshake(timeout time.Duration) error {
	if c.tls == nil {
		return nil
	}
	c.setIdle(timeout)
	return c.tls.Handshake()
}

// Read implements net.Conn. It reads one head. If the parser of [head] refuses the head, or the head does not arrive in time, Read makes
// the last answer and returns io.EOF. fasthttp alone would be less strict: it accepts a line that ends with a bare line feed, for example.
func (c *fastConn) Read(p []byte) (int, error) {
	if c.head.length > 0 { // fasthttp has not found the end of the head
		return 0, io.ErrUnexpectedEOF
	}
	failed := c.parse(c.raw)
	for failed == incomplete && c.receive(p) {
		failed = c.parse(c.raw)
	}
	switch {
	case failed == nil:
		c.asked.Store(true)
		n := copy(p, c.raw[:c.head.length])
		if !c.head.http10 { // fasthttp takes HTTP/1.2 for HTTP/1.0
			p[1+bytes.IndexByte(p[2:n], '\r')] = '1'
		}
		return n, nil
	case failed != incomplete:
		c.refuse(failed)
	case c.timedOut && len(c.raw) > 0:
		c.refuse(errTimeout)
	}
	return 0, io.EOF
}

// receive sends the answers and then waits for bytes, which it reads into p. It returns false if none arrived.
func (c *fastConn) receive(p []byte) bool {
	c.flush()
	switch cfg := &c.engine.server.cfg; {
	case len(c.raw) == 0 && c.asked.Load():
		c.setIdle(cfg.IdleTimeout)
	case len(c.raw) == 0:
		c.setIdle(cfg.ReadTimeout)
		c.headDue = true
	case !c.headDue:
		_ = c.SetReadDeadline(time.Now().Add(cfg.ReadTimeout)) // fails only on a closed connection
		c.headDue = true
	}
	n, err := c.Conn.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		// On a busy machine, bytes that arrived in time may not be read yet.
		_ = c.SetReadDeadline(time.Now().Add(time.Millisecond)) // fails only on a closed connection
		n, err = c.Conn.Read(p)
	}
	if c.timedOut = errors.Is(err, os.ErrDeadlineExceeded); n > 0 {
		c.idle.Store(false)
		c.raw = append(c.raw, p[:n]...)
	}
	return n > 0
}

// serve answers the request of c.head for a target, nil for a path without a target.
func (c *fastConn) serve(t *target) {
	a := loop.Answer{Head: c.out}
	c.respond(t, loop.Request{From: c.remote, Now: time.Now(), Stopping: c.engine.lifecycle.Stopping.Load()}, &a)
	c.collect(&a)
	c.raw, c.headDue = c.raw[:copy(c.raw, c.raw[c.head.length:])], false
	c.head.length = 0
}

// refuse makes the last answer of the connection. c.head has what has arrived of the request.
func (c *fastConn) refuse(failed *apiError) {
	a := loop.Answer{Head: c.out}
	c.fail(failed, loop.Request{Now: time.Now()}, &a)
	c.collect(&a)
}

// collect collects an answer in out, or sends it.
func (c *fastConn) collect(a *loop.Answer) {
	c.out, c.linger = a.Head, a.Linger
	n := min(len(a.Body), max(writeBuffer-len(c.out), 0))
	if c.out = append(c.out, a.Body[:n]...); n < len(a.Body) {
		c.flush()
		c.send(a.Body[n:])
	}
	c.out = append(c.out, a.Tail...)
}

// Write implements net.Conn. It drops the bytes of fasthttp, and fails if the connection is broken.
func (c *fastConn) Write(p []byte) (int, error) { return len(p), c.broken }

func (c *fastConn) flush() {
	c.send(c.out)
	c.out = c.out[:0]
}

// send sends bytes, with the WriteTimeout, unless a write has failed before.
func (c *fastConn) send(b []byte) {
	if c.broken != nil || len(b) == 0 {
		return
	}
	failed := c.SetWriteDeadline(time.Now().Add(c.engine.server.cfg.WriteTimeout))
	_, err := c.Conn.Write(b)
	if c.broken = cmp.Or(err, failed); errors.Is(c.broken, os.ErrDeadlineExceeded) {
		c.reset()
	}
}

// Close implements net.Conn. It ends the connection as the loop does, see [loop.LingerBytes].
func (c *fastConn) Close() error {
	c.flush()
	stopping := c.engine.lifecycle.Stopping.Load()
	if c.timedOut && !stopping && len(c.raw) == 0 && unacknowledged(c.socket) {
		c.reset()
	}
	if c.broken == nil && (c.linger || len(c.raw) > 0 || stopping && c.timedOut) {
		if c.tls != nil {
			_ = c.tls.CloseWrite() // fails before the end of the handshake
		}
		_ = c.socket.CloseWrite()                                        // fails only on a closed connection
		_ = c.socket.SetReadDeadline(time.Now().Add(loop.LingerTimeout)) // the same
		_, _ = io.CopyN(io.Discard, c.socket, loop.LingerBytes)          // fails when the client has sent less
	}
	return c.Conn.Close()
}

// reset resets a connection whose client did not read in time. Otherwise the kernel would keep the unsent bytes in memory for
// minutes.
func (c *fastConn) reset() {
	if tcp, ok := c.socket.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // if this fails, the connection ends without a reset
	}
	c.cutOff()
}

// setIdle sets the deadline of an idle connection. In a stopping server, it is that of wake. Shutdown sets Stopping (1), and then Serve
// wakes the idle connections (2). A deadline that is set after (2) is set after (1), so setIdle wakes the connection.
func (c *fastConn) setIdle(timeout time.Duration) {
	c.idle.Store(true)
	_ = c.SetDeadline(time.Now().Add(timeout)) // fails only on a closed connection
	if c.engine.lifecycle.Stopping.Load() {
		c.wake()
	}
}

// wake shortens the deadline of an idle connection of a stopping server: to [loop.DrainTimeout] after a request, and to
// [loop.FirstDrainTimeout] before the first. A request that the client has already sent arrives in this time and is answered.
func (c *fastConn) wake() {
	if !c.idle.Load() {
		return
	}
	timeout := loop.FirstDrainTimeout
	if c.asked.Load() {
		timeout = loop.DrainTimeout
	}
	_ = c.SetReadDeadline(time.Now().Add(timeout)) // fails only on a closed connection
}

// cutOff closes a connection at once. It skips the closing message of TLS, which would wait 5 seconds for a client that does
// not read.
func (c *fastConn) cutOff() {
	_ = c.socket.Close() // nothing more can be done
}
