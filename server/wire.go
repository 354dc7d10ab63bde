package server

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"strikecache/snapshots"
)

const (
	serverName = "strikecache"
	allowed    = "GET, HEAD, OPTIONS"
	exposed    = "ETag, Retry-After, RateLimit, RateLimit-Policy, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset"

	// commonLines stand in every response.
	commonLines = "Access-Control-Allow-Origin: *\r\nAccess-Control-Expose-Headers: " + exposed + "\r\n" +
		"X-Content-Type-Options: nosniff\r\n"
	typeLine = "Content-Type: application/json\r\n"
	varyLine = "Vary: Accept-Encoding, X-API-Key\r\n"
)

// encodingLines are the Content-Encoding of the codings.
var encodingLines = func() (lines [snapshots.Codings]string) {
	for c := range snapshots.Codings {
		if c != snapshots.Identity {
			lines[c] = "Content-Encoding: " + c.String() + "\r\n"
		}
	}
	return lines
}()

// appendHead appends the whole head of the response, its empty line included.
func (s *Server) appendHead(dst []byte, rep *reply, now time.Time) []byte {
	switch rep.status {
	case fasthttp.StatusOK:
		dst = append(dst, "HTTP/1.1 200 OK\r\nServer: "+serverName+"\r\n"...)
	case fasthttp.StatusNotModified:
		dst = append(dst, "HTTP/1.1 304 Not Modified\r\nServer: "+serverName+"\r\n"...)
	default:
		dst = append(dst, "HTTP/1.1 "...)
		dst = strconv.AppendInt(dst, int64(rep.status), 10)
		dst = append(append(dst, ' '), fasthttp.StatusMessage(rep.status)...)
		dst = append(dst, "\r\nServer: "+serverName+"\r\n"...)
	}
	dst = append(dst, s.date.line(now)...)
	if rep.status != fasthttp.StatusNotModified {
		body, tail := rep.body()
		dst = append(dst, "Content-Length: "...)
		dst = strconv.AppendInt(dst, int64(len(body)+len(tail)), 10)
		dst = append(dst, "\r\n"...)
	}
	if rep.close {
		dst = append(dst, "Connection: close\r\n"...)
	}
	return append(rep.appendLines(dst), "\r\n"...)
}

// appendLines appends the field lines of the reply but those about the connection and the length.
func (rep *reply) appendLines(dst []byte) []byte {
	if rep.err != nil {
		return rep.appendErrorLines(dst)
	}
	keyed := rep.entry != nil
	if rep.status == fasthttp.StatusOK {
		dst = append(append(dst, typeLine...), encodingLines[rep.coding]...)
	}
	dst = append(append(dst, "Cache-Control: "...), rep.answer.cache.of(keyed)...)
	dst = append(dst, "\r\nETag: "...)
	if keyed { // usage moves on without the tag
		dst = append(dst, "W/"...)
	}
	dst = append(dst, rep.answer.snapshot.ETag(rep.coding)...)
	dst = append(dst, "\r\nLast-Modified: "...)
	dst = append(dst, rep.answer.snapshot.LastModified()...)
	dst = append(dst, "\r\n"+varyLine+commonLines...)
	return rep.appendLimits(dst)
}

func (rep *reply) appendErrorLines(dst []byte) []byte {
	e := rep.err
	dst = append(dst, typeLine+"Cache-Control: no-store\r\n"+commonLines...)
	if e.allow != "" {
		dst = append(append(append(dst, "Allow: "...), e.allow...), "\r\n"...)
	}
	if e.status == fasthttp.StatusUnauthorized {
		dst = append(dst, "WWW-Authenticate: ApiKey\r\n"...)
	}
	retry := int64(e.retryAfter)
	if e.status == fasthttp.StatusTooManyRequests {
		retry = rep.verdict.RetryAfter()
	}
	if retry > 0 {
		dst = append(dst, "Retry-After: "...)
		dst = strconv.AppendInt(dst, retry, 10)
		dst = append(dst, "\r\n"...)
	}
	return rep.appendLimits(dst)
}

// appendLimits appends the rate-limit fields, of which the caller has none where no limit applies.
func (rep *reply) appendLimits(dst []byte) []byte {
	if !rep.verdict.Limited() {
		return dst
	}
	dst = append(append(dst, "RateLimit-Policy: "...), rep.policy...)
	dst = rep.verdict.AppendRateLimit(append(dst, "\r\nRateLimit: "...))
	limit, remaining, reset := rep.verdict.Binding()
	dst = strconv.AppendInt(append(dst, "\r\nX-RateLimit-Limit: "...), limit, 10)
	dst = strconv.AppendInt(append(dst, "\r\nX-RateLimit-Remaining: "...), remaining, 10)
	dst = strconv.AppendInt(append(dst, "\r\nX-RateLimit-Reset: "...), reset, 10)
	return append(dst, "\r\n"...)
}

// dateLine is the Date of the current second.
type dateLine struct{ now atomic.Pointer[renderedDate] }

type renderedDate struct {
	second int64
	line   []byte
}

// line returns the field line, rendered at most once a second. The bytes are shared.
func (d *dateLine) line(now time.Time) []byte {
	if r := d.now.Load(); r != nil && r.second == now.Unix() {
		return r.line
	}
	line := fasthttp.AppendHTTPDate([]byte("Date: "), now.UTC())
	r := &renderedDate{now.Unix(), append(line, "\r\n"...)}
	d.now.Store(r)
	return r.line
}
