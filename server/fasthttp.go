package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"math"
	"net"
	"os"
	"sync"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"strikecache/server/loop"
)

// writeBuffer is how many bytes of answers are collected for one write, so that a usual answer is sent with one. An answer of
// 8 KB costs 1.7 times what the bare loop costs, and 2.5 times with 4 KB (2026-11).
const writeBuffer = 12 << 10

// fastEngine serves each connection with fasthttp in a goroutine of its own. fasthttp reads the heads and decides when to flush. The
// answers are the bytes that the loop would send: [fastConn] sends them in place of fasthttp's, and enforces the limits that fasthttp
// lacks.
type fastEngine struct {
	server    *Server
	http      *fasthttp.Server
	lifecycle loop.Lifecycle
	conns     sync.Map // the keys are *fastConn
}

func newFastEngine(s *Server) *fastEngine {
	e := &fastEngine{server: s, lifecycle: loop.Lifecycle{Stop: make(chan struct{})}}
	e.http = &fasthttp.Server{
		Handler:                      e.strict(e.router().Handler),
		HeaderReceived:               withoutBody,
		ErrorHandler:                 e.protocolError,
		ConnState:                    setIdle,
		NoDefaultServerHeader:        true,
		NoDefaultDate:                true,
		ReadTimeout:                  s.cfg.ReadTimeout,
		IdleTimeout:                  s.cfg.IdleTimeout,
		ReadBufferSize:               maxHeader,
		WriteBufferSize:              512,           // of bytes that are dropped
		Concurrency:                  math.MaxInt32, // loop.Connections limits the connections
		DisablePreParseMultipartForm: true,
		NoDefaultContentType:         true,
		SecureErrorLogMessage:        true,
		Logger:                       log.New(io.Discard, "", 0), // its lines name client addresses; [Server.Stats] counts the errors
	}
	return e
}

// router routes each path to its target. All paths are concrete, because a parameter in a path costs three allocations a
// request.
func (e *fastEngine) router() *router.Router {
	r := router.New()
	r.RedirectTrailingSlash, r.RedirectFixedPath = false, false
	r.HandleMethodNotAllowed, r.HandleOPTIONS = false, false
	for path, t := range e.server.targets {
		r.ANY(path, func(ctx *fasthttp.RequestCtx) { e.serve(ctx, t) })
	}
	r.NotFound = func(ctx *fasthttp.RequestCtx) { e.serve(ctx, nil) }
	return r
}

// setIdle is called when a request is answered and when the next one begins. It sets fastConn.idle and asked.
func setIdle(c net.Conn, state fasthttp.ConnState) {
	fast := c.(*fastConn)
	switch state {
	case fasthttp.StateIdle:
		fast.asked.Store(true)
		fast.idle.Store(true)
	case fasthttp.StateActive: // for a new connection, before its first byte
		fast.idle.Store(len(fast.raw) == 0)
	}
}

// withoutBody makes fasthttp answer a request without reading its body or sending 100 Continue. The connection ends after the answer.
func withoutBody(h *fasthttp.RequestHeader) (c fasthttp.RequestConfig) {
	if h.ContentLength() != 0 {
		h.SetContentLength(0)
	}
	h.Del("Expect")
	return c
}

// strict refuses every request that the parser of [head] refuses, and passes the others to the router.
func (e *fastEngine) strict(routed fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		c := ctx.Conn().(*fastConn)
		switch failed := c.parse(); failed {
		case nil:
			ctx.URI().SetPathBytes(c.head.path) // in a request without Host, fasthttp reads the path //a/b as host a and path /b
			routed(ctx)
		case incomplete:
			e.refuse(ctx, errBadRequest)
		default:
			e.refuse(ctx, failed)
		}
	}
}

// serve answers a request for a target, nil for a path without a target.
func (e *fastEngine) serve(ctx *fasthttp.RequestCtx, t *target) {
	c, now := ctx.Conn().(*fastConn), time.Now()
	e.server.respond(t, &c.head, c.remote, now, &c.response)
	c.answer(now)
	if c.response.close {
		ctx.SetConnectionClose()
	}
	c.linger = c.response.close && !c.head.asksClose || c.head.body != 0
}

// refuse makes the last answer of a connection.
func (e *fastEngine) refuse(ctx *fasthttp.RequestCtx, failed *apiError) {
	c := ctx.Conn().(*fastConn)
	c.refuse(isHEAD(c.raw), failed)
	ctx.SetConnectionClose()
}

