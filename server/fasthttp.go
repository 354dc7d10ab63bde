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

// fastEngine serves each connection with fasthttp in a goroutine of its own. fasthttp reads the heads and routes the requests. The answers
// are the bytes that the loop would send: [fastConn] sends them in place of fasthttp's, and enforces the limits that fasthttp lacks.
type fastEngine struct {
	server    *Server
	http      *fasthttp.Server
	lifecycle loop.Lifecycle
	conns     sync.Map // the keys are *fastConn
}

func newFastEngine(s *Server) *fastEngine {
	e := &fastEngine{server: s, lifecycle: loop.Lifecycle{Stop: make(chan struct{})}}
	routed := e.router().Handler
	e.http = &fasthttp.Server{
		Handler: func(ctx *fasthttp.RequestCtx) {
			ctx.URI().SetPathBytes(connOf(ctx).head.path) // in a request without Host, fasthttp reads the path //a/b as host a and path /b
			routed(ctx)
		},
		HeaderReceived: withoutBody,
		ErrorHandler: func(ctx *fasthttp.RequestCtx, _ error) { // fasthttp could not read a head that fastConn.Read accepts
			connOf(ctx).refuse(errBadRequest)
		},
		NoDefaultServerHeader:        true,
		NoDefaultDate:                true,
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

func connOf(ctx *fasthttp.RequestCtx) *fastConn { return ctx.Conn().(*fastConn) }

// router routes each path to its target. All paths are concrete, because a parameter in a path costs three allocations a
// request.
func (e *fastEngine) router() *router.Router {
	r := router.New()
	r.RedirectTrailingSlash, r.RedirectFixedPath = false, false
	r.HandleMethodNotAllowed, r.HandleOPTIONS = false, false
	serve := func(t *target) fasthttp.RequestHandler {
		return func(ctx *fasthttp.RequestCtx) {
			c := connOf(ctx)
			if c.serve(t); c.response.close {
				ctx.SetConnectionClose()
			}
		}
	}
	for path, t := range e.server.targets {
		r.ANY(path, serve(t))
	}
	r.NotFound = serve(nil)
	return r
}

// withoutBody makes fasthttp answer a request without reading its body or sending 100 Continue. The connection ends after the answer.
func withoutBody(h *fasthttp.RequestHeader) (c fasthttp.RequestConfig) {
	if h.ContentLength() != 0 {
		h.SetContentLength(0)
	}
	h.Del("Expect")
	return c
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
	c := &fastConn{Conn: accepted, socket: accepted, engine: e, handler: handler{server: e.server}}
	if from, ok := accepted.RemoteAddr().(*net.TCPAddr); ok {
		c.remote = from.AddrPort().Addr().Unmap().WithZone("")
	}
	_ = accepted.SetWriteBuffer(loop.SendBuffer) // if this fails, the kernel's default is used
	if e.server.cfg.TLS != nil {
		c.tls = tls.Server(accepted, e.server.cfg.TLS)
		c.Conn = c.tls
	}
	if !e.server.connections.Enter(c.remote) {
		e.refuseConn(c)
		return
	}
	defer e.server.connections.Exit(c.remote)
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
	if errors.As(err, &unsafe) && c.head.parse(unsafe.RecordHeader[:]) == incomplete { // its first bytes begin a request
		c.Conn, c.tls = c.socket, nil
		c.refuse(errNoTLS)
	}
	_ = c.Close() // nothing more can be done
}

// refuseConn answers a connection over the limit with 503, see [loop.MaxRejecting].
func (e *fastEngine) refuseConn(c *fastConn) {
	defer c.cutOff()
	waited := e.server.connections.BeginRejecting()
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
		c.head.parse(first[:n]) // sets the method
	} else if c.tls != nil {
		return
	}
	c.refuse(errConnections)
	c.linger = waited
	_ = c.Close() // nothing more can be done
}

// Shutdown implements [Server.Shutdown].
func (e *fastEngine) Shutdown(ctx context.Context) error {
	return e.lifecycle.Shutdown(ctx, &e.server.connections, func() { e.each((*fastConn).cutOff) })
}

func (e *fastEngine) each(f func(*fastConn)) {
	e.conns.Range(func(c, _ any) bool {
		f(c.(*fastConn))
		return true
	})
}
