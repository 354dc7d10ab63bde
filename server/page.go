package server

import (
	"bytes"
	"html/template"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"strikecache/server/openapi"
	"strikecache/server/web"
	"strikecache/snapshots"
)

// page is one static document for people, sealed at the start in every coding.
type page struct {
	path, lines string // field lines of every 200 and 304
	contentType string
	sealed      *snapshots.Snapshot
}

// freshLines stand in every response with a page or file.
const freshLines = "Cache-Control: no-cache\r\n" + // a tag says at once that nothing changed, and a new version shows at once
	"Vary: Accept-Encoding\r\n"

// pageLines stand in every response that a browser shows. Nothing inline runs, nothing of another origin is loaded, nobody
// frames it, and it tells no other site where its reader came from.
const pageLines = "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n" +
	"Referrer-Policy: no-referrer\r\n" +
	"X-Frame-Options: DENY\r\n" +
	"X-Content-Type-Options: nosniff\r\n" +
	"Cross-Origin-Opener-Policy: same-origin\r\n" +
	"Cross-Origin-Resource-Policy: same-origin\r\n" +
	"Permissions-Policy: camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()\r\n"

// sealPages makes the pages and files. They are part of the binary, so one that cannot be made is a fault of the build
// and of every test. The dashboard's HTML is a template, executed once.
func sealPages(cfg Config) []page {
	about := struct {
		Source    string
		Resources []string
	}{cfg.Source, strings.Split(paths(), ", ")}
	files, err := openapi.Files()
	if err != nil {
		panic("openapi: " + err.Error())
	}
	now := time.Now()
	var pages []page
	add := func(path, contentType, lines string, body []byte) {
		sealed, err := snapshots.SealPage(body, now)
		if err != nil {
			panic("page " + path + ": " + err.Error())
		}
		pages = append(pages, page{path, freshLines + lines, contentType, sealed})
	}
	for _, f := range files {
		if f.Page {
			add(f.Path, f.ContentType, pageLines, f.Body)
		} else {
			add(f.Path, f.ContentType, commonLines, f.Body)
		}
	}
	for _, f := range web.Files() {
		body := f.Body
		if strings.HasPrefix(f.ContentType, "text/html") {
			if body, err = execute(string(body), about); err != nil {
				panic("page " + f.Path + ": " + err.Error())
			}
		}
		add(f.Path, f.ContentType, pageLines, body)
	}
	return pages
}

func execute(text string, about any) ([]byte, error) {
	t, err := template.New("").Parse(text)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, about)
	return out.Bytes(), err
}

// servePage answers a request for a page. No key and no limit concerns it.
func (s *Server) servePage(ctx *fasthttp.RequestCtx, p *page) {
	if !ctx.IsGet() && !ctx.IsHead() {
		s.refuse(ctx, nil, errReading)
		return
	}
	h := &ctx.Request.Header
	q := request{noneMatch: joined(h, "If-None-Match"), modifiedSince: joined(h, "If-Modified-Since")}
	coding := choose(joined(h, "Accept-Encoding"), p.sealed)
	status, lines, n := fasthttp.StatusOK, p.lines+"ETag: "+p.sealed.ETag(coding)+"\r\nLast-Modified: "+p.sealed.LastModified(), 0
	if notModified(&q, p.sealed) {
		status = fasthttp.StatusNotModified
	} else {
		lines += "\r\nContent-Type: " + p.contentType
		if coding != snapshots.Identity {
			lines += "\r\nContent-Encoding: " + coding.String()
		}
		body := p.sealed.Body(coding)
		ctx.Response.SetBodyRaw(body)
		if ctx.IsGet() {
			n = len(body)
		}
	}
	setLines(&ctx.Response.Header, []byte(lines))
	ctx.Response.SetStatusCode(status)
	s.traffic.add(rowPage, status, coding, n)
}
