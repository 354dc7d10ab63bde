//go:build unix

package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
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

// varnish starts varnishd with its built-in VCL in front of an origin.
func varnish(t *testing.T, origin string, params ...string) *process {
	t.Helper()
	path := installed(t, "varnishd")
	address := freeAddress(t)
	// Without -j none, varnishd would change to a user who may not enter the directory.
	return follow(t, append([]string{path, "-F", "-j", "none", "-T", "none", "-a", address, "-b", strings.TrimPrefix(origin, "http://"),
		"-n", filepath.Join(t.TempDir(), "varnish"), "-s", "malloc,64m"}, params...)...).serves(address)
}

// usageIn returns the usage member of an answer in any coding.
func usageIn(t testing.TB, resp *http.Response, body []byte) usage {
	t.Helper()
	plain, err := decode(resp, body, nil)
	if err != nil {
		t.Fatal(err)
	}
	return envelopeOf(t, plain).Usage
}

// cacheClient is one client behind a cache: anonymous, or with a key.
type cacheClient struct {
	cache              *process
	coding, secret, id string
	asked              int
	tags               []string // of the answers, each once, in order
}

// get asks once and checks that the answer is this client's own: in its coding, with its own usage, and with no older
// document than before.
func (c *cacheClient) get() {
	t := c.cache.t
	headers := []string{"Accept-Encoding", c.coding}
	if c.secret != "" {
		headers = append(headers, "X-API-Key", c.secret)
	}
	resp, body := c.cache.get(gammaPath, headers...)
	c.asked++
	coding, tag, directives := resp.Header.Get("Content-Encoding"), resp.Header.Get("ETag"), resp.Header.Get("Cache-Control")
	if resp.StatusCode != http.StatusOK || coding != c.coding && coding+c.coding != "identity" {
		t.Errorf("%s: %d %v", c.coding, resp.StatusCode, resp.Header)
		return
	}
	u, limited := usageIn(t, resp, body), resp.Header.Get("RateLimit")+resp.Header.Get("X-RateLimit-Remaining") != ""
	keyed := c.secret != ""
	if u.Key != c.id || keyed != (u.Tier == "keyed") || keyed != limited || keyed != strings.HasPrefix(directives, "private") || keyed != strings.HasPrefix(tag, "W/") {
		t.Errorf("key %q has another client's answer: %+v %v", c.id, u, resp.Header)
	}
	if keyed {
		return
	}
	if !slices.Contains(c.tags, tag) {
		c.tags = append(c.tags, tag)
	} else if c.tags[len(c.tags)-1] != tag {
		t.Errorf("%s: back to the older document %s of %q", c.coding, tag, c.tags)
	}
}

// accepted is what a client sends as Accept-Encoding, the coding that it gets, and what the cache asks the origin for.
type accepted struct{ sent, coding, asked string }

// caches tells how to start each cache in front of an origin, and what it does with Accept-Encoding.
var caches = map[string]struct {
	start  func(t *testing.T, origin string) *process
	accept []accepted
}{
	"nginx": {nginx, []accepted{
		{"", "", "identity"}, {"gzip;q=0, br;q=1", "", "identity"}, {"gzip", "gzip", "gzip, identity"}, {"GZIP,deflate", "gzip", "gzip, identity"},
		{"br", "br", "br, identity"}, {"gzip, deflate, br, zstd", "any", "zstd, br, gzip, identity"}, {"zstd,br,gzip", "any", "zstd, br, gzip, identity"},
	}},
	"varnishd": {
		func(t *testing.T, origin string) *process { return varnish(t, origin, "-p", "http_gzip_support=off") },
		[]accepted{{"identity", "", "identity"}, {"gzip", "gzip", "gzip"}, {"br", "br", "br"}, {"zstd", "zstd", "zstd"}},
	},
}

