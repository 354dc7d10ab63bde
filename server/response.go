package server

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"strikecache/server/keys"
	"strikecache/server/limits"
	"strikecache/snapshots"
)

// response is the response to one request: a snapshot in a coding, or an error.
type response struct {
	headOnly  bool       // the request is HEAD: the body is not sent
	route     *route     // nil: the target is not a resource
	counts    *counts    // nil: the path has no target
	countdown *countdown // of the route
	status    int
	snapshot  *snapshots.Snapshot
	caching   caching
	past      bool // the snapshot is that of a stored date, not the current one
	coding    snapshots.Coding
	err       *apiError
	close     bool // the connection ends
	keepAlive bool // unless close is set, the response must have Connection: keep-alive, for HTTP/1.0

	contentType string           // of the body
	lines       string           // field lines of a page, a probe or a preflight; "" for other responses
	delta       *snapshots.Delta // has the body if the coding is DCZ; nil: no delta

	entry   *keys.Entry // nil without a key
	verdict limits.Verdict
	usage   []byte // JSON of `usage` for the key; empty without a key
	start   []byte // first part of the body of a response to a key, see [snapshots.Snapshot.AppendStart]
	tail    []byte // last part of the body of a response to a key; the whole body of an error or a probe
}

// reset makes an empty response with the status 200, and reuses its memory.
func (rep *response) reset(headOnly bool) {
	*rep = response{headOnly: headOnly, status: fasthttp.StatusOK, contentType: jsonType, usage: rep.usage[:0], start: rep.start[:0], tail: rep.tail[:0]}
}

// body returns the body after rep.start in two parts. The first part is shared: the caller must not change it. The second part is
// valid until the next request of the connection. If user returns nil and the response is no error, it is shared, too.
func (rep *response) body() (prepared, tail []byte) {
	switch {
	case rep.snapshot == nil:
		return nil, rep.tail
	case rep.status == fasthttp.StatusNotModified:
		return nil, nil
	case rep.user() != nil:
		return rep.snapshot.Prefix(rep.coding)[len(rep.start):], rep.tail
	}
	if rep.coding == snapshots.DCZ {
		return rep.delta.Body, nil
	}
	return rep.snapshot.Parts(rep.coding)
}

// user returns the key whose `usage` is in the body. It returns nil for a request without a key, and for a format, such as CSV, that
// has no `usage`.
func (rep *response) user() *keys.Entry {
	if rep.snapshot.ContentType != "" {
		return nil
	}
	return rep.entry
}

// etag returns the strong entity tag of the body, with its quotes.
func (rep *response) etag() string {
	if rep.coding == snapshots.DCZ {
		return rep.delta.ETag
	}
	return rep.snapshot.ETag(rep.coding)
}

const (
	serverName = "strikecache"
	jsonType   = "application/json"
	allowed    = "GET, HEAD, OPTIONS"

	// commonLines are in every response of a resource.
	commonLines = "Access-Control-Allow-Origin: *\r\n" +
		"Access-Control-Expose-Headers: ETag, Age, Retry-After, RateLimit, RateLimit-Policy, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, *\r\n" +
		"X-Content-Type-Options: nosniff\r\n"
	varyLine    = "Vary: Accept-Encoding, X-API-Key\r\n"
	varyDelta   = "Vary: Accept-Encoding, X-API-Key, Available-Dictionary\r\n"
	noStoreLine = "Cache-Control: no-store\r\n"
)

// firstLines holds the status line and Server of each status.
var firstLines = func() (lines [maxStatus - minStatus + 1]string) {
	renamed := map[int]string{413: "Content Too Large", 414: "URI Too Long"} // since RFC 9110
	for i := range lines {
		status := minStatus + i
		lines[i] = fmt.Sprintf("HTTP/1.1 %d %s\r\nServer: %s\r\n", status, cmp.Or(renamed[status], fasthttp.StatusMessage(status)), serverName)
	}
	return lines
}()

// encodingLines holds the Content-Encoding line of each coding; "" for identity.
var encodingLines = func() (lines [snapshots.Codings + 1]string) {
	for c := snapshots.Identity + 1; int(c) < len(lines); c++ {
		lines[c] = "Content-Encoding: " + c.String() + "\r\n"
	}
	return lines
}()

