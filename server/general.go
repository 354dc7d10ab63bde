package server

import (
	"bytes"
	"fmt"
	"net/netip"
	"runtime/debug"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"strikecache/snapshots"
)

// serve answers what the gate left to fasthttp: other methods, HTTP/1.0, connections that end, repeated fields,
// requests with a body. Plain requests get the same answer from the same functions.
func (s *Server) serve(ctx *fasthttp.RequestCtx, r *route) {
	switch {
	case ctx.IsGet(), ctx.IsHead():
	case ctx.IsOptions():
		s.preflight(ctx, r)
		return
	default:
		s.refuse(ctx, r, errMethod)
		return
	}
	h := &ctx.Request.Header
	q := request{
		head: ctx.IsHead(), query: ctx.URI().QueryString(), remote: remoteOf(ctx),
		encodings: joined(h, "Accept-Encoding"), noneMatch: joined(h, "If-None-Match"),
		modifiedSince: joined(h, "If-Modified-Since"), key: joined(h, "X-API-Key"), forwarded: joined(h, "X-Forwarded-For"),
	}
	var rep reply
	s.decide(r, &q, time.Now(), &rep)
	s.write(ctx, &rep, &q)
}

// refuse answers a request with an error; r may be nil.
func (s *Server) refuse(ctx *fasthttp.RequestCtx, r *route, e *apiError) {
	rep := reply{route: r}
	s.fail(&rep, e)
	s.write(ctx, &rep, &request{
		head: ctx.IsHead(), remote: remoteOf(ctx), forwarded: joined(&ctx.Request.Header, "X-Forwarded-For"),
	})
}

// write hands a reply to fasthttp, with the field lines of every other response.
func (s *Server) write(ctx *fasthttp.RequestCtx, rep *reply, q *request) {
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
	s.counted(rep, q, time.Time{}) // fasthttp has not sent it yet
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

// joined returns the value of a field, of a repeated one the list of its values, and nil when it is absent.
func joined(h *fasthttp.RequestHeader, name string) []byte {
	values := h.PeekAll(name)
	if len(values) == 0 {
		return nil
	}
	return bytes.Join(values, []byte(", "))
}

func remoteOf(ctx *fasthttp.RequestCtx) netip.Addr {
	if c, ok := ctx.Conn().(*conn); ok {
		return c.remote
	}
	return netip.Addr{}
}

// preflight answers OPTIONS.
func (s *Server) preflight(ctx *fasthttp.RequestCtx, r *route) {
	setLines(&ctx.Response.Header, []byte(commonLines+"Allow: "+allowed+"\r\nAccess-Control-Allow-Methods: "+allowed+
		"\r\nAccess-Control-Allow-Headers: X-API-Key\r\nAccess-Control-Max-Age: 86400"))
	ctx.Response.SetStatusCode(fasthttp.StatusNoContent)
	s.traffic.add(r.row, fasthttp.StatusNoContent, snapshots.Identity, 0)
}

// guarded answers a request that meets a fault of ours with an error that says no more, and ends the connection.
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

// logPanic is where a fault of ours shows: its stack goes to the log and nowhere else.
func (s *Server) logPanic(value any) {
	s.cfg.Log.Error("request panicked", "panic", fmt.Sprint(value), "stack", string(debug.Stack()))
}
