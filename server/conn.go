package server

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"
)

// conn is an admitted connection. To fasthttp it is an ordinary net.Conn whose client sends only what fasthttp must
// answer: Read answers direct requests itself (see [head]), and returns the bytes of all others, one request at a
// time, with heads that [head] has accepted. So two parsers cannot disagree about where a request ends.
//
// Close and wake may be called by any goroutine, everything else only by the one that serves the connection.
type conn struct {
	net.Conn
	tls    *tls.Conn // Conn, if it speaks TLS
	socket *socket   // of Conn
	server *Server
	remote netip.Addr

	head     head
	response response
	out      []byte // head of a response and, when it is small, its body

	unread int    // bytes of the request given to fasthttp that it has not read yet
	next   []byte // what arrived after that request

	// deadlines is the Unix second in which the deadlines were last set, 0 if by fasthttp. Setting them costs more
	// than finding an answer, so it is done once a second.
	deadlines int64
	answered  time.Time // of the last direct request

	handshaken bool // the TLS handshake has been made, or has failed
	headBegun  bool // part of a request head has arrived, and its deadline is set
	sending    bool // a response is being sent
	ended      bool // the last response has been sent

	state   atomic.Int32 // below
	closing atomic.Bool
}

// The states of a connection. Another goroutine that wants to end the connection looks at them.
const (
	inFasthttp int32 = iota // or not served yet
	waiting                 // in Read, for the next request
	working                 // in Read, on a request
)

// smallBody is up to how many bytes copying a body behind its head is cheaper than a vectored write.
const smallBody = 4 << 10

// Close implements net.Conn. While the connection is in Read, the response that is being sent becomes the last.
func (c *conn) Close() error {
	c.closing.Store(true)
	if c.state.Load() != inFasthttp {
		c.wake()
		return nil
	}
	c.server.conns.remove(c)
	return c.Conn.Close()
}

// wake ends a connection that waits for a request. A request that has already been sent is still answered.
func (c *conn) wake() {
	if c.state.Load() == waiting {
		_ = c.SetReadDeadline(time.Now().Add(drainTimeout)) // a failure means that it is closed already
	}
}

// last says whether the connection ends before its next request.
func (c *conn) last() bool { return c.closing.Load() || c.server.stopping.Load() }

// Write implements net.Conn for fasthttp.
func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil {
		c.abandon(err)
	}
	return n, err
}

// abandon makes the end of a connection whose client has not read in time a reset. Without it the kernel would keep
// what the client has not taken for minutes.
func (c *conn) abandon(err error) {
	if tcp := tcpOf(c.Conn); tcp != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		_ = tcp.SetLinger(0) // without it, it ends all the same
		if c.tls != nil {
			c.cutOff()
		}
	}
}

// Read implements net.Conn for fasthttp, see [conn].
func (c *conn) Read(p []byte) (n int, err error) {
	if c.unread > 0 {
		n, err := c.Conn.Read(p[:min(len(p), c.unread)])
		c.unread -= n
		return n, err
	}
	c.state.Store(working)
	defer func() {
		if panicked := recover(); panicked != nil {
			n, err = 0, c.panicked(panicked)
		}
		c.state.Store(inFasthttp)
		if err != nil {
			n, err = 0, io.EOF // fasthttp would answer and count any other error a second time
		}
	}()
	if c.tls != nil && !c.handshaken {
		if err := c.handshake(); err != nil {
			return 0, err
		}
	}
	return c.serve(p)
}

// handshake makes the TLS handshake. The client has the time of a request head for it and for the first byte of its
// request.
func (c *conn) handshake() error {
	c.handshaken = true
	c.state.Store(waiting) // so that a connection that is to end meanwhile ends
	defer c.state.Store(working)
	if err := c.SetDeadline(time.Now().Add(c.server.cfg.ReadTimeout)); err != nil {
		return err
	}
	if c.last() {
		c.wake()
	}
	if err := c.tls.Handshake(); err != nil {
		c.server.traffic.handshakesFailed.Add(1)
		return err // there is no way to answer
	}
	return nil
}

// panicked answers a request whose handling panicked, unless part of its response has been sent, and ends the
// connection, so that nothing of its state is used any more.
func (c *conn) panicked(value any) error {
	c.server.logPanic(value)
	if c.ended = true; c.sending {
		return io.EOF
	}
	return c.refuseAndLinger(errPanic)
}