// Behind nginx with nginx.conf, and behind Varnish with its built-in VCL, a refresh costs the origin one document in each coding,
// whatever the number of clients. No client gets another's keyed answer, or a delta that it cannot decode. An unchanged document is
// answered 304. While the origin fails, the cache serves stored documents.
func TestCaches(t *testing.T) {
	t.Parallel()
	for name, kind := range caches {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			installed(t, name)
			dir := t.TempDir()
			secret, id := newKey(t, dir, "cache", "--per-minute", "100000")
			p := serve(t, "--data-dir", dir, "--gex-every", "5s") // an answer may stay in a cache until the next one, and not longer
			lifetimes := map[string]string{gammaPath: "public, max-age=1, stale-while-revalidate=600", vixPath: "public, max-age=600"}
			origin := newFront(t, p.url, func(r *http.Response) {
				if lifetime := lifetimes[r.Request.URL.Path]; lifetime != "" && strings.HasPrefix(r.Header.Get("Cache-Control"), "public") {
					r.Header.Set("Cache-Control", lifetime)
				}
			})
			for path := range lifetimes {
				p.until(path+" is there", func() bool { return p.answers(path, http.StatusOK) })
			}
			cache := kind.start(t, origin.URL)
			storesOnce(t, cache, origin, kind.accept)
			clients := []*cacheClient{{cache: cache, coding: "identity", secret: secret, id: id}, {cache: cache, coding: "zstd", secret: secret, id: id}}
			for range 3 {
				for _, coding := range codings {
					clients = append(clients, &cacheClient{cache: cache, coding: coding})
				}
			}
			followsRefreshes(t, cache, origin, clients)
			revalidates(t, cache)
			deltasThrough(t, cache, origin)
			if name == "varnishd" {
				checkUnpacking(t, p)
				origin.Close() // before the server ends: its built-in VCL passes a 502 on
			} else {
				revalidatesKeyed(t, cache, origin, secret)
			}
			p.kill()
			for range 2 {
				expired := time.Now().Add(2 * time.Second)
				cache.until("stale answers in every coding", func() bool {
					for _, c := range clients[2:6] {
						c.get()
					}
					return t.Failed() || time.Now().After(expired)
				})
				if resp, _ := cache.get(gammaPath, "X-API-Key", secret); resp.StatusCode != http.StatusBadGateway && resp.StatusCode != http.StatusServiceUnavailable {
					t.Errorf("with a key, of a dead origin: %d", resp.StatusCode)
				}
				if refused := len(origin.exchanges(http.StatusBadGateway)); refused == 0 && name == "nginx" {
					t.Error("the origin did not answer 502")
				}
				origin.Close() // now nothing listens there
			}
		})
	}
}

// storesOnce checks that an answer that does not change is asked for once in each set of codings.
func storesOnce(t *testing.T, cache *process, origin *front, accept []accepted) {
	t.Helper()
	want := map[string]int{}
	for _, x := range accept {
		want[x.asked] = 1
		for range 2 {
			headers := []string{"Accept-Encoding", x.sent}
			resp, body := cache.get(vixPath, headers...)
			if resp.StatusCode != 200 || x.coding != "any" && resp.Header.Get("Content-Encoding") != x.coding || len(body) == 0 || strings.HasPrefix(resp.Header.Get("ETag"), "W/") {
				t.Errorf("%q: %d %v", x.sent, resp.StatusCode, resp.Header)
			}
			headers = append(headers, "If-None-Match", resp.Header.Get("ETag"))
			if resp, _ := cache.get(vixPath, headers...); resp.StatusCode != http.StatusNotModified {
				t.Errorf("%q with its tag: %d", x.sent, resp.StatusCode)
			}
		}
	}
	got := map[string]int{}
	for _, x := range origin.asked(0, vixPath) {
		got[x.asked.Get("Accept-Encoding")]++
	}
	if !maps.Equal(got, want) {
		t.Errorf("the origin was asked for %v, want %v", got, want)
	}
}

