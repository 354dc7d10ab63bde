package e2e

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// pollingPage has a function that asks for a URL as a script of another origin does, and puts what the script may read into
// window.seen.
const pollingPage = `<!doctype html><title>Another origin</title><script>
async function poll(url, headers, cache) {
	window.seen = null;
	try {
		const r = await fetch(url, {cache, headers});
		const read = {};
		for (const name of ["ETag", "RateLimit", "X-RateLimit-Remaining", "Cache-Control"]) read[name] = r.headers.get(name) ?? "";
		const text = await r.text();
		window.seen = {status: r.status, headers: read, bytes: text.length, usage: text ? JSON.parse(text).usage : {}, failure: ""};
	} catch (e) {
		window.seen = {status: 0, headers: {}, bytes: 0, usage: {}, failure: String(e)};
	}
}
</script>`

type seen struct {
	Status  int
	Headers map[string]string
	Bytes   int
	Usage   usage
	Failure string
}

// A page of another origin polls with If-None-Match, with a key and without one, in every coding: it reads the answer and the
// tag, and gets 304. The browser chooses its own Accept-Encoding, so a proxy in between asks for one coding at a time and passes
// the bytes on.
func TestPollingFromAnotherOrigin(t *testing.T) {
	t.Parallel()
	installed(t, "chromium")
	p := shared(t)
	proxy := newFront(t, p.url, nil)
	proxy.request = func(r *http.Request) {
		if coding, path, found := strings.Cut(r.URL.Path, "/api/"); found && coding != "" {
			r.URL.Path = "/api/" + path
			r.Header.Set("Accept-Encoding", coding[1:])
		}
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, pollingPage)
	}))
	defer other.Close()
	b := browse(t, other.URL)
	ask := func(path string, headers map[string]string, cache string) (s seen) {
		t.Helper()
		eval[bool](b, `(poll(%s, %s, %s), true)`, proxy.URL+path, headers, cache)
		b.until("answered", "window.seen")
		return eval[seen](b, "window.seen")
	}
	one, oneID := keyed(t, p, "one")
	two, twoID := keyed(t, p, "two")
	callers := map[string]map[string]string{"": {}, oneID: {"X-API-Key": one}, twoID: {"X-API-Key": two}}
	for _, path := range []string{gammaPath, trackPath, datePath + marketDay} {
		for _, coding := range codings {
			for id, headers := range callers {
				first := ask("/"+coding+path, headers, "no-store")
				tag := first.Headers["ETag"]
				if first.Status != http.StatusOK || strings.Trim(tag, `W/"`) == "" || first.Usage.Key != id {
					t.Errorf("%s, %s, %q: %+v", path, coding, id, first)
				}
				if keyed := id != ""; keyed != (first.Headers["RateLimit"] != "") || keyed != (first.Headers["X-RateLimit-Remaining"] != "") || keyed != strings.HasPrefix(tag, "W/") {
					t.Errorf("%s, %s, %q: the script reads %v", path, coding, id, first.Headers)
				}
				again := maps.Clone(headers)
				again["If-None-Match"] = tag
				if second := ask("/"+coding+path, again, "no-store"); second.Status != http.StatusNotModified || second.Bytes != 0 || second.Headers["ETag"] != tag {
					t.Errorf("%s, %s, %q, with the tag: %+v", path, coding, id, second)
				}
				if !slices.ContainsFunc(proxy.exchanges(http.StatusOK), func(x exchange) bool {
					return x.asked.Get("X-API-Key") == headers["X-API-Key"] && x.answered.Get("Content-Encoding") == strings.TrimPrefix(coding, "identity")
				}) {
					t.Errorf("%s was not sent to %q", coding, id)
				}
			}
		}
	}
	for range 2 { // the browser's cache revalidates what it has of another caller, and each caller still reads its own usage
		for id, headers := range callers {
			if got := ask(gammaPath, headers, "no-cache"); got.Usage.Key != id {
				t.Errorf("caller %q reads %+v", id, got)
			}
		}
	}
	if refused := ask(gammaPath, map[string]string{"X-Anything-Else": "1"}, "no-store"); refused.Failure == "" {
		t.Errorf("a header field that no preflight allows: %+v", refused)
	}
}