// protocolError answers a request that fasthttp could not read.
func (e *fastEngine) protocolError(ctx *fasthttp.RequestCtx, err error) {
	c := ctx.Conn().(*fastConn)
	var small *fasthttp.ErrSmallBuffer
	_, nothing := err.(net.Error) //nolint:errorlint // fasthttp wraps the error, except when no byte has arrived
	switch failed := c.parse(); {
	case errors.Is(err, os.ErrDeadlineExceeded) && !nothing:
		e.refuse(ctx, errTimeout)
	case nothing || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed):
	case failed == incomplete && errors.As(err, &small):
		e.refuse(ctx, errHeaderTooLong)
	case failed == incomplete || failed == nil:
		e.refuse(ctx, errBadRequest)
	default:
		e.refuse(ctx, failed)
	}
}

// Serve accepts connections and serves each in a goroutine of its own, until Shutdown. It closes the listener.
func (e *fastEngine) Serve(ln loop.Listener) error {
	defer func() { _ = ln.Close() }() // nothing more can be done
	if !e.lifecycle.Begin() {
		return nil
	}
	defer e.lifecycle.Running.Done()
	defer e.each((*fastConn).wake)
	return e.lifecycle.Accept(ln, func() error {
		accepted, err := ln.Accept()
		if err == nil {
			e.lifecycle.Running.Go(func() { e.serveConn(accepted.(socket)) })
		}
		return err
	}, ln.SetDeadline, e.server.cfg.Log)
}

// serveConn serves one connection until it ends, or refuses it if there are too many.
func (e *fastEngine) serveConn(accepted socket) {
	c := &fastConn{Conn: accepted, socket: accepted, engine: e}
	if from, ok := accepted.RemoteAddr().(*net.TCPAddr); ok {
		c.remote = from.AddrPort().Addr().Unmap().WithZone("")
	}
	_ = accepted.SetWriteBuffer(loop.SendBuffer) // if this fails, the kernel's default is used
	c.idle.Store(true)
	if e.server.cfg.TLS != nil {
		c.tls = tls.Server(accepted, e.server.cfg.TLS)
		c.Conn = c.tls
	}
	if connections := &e.server.connections; !connections.Enter(c.remote) {
		e.refuseConn(c)
		return
	} else {
		defer connections.Exit(c.remote)
	}
	e.conns.Store(c, nil)
	defer e.conns.Delete(c)
	if err := c.handshake(e.server.cfg.ReadTimeout); err != nil {
		e.server.traffic.handshakesFailed.Add(1)
		e.refuseHandshake(c, err)
		return
	}
	_ = e.http.ServeConn(c) // the error says how the connection ended
}

// refuseHandshake answers a request without TLS, and ends the connection. Any other client cannot read a response. It gets the alert of
// [tls.Conn], which a close with unread bytes would lose.
func (e *fastEngine) refuseHandshake(c *fastConn, err error) {
	var unsafe tls.RecordHeaderError
	c.linger = !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, io.EOF)
	if errors.As(err, &unsafe) && new(head).parse(unsafe.RecordHeader[:]) == incomplete { // its first bytes begin a request
		c.Conn, c.tls = c.socket, nil
		c.refuse(isHEAD(unsafe.RecordHeader[:]), errNoTLS)
		_, _ = c.Write(nil) // fails only if the client is gone
	}
	_ = c.Close() // nothing more can be done
}

// refuseConn answers a connection over the limit with 503, see [loop.MaxRejecting].
func (e *fastEngine) refuseConn(c *fastConn) {
	defer c.cutOff()
	headOnly, waited := false, e.server.connections.BeginRejecting()
	if waited {
		defer e.server.connections.EndRejecting()
		if c.handshake(loop.LingerTimeout) != nil {
			return
		}
		var first [1 << 10]byte
		_ = c.Conn.SetReadDeadline(time.Now().Add(loop.LingerTimeout)) // fails only on a closed connection
		n, err := c.Conn.Read(first[:])
		if errors.Is(err, io.EOF) {
			return
		}
		headOnly = isHEAD(first[:n])
	} else if c.tls != nil {
		return
	}
	c.refuse(headOnly, errConnections)
	c.linger = c.linger && waited
	_, _ = c.Write(nil) // fails only if the client is gone
	_ = c.Close()       // nothing more can be done
}

// Shutdown implements [Server.Shutdown].
func (e *fastEngine) Shutdown(ctx context.Context) error {
	return e.lifecycle.Shutdown(ctx, &e.server.connections, func() { e.each((*fastConn).cutOff) })
}

// each calls f for every connection.
func (e *fastEngine) each(f func(*fastConn)) {
	e.conns.Range(func(c, _ any) bool {
		f(c.(*fastConn))
		return true
	})
}
