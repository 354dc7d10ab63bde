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

// conn is an admitted connection. fasthttp uses it as a net.Conn and calls Read for the next request. Read answers direct
// requests (see [head]) itself, without fasthttp. It returns only the bytes of other requests, one request per call, after
// [head] has parsed where the request ends. So fasthttp cannot read the end of a request differently.
//
// Any goroutine may call wake and cutOff. Only the goroutine that serves the connection may call the other methods.
type conn struct {
	net.Conn
	tls    *tls.Conn // the same connection as Conn; nil without TLS
	socket *socket   // reads from and writes to Conn
	server *Server
	remote netip.Addr

	head     head
	response response
	out      []byte // head of a response and, when it is small, its body

	unread int    // bytes of the request given to fasthttp that it has not read yet
	next   []byte // what arrived after that request

	// deadlines is the Unix second in which the deadlines were last set; 0: fasthttp set them. Setting them takes longer
	// than finding a snapshot, so conn sets them at most once a second.
	deadlines int64
	answered  time.Time // of the last direct request

	handshaken bool // the TLS handshake has been made, or has failed
	headBegun  bool // part of a request head has arrived, and its deadline is set
	sending    bool // a response is being sent
	ended      bool // the last response has been sent

	waiting atomic.Bool // the connection waits for a handshake or for its next request
}

// smallBody is the size in bytes up to which a body is copied behind its head. For larger bodies a vectored write is
// faster.
const smallBody = 4 << 10

// Close implements net.Conn.
func (c *conn) Close() error {
	c.server.conns.remove(c)
	return c.Conn.Close()
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
		n, err := c.Conn.Read(p[:min(len(p), c.unread)])
		c.unread -= n
		return n, err
	}
	defer func() {
		if panicked := recover(); panicked != nil {
			n, err = 0, c.panicked(panicked)
		}
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

// panicked logs a panic, answers the request with 500 unless part of its response has been sent, and ends the connection,
// because its state may be inconsistent.
func (c *conn) panicked(value any) error {
	c.server.logPanic(value)
	if c.ended = true; c.sending {
		return io.EOF
	}
	return c.refuseAndLinger(errPanic)
}

// serve reads into p and answers direct requests, until the connection ends or a request for fasthttp arrives. It returns
// how many bytes of that request are in p.
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

// await reads more bytes into p. begun says whether they continue a head. Otherwise they begin the next head.
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
	c.waiting.Store(true)
	defer c.waiting.Store(false)
	if c.deadlines > 0 && c.deadlines != c.answered.Unix() {
		c.deadlines = c.answered.Unix()
		if err := c.SetReadDeadline(c.answered.Add(c.server.cfg.IdleTimeout)); err != nil {
			return 0, err
		}
	}
	// Shutdown (1) sets stopping and then (2) wakes the connection if it is waiting. If this goroutine set waiting after (2),
	// it sees (1) here.
	if c.server.stopping.Load() {
		c.wake()
	}
	return c.socket.Read(p)
}

// readFailed handles a failed read: it answers 408 when a head did not arrive in time, and abandons a client that has not
// read its last response. begun says whether part of a head has arrived.
func (c *conn) readFailed(begun bool, err error) error {
	switch timeout := errors.Is(err, os.ErrDeadlineExceeded); {
	case timeout && begun:
		return c.refuseAndLinger(errTimeout)
	case timeout && !c.server.stopping.Load() && c.socket.unsent():
		c.abandon(err)
	}
	return err
}

// answerAll answers the direct requests at the start of b. used is how many bytes they have. If a request for fasthttp
// follows, answerAll moves it to the start of b, and given is how many bytes of it are there.
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

// give moves the request at b[used:] to the start of b for fasthttp, and keeps the bytes after the request in c.next. n is
// how many bytes of the request are in b.
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
	// fasthttp set its read deadline before this call of Read, which may have answered direct requests for hours since.
	// fasthttp sets no write deadline for its 408.
	until := time.Now().Add(c.server.cfg.ReadTimeout)
	return n, errors.Join(c.SetReadDeadline(until), c.SetWriteDeadline(until.Add(c.server.cfg.WriteTimeout)))
}

// answer answers a direct request.
func (c *conn) answer(r *route) error {
	now := time.Now()
	q := request{head: len(c.head.method) == len("HEAD"), query: c.head.query(), fields: c.head.fields, remote: c.remote}
	c.server.decide(r, &q, now, &c.response)
	c.response.close = c.response.close || c.server.stopping.Load()
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
			c.deadlines = 1 // any past second, so that await sets the read deadline
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
