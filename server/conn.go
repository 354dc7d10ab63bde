package server

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// conn is a connection that fasthttp serves. fasthttp uses it as a net.Conn. Read returns the bytes of one request per call,
// after [head] has parsed where the request ends. So fasthttp cannot read the end of a request differently. Read answers
// requests that [head] refuses itself.
//
// Any goroutine may call wake and cutOff. Only the goroutine that serves the connection may call the other methods.
type conn struct {
	net.Conn
	tls    *tls.Conn // the same connection as Conn; nil without TLS
	server *Server
	remote netip.Addr

	head     head
	response response
	lines    []byte  // header fields of the response
	body     *[]byte // of the response to a key, which has two parts; nil for none

	unread int       // bytes of the request given to fasthttp that it has not read yet
	next   []byte    // what has arrived and was not given to fasthttp
	begun  time.Time // when part of a head arrived; zero: none has
	parsed time.Time // when the last head was complete
	timed  *counts   // where the duration of the last response counts, if it is timed

	handshaken bool // the TLS handshake has been made, or has failed
	failed     bool // a request panicked before fasthttp got the connection

	waiting atomic.Bool // the connection waits for a handshake or for its next request
}

// bodies holds buffers for the bodies of responses to keys.
var bodies = sync.Pool{New: func() any { return new([]byte) }}

// Close implements net.Conn.
func (c *conn) Close() error {
	if c.server.conns.remove(c) {
		c.server.exit()
	}
	c.sent()
	return c.Conn.Close()
}

// sent gives back the body of the last response, which has been sent, and times the response.
func (c *conn) sent() {
	if c.timed != nil {
		c.timed.addDuration(time.Since(c.parsed))
		c.timed = nil
	}
	if c.body != nil {
		bodies.Put(c.body)
		c.body = nil
	}
}

// cutOff closes a connection at once. It skips the closing message of TLS, which would wait 5 seconds for a client that does
// not read.
func (c *conn) cutOff() {
	if c.tls != nil {
		_ = c.tls.NetConn().Close() // nothing more can be done
		return
	}
	_ = c.Conn.Close() // nothing more can be done
}

// wake ends a connection that waits for its next request, after 100 ms. A request that the client has already sent arrives
// in this time and is answered.
func (c *conn) wake() {
	if c.waiting.Load() {
		_ = c.SetReadDeadline(time.Now().Add(drainTimeout)) // fails only on a closed connection
	}
}

// Write implements net.Conn for fasthttp.
func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil {
		c.abandon(err)
	}
	return n, err
}

// abandon makes the kernel reset the connection when it is closed, if err says that the client did not read in time.
// Otherwise the kernel would keep the unsent bytes in memory for minutes.
func (c *conn) abandon(err error) {
	if tcp := tcpOf(c.Conn); tcp != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		_ = tcp.SetLinger(0) // if this fails, the connection ends without a reset
		if c.tls != nil {
			c.cutOff()
		}
	}
}

// Read implements net.Conn for fasthttp, see [conn].
func (c *conn) Read(p []byte) (n int, err error) {
	if c.unread > 0 {
		p = p[:min(len(p), c.unread)]
		if len(c.next) > 0 {
			n = c.take(p)
		} else {
			n, err = c.Conn.Read(p)
		}
		c.unread -= n
		return n, err
	}
	defer func() {
		if panicked := recover(); panicked != nil {
			c.server.logPanic(panicked)
			err = c.refuseAndLinger(errPanic)
		}
		if err != nil {
			n, err = 0, io.EOF // fasthttp would answer and count any other error a second time
		}
	}()
	c.sent()
	if c.failed {
		return 0, c.refuseAndLinger(errPanic)
	}
	if c.tls != nil && !c.handshaken {
		if err := c.handshake(); err != nil {
			return 0, err
		}
	}
	return c.serve(p)
}

// handshake makes the TLS handshake. The client has ReadTimeout for the handshake and the first byte of its request
// together.
func (c *conn) handshake() error {
	c.handshaken = true
	c.waiting.Store(true)
	defer c.waiting.Store(false)
	if err := c.SetDeadline(time.Now().Add(c.server.cfg.ReadTimeout)); err != nil {
		return err
	}
	if c.server.stopping.Load() {
		c.wake()
	}
	if err := c.tls.Handshake(); err != nil {
		c.server.traffic.handshakesFailed.Add(1)
		return err // without TLS, the client cannot read an error response
	}
	return nil
}

