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

// conn is a connection behind the gate. All but Close is used by the goroutine that serves it.
type conn struct {
	net.Conn
	server *Server
	remote netip.Addr
	head   head
	reply  reply

	pass int    // bytes that fasthttp may still read of the request it works on
	held []byte // what arrived after that request
	// deadlines is the second in which the deadlines were last set. Setting them costs more than finding an
	// answer, so it is done once a second.
	deadlines int64
	answered  time.Time // when the gate last answered
	begun     bool      // a head has, and has its own deadline
	ended     bool      // the last response has been sent
	sending   bool      // a response is, at least in part

	tls    *tls.Conn // Conn, if it is TLS
	shaken bool      // the handshake of TLS has been made, or has failed

	socket *socket
	out    []byte // head of a response and, when it is small, the body

	// state says what the goroutine that serves the connection does; others look at it to end the connection.
	state   atomic.Int32
	closing atomic.Bool
}

const (
	outside int32 = iota // in fasthttp, or nowhere
	waiting              // in Read, for the next request
	inside               // in Read, with a request
)

// smallBody is up to how many bytes copying a body behind its head is cheaper than a vectored write.
const smallBody = 4 << 10

// Close implements net.Conn. From another goroutine, it lets the answer that is on its way be the last.
func (c *conn) Close() error {
	c.closing.Store(true)
	if c.state.Load() != outside {
		c.wake()
		return nil
	}
	c.server.conns.remove(c)
	return c.Conn.Close()
}

// wake makes a connection that waits for a request wait no longer than a moment, as it, or the server, ends. A
// request that has been sent already is still answered.
func (c *conn) wake() {
	if c.state.Load() == waiting {
		_ = c.SetReadDeadline(time.Now().Add(drainTimeout)) // a failure means that it is closed already
	}
}

// Read implements net.Conn for fasthttp: it answers what it can, and returns what fasthttp must answer, never
// more than one request.
func (c *conn) Read(p []byte) (n int, err error) {
	if c.pass > 0 {
		return c.readRest(p)
	}
	c.state.Store(inside)
	defer func() {
		if panicked := recover(); panicked != nil {
			n, err = 0, c.panicked(panicked)
		}
		c.state.Store(outside)
		if err != nil {
			n, err = 0, io.EOF // all is said: any other error fasthttp would answer, and count, once more
		}
	}()
	if c.tls != nil && !c.shaken {
		if err := c.handshake(); err != nil {
			return 0, err
		}
	}
	return c.read(p)
}

// panicked answers a request that met a fault of ours, unless a part of its answer has been sent, and ends the
// connection: nothing that was left behind on it is used again.
func (c *conn) panicked(value any) error {
	c.server.logPanic(value)
	if c.ended = true; c.sending {
		return io.EOF
	}
	return c.refuseHead(errPanic)
}

// Write implements net.Conn for fasthttp.
func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil {
		c.abandon(err)
	}
	return n, err
}

// abandon makes the end of a connection whose client has not read in time a reset: the kernel would go on keeping
// what the client has not taken, for minutes, or as long as it takes a little.
func (c *conn) abandon(err error) {
	if tcp := tcpOf(c.Conn); tcp != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		_ = tcp.SetLinger(0) // without it, it ends all the same
		if c.tls != nil {
			c.cutOff()
		}
	}
}

func (c *conn) read(p []byte) (int, error) {
	n := copy(p, c.held)
	c.held = c.held[:copy(c.held, c.held[n:])]
	for {
		used, passed, err := c.work(p[:n])
		if err != nil || passed > 0 {
			return passed, err
		}
		n = copy(p, p[used:n])
		if c.ended {
			return 0, io.EOF
		}
		if n == len(p) {
			return 0, c.refuseHead(errHeaderTooLong)
		}
		m, err := c.await(p[n:], n > 0)
		n += m
		if err != nil && m == 0 {
			return 0, c.failed(n, err)
		}
	}
}

// await reads more bytes: of a head that has begun, or of the next one.
func (c *conn) await(p []byte, begun bool) (int, error) {
	if begun {
		if !c.begun {
			c.begun, c.deadlines = true, 0
			if err := c.SetReadDeadline(time.Now().Add(c.server.cfg.ReadTimeout)); err != nil {
				return 0, err
			}
		}
		return c.socket.Read(p)
	}
	c.state.Store(waiting)
	defer c.state.Store(inside)
	if c.deadlines > 0 && c.deadlines != c.answered.Unix() {
		c.deadlines = c.answered.Unix()
		if err := c.SetReadDeadline(c.answered.Add(c.server.cfg.IdleTimeout)); err != nil {
			return 0, err
		}
	}
	if c.last() { // whoever ends connections has seen this one waiting, or is seen here
		c.wake()
	}
	return c.socket.Read(p)
}