// followsRefreshes lets clients ask until each has seen a refresh, and compares the requests at the origin with the answers that
// the clients got. The first two clients have a key.
func followsRefreshes(t *testing.T, cache *process, origin *front, clients []*cacheClient) {
	t.Helper()
	mark := len(origin.exchanges(0))
	cache.until("every client sees a refresh", func() bool {
		var all sync.WaitGroup
		for _, c := range clients {
			all.Go(c.get)
		}
		all.Wait()
		return t.Failed() || !slices.ContainsFunc(clients, func(c *cacheClient) bool { return c.secret == "" && len(c.tags) < 2 })
	})
	keyed := clients[0].asked + clients[1].asked
	cache.until("every request with a key reaches the origin", func() bool { // its exchange ends a moment after the answer
		n := 0
		for _, x := range origin.asked(mark, gammaPath) {
			if x.asked.Get("X-API-Key") != "" {
				n++
			}
		}
		return n == keyed
	})
	last, documents := map[string]time.Time{}, map[string][]string{} // by coding: the last request, and the tags that were sent
	for _, x := range origin.asked(mark, gammaPath) {
		coding := strings.TrimSuffix(x.asked.Get("Accept-Encoding"), ", identity") // which nginx adds
		if x.asked.Get("X-API-Key") != "" {
			continue
		}
		if gap := x.at.Sub(last[coding]); gap < 900*time.Millisecond { // max-age, and the rounding of two clocks
			t.Errorf("%s: asked again after %v", coding, gap)
		}
		last[coding] = x.at
		switch tag := x.answered.Get("ETag"); {
		case x.status == http.StatusOK && !slices.Contains(documents[coding], tag):
			documents[coding] = append(documents[coding], tag)
		case x.status != http.StatusNotModified:
			t.Errorf("%s: %d with the tag %s, of which the origin has sent %q", coding, x.status, tag, documents[coding])
		}
	}
	for _, c := range clients[2:] {
		for _, tag := range c.tags {
			if !slices.Contains(documents[c.coding], tag) {
				t.Errorf("%s: the origin sent %q, a client has %q", c.coding, documents[c.coding], c.tags)
			}
		}
	}
}

// revalidates checks that clients with the last tag get 304.
func revalidates(t *testing.T, cache *process) {
	t.Helper()
	for _, coding := range codings {
		cache.until("304 in "+coding, func() bool { // again if a refresh came between the two requests
			resp, _ := cache.get(gammaPath, "Accept-Encoding", coding)
			tag := resp.Header.Get("ETag")
			resp, body := cache.get(gammaPath, "Accept-Encoding", coding, "If-None-Match", tag)
			return resp.StatusCode == http.StatusNotModified && resp.Header.Get("ETag") == tag && len(body) == 0
		})
	}
}

// revalidatesKeyed checks that the If-None-Match of a request with a key reaches the origin. Varnish does not pass it on.
func revalidatesKeyed(t *testing.T, cache *process, origin *front, secret string) {
	t.Helper()
	cache.until("304 with a key", func() bool {
		resp, _ := cache.get(gammaPath, "X-API-Key", secret)
		tag, mark := resp.Header.Get("ETag"), len(origin.exchanges(0))
		resp, _ = cache.get(gammaPath, "X-API-Key", secret, "If-None-Match", tag)
		return resp.StatusCode == http.StatusNotModified && slices.ContainsFunc(origin.asked(mark, gammaPath), func(x exchange) bool {
			return x.asked.Get("If-None-Match") == tag
		})
	})
}

// checkUnpacking starts varnishd with its own parameters. It asks for gzip only and unpacks it for others, whose tags it
// weakens: the origin is asked for one document, and accepts the weakened tag in every coding.
func checkUnpacking(t *testing.T, p *process) {
	t.Helper()
	origin := newFront(t, p.url, nil)
	v := varnish(t, origin.URL)
	for _, coding := range codings {
		resp, body := v.get(vixPath, "Accept-Encoding", coding)
		packed := resp.Header.Get("Content-Encoding") == "gzip"
		if resp.StatusCode != http.StatusOK || packed != (coding == "gzip") || usageIn(t, resp, body).Tier != "anonymous" {
			t.Errorf("%s: %d %v", coding, resp.StatusCode, resp.Header)
		}
		tag := resp.Header.Get("ETag")
		if packed == strings.HasPrefix(tag, "W/") {
			t.Errorf("%s: ETag %s", coding, tag)
		}
		for _, other := range codings {
			if resp, _ := p.get(vixPath, "Accept-Encoding", other, "If-None-Match", tag); resp.StatusCode != http.StatusNotModified {
				t.Errorf("the tag %s in %s: %d", tag, other, resp.StatusCode)
			}
		}
	}
	if seen := origin.asked(0, vixPath); len(seen) != 1 || seen[0].asked.Get("Accept-Encoding") != "gzip" {
		t.Errorf("the origin was asked %d times: %+v", len(seen), seen)
	}
}