// appendHead appends the whole head of a response, its empty line included, and rep.start.
func (s *Server) appendHead(dst []byte, rep *response, now time.Time) []byte {
	dst = append(dst, firstLines[rep.status-minStatus]...)
	dst = rep.appendType(append(dst, s.date.line(now)...))
	if rep.hasBody() {
		body, tail := rep.body()
		dst = appendNumber(dst, "Content-Length: ", int64(len(rep.start)+len(body)+len(tail)))
	}
	dst = rep.appendLines(dst, now, s.date.line(now))
	if rep.close {
		dst = append(dst, "Connection: close\r\n"...)
	} else if rep.keepAlive {
		dst = append(dst, "Connection: keep-alive\r\n"...)
	}
	if dst = append(dst, "\r\n"...); rep.headOnly || !rep.hasBody() {
		return dst
	}
	return append(dst, rep.start...)
}

func (rep *response) hasBody() bool {
	return rep.status != fasthttp.StatusNotModified && rep.status != fasthttp.StatusNoContent
}

func (rep *response) appendType(dst []byte) []byte {
	if !rep.hasBody() {
		return dst
	}
	dst = append(append(append(dst, "Content-Type: "...), rep.contentType...), "\r\n"...)
	return append(dst, encodingLines[rep.coding]...)
}

// appendLines appends the field lines of a response, except those of its body, Server, Date and Connection. date is the line of Date.
func (rep *response) appendLines(dst []byte, now time.Time, date []byte) []byte {
	if rep.err != nil {
		return rep.appendErrorLines(dst)
	}
	if rep.lines != "" {
		if dst = append(dst, rep.lines...); rep.snapshot != nil {
			dst = rep.appendModified(append(append(dst, "ETag: "...), rep.etag()...), now, date)
		}
		return dst
	}
	dst = append(rep.caching.append(dst, rep.entry != nil), "ETag: "...)
	if user := rep.user(); user != nil { // a weak tag, because `usage` changes and the tag does not; it has the key's id, see matches
		dst = append(append(append(append(dst, `W/"`...), user.ID...), '.'), rep.etag()[1:]...)
	} else {
		dst = append(dst, rep.etag()...)
	}
	dst = rep.appendModified(dst, now, date)
	dst = append(append(append(dst, "Cache-Tag: "+serverName+","...), rep.route.endpoint...), ',')
	dst = rep.appendVary(append(append(dst, rep.snapshot.Date()...), "\r\n"...))
	return rep.verdict.AppendFields(append(append(dst, rep.snapshot.Lines...), commonLines...))
}

// appendModified ends the line before, and appends Last-Modified. The market's clock may be ahead, but Last-Modified is never after
// Date (RFC 9110 §8.8.2.1).
func (rep *response) appendModified(dst []byte, now time.Time, date []byte) []byte {
	dst = append(dst, "\r\nLast-Modified: "...)
	if rep.snapshot.ModifiedAfter(now) {
		return append(dst, bytes.TrimPrefix(date, []byte("Date: "))...)
	}
	return append(append(dst, rep.snapshot.LastModified()...), "\r\n"...)
}

// appendVary appends the field lines Vary and, to an answer without a key that is a dictionary, Use-As-Dictionary.
func (rep *response) appendVary(dst []byte) []byte {
	if !rep.snapshot.IsDictionary() {
		return append(dst, varyLine...)
	}
	dst = append(dst, varyDelta...)
	if rep.entry != nil || rep.status != fasthttp.StatusOK {
		return dst
	}
	// The pattern contains the query, so it matches no other query: a dictionary helps only for answers to the same query.
	dst = append(append(append(dst, `Use-As-Dictionary: match="`...), rep.route.path...), '?')
	if variant := rep.snapshot.Variant(); variant != "" {
		dst = append(append(append(dst, rep.route.parameter...), '='), variant...)
	}
	return append(dst, "\"\r\n"...)
}

func (rep *response) appendErrorLines(dst []byte) []byte {
	e := rep.err
	dst = append(dst, noStoreLine+commonLines...)
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
		dst = appendNumber(dst, "Retry-After: ", retry)
	}
	return rep.verdict.AppendFields(dst)
}

func appendNumber(dst []byte, name string, n int64) []byte {
	return append(strconv.AppendInt(append(dst, name...), n, 10), "\r\n"...)
}

// dateLine holds the Date line of the current second. It is safe for concurrent use.
type dateLine struct{ current atomic.Pointer[secondLine] }

type secondLine struct {
	second int64
	line   []byte
}

// line returns the field line. It renders the line once a second. The bytes are shared: the caller must not change them.
func (d *dateLine) line(now time.Time) []byte {
	if l := d.current.Load(); l != nil && l.second == now.Unix() {
		return l.line
	}
	l := &secondLine{now.Unix(), append(fasthttp.AppendHTTPDate([]byte("Date: "), now.UTC()), "\r\n"...)}
	d.current.Store(l)
	return l.line
}
