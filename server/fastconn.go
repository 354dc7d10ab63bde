package server

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"strikecache/server/loop"
)

// halfCloser is a connection that can end its sending alone.
type halfCloser interface {
	net.Conn
	CloseWrite() error
}

// fastConn is a connection that fasthttp serves. Any goroutine may call wake and cutOff. Only the goroutine that serves the
// connection may call the other methods.
type fastConn struct {
	halfCloser              // tcp, or tls
	tcp        *net.TCPConn // that the listener has accepted
	tls        *tls.Conn    // on tcp; nil without TLS
	engine     *fastEngine
	remote     netip.Addr
	idle       atomic.Bool // it waits for a handshake or for the first byte of a request
	asked      atomic.Bool // it has had a request

	raw      []byte // what has arrived, from the head of the last request on
	head     head   // of the last request, in raw
	response response
	fields   []byte // header fields of the response

	muted    bool // nothing is sent any more
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

// Read implements net.Conn.
func (c *fastConn) Read(p []byte) (int, error) {
	n, err := c.halfCloser.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		// When this goroutine had to wait for a processor, bytes may have arrived in time and not be read yet.
		_ = c.halfCloser.SetReadDeadline(time.Now().Add(time.Millisecond)) // fails only on a closed connection
		n, err = c.halfCloser.Read(p)
	}
	if c.timedOut = errors.Is(err, os.ErrDeadlineExceeded); n > 0 {
		c.idle.Store(false)
		c.raw = append(c.raw, p[:n]...)
	}
	return n, err
}

// parse parses the head of the request behind the last one, as the loop does. fasthttp has read this head already, or has
// failed to read it. fasthttp is less strict: it accepts a line that ends with a bare line feed, for example.
func (c *fastConn) parse() *apiError {
	c.raw = c.raw[:copy(c.raw, c.raw[c.head.length:])]
	return c.head.parse(c.raw)
}

// beginsHead says whether the bytes begin a HEAD request.
func beginsHead(b []byte) bool {
	return bytes.HasPrefix(bytes.TrimPrefix(b, []byte("\r\n")), []byte("HEAD "))
}

// Write implements net.Conn. Each write has the WriteTimeout.
func (c *fastConn) Write(p []byte) (int, error) {
	if c.muted {
		return len(p), nil
	}
	if err := c.SetWriteDeadline(time.Now().Add(c.engine.server.cfg.WriteTimeout)); err != nil {
		return 0, err
	}
	n, err := c.halfCloser.Write(p)
	if err != nil {
		c.linger = false
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.abandon()
	}
	return n, err
}

// SetReadDeadline implements net.Conn. A stopping server does not wait long for the next request.
func (c *fastConn) SetReadDeadline(t time.Time) error {
	err := c.halfCloser.SetReadDeadline(t)
	// Shutdown (1) sets stopping, and then Serve (2) wakes the connection if it is idle. If this deadline was set after (2),
	// the connection sees (1) here.
	if c.engine.lifecycle.Stopping.Load() {
		c.wake()
	}
	return err
}

// Close implements net.Conn. It ends the connection as the loop does: see [loop.LingerBytes].
func (c *fastConn) Close() error {
	stopping := c.engine.lifecycle.Stopping.Load()
	if c.timedOut && !stopping && unsent(c.tcp) {
		c.abandon()
	}
	if (c.linger || stopping && c.timedOut) && c.CloseWrite() == nil {
		_ = c.halfCloser.SetReadDeadline(time.Now().Add(loop.LingerTimeout)) // fails only on a closed connection
		_, _ = io.CopyN(io.Discard, c.halfCloser, loop.LingerBytes)          // fails at the end of what the client sends
	}
	return c.halfCloser.Close()
}

// abandon resets a connection whose client did not read in time. Otherwise the kernel would keep the unsent bytes in memory for
// minutes.
func (c *fastConn) abandon() {
	_ = c.tcp.SetLinger(0) // if this fails, the connection ends without a reset
	c.cutOff()
}

// wake ends a connection that waits for its next request, after [loop.DrainTimeout], or for its first, after
// [loop.FirstDrainTimeout]. A request that the client has already sent arrives in this time and is answered.
func (c *fastConn) wake() {
	if !c.idle.Load() {
		return
	}
	timeout := loop.FirstDrainTimeout
	if c.asked.Load() {
		timeout = loop.DrainTimeout
	}
	_ = c.halfCloser.SetReadDeadline(time.Now().Add(timeout)) // fails only on a closed connection
}

// cutOff closes a connection at once. It skips the closing message of TLS, which would wait 5 seconds for a client that does
// not read.
func (c *fastConn) cutOff() {
	_ = c.tcp.Close() // nothing more can be done
}
