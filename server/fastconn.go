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

	raw      []byte // the bytes that have arrived, from the start of the last parsed head
	head     head   // the last parsed head, in raw
	response response
	out      []byte // answers, and parts of them, that are not sent
	broken   error  // of the first write that failed

	linger   bool // the client may still be sending after the last answer
	timedOut bool // the last read failed at its deadline
}

// handshake makes the TLS handshake, if there is one.
func (c *fastConn) handshake(timeout time.Duration) error {
	if c.tls == nil {
		return nil
	}
	if err := c.SetDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	if c.engine.lifecycle.Stopping.Load() {
		c.wake()
	}
	return c.tls.Handshake()
}

// malformed returns the error of the part of the next head that has arrived, nil if further bytes can make it valid.
func (c *fastConn) malformed() *apiError {
	if begun := c.raw[c.head.length:]; len(begun) > 0 {
		if failed := new(head).parse(begun); failed != incomplete {
			return failed
		}
	}
	return nil
}

var errMalformed = errors.New("malformed head")

// Read implements net.Conn. It fails if no further byte can make the next head valid: fasthttp would wait for the end of the head.
func (c *fastConn) Read(p []byte) (int, error) {
	if c.malformed() != nil {
		return 0, errMalformed
	}
	n, err := c.Conn.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		// On a busy machine, bytes that arrived in time may not be read yet.
		_ = c.Conn.SetReadDeadline(time.Now().Add(time.Millisecond)) // fails only on a closed connection
		n, err = c.Conn.Read(p)
	}
	if c.timedOut = errors.Is(err, os.ErrDeadlineExceeded); n > 0 {
		c.idle.Store(false)
		c.raw = append(c.raw, p[:n]...)
	}
	return n, err
}

// parse parses the next head, as the loop does. fasthttp has parsed this head before, or has failed to. fasthttp is less strict: it
// accepts a line that ends with a bare line feed, for example.
func (c *fastConn) parse() *apiError {
	c.raw = c.raw[:copy(c.raw, c.raw[c.head.length:])]
	return c.head.parse(c.raw)
}

// isHEAD says whether b starts with a HEAD request.
func isHEAD(b []byte) bool {
	return bytes.HasPrefix(bytes.TrimPrefix(b, []byte("\r\n")), []byte("HEAD "))
}

// answer sends c.response to a request that arrived at an instant, or collects it in out, and counts it.
func (c *fastConn) answer(arrived time.Time) {
	s, rep := c.engine.server, &c.response
	rep.close = rep.close || c.engine.lifecycle.Stopping.Load()
	c.out = s.appendHead(c.out, rep, arrived)
	if body, tail := rep.body(); !rep.headOnly {
		n := min(len(body), max(writeBuffer-len(c.out), 0))
		if c.out = append(c.out, body[:n]...); n < len(body) {
			_, _ = c.Write(nil) // fails again when fasthttp writes
			c.send(body[n:])
		}
		c.out = append(c.out, tail...)
	}
	s.count(rep, arrived)
}

// refuse makes the last answer of a connection.
func (c *fastConn) refuse(headOnly bool, failed *apiError) {
	c.response.reset(headOnly)
	c.engine.server.fail(&c.response, failed)
	c.answer(time.Now())
	c.linger = true
}

// Write implements net.Conn: it sends out, and drops the bytes of fasthttp.
func (c *fastConn) Write(p []byte) (int, error) {
	c.send(c.out)
	c.out = c.out[:0]
	return len(p), c.broken
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

// SetReadDeadline implements net.Conn. In a stopping server, the deadline of an idle connection is that of wake.
func (c *fastConn) SetReadDeadline(t time.Time) error {
	err := c.Conn.SetReadDeadline(t)
	// Shutdown sets Stopping (1), and then Serve wakes the idle connections (2). A deadline that is set after (2) is set after (1), so
	// this check wakes the connection.
	if c.engine.lifecycle.Stopping.Load() {
		c.wake()
	}
	return err
}

// Close implements net.Conn. It ends the connection as the loop does, see [loop.LingerBytes].
func (c *fastConn) Close() error {
	stopping := c.engine.lifecycle.Stopping.Load()
	if failed := c.malformed(); failed != nil && !c.response.close { // fasthttp ignores a bare line feed at the end, for example
		c.refuse(false, failed)
		_, _ = c.Write(nil) // fails only if the client is gone
	}
	if c.timedOut && !stopping && unacknowledged(c.socket) {
		c.reset()
	}
	if c.broken == nil && (c.linger || len(c.raw) > c.head.length || stopping && c.timedOut) {
		if c.tls != nil {
			_ = c.tls.CloseWrite() // fails before the end of the handshake
		}
		_ = c.socket.CloseWrite()                                        // fails only on a closed connection
		_ = c.socket.SetReadDeadline(time.Now().Add(loop.LingerTimeout)) // the same
		_, _ = io.CopyN(io.Discard, c.socket, loop.LingerBytes)             // fails when the client has sent less
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
	_ = c.Conn.SetReadDeadline(time.Now().Add(timeout)) // fails only on a closed connection
}

// cutOff closes a connection at once. It skips the closing message of TLS, which would wait 5 seconds for a client that does
// not read.
func (c *fastConn) cutOff() {
	_ = c.socket.Close() // nothing more can be done
}
