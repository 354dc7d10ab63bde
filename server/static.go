package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"sync"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/fasthttp/router"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp"

	"strikecache/server/openapi"
	"strikecache/snapshots"
)

// static is a file of the binary, coded once: the same answer to everyone for as long as the process runs.
type static struct {
	path   string
	lines  string // of every 200 and 304
	typ    string
	bodies [snapshots.Codings][]byte
	tags   [snapshots.Codings]string
	since  string // Last-Modified
}

const (
	staticLines = "Cache-Control: no-cache\r\n" + // a tag says at once that nothing changed, and a new version shows at once
		"Vary: Accept-Encoding\r\n"
	// safeLines stand in every response that a browser shows. Nothing inline runs, nothing of another origin is
	// loaded, nobody frames it, and it tells no other site where its reader came from.
	safeLines = "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
		"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n" +
		"Referrer-Policy: no-referrer\r\n" +
		"X-Frame-Options: DENY\r\n" +
		"X-Content-Type-Options: nosniff\r\n" +
		"Cross-Origin-Opener-Policy: same-origin\r\n" +
		"Cross-Origin-Resource-Policy: same-origin\r\n" +
		"Permissions-Policy: camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()\r\n"
)

// statics makes the files, once for all servers of the process. They are part of the binary, so one that cannot be
// made is a fault of the build and of every test.
var statics = sync.OnceValue(func() []static {
	files, err := openapi.Files()
	out := make([]static, len(files))
	now := time.Now().UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")
	for i, f := range files {
		out[i] = static{path: f.Path, typ: "Content-Type: " + f.ContentType + "\r\n", lines: staticLines + commonLines, since: now}
		if f.Page {
			out[i].lines = staticLines + safeLines
		}
		if err == nil {
			err = out[i].code(f.Body)
		}
	}
	if err != nil {
		panic("static files: " + err.Error())
	}
	return out
})

// code makes the bodies and their tags.
func (f *static) code(body []byte) error {
	sum := sha256.Sum256(body)
	for c := range snapshots.Codings {
		var out bytes.Buffer
		var w io.WriteCloser
		var err error
		f.tags[c] = `"` + hex.EncodeToString(sum[:16])
		switch c {
		case snapshots.Identity:
			f.bodies[c] = body
			f.tags[c] += `"`
			continue
		case snapshots.Gzip:
			w, err = gzip.NewWriterLevel(&out, gzip.BestCompression)
			f.tags[c] += `-gz"`
		case snapshots.Brotli:
			w = brotli.NewWriterLevel(&out, 5)
			f.tags[c] += `-br"`
		case snapshots.Zstd:
			w, err = zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
			f.tags[c] += `-zs"`
		}
		if err != nil {
			return err
		}
		if _, err := w.Write(body); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		f.bodies[c] = out.Bytes()
	}
	return nil
}

// addStatics routes the files.
func (s *Server) addStatics(r *router.Router) {
	for i := range statics() {
		f := &statics()[i]
		r.ANY(f.path, func(ctx *fasthttp.RequestCtx) { s.serveStatic(ctx, f) })
	}
}

// serveStatic answers a request for a file. No key and no limit concerns it.
func (s *Server) serveStatic(ctx *fasthttp.RequestCtx, f *static) {
	if !ctx.IsGet() && !ctx.IsHead() {
		s.refuse(ctx, nil, errMethod)
		return
	}
	h := &ctx.Request.Header
	c := f.choose(joined(h, "Accept-Encoding"))
	lines := f.lines + "ETag: " + f.tags[c] + "\r\nLast-Modified: " + f.since + "\r\n"
	if f.known(joined(h, "If-None-Match"), joined(h, "If-Modified-Since")) {
		ctx.Response.SetStatusCode(fasthttp.StatusNotModified)
	} else {
		lines += f.typ + encodingLines[c]
		ctx.Response.SetBodyRaw(f.bodies[c])
	}
	setLines(&ctx.Response.Header, []byte(lines[:len(lines)-len("\r\n")]))
}

// choose picks the coding as [choose] does for snapshots.
func (f *static) choose(header []byte) snapshots.Coding {
	best := snapshots.Identity
	quality := negotiate(header)
	for c := range snapshots.Codings {
		if q := quality[c]; q > quality[best] || q > 0 && q == quality[best] && len(f.bodies[c]) < len(f.bodies[best]) {
			best = c
		}
	}
	return best
}

// known says whether the client holds the file already.
func (f *static) known(noneMatch, modifiedSince []byte) bool {
	if noneMatch == nil {
		return string(modifiedSince) == f.since
	}
	if string(noneMatch) == "*" {
		return true
	}
	for _, tag := range f.tags {
		if bytes.Contains(noneMatch, []byte(tag)) {
			return true
		}
	}
	return false
}
