package server

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"slices"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"strikecache/snapshots"
)

// router routes the requests that fasthttp answers: all but the direct ones.
func (s *Server) router() *router.Router {
	r := router.New()
	r.RedirectTrailingSlash, r.RedirectFixedPath = false, false
	r.HandleMethodNotAllowed, r.HandleOPTIONS = false, false
	for i := range routes {
		route := &routes[i]
		r.ANY(route.path, func(ctx *fasthttp.RequestCtx) { s.serveRoute(ctx, route) })
	}
	r.ANY("/healthz", func(ctx *fasthttp.RequestCtx) { s.serveProbe(ctx, rowHealthz, s.Healthz) })
	r.ANY("/readyz", func(ctx *fasthttp.RequestCtx) { s.serveProbe(ctx, rowReadyz, s.Readyz) })
	for _, page := range sealedPages(s.cfg.Source) {
		r.ANY(page.path, func(ctx *fasthttp.RequestCtx) { s.servePage(ctx, &page) })
	}
	r.NotFound = func(ctx *fasthttp.RequestCtx) { s.refuse(ctx, nil, errNotFound) }
	return r
}

// guarded answers a request whose handler panicked with an error without details, and ends the connection.
func (s *Server) guarded(handler fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		defer func() {
			if panicked := recover(); panicked != nil {
				s.logPanic(panicked)
				ctx.Response.Reset()
				s.refuse(ctx, nil, errPanic)
			}
		}()
		handler(ctx)
	}
}

// logPanic logs a panic and its stack, which go nowhere else.
func (s *Server) logPanic(value any) {
	s.cfg.Log.Error("request panicked", "panic", fmt.Sprint(value), "stack", string(debug.Stack()))
}

// protocolError answers what fasthttp could not read as a request, although [head] accepted it: a body that did not
// arrive in time, a target that is no URI.
func (s *Server) protocolError(ctx *fasthttp.RequestCtx, err error) {
	var network net.Error
	if errors.As(err, &network) && network.Timeout() {
		s.refuse(ctx, nil, errTimeout)
		return
	}
	s.refuse(ctx, nil, errBadRequest)
}

// serveRoute answers a request for a resource with the bytes that a direct request gets.
func (s *Server) serveRoute(ctx *fasthttp.RequestCtx, r *route) {
	switch {
	case ctx.IsGet(), ctx.IsHead():
	case ctx.IsOptions():
		s.write(ctx, r.row, fasthttp.StatusNoContent, snapshots.Identity, nil, commonLines+"Allow: "+allowed+
			"\r\nAccess-Control-Allow-Methods: "+allowed+"\r\nAccess-Control-Allow-Headers: X-API-Key\r\nAccess-Control-Max-Age: 86400\r\n")
		return
	default:
		s.refuse(ctx, r, errMethod)
		return
	}
	q := requestOf(ctx)
	var rep response
	s.decide(r, &q, time.Now(), &rep)
	s.respond(ctx, &rep, &q)
}

// refuse answers a request with an error; r may be nil.
func (s *Server) refuse(ctx *fasthttp.RequestCtx, r *route, e *apiError) {
	q, rep := requestOf(ctx), response{route: r}
	s.fail(&rep, e)
	s.respond(ctx, &rep, &q)
}

// respond gives a response to fasthttp.
func (s *Server) respond(ctx *fasthttp.RequestCtx, rep *response, q *request) {
	ctx.Response.ResetBody()
	ctx.Response.SetStatusCode(rep.status)
	setLines(&ctx.Response.Header, rep.appendLines(nil))
	if rep.close {
		ctx.SetConnectionClose()
	}
	body, tail := rep.body()
	if len(tail) > 0 {
		body = slices.Concat(body, tail)
	}
	ctx.Response.SetBodyRaw(body)
	ctx.Response.SkipBody = q.head // after an error of its own fasthttp would forget it
	s.count(rep, q, time.Time{})   // it is not sent yet
}

// write gives a response that is neither of a resource nor an error to fasthttp. The body must not change any more.
func (s *Server) write(ctx *fasthttp.RequestCtx, row, status int, coding snapshots.Coding, body []byte, lines string) {
	setLines(&ctx.Response.Header, []byte(lines))
	ctx.Response.SetStatusCode(status)
	ctx.Response.SetBodyRaw(body)
	if ctx.IsHead() {
		body = nil
	}
	s.traffic.add(row, status, coding, len(body))
}

// setLines sets every field line, with its name as it is spelled.
func setLines(h *fasthttp.ResponseHeader, lines []byte) {
	h.DisableNormalizing()
	for len(lines) > 0 {
		var line []byte
		line, lines, _ = bytes.Cut(lines, []byte("\r\n"))
		name, value, _ := bytes.Cut(line, []byte(": "))
		h.SetBytesKV(name, value)
	}
}

// requestOf returns what an answer depends on.
func requestOf(ctx *fasthttp.RequestCtx) request {
	h := &ctx.Request.Header
	q := request{
		head: ctx.IsHead(), query: ctx.URI().QueryString(),
		fields: fields{
			encodings: joined(h, "Accept-Encoding"), noneMatch: joined(h, "If-None-Match"),
			modifiedSince: joined(h, "If-Modified-Since"), key: joined(h, "X-API-Key"), forwarded: joined(h, "X-Forwarded-For"),
		},
	}
	if c, ok := ctx.Conn().(*conn); ok {
		q.remote = c.remote
	}
	return q
}

// joined returns the value of a field, of a repeated one the list of its values, and nil when it is absent.
func joined(h *fasthttp.RequestHeader, name string) []byte {
	values := h.PeekAll(name)
	if len(values) == 0 {
		return nil
	}
	return bytes.Join(values, []byte(", "))
}
