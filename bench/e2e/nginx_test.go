//go:build unix

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// nginx starts nginx in front of an origin, with nginx.conf. Only the addresses and the folder are replaced.
func nginx(t *testing.T, origin string) *process {
	t.Helper()
	path := installed(t, "nginx")
	recipe, err := os.ReadFile(filepath.Join(root, "bench", "clients", "nginx.conf"))
	if err != nil {
		t.Fatal(err)
	}
	dir, address := t.TempDir(), freeAddress(t)
	text := string(recipe)
	for from, to := range map[string]string{
		"/var/cache/nginx/strikecache": filepath.Join(dir, "cache"), "server 127.0.0.1:8080;": "server " + strings.TrimPrefix(origin, "http://") + ";",
		"listen 80;": "listen " + address + ";",
	} {
		if strings.Count(text, from) != 1 {
			t.Fatalf("nginx.conf has %q %d times", from, strings.Count(text, from))
		}
		text = strings.ReplaceAll(text, from, to)
	}
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;" // its worker must be able to write the temporary directory
	}
	main := fmt.Sprintf("%s daemon off; worker_processes 1; pid %[2]s/pid; error_log stderr; events {}\nhttp {\naccess_log off; client_body_temp_path %[2]s/a;"+
		"proxy_temp_path %[2]s/b; fastcgi_temp_path %[2]s/c; uwsgi_temp_path %[2]s/d; scgi_temp_path %[2]s/e;\n%[3]s}\n", user, dir, text)
	file := writeFile(t, filepath.Join(dir, "nginx.conf"), main)
	return follow(t, path, "-p", dir, "-e", "stderr", "-c", file).serves(address)
}

// With nginx.conf, the origin sends each document once in each coding, and then only 304 until the document changes.
// nginx never stores the answer to a key. While the origin fails, nginx serves the stored documents.
func TestNginxRecipe(t *testing.T) {
	t.Parallel()
	installed(t, "nginx")
	dir := storedDay(t)
	secret, id := newKey(t, dir, "nginx", "--per-minute", "600")
	p := serveReady(t, "--data-dir", dir, "--sim-speed", "0", "--sim-start", marketStart)
	const short, soon = vixPath, sectorsPath // their answers are made to expire after a second
	var shortened atomic.Int64
	origin := newFront(t, p.url, func(r *http.Response) {
		directives := map[string]string{short: "public, max-age=1, stale-if-error=86400", soon: "public, max-age=1, stale-while-revalidate=600"}[r.Request.URL.Path]
		if directives != "" && strings.HasPrefix(r.Header.Get("Cache-Control"), "public") {
			shortened.Add(1)
			r.Header.Set("Cache-Control", directives)
		}
	})
	n := nginx(t, origin.URL)

	for _, x := range []struct{ accepts, coding, asked string }{
		{"", "", "identity"}, {"gzip;q=0, br;q=1", "", "identity"}, {"gzip", "gzip", "gzip, identity"}, {"GZIP,deflate", "gzip", "gzip, identity"},
		{"br", "br", "br, identity"}, {"gzip, deflate, br, zstd", "", "zstd, br, gzip, identity"}, {"zstd,br,gzip", "", "zstd, br, gzip, identity"},
	} {
		for i := range 2 {
			headers := []string{"Accept-Encoding", x.accepts}
			resp, body := n.get(gammaPath, headers...)
			coding := resp.Header.Get("Content-Encoding")
			if resp.StatusCode != 200 || x.coding != coding && !strings.HasPrefix(x.asked, "zstd") || len(body) == 0 || strings.HasPrefix(resp.Header.Get("ETag"), "W/") {
				t.Errorf("%q: %d %v", x.accepts, resp.StatusCode, resp.Header)
			}
			if i == 1 && resp.Header.Get("X-Cache-Status") != "HIT" {
				t.Errorf("%q the second time: %s", x.accepts, resp.Header.Get("X-Cache-Status"))
			}
			headers = append(headers, "If-None-Match", resp.Header.Get("ETag"))
			if resp, _ := n.get(gammaPath, headers...); resp.StatusCode != http.StatusNotModified {
				t.Errorf("%q with its tag: %d", x.accepts, resp.StatusCode)
			}
		}
	}
	codings := map[string]int{}
	for _, x := range origin.asked(0, gammaPath) {
		codings[x.asked.Get("Accept-Encoding")]++
	}
	if fmt.Sprint(codings) != fmt.Sprint(map[string]int{"identity": 1, "gzip, identity": 1, "br, identity": 1, "zstd, br, gzip, identity": 1}) {
		t.Errorf("the origin was asked for %v", codings)
	}

	n.keyed(origin, secret, id)
	n.expired(origin, short, "REVALIDATED")
	n.expired(origin, soon, "STALE")
	if shortened.Load() == 0 {
		t.Error("no answer was made to expire")
	}

	p.kill()
	stale := func() {
		t.Helper()
		n.until("a stale answer", func() bool {
			resp, body := n.get(short)
			if resp.StatusCode != 200 || len(body) == 0 {
				t.Fatalf("%d %v", resp.StatusCode, resp.Header)
			}
			return resp.Header.Get("X-Cache-Status") == "STALE"
		})
	}
	stale()
	if len(origin.exchanges(http.StatusBadGateway)) == 0 {
		t.Error("the origin did not answer 502")
	}
	if resp, _ := n.get(short, "X-API-Key", secret); resp.StatusCode != http.StatusBadGateway {
		t.Errorf("with a key, of a dead origin: %d", resp.StatusCode)
	}
	origin.Close() // now nothing listens there
	stale()
}

