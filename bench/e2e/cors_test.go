package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// pollingPage has a function that asks for a URL as a script of another origin does, without the browser's own cache, and puts
// what the script may read into window.seen.
const pollingPage = `<!doctype html><title>Another origin</title><script>
async function poll(url, headers) {
	window.seen = null;
	try {
		const r = await fetch(url, {cache: "no-store", headers});
		const read = {};
		for (const name of ["ETag", "RateLimit", "X-RateLimit-Remaining", "Cache-Control"]) read[name] = r.headers.get(name) ?? "";
		window.seen = {status: r.status, headers: read, bytes: (await r.text()).length, failure: ""};
	} catch (e) {
		window.seen = {status: 0, headers: {}, bytes: 0, failure: String(e)};
	}
}
</script>`

type seen struct {
	Status  int
	Headers map[string]string
	Bytes   int
	Failure string
}

// A page of another origin polls with If-None-Match, with a key and without one: it reads the tag and gets 304.
func TestPollingFromAnotherOrigin(t *testing.T) {
	t.Parallel()
	installed(t, "chromium")
	dir := storedDay(t)
	secret, _ := newKey(t, dir, "page", "--per-minute", "600")
	p := serveReady(t, "--data-dir", dir, "--sim-speed", "0", "--sim-start", marketStart)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, pollingPage)
	}))
	defer other.Close()
	b := browse(t, other.URL)
	ask := func(path string, headers map[string]string) (s seen) {
		t.Helper()
		eval[bool](b, `(poll(%s, %s), true)`, p.url+path, headers)
		b.until("answered", "window.seen")
		return eval[seen](b, "window.seen")
	}
	for _, path := range []string{gammaPath, trackPath, datePath + marketDay} {
		for who, headers := range map[string]map[string]string{"anonymous": {}, "with a key": {"X-API-Key": secret}} {
			first := ask(path, headers)
			tag := first.Headers["ETag"]
			if first.Status != http.StatusOK || first.Bytes == 0 || strings.Trim(tag, `W/"`) == "" {
				t.Errorf("%s, %s: %+v", path, who, first)
			}
			if keyed := headers["X-API-Key"] != ""; keyed != (first.Headers["RateLimit"] != "") || keyed != (first.Headers["X-RateLimit-Remaining"] != "") || keyed != strings.HasPrefix(tag, "W/") {
				t.Errorf("%s, %s: the script reads %v", path, who, first.Headers)
			}
			again := map[string]string{"If-None-Match": tag}
			for name, value := range headers {
				again[name] = value
			}
			if second := ask(path, again); second.Status != http.StatusNotModified || second.Bytes != 0 || second.Headers["ETag"] != tag {
				t.Errorf("%s, %s, with the tag: %+v", path, who, second)
			}
		}
	}
	if refused := ask(gammaPath, map[string]string{"X-Anything-Else": "1"}); refused.Failure == "" {
		t.Errorf("a header field that no preflight allows: %+v", refused)
	}
}