// serve reads into p until a whole head has arrived, or the connection ends. It returns how many bytes of the request are in
// p.
func (c *conn) serve(p []byte) (int, error) {
	n := c.take(p)
	for {
		if n > 0 {
			switch e := c.head.parse(p[:n]); e {
			case nil:
				return c.give(p[:n])
			case incomplete:
			default:
				return 0, c.refuseAndLinger(e)
			}
		}
		if n == len(p) {
			return 0, c.refuseAndLinger(errHeaderTooLong)
		}
		m, err := c.await(p[n:], n > 0)
		n += m
		if err != nil && m == 0 {
			return 0, c.readFailed(n > 0, err)
		}
	}
}

// take moves the first bytes of c.next to p.
func (c *conn) take(p []byte) int {
	n := copy(p, c.next)
	c.next = c.next[:copy(c.next, c.next[n:])]
	return n
}

// await reads more bytes into p. begun says whether they continue a head. Otherwise they begin the next head.
func (c *conn) await(p []byte, begun bool) (int, error) {
	if begun {
		if c.begun.IsZero() {
			c.begun = time.Now()
		}
		if err := c.SetReadDeadline(c.begun.Add(c.server.cfg.ReadTimeout)); err != nil {
			return 0, err
		}
		return c.Conn.Read(p)
	}
	c.waiting.Store(true)
	defer c.waiting.Store(false)
	// Shutdown (1) sets stopping and then (2) wakes the connection if it is waiting. If this goroutine set waiting after (2),
	// it sees (1) here.
	if c.server.stopping.Load() {
		c.wake()
	}
	n, err := c.Conn.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		// When this goroutine had to wait for a processor, a request may have arrived in time and not be read yet.
		_ = c.SetReadDeadline(time.Now().Add(time.Millisecond)) // fails only on a closed connection
		return c.Conn.Read(p)
	}
	return n, err
}

// readFailed handles a failed read: it answers 408 when a head did not arrive in time, and abandons a client that has not
// read its last response. begun says whether part of a head has arrived.
func (c *conn) readFailed(begun bool, err error) error {
	switch timeout := errors.Is(err, os.ErrDeadlineExceeded); {
	case timeout && begun:
		return c.refuseAndLinger(errTimeout)
	case timeout && !c.server.stopping.Load() && unsent(c.Conn):
		c.abandon(err)
	}
	return err
}

// give returns how many bytes of the request are at the start of b, for fasthttp, and keeps the bytes after them in c.next.
func (c *conn) give(b []byte) (n int, err error) {
	c.begun, c.parsed = time.Time{}, time.Now()
	length := c.head.length + c.head.body
	n = min(length, len(b))
	c.next = slices.Insert(c.next, 0, b[n:]...)
	if c.unread = length - n; c.unread <= len(c.next) {
		return n, nil
	}
	// fasthttp set its read deadline before this call of Read, which may have waited for long since. fasthttp sets no write
	// deadline for its 408.
	until := time.Now().Add(c.server.cfg.ReadTimeout)
	return n, errors.Join(c.SetReadDeadline(until), c.SetWriteDeadline(until.Add(c.server.cfg.WriteTimeout)))
}

// refuse sends an error, as the last response of the connection.
func (c *conn) refuse(e *apiError) error {
	rep, now := &response{}, time.Now()
	c.server.fail(rep, e)
	q := request{head: string(c.head.method) == "HEAD", remote: c.remote}
	out := c.server.appendHead(nil, rep, now)
	if !q.head {
		out = append(out, rep.tail...)
	}
	if err := c.SetWriteDeadline(now.Add(c.server.cfg.WriteTimeout)); err != nil {
		return err
	}
	_, err := c.Write(out)
	c.server.count(rep, &q)
	return err
}

// refuseAndLinger sends an error and ends the connection. Closing a socket with unread bytes resets the connection, and a
// client that is still sending may then lose the response. So refuseAndLinger first closes the sending side alone, and reads
// and drops up to 64 KB for at most 500 ms.
func (c *conn) refuseAndLinger(e *apiError) error {
	if err := c.refuse(e); err != nil {
		return err
	}
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		if err := c.SetReadDeadline(time.Now().Add(lingerTimeout)); err != nil {
			return err
		}
		var dropped [1 << 10]byte
		for range lingerBytes / len(dropped) {
			if _, err := c.Conn.Read(dropped[:]); err != nil {
				break
			}
		}
	}
	return io.EOF
}
