package server

import (
	"bytes"
	"errors"
	"os"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"strikecache/snapshots"
)

// router routes the requests that fasthttp answers: all but the direct ones.
func (s *Server) router() *router.Router {
	r := router.New()
	r.RedirectTrailingSlash, r.RedirectFixedPath = false, false
	r.HandleMethodNotAllowed, r.HandleOPTIONS = false, false
	for path, route := range s.routeOf {
		r.ANY(path, func(ctx *fasthttp.RequestCtx) { s.serveRoute(ctx, route) })
	}
	get := func(path string, answer func(ctx *fasthttp.RequestCtx)) {
		r.ANY(path, func(ctx *fasthttp.RequestCtx) {
			if !ctx.IsGet() && !ctx.IsHead() {
				s.refuse(ctx, nil, errReadOnly)
				return
			}
			answer(ctx)
		})
	}
	get("/healthz", func(ctx *fasthttp.RequestCtx) { s.serveProbe(ctx, s.traffic.healthz, s.Healthz) })
	get("/readyz", func(ctx *fasthttp.RequestCtx) { s.serveProbe(ctx, s.traffic.readyz, s.Readyz) })
	for _, page := range sealedPages(s.cfg.Source, s.cfg.Fleet) {
		get(page.path, func(ctx *fasthttp.RequestCtx) { s.servePage(ctx, &page) })
	}
	r.NotFound = func(ctx *fasthttp.RequestCtx) { s.refuse(ctx, nil, errNotFound) }
	return r
}

// guarded wraps a handler: if the handler panics, the client gets a 500 without details and the connection ends.
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

// protocolError answers a request whose head was well formed but which fasthttp could not read: its body did not arrive in
// time, or its target is not a URI.
func (s *Server) protocolError(ctx *fasthttp.RequestCtx, err error) {
	e := errBadRequest
	if errors.Is(err, os.ErrDeadlineExceeded) {
		e = errTimeout
	}
	s.refuse(ctx, nil, e)
}

// serveRoute answers a request for a resource. A GET or HEAD request gets the same bytes as a direct request.
func (s *Server) serveRoute(ctx *fasthttp.RequestCtx, r *route) {
	switch {
	case ctx.IsGet(), ctx.IsHead():
	case ctx.IsOptions():
		s.write(ctx, r.counts, fasthttp.StatusNoContent, snapshots.Identity, nil, commonLines+"Allow: "+allowed+
			"\r\nAccess-Control-Allow-Methods: "+allowed+"\r\nAccess-Control-Allow-Headers: X-API-Key, If-None-Match, If-Modified-Since\r\nAccess-Control-Max-Age: 86400\r\n")
		return
	default:
		s.refuse(ctx, r, errMethod)
		return
	}
	q, c := requestOf(ctx), ctx.Conn().(*conn)
	s.decide(r, &q, c.parsed, &c.response)
	s.respond(ctx, &c.response, &q)
}

// servePage answers a request for a page. Pages need no key and count against no limit.
func (s *Server) servePage(ctx *fasthttp.RequestCtx, p *page) {
	q := requestOf(ctx)
	coding := choose(q.encodings, p.sealed, nil)
	lines := p.lines + "ETag: " + p.sealed.ETag(coding) + "\r\nLast-Modified: " + p.sealed.LastModified() + "\r\n"
	if notModified(&q.fields, p.sealed, nil) {
		s.write(ctx, s.traffic.page, fasthttp.StatusNotModified, coding, nil, lines)
		return
	}
	lines += "Content-Type: " + p.contentType + "\r\n" + encodingLines[coding]
	s.write(ctx, s.traffic.page, fasthttp.StatusOK, coding, p.sealed.Body(coding), lines)
}

// serveProbe answers /healthz and /readyz, which are for orchestrators and never cached.
func (s *Server) serveProbe(ctx *fasthttp.RequestCtx, c *counts, probe func() (int, []byte, error)) {
	status, body, err := probe()
	if err != nil {
		s.refuse(ctx, nil, errInternal)
		return
	}
	s.write(ctx, c, status, snapshots.Identity, body, typeLine+commonLines+noStoreLine)
}

// refuse answers a request with an error; r may be nil.
func (s *Server) refuse(ctx *fasthttp.RequestCtx, r *route, e *apiError) {
	q, rep := requestOf(ctx), &response{route: r}
	s.fail(rep, e)
	s.respond(ctx, rep, &q)
}

// respond gives a response to fasthttp and counts it.
func (s *Server) respond(ctx *fasthttp.RequestCtx, rep *response, q *request) {
	c := ctx.Conn().(*conn)
	body, tail := rep.body()
	if len(body) > 0 && len(tail) > 0 {
		c.body = bodies.Get().(*[]byte)
		*c.body = append(append((*c.body)[:0], body...), tail...)
		body, tail = *c.body, nil
	}
	if len(tail) > 0 {
		body = tail
	}
	if rep.close {
		ctx.SetConnectionClose()
	}
	c.lines = rep.appendLines(rep.appendType(c.lines[:0]))
	s.setResponse(ctx, rep.status, body, c.lines)
	c.timed = s.count(rep, q)
}

// write gives fasthttp a response that is neither an error nor the snapshot of a resource, and counts it.
func (s *Server) write(ctx *fasthttp.RequestCtx, c *counts, status int, coding snapshots.Coding, body []byte, lines string) {
	s.setResponse(ctx, status, body, []byte(lines))
	if ctx.IsHead() {
		body = nil
	}
	c.add(status, coding, len(body))
}

// setResponse gives fasthttp a response with the given field lines. The caller must not change body afterwards.
func (s *Server) setResponse(ctx *fasthttp.RequestCtx, status int, body, lines []byte) {
	ctx.Response.ResetBody()
	ctx.Response.SetStatusCode(status)
	ctx.Response.Header.DisableNormalizing() // the names keep their spelling
	for line := range bytes.SplitSeq(bytes.TrimSuffix(lines, []byte("\r\n")), []byte("\r\n")) {
		name, value, _ := bytes.Cut(line, []byte(": "))
		ctx.Response.Header.SetBytesKV(name, value)
	}
	ctx.Response.SetBodyRaw(body)
	ctx.Response.SkipBody = ctx.IsHead() // fasthttp does not set it for protocol errors
	if s.stopping.Load() || ctx.Conn().(*conn).head.close {
		ctx.SetConnectionClose()
	}
}

// requestOf returns the [request] of a fasthttp request. Its slices are valid until the handler returns.
func requestOf(ctx *fasthttp.RequestCtx) request {
	h := &ctx.Request.Header
	q := request{
		head: ctx.IsHead(), query: ctx.URI().QueryString(), remote: ctx.Conn().(*conn).remote,
		fields: fields{
			encodings: joined(h, "Accept-Encoding"), dictionary: joined(h, "Available-Dictionary"), noneMatch: joined(h, "If-None-Match"),
			modifiedSince: joined(h, "If-Modified-Since"), key: joined(h, "X-API-Key"), forwarded: joined(h, "X-Forwarded-For"),
		},
	}
	return q
}

// joined returns the value of a header field: nil when the field is absent, the values joined by ", " when it is repeated.
func joined(h *fasthttp.RequestHeader, name string) []byte {
	switch values := h.PeekAll(name); len(values) {
	case 0:
		return nil
	case 1:
		return values[0]
	default:
		return bytes.Join(values, []byte(", "))
	}
}
