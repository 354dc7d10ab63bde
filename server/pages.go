package server

import (
	"slices"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"strikecache/server/openapi"
	"strikecache/server/web"
	"strikecache/snapshots"
)

// page is a static page or file, sealed at the start in every coding.
type page struct {
	path, contentType string
	lines             string // field lines of every 200 and 304
	sealed            *snapshots.Snapshot
}

const (
	// revalidateLine: a browser asks each time. A 304 says that nothing changed, and a new version shows at once.
	revalidateLine = "Cache-Control: no-cache\r\n"
	dayLine        = "Cache-Control: public, max-age=86400\r\n"

	// browserLines stand in every response that a browser shows: nothing inline runs, nothing of another origin is
	// loaded, no other site may frame the page or learn where its reader came from.
	browserLines = "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
		"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n" +
		"Referrer-Policy: no-referrer\r\n" +
		"X-Frame-Options: DENY\r\n" +
		"X-Content-Type-Options: nosniff\r\n" +
		"Cross-Origin-Opener-Policy: same-origin\r\n" +
		"Cross-Origin-Resource-Policy: same-origin\r\n" +
		"Permissions-Policy: camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()\r\n"

	iconPath = "/assets/icon.svg"
)

// sealedPages returns the pages and files: the description of the interface, the dashboard and what it loads. They are
// part of the binary, so an error is a fault of the build, which every test shows.
func sealedPages(source string) []page {
	dashboard := web.Dashboard(source, paths())
	return append(slices.Clip(staticPages()), sealPage(dashboard.Path, dashboard.ContentType, revalidateLine+browserLines, dashboard.Body))
}

// staticPages are those that are the same for every server. Sealing them takes 0.1 s.
var staticPages = sync.OnceValue(func() (pages []page) {
	documents, err := openapi.Files()
	if err != nil {
		panic("openapi: " + err.Error())
	}
	for _, f := range documents {
		lines := revalidateLine + commonLines
		if f.Page {
			lines = revalidateLine + browserLines
		}
		pages = append(pages, sealPage(f.Path, f.ContentType, lines, f.Body))
	}
	for _, f := range web.Files() {
		if f.Path == iconPath { // beside a document that names no icon, browsers ask for it there
			pages = append(pages, sealPage("/favicon.ico", f.ContentType, dayLine+browserLines, f.Body))
		}
		pages = append(pages, sealPage(f.Path, f.ContentType, revalidateLine+browserLines, f.Body))
	}
	return pages
})

func sealPage(path, contentType, lines string, body []byte) page {
	sealed, err := snapshots.SealPage(body, time.Now())
	if err != nil {
		panic("page " + path + ": " + err.Error())
	}
	return page{path, contentType, lines + "Vary: Accept-Encoding\r\n", sealed}
}

// servePage answers a request for a page. Keys and limits do not concern it.
func (s *Server) servePage(ctx *fasthttp.RequestCtx, p *page) {
	if !ctx.IsGet() && !ctx.IsHead() {
		s.refuse(ctx, nil, errReadOnly)
		return
	}
	q := requestOf(ctx)
	coding := choose(q.encodings, p.sealed)
	lines := p.lines + "ETag: " + p.sealed.ETag(coding) + "\r\nLast-Modified: " + p.sealed.LastModified() + "\r\n"
	if notModified(&q.fields, p.sealed) {
		s.write(ctx, rowPage, fasthttp.StatusNotModified, coding, nil, lines)
		return
	}
	lines += "Content-Type: " + p.contentType + "\r\n" + encodingLines[coding]
	s.write(ctx, rowPage, fasthttp.StatusOK, coding, p.sealed.Body(coding), lines)
}

// serveProbe answers /healthz and /readyz, which are for orchestrators and never cached.
func (s *Server) serveProbe(ctx *fasthttp.RequestCtx, row int, probe func() (int, []byte, error)) {
	if !ctx.IsGet() && !ctx.IsHead() {
		s.refuse(ctx, nil, errReadOnly)
		return
	}
	status, body, err := probe()
	if err != nil {
		s.refuse(ctx, nil, errInternal)
		return
	}
	s.write(ctx, row, status, snapshots.Identity, body, typeLine+commonLines+noStoreLine)
}
