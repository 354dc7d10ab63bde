package server

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"
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
	// revalidateLine makes a browser ask each time, so that it shows a new version at once. Most of these answers are 304.
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

	// fileLines are in the response of every file that a page loads. In a page, the policy of the page applies. A file that is opened
	// alone runs and loads nothing. browserLines would add 480 bytes to each of some 25 responses.
	fileLines = "Content-Security-Policy: default-src 'none'\r\n" +
		"X-Content-Type-Options: nosniff\r\n" +
		"Cross-Origin-Resource-Policy: same-origin\r\n"
)

var types = map[string]string{
	".html":     "text/html; charset=utf-8",
	".css":      "text/css; charset=utf-8",
	".markdown": "text/markdown; charset=utf-8",
	".js":       "text/javascript; charset=utf-8",
	".json":     "application/json",
	".svg":      "image/svg+xml",
	".txt":      "text/plain; charset=utf-8",
}

// sealedPages returns the API description, the dashboard, the files that both load, and the widgets. All are part of the binary, so it
// panics on an error, which every test of a server would show.
func sealedPages(source string, fleet bool, resources, underlyings []string) []page {
	dashboard := web.Dashboard(source, fleet, resources, underlyings)
	body, err := widgets(source, underlyings)
	return append(slices.Clip(staticPages()), sealPage("/", ".html", revalidateLine+browserLines, dashboard, nil),
		sealPage("/widgets.json", ".json", revalidateLine+commonLines, body, err))
}

// widgets returns the widgets for OpenBB Workspace. underlyings are symbols in small letters. A table in Workspace does not show meta,
// so each widget names the source.
func widgets(source string, underlyings []string) ([]byte, error) {
	if source == "simulated" {
		source = "simulated market: no number is real"
	}
	type option struct {
		Label string `json:"label"`
		Value string `json:"value"`
	}
	var options []option
	for _, u := range underlyings {
		options = append(options, option{strings.ToUpper(u), u})
	}
	offered, _ := json.Marshal(options) // strings can always be encoded
	text, err := openapi.Files.ReadFile("widgets.json")
	var body bytes.Buffer
	err = errors.Join(err, json.Compact(&body, []byte(strings.NewReplacer(`"{underlyings}"`, string(offered), "{underlying}", underlyings[0], "{source}", source).Replace(string(text)))))
	return body.Bytes(), err
}

// staticPages returns the pages that do not depend on the source. It seals them once per process, which takes 0.3 s.
var staticPages = sync.OnceValue(func() (pages []page) {
	add := func(at, lines string, files embed.FS, name string) {
		body, err := files.ReadFile(name)
		pages = append(pages, sealPage(at, path.Ext(name), revalidateLine+lines, body, err))
	}
	add("/openapi.json", commonLines, openapi.Files, "openapi.json")
	add("/docs", browserLines, openapi.Files, "docs.html")
	add("/methods", browserLines, openapi.Files, "methods.html")
	add("/methods.markdown", commonLines, openapi.Files, "methods.markdown")
	add("/llms.txt", commonLines, openapi.Files, "llms.txt")
	add("/docs.css", browserLines, openapi.Files, "docs.css")
	add("/docs.js", browserLines, openapi.Files, "docs.js")
	assets, err := web.Files.ReadDir("static")
	for _, f := range assets {
		add("/assets/"+f.Name(), fileLines, web.Files, "static/"+f.Name())
	}
	icon, err2 := web.Files.ReadFile("static/icon.svg") // browsers ask for this path when a document, such as JSON, names no icon
	return append(pages, sealPage("/favicon.ico", ".svg", dayLine+fileLines, icon, errors.Join(err, err2)))
})

// sealPage seals a page that was made or read without an error.
func sealPage(at, extension, lines string, body []byte, err error) page {
	sealed, sealing := snapshots.SealPage(body, time.Now(), strings.HasPrefix(at, "/assets/app."))
	if err := errors.Join(err, sealing); err != nil {
		panic("page " + at + ": " + err.Error())
	}
	return page{path: at, contentType: types[extension], lines: lines + "Vary: Accept-Encoding\r\n", sealed: sealed}
}
