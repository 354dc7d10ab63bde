package e2e

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
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
		for (const name of ["ETag", "RateLimit", "X-RateLimit-Remaining"]) read[name] = r.headers.get(name) ?? "";
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

// A page of another origin polls with If-None-Match, with a key and without one: it reads the answer, the tag and the limits, and
// gets 304.
func TestPollingFromAnotherOrigin(t *testing.T) {
	t.Parallel()
	installed(t, "chromium")
	p := shared(t)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, pollingPage)
	}))
	defer other.Close()
	b := browse(t, other.URL)
	ask := func(headers map[string]string, cache string) (s seen) {
		t.Helper()
		eval[bool](b, `(poll(%s, %s, %s), true)`, p.url+gammaPath, headers, cache)
		b.until("answered", "window.seen")
		return eval[seen](b, "window.seen")
	}
	one, oneID := keyed(t, p, "one")
	two, twoID := keyed(t, p, "two")
	callers := map[string]map[string]string{"": {}, oneID: {"X-API-Key": one}, twoID: {"X-API-Key": two}}
	for id, headers := range callers {
		first := ask(headers, "no-store")
		tag := first.Headers["ETag"]
		if first.Status != http.StatusOK || strings.Trim(tag, `W/"`) == "" || first.Usage.Key != id {
			t.Errorf("%q: %+v", id, first)
		}
		if keyed := id != ""; keyed != (first.Headers["RateLimit"] != "") || keyed != (first.Headers["X-RateLimit-Remaining"] != "") || keyed != strings.HasPrefix(tag, "W/") {
			t.Errorf("%q: the script reads %v", id, first.Headers)
		}
		again := maps.Clone(headers)
		again["If-None-Match"] = tag
		if second := ask(again, "no-store"); second.Status != http.StatusNotModified || second.Bytes != 0 || second.Headers["ETag"] != tag {
			t.Errorf("%q, with the tag: %+v", id, second)
		}
	}
	for range 2 { // the browser's cache revalidates what it has of another caller, and each caller still reads its own usage
		for id, headers := range callers {
			if got := ask(headers, "no-cache"); got.Usage.Key != id {
				t.Errorf("caller %q reads %+v", id, got)
			}
		}
	}
	if refused := ask(map[string]string{"X-Anything-Else": "1"}, "no-store"); refused.Failure == "" {
		t.Errorf("a header field that no preflight allows: %+v", refused)
	}
}