// keyed checks that every request with a key reaches the origin, a conditional one with its If-None-Match.
func (p *process) keyed(origin *front, secret, id string) {
	p.t.Helper()
	mark := len(origin.exchanges(0))
	tag := ""
	for i := 1; i <= 3; i++ {
		resp, body := p.get(gammaPath, "X-API-Key", secret)
		if u := usageOf(p.t, body); u.Key != id || u.RequestsToday != i || resp.Header.Get("X-Cache-Status") != "" {
			p.t.Errorf("keyed request %d: %+v %v", i, u, resp.Header)
		}
		tag = resp.Header.Get("ETag")
	}
	if resp, _ := p.get(gammaPath, "X-API-Key", secret, "If-None-Match", tag); resp.StatusCode != http.StatusNotModified {
		p.t.Errorf("keyed with %s: %d", tag, resp.StatusCode)
	}
	seen := origin.asked(mark, gammaPath)
	if len(seen) != 4 || seen[3].status != http.StatusNotModified {
		p.t.Errorf("the origin saw %d of 4 keyed requests: %+v", len(seen), seen)
	}
	if _, body := p.get(gammaPath, "Accept-Encoding", "identity"); usageOf(p.t, body).Tier != "anonymous" {
		p.t.Error("an answer to a key was stored")
	}
}

// expired asks until the stored answer has expired and X-Cache-Status is want, and until nginx has asked the origin
// whether the document has changed.
func (p *process) expired(origin *front, path, want string) {
	p.t.Helper()
	mark := len(origin.exchanges(0))
	p.get(path)
	p.until(want, func() bool { resp, _ := p.get(path); return resp.Header.Get("X-Cache-Status") == want })
	p.until("the origin was asked", func() bool { return len(origin.asked(mark, path)) > 1 })
	seen := origin.asked(mark, path)
	if seen[0].status != http.StatusOK || seen[0].asked.Get("If-None-Match") != "" {
		p.t.Fatalf("%+v", seen)
	}
	for _, x := range seen[1:] {
		if x.status != http.StatusNotModified || x.asked.Get("If-None-Match") != seen[0].answered.Get("ETag") {
			p.t.Errorf("%d to If-None-Match %s", x.status, x.asked.Get("If-None-Match"))
		}
	}
}
