package server_test

import (
	"maps"
	"regexp"
	"strings"
	"testing"

	"strikecache/server"
)

func TestPages(t *testing.T) {
	s := newFinder(t)
	c := clientOf(t, newServer(s))
	page := map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
			"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		"Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		"Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()", "Access-Control-Allow-Origin": "",
	}
	file := map[string]string{"Content-Security-Policy": "default-src 'none'", "Cross-Origin-Resource-Policy": "same-origin", "Access-Control-Allow-Origin": ""}
	document := map[string]string{"Access-Control-Allow-Origin": "*"}
	icon := maps.Clone(file) // browsers ask for /favicon.ico when a document names no icon
	icon["Cache-Control"] = "public, max-age=86400"
	for path, want := range map[string]struct {
		typ    string
		fields map[string]string
	}{
		"/": {"text/html; charset=utf-8", page}, "/assets/app.css": {"text/css; charset=utf-8", file}, "/assets/icon.svg": {"image/svg+xml", file}, "/favicon.ico": {"image/svg+xml", icon}, "/openapi.json": {"application/json", document},
		"/docs": {"text/html; charset=utf-8", page}, "/methods": {"text/html; charset=utf-8", page}, "/widgets.json": {"application/json", document}, "/methods.markdown": {"text/markdown; charset=utf-8", document}, "/llms.txt": {"text/plain; charset=utf-8", document}, "/docs.css": {"text/css; charset=utf-8", page}, "/docs.js": {"text/javascript; charset=utf-8", page},
	} {
		plain, body := do(t, c, "GET", path, "Accept-Encoding", "identity")
		if plain.StatusCode != 200 || len(body) < 300 {
			t.Errorf("%s: %d, %d bytes", path, plain.StatusCode, len(body))
		}
		wanted := map[string]string{"Content-Type": want.typ, "X-Content-Type-Options": "nosniff", "Vary": "Accept-Encoding", "Cache-Control": "no-cache"}
		maps.Copy(wanted, want.fields)
		for name, value := range wanted {
			equal(t, strings.Join(plain.Header.Values(name), "|"), value, "%s: %s", path, name)
		}
		tags := map[string]bool{plain.Header.Get("ETag"): true}
		for _, coding := range []string{"gzip", "br", "zstd"} {
			coded, b := do(t, c, "GET", path, "Accept-Encoding", coding)
			if coded.Header.Get("Content-Encoding") != coding || path == "/" && len(b) >= len(body) {
				t.Errorf("%s in %s: %q, %d bytes of %d", path, coding, coded.Header.Get("Content-Encoding"), len(b), len(body))
			}
			tags[coded.Header.Get("ETag")] = true
		}
		if len(tags) != 4 || tags[""] {
			t.Errorf("%s: %v", path, tags)
		}
		same, b := do(t, c, "GET", path, "If-None-Match", plain.Header.Get("ETag"))
		if same.StatusCode != 304 || len(b) != 0 || same.Header.Get("ETag") == "" || same.Header.Get("Content-Security-Policy") != want.fields["Content-Security-Policy"] {
			t.Errorf("%s: %d %v", path, same.StatusCode, same.Header)
		}
		for method, status := range map[string]int{"POST": 405, "OPTIONS": 204} {
			if resp, _ := do(t, c, method, path); resp.StatusCode != status || resp.Header.Get("Allow") != "GET, HEAD, OPTIONS" || resp.Header.Get("Access-Control-Allow-Origin") != "*" {
				t.Errorf("%s: %s %d, Allow %q", path, method, resp.StatusCode, resp.Header.Get("Allow"))
			}
		}
	}
}

// The dashboard has no inline script or style, links only to paths that exist, and says whether its numbers are real.
func TestLandingPage(t *testing.T) {
	for source, simulated := range map[string]bool{"simulated": true, "cboe": false} {
		c := clientOf(t, newServer(newFinder(t), func(c *server.Config) { c.Source = source }))
		_, body := do(t, c, "GET", "/")
		page := string(body)
		if strings.Contains(page, "The market is simulated") != simulated || strings.Contains(page, "<strong>cboe</strong>") == simulated { // the banner says simulated
			t.Errorf("%s: %s", source, page)
		}
		for _, inline := range []string{"<script>", "<style", " style=", " onclick=", "javascript:", "//"} {
			if strings.Contains(strings.ToLower(page), inline) {
				t.Errorf("%s: the page has %q", source, inline)
			}
		}
		links := 0
		page = strings.ReplaceAll(page, `src="`, `href="`)
		for _, part := range strings.Split(page, `href="/`)[1:] {
			path, _, _ := strings.Cut(part, `"`)
			resp, _ := do(t, c, "GET", "/"+path)
			equal(t, resp.StatusCode, 200, "%s: link /%s", source, path)
			links++
		}
		if links != 31 { // twenty-one resources, two probes, the interface twice, its document, the methods, the icon, a style sheet, the preloaded track and the script
			t.Errorf("%s: %d links", source, links)
		}
	}
}

// The links for language models have the form of llmstxt.org: a title, a summary, and under each heading a list of links. Each leads somewhere.
func TestLinksForModels(t *testing.T) {
	c := clientOf(t, newServer(newFinder(t)))
	_, body := do(t, c, "GET", "/llms.txt")
	notes, lists, _ := strings.Cut(string(body), "\n## ")
	if !regexp.MustCompile(`^# \S.*\n\n> \S.*\n\n[^#]*$`).MatchString(notes) {
		t.Errorf("it begins with %q", notes)
	}
	links := 0
	for _, line := range strings.Split(strings.TrimSpace(lists), "\n")[1:] {
		link := regexp.MustCompile(`^- \[[^]]+\]\((/[^)]*)\): \S`).FindStringSubmatch(line)
		if link == nil {
			if line != "" && !strings.HasPrefix(line, "## ") {
				t.Errorf("neither a heading nor a link: %q", line)
			}
			continue
		}
		links++
		resp, _ := do(t, c, "GET", link[1])
		equal(t, resp.StatusCode, 200, "%s", link[1])
	}
	if links < 20 {
		t.Errorf("%d links", links)
	}
}
