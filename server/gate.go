package server

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// gate stands between a listener and fasthttp. Every byte of every request passes it: heads are checked by one
// strict parser, plain requests for a resource are answered right there, and all others reach fasthttp one at a
// time, whole and checked, so that no two parsers can disagree about where a request ends.
type gate struct {
	net.Listener
	server *Server
}

// Accept implements net.Listener.
func (g gate) Accept() (net.Conn, error) {
	c, err := g.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return g.server.admit(c), nil
}

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

func (s *Server) admit(c net.Conn) *conn {
	gated := &conn{Conn: c, server: s, socket: newSocket(c), remote: addressOf(c)}
	s.conns.add(gated)
	s.traffic.accepted.Add(1)
	return gated
}

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
	}()
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
			if err := c.SetReadDeadline(time.Now().Add(readTimeout)); err != nil {
				return 0, err
			}
		}
		return c.socket.Read(p)
	}
	c.state.Store(waiting)
	defer c.state.Store(inside)
	if c.deadlines > 0 && c.deadlines != c.answered.Unix() {
		c.deadlines = c.answered.Unix()
		if err := c.SetReadDeadline(c.answered.Add(idleTimeout)); err != nil {
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
	if n == 0 {
		return io.EOF // an idle connection, or one that was woken to end
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
			return used, c.handOver(b, used), nil
		}
		if err := c.answer(r); err != nil {
			return used, 0, err
		}
		used += c.head.length
	}
	return used, 0, nil
}

// handOver makes the request at used the first bytes of b, and keeps what follows it.
func (c *conn) handOver(b []byte, used int) (n int) {
	end := used + c.head.length + c.head.body
	n = min(end, len(b)) - used
	c.held = append(c.held, b[used+n:]...)
	c.pass = c.head.length + c.head.body - n
	copy(b, b[used:used+n])
	c.deadlines = 0 // fasthttp sets its own
	return n
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
		if err := c.SetWriteDeadline(now.Add(writeTimeout)); err != nil {
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
	c.server.counted(rep, q, now)
	c.sending = false
	return err
}

// refuseHead answers what is no acceptable head, and ends the connection.
func (c *conn) refuseHead(e *apiError) error {
	now := time.Now()
	c.reply = reply{tail: c.reply.tail, usage: c.reply.usage[:0]}
	c.server.fail(&c.reply, e)
	c.ended = true
	if err := c.send(&request{remote: c.remote}, now); err != nil {
		return err
	}
	return c.linger()
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

func (s *connSet) add(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[*conn]struct{}{}
	}
	s.open[c] = struct{}{}
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
