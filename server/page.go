package server

import (
	"bytes"
	"html/template"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"strikecache/server/web"
	"strikecache/snapshots"
)

// page is one static document for people, sealed at the start in every coding.
type page struct {
	path, contentType string
	sealed            *snapshots.Snapshot
}

// pageLines stand in every response with a page. Nothing inline runs, nothing of another origin is loaded, nobody
// frames it, and it tells no other site where its reader came from.
const pageLines = "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n" +
	"Referrer-Policy: no-referrer\r\n" +
	"X-Frame-Options: DENY\r\n" +
	"X-Content-Type-Options: nosniff\r\n" +
	"Cross-Origin-Opener-Policy: same-origin\r\n" +
	"Cross-Origin-Resource-Policy: same-origin\r\n" +
	"Permissions-Policy: camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()\r\n" +
	"Cache-Control: no-cache\r\n" + // a tag says at once that nothing changed, and a new version shows at once
	"Vary: Accept-Encoding\r\n"

// sealPages makes the pages. Their files are part of the binary, so one that cannot be made is a fault of the build
// and of every test. One that is HTML is a template, executed once.
func sealPages(cfg Config) []page {
	about := struct {
		Source    string
		Resources []string
	}{cfg.Source, strings.Split(paths(), ", ")}
	now := time.Now()
	files := web.Files()
	pages := make([]page, 0, len(files))
	for _, f := range files {
		body, err := f.Body, error(nil)
		if strings.HasPrefix(f.ContentType, "text/html") {
			body, err = execute(string(body), about)
		}
		var sealed *snapshots.Snapshot
		if err == nil {
			sealed, err = snapshots.SealPage(body, now)
		}
		if err != nil {
			panic("page " + f.Path + ": " + err.Error())
		}
		pages = append(pages, page{f.Path, f.ContentType, sealed})
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
		s.refuse(ctx, nil, errMethod)
		return
	}
	h := &ctx.Request.Header
	q := request{noneMatch: joined(h, "If-None-Match"), modifiedSince: joined(h, "If-Modified-Since")}
	coding := choose(joined(h, "Accept-Encoding"), p.sealed)
	status, lines, n := fasthttp.StatusOK, pageLines+"ETag: "+p.sealed.ETag(coding)+"\r\nLast-Modified: "+p.sealed.LastModified(), 0
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
