package server

import (
	"bytes"
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

// writeBuffer is the size of a buffer for one answer with its head, so that fasthttp sends a usual answer with one write. An answer of
// 8 KB costs 1.7 times what the bare loop costs, and 2.5 times with fasthttp's default of 4 KB (2026-11).
const writeBuffer = 12 << 10

// fastEngine serves each connection with fasthttp in a goroutine of its own. [fastConn] enforces the limits that fasthttp lacks.
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
		Name:                         serverName,
		ReadTimeout:                  s.cfg.ReadTimeout,
		IdleTimeout:                  s.cfg.IdleTimeout,
		ReadBufferSize:               maxHeader,
		WriteBufferSize:              writeBuffer,
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
	e.write(ctx, c, now)
	c.linger = c.response.close && !c.head.asksClose || c.head.body != 0
}

// refuse makes the last answer of a connection.
func (e *fastEngine) refuse(ctx *fasthttp.RequestCtx, failed *apiError) {
	c := ctx.Conn().(*fastConn)
	c.response.reset(isHEAD(c.raw))
	e.server.fail(&c.response, failed)
	e.write(ctx, c, time.Now())
	c.linger = true
}

// write gives fasthttp the response to a request that arrived at an instant, and counts it.
func (e *fastEngine) write(ctx *fasthttp.RequestCtx, c *fastConn, arrived time.Time) {
	rep, out := &c.response, &ctx.Response
	rep.close = rep.close || e.lifecycle.Stopping.Load()
	out.ResetBody()
	out.SetStatusCode(rep.status)
	out.Header.DisableNormalizing() // the names keep their spelling
	c.fields = rep.appendLines(rep.appendType(c.fields[:0]))
	for lines := c.fields; len(lines) > 0; {
		var line []byte
		line, lines, _ = bytes.Cut(lines, []byte("\r\n"))
		name, value, _ := bytes.Cut(line, []byte(": "))
		out.Header.AddBytesKV(name, value)
	}
	switch body, tail := rep.body(); {
	case len(tail) == 0:
		out.SetBodyRaw(body) // never changes
	default:
		out.AppendBody(body)
		out.AppendBody(tail)
	}
	out.SkipBody = rep.headOnly // fasthttp does not set it for protocol errors
	if rep.close {
		ctx.SetConnectionClose()
	}
	e.server.count(rep, arrived)
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
		c.muted = true
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
	c := &fastConn{halfCloser: accepted, socket: accepted, engine: e}
	if from, ok := accepted.RemoteAddr().(*net.TCPAddr); ok {
		c.remote = from.AddrPort().Addr().Unmap().WithZone("")
	}
	_ = accepted.SetWriteBuffer(loop.SendBuffer) // if this fails, the kernel's default is used
	c.idle.Store(true)
	if e.server.cfg.TLS != nil {
		c.tls = tls.Server(accepted, e.server.cfg.TLS)
		c.halfCloser = c.tls
	}
	if connections := &e.server.connections; !connections.Enter(c.remote) {
		e.refuseConn(c)
		return
	} else {
		defer connections.Exit(c.remote)
	}
	e.conns.Store(c, nil)
	defer e.conns.Delete(c)
	if c.handshake(e.server.cfg.ReadTimeout) != nil { // the client cannot read an error response
		e.server.traffic.handshakesFailed.Add(1)
		c.cutOff()
		return
	}
	_ = e.http.ServeConn(c) // the error says how the connection ended
}

// refuseConn answers a connection over the limit with 503, see [loop.MaxRejecting].
func (e *fastEngine) refuseConn(c *fastConn) {
	defer c.cutOff()
	headOnly := false
	if e.server.connections.BeginRejecting() {
		defer e.server.connections.EndRejecting()
		if c.handshake(loop.LingerTimeout) != nil {
			return
		}
		var first [1 << 10]byte
		_ = c.halfCloser.SetReadDeadline(time.Now().Add(loop.LingerTimeout)) // fails only on a closed connection
		n, err := c.halfCloser.Read(first[:])
		if errors.Is(err, io.EOF) {
			return
		}
		c.linger, headOnly = true, isHEAD(first[:n])
	} else if c.tls != nil {
		return
	}
	c.response.reset(headOnly)
	e.server.fail(&c.response, errConnections)
	now := time.Now()
	out := e.server.appendHead(nil, &c.response, now)
	if !headOnly {
		out = append(out, c.response.tail...)
	}
	e.server.count(&c.response, now)
	_, _ = c.Write(out) // fails only if the client is gone
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