// failed decides what a failed read means when n bytes of a head have arrived.
func (c *conn) failed(n int, err error) error {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	if n == 0 { // an idle connection, or one that was woken to end
		if !c.last() && c.socket.unsent() {
			c.abandon(err)
		}
		return io.EOF
	}
	return c.refuseHead(errTimeout)
}

// work answers the requests at the start of b and returns how many bytes they took, and how many bytes of b
// are a request that fasthttp must answer.
func (c *conn) work(b []byte) (used, passed int, err error) {
	for used < len(b) && !c.ended {
		whole, refused := c.head.parse(b[used:])
		switch {
		case refused != nil:
			return used, 0, c.refuseHead(refused)
		case !whole:
			return used, 0, nil
		}
		c.begun = false
		r := c.server.plainRoute(&c.head)
		if r == nil {
			passed, err = c.handOver(b, used)
			return used, passed, err
		}
		if err := c.answer(r); err != nil {
			return used, 0, err
		}
		used += c.head.length
	}
	return used, 0, nil
}

// handOver makes the request at used the first bytes of b, and keeps what follows it.
func (c *conn) handOver(b []byte, used int) (n int, err error) {
	end := used + c.head.length + c.head.body
	n = min(end, len(b)) - used
	c.held = append(c.held, b[used+n:]...)
	c.pass = c.head.length + c.head.body - n
	copy(b, b[used:used+n])
	c.deadlines = 0 // fasthttp sets its own
	return n, c.expectRest()
}

// expectRest sets the deadline for the rest of a body, and for the error when it does not come in time. fasthttp sets
// the one before it reads a head, and the gate may have answered for hours since; it never sets the other.
func (c *conn) expectRest() error {
	if c.pass == 0 {
		return nil
	}
	until := time.Now().Add(c.server.cfg.ReadTimeout)
	return errors.Join(c.SetReadDeadline(until), c.SetWriteDeadline(until.Add(c.server.cfg.WriteTimeout)))
}

// readRest reads the rest of a request that fasthttp works on.
func (c *conn) readRest(p []byte) (int, error) {
	n, err := c.Conn.Read(p[:min(len(p), c.pass)])
	c.pass -= n
	return n, err
}

// last says whether the connection ends before its next request.
func (c *conn) last() bool { return c.closing.Load() || c.server.stopping.Load() }

// answer sends the reply to a plain request.
func (c *conn) answer(r *route) error {
	now := time.Now()
	q := request{
		head: len(c.head.method) == len("HEAD"), encodings: c.head.encodings, noneMatch: c.head.noneMatch,
		modifiedSince: c.head.modifiedSince, key: c.head.key, forwarded: c.head.forwarded, remote: c.remote,
	}
	q.query = queryOf(c.head.target)
	rep := &c.reply
	c.server.decide(r, &q, now, rep)
	rep.close = rep.close || c.last()
	c.ended = rep.close
	return c.send(&q, now)
}

func (c *conn) send(q *request, now time.Time) error {
	c.answered = now
	if sec := now.Unix(); c.deadlines != sec {
		if err := c.SetWriteDeadline(now.Add(c.server.cfg.WriteTimeout)); err != nil {
			return err
		}
		if c.deadlines == 0 {
			c.deadlines = 1 // the read deadline that fasthttp set is older
		}
	}
	rep := &c.reply
	c.out = c.server.appendHead(c.out[:0], rep, now)
	body, tail := rep.body()
	if q.head {
		body, tail = nil, nil
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
	c.server.counted(rep, q, now)
	c.sending = false
	return err
}

// refuseHead answers what is no acceptable head, and ends the connection.
func (c *conn) refuseHead(e *apiError) error {
	if err := c.refuse(e); err != nil {
		return err
	}
	return c.linger()
}

// refuse sends an error, the last response of the connection.
func (c *conn) refuse(e *apiError) error {
	c.reply = reply{tail: c.reply.tail, usage: c.reply.usage[:0]}
	c.server.fail(&c.reply, e)
	c.ended = true
	return c.send(&request{head: string(c.head.method) == "HEAD", remote: c.remote}, time.Now())
}

// linger lets a client that is still sending read the refusal: closing a socket with unread bytes resets it, and
// the reset may overtake the response. What arrives is dropped, for a moment and up to a bound.
func (c *conn) linger() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		if err := c.SetReadDeadline(time.Now().Add(lingerTimeout)); err != nil {
			return err
		}
		var sink [1 << 10]byte
		for range lingerBytes / len(sink) {
			if _, err := c.Conn.Read(sink[:]); err != nil {
				break
			}
		}
	}
	return io.EOF
}
