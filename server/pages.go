package server

import (
	"slices"
	"sync"
	"time"

	"strikecache/server/openapi"
	"strikecache/server/web"
	"strikecache/snapshots"
)

// page is a static page or file. It is sealed in every coding at the start.
type page struct {
	path, contentType string
	lines             string // field lines of every 200 and 304
	sealed            *snapshots.Snapshot
}

const (
	// revalidateLine makes a browser ask each time, so that it shows a new version at once. Mostly it gets a 304.
	revalidateLine = "Cache-Control: no-cache\r\n"
	dayLine        = "Cache-Control: public, max-age=86400\r\n"

	// browserLines are in the response of every page. The browser runs no inline script and loads nothing from another
	// origin. No other site may frame the page, or learn its address from a link.
	browserLines = "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
		"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n" +
		"Referrer-Policy: no-referrer\r\n" +
		"X-Frame-Options: DENY\r\n" +
		"X-Content-Type-Options: nosniff\r\n" +
		"Cross-Origin-Opener-Policy: same-origin\r\n" +
		"Cross-Origin-Resource-Policy: same-origin\r\n" +
		"Permissions-Policy: camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()\r\n"

	// fileLines are in the response of every file that a page loads. The policy of the page governs the file there. Opened on its
	// own, the file runs and loads nothing. The lines of a page would be 480 bytes more in each of some 25 responses.
	fileLines = "Content-Security-Policy: default-src 'none'\r\n" +
		"X-Content-Type-Options: nosniff\r\n" +
		"Cross-Origin-Resource-Policy: same-origin\r\n"

	iconPath = "/assets/icon.svg"
)

// sealedPages returns the API description, the dashboard, and the files that both load. All are part of the binary, so it
// panics on an error, which every test of a server would show.
func sealedPages(source string, fleet bool) []page {
	dashboard := web.Dashboard(source, fleet, paths())
	return append(slices.Clip(staticPages()), sealPage(dashboard.Path, dashboard.ContentType, revalidateLine+browserLines, dashboard.Body))
}

// staticPages returns the pages that do not depend on the source. It seals them once per process, which takes 0.1 s.
var staticPages = sync.OnceValue(func() (pages []page) {
	for _, f := range openapi.Files() {
		lines := revalidateLine + commonLines
		if f.Page {
			lines = revalidateLine + browserLines
		}
		pages = append(pages, sealPage(f.Path, f.ContentType, lines, f.Body))
	}
	for _, f := range web.Files() {
		if f.Path == iconPath { // browsers ask for /favicon.ico when a document, such as JSON, names no icon
			pages = append(pages, sealPage("/favicon.ico", f.ContentType, dayLine+fileLines, f.Body))
		}
		pages = append(pages, sealPage(f.Path, f.ContentType, revalidateLine+fileLines, f.Body))
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