// serve reads into p and answers direct requests until the connection ends or a request is for fasthttp. It returns
// how many bytes of p that request has.
func (c *conn) serve(p []byte) (int, error) {
	n := copy(p, c.next)
	c.next = c.next[:copy(c.next, c.next[n:])]
	for {
		used, given, err := c.answerAll(p[:n])
		if err != nil || given > 0 {
			return given, err
		}
		n = copy(p, p[used:n])
		if c.ended {
			return 0, io.EOF
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

// await reads more bytes: of a head that has begun, or of the next one.
func (c *conn) await(p []byte, begun bool) (int, error) {
	if begun {
		if !c.headBegun {
			c.headBegun, c.deadlines = true, 0
			if err := c.SetReadDeadline(time.Now().Add(c.server.cfg.ReadTimeout)); err != nil {
				return 0, err
			}
		}
		return c.socket.Read(p)
	}
	c.state.Store(waiting)
	defer c.state.Store(working)
	if c.deadlines > 0 && c.deadlines != c.answered.Unix() {
		c.deadlines = c.answered.Unix()
		if err := c.SetReadDeadline(c.answered.Add(c.server.cfg.IdleTimeout)); err != nil {
			return 0, err
		}
	}
	// 1: another goroutine sets closing or stopping. 2: it wakes the connections that wait. One that began to wait
	// after 2 sees 1 here.
	if c.last() {
		c.wake()
	}
	return c.socket.Read(p)
}

// readFailed decides what a failed read means. begun says whether part of a head has arrived.
func (c *conn) readFailed(begun bool, err error) error {
	switch timeout := errors.Is(err, os.ErrDeadlineExceeded); {
	case timeout && begun:
		return c.refuseAndLinger(errTimeout)
	case timeout && !c.last() && c.socket.unsent():
		c.abandon(err)
	}
	return err
}

// answerAll answers the direct requests at the start of b. It returns how many bytes they took, and how many bytes at
// the start of b are now a request for fasthttp.
func (c *conn) answerAll(b []byte) (used, given int, err error) {
	for used < len(b) && !c.ended {
		switch e := c.head.parse(b[used:]); e {
		case nil:
		case incomplete:
			return used, 0, nil
		default:
			return used, 0, c.refuseAndLinger(e)
		}
		c.headBegun = false
		r := c.server.directRoute(&c.head)
		if r == nil {
			given, err = c.give(b, used)
			return used, given, err
		}
		if err := c.answer(r); err != nil {
			return used, 0, err
		}
		used += c.head.length
	}
	return used, 0, nil
}

// give moves the request at used to the start of b for fasthttp, and keeps what follows it.
func (c *conn) give(b []byte, used int) (n int, err error) {
	length := c.head.length + c.head.body
	n = min(length, len(b)-used)
	c.next = append(c.next, b[used+n:]...)
	c.unread = length - n
	copy(b, b[used:used+n])
	c.deadlines = 0
	if c.unread == 0 {
		return n, nil
	}
	// fasthttp set its read deadline before this Read, which may have answered requests for hours since. It sets the
	// write deadline of its 408 never.
	until := time.Now().Add(c.server.cfg.ReadTimeout)
	return n, errors.Join(c.SetReadDeadline(until), c.SetWriteDeadline(until.Add(c.server.cfg.WriteTimeout)))
}

// answer answers a direct request.
func (c *conn) answer(r *route) error {
	now := time.Now()
	q := request{head: len(c.head.method) == len("HEAD"), query: c.head.query(), fields: c.head.fields, remote: c.remote}
	c.server.decide(r, &q, now, &c.response)
	c.response.close = c.response.close || c.last()
	c.ended = c.response.close
	return c.send(&q, now)
}

// refuse sends an error, as the last response of the connection.
func (c *conn) refuse(e *apiError) error {
	c.response = response{tail: c.response.tail, usage: c.response.usage[:0]}
	c.server.fail(&c.response, e)
	c.ended = true
	return c.send(&request{head: string(c.head.method) == "HEAD", remote: c.remote}, time.Now())
}

// send sends the response to a request.
func (c *conn) send(q *request, now time.Time) error {
	c.answered = now
	if second := now.Unix(); c.deadlines != second {
		if err := c.SetWriteDeadline(now.Add(c.server.cfg.WriteTimeout)); err != nil {
			return err
		}
		if c.deadlines == 0 {
			c.deadlines = 1 // any past second: the read deadline is older too
		}
	}
	c.out = c.server.appendHead(c.out[:0], &c.response, now)
	var body, tail []byte
	if !q.head {
		body, tail = c.response.body()
	}
	if len(body) <= smallBody {
		c.out = append(append(c.out, body...), tail...)
		body, tail = nil, nil
	}
	c.sending = true
	err := c.socket.Send(c.out, body, tail)
	if err != nil {
		c.abandon(err)
	}
	c.server.count(&c.response, q, now)
	c.sending = false
	return err
}

// refuseAndLinger sends an error and ends the connection so that a client that is still sending can read it: closing a
// socket with unread bytes resets it, and the reset may overtake the response. What arrives is dropped, for a moment
// and up to a bound.
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
