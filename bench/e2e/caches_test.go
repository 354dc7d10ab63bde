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

// recipe returns the text of a file of bench/clients, with replacements.
func recipe(t *testing.T, name string, replace map[string]string) string {
	t.Helper()
	text := text(t, "bench/clients/"+name)
	for from, to := range replace {
		if strings.Count(text, from) != 1 {
			t.Fatalf("%s has %q %d times", name, from, strings.Count(text, from))
		}
		text = strings.ReplaceAll(text, from, to)
	}
	return text
}

// nginx starts nginx in front of an origin, with nginx.conf. Only the addresses, the folder, the timeout of an answer, and for how long
// nginx keeps one are replaced.
func nginx(t *testing.T, origin, keeps string) *process {
	t.Helper()
	path := installed(t, "nginx")
	dir, address := t.TempDir(), freeAddress(t)
	text := recipe(t, "nginx.conf", map[string]string{
		"/var/cache/strikecache": filepath.Join(dir, "cache"), "server 127.0.0.1:8080;": "server " + strings.TrimPrefix(origin, "http://") + ";",
		"listen 80;": "listen " + address + ";", "proxy_cache_valid 200 1s;": "proxy_cache_valid 200 " + keeps + ";", "proxy_read_timeout 3s;": "proxy_read_timeout 300s; proxy_cache_lock_timeout 300s; proxy_cache_lock_age 300s;",
	})
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;" // its worker must be able to write the temporary directory
	}
	main := fmt.Sprintf("%s daemon off; worker_processes 1; pid %[2]s/pid; error_log stderr; events {}\nhttp {\naccess_log off; client_body_temp_path %[2]s/a;"+
		"proxy_temp_path %[2]s/b; fastcgi_temp_path %[2]s/c; uwsgi_temp_path %[2]s/d; scgi_temp_path %[2]s/e;\n%[3]s}\n", user, dir, text)
	file := writeFile(t, filepath.Join(dir, "nginx.conf"), main)
	return follow(t, path, "-p", dir, "-e", "stderr", "-c", file).serves(address)
}

// varnish starts varnishd in front of an origin, with strikecache.vcl. Only the address, the timeout of an answer, and the longest stale
// answer while the origin answers are replaced.
func varnish(t *testing.T, origin, grace string, params ...string) *process {
	t.Helper()
	path := installed(t, "varnishd")
	host, port, _ := strings.Cut(strings.TrimPrefix(origin, "http://"), ":")
	vcl := writeFile(t, filepath.Join(t.TempDir(), "strikecache.vcl"), recipe(t, "strikecache.vcl", map[string]string{
		`.host = "127.0.0.1";`: `.host = "` + host + `";`, `.port = "8080";`: `.port = "` + port + `";`, "req.grace = 25s;": "req.grace = " + grace + ";",
		".first_byte_timeout = 3s;": ".first_byte_timeout = 300s;",
	}))
	address := freeAddress(t)
	// Without -j none, varnishd would change to a user who may not enter the directory.
	return follow(t, append([]string{path, "-F", "-j", "none", "-T", "none", "-a", address, "-f", vcl,
		"-n", filepath.Join(t.TempDir(), "varnish"), "-s", "malloc,64m"}, params...)...).serves(address)
}

// usageIn returns the usage member of an answer in any coding.
func usageIn(t testing.TB, resp *http.Response, body []byte) usage {
	t.Helper()
	plain, err := decode(resp, body, nil)
	must(t, err)
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

// caches tells how to start each cache in front of an origin, and what it does with Accept-Encoding. lasting makes it keep answers
// for as long as their max-age says.
var caches = map[string]struct {
	start, lasting func(t *testing.T, origin string) *process
	accept         []accepted
}{
	"nginx": {func(t *testing.T, origin string) *process { return nginx(t, origin, "1s") }, func(t *testing.T, origin string) *process { return nginx(t, origin, "600s") }, []accepted{
		{"", "", "identity"}, {"gzip;q=0, br;q=1", "", "identity"}, {"gzip", "gzip", "gzip, identity"}, {"GZIP,deflate", "gzip", "gzip, identity"},
		{"br", "br", "br, identity"}, {"gzip, deflate, br, zstd", "any", "zstd, br, gzip, identity"}, {"zstd,br,gzip", "any", "zstd, br, gzip, identity"},
	}},
	"varnishd": {
		unpacked, unpacked,
		[]accepted{{"identity", "", "identity"}, {"gzip", "gzip", "gzip"}, {"br", "br", "br"}, {"zstd", "zstd", "zstd"}},
	},
}

// unpacked starts varnishd so that it passes every coding on.
func unpacked(t *testing.T, origin string) *process {
	return varnish(t, origin, "1s", "-p", "http_gzip_support=off")
}

// Behind nginx with nginx.conf, and behind Varnish with strikecache.vcl, the origin is asked for a document at most once a second in
// each coding, whatever the number of clients. No client gets another's keyed answer, or a delta that it cannot decode. To Varnish,
// an unchanged document is answered 304. While the origin fails, the cache serves stored documents, also long after they were fresh.
func TestCaches(t *testing.T) {
	t.Parallel()
	for name, kind := range caches {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			installed(t, name)
			dir := storedDay(t)
			secret, id := newKey(t, dir, "cache", "--per-minute", "100000")
			p := serve(t, "--data-dir", dir, "--sim-start", marketStart, "--gex-every", "5s") // an answer may stay in a cache until the next one, and not longer
			lifetimes := map[string]string{gammaPath: "public, max-age=1, stale-while-revalidate=1, stale-if-error=86400", vixPath: "public, max-age=600"}
			origin := newFront(t, p.url, func(r *http.Response) {
				if lifetime := lifetimes[r.Request.URL.Path]; lifetime != "" && strings.HasPrefix(r.Header.Get("Cache-Control"), "public") {
					r.Header.Set("Cache-Control", lifetime)
				}
			})
			for path := range lifetimes {
				p.until(path+" is there", func() bool { return p.answers(path, http.StatusOK) })
			}
			storesOnce(t, kind.lasting(t, origin.URL), origin, kind.accept)
			cache := kind.start(t, origin.URL)
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
			}
			revalidatesKeyed(t, cache, origin, secret)
			p.kill()
			for range 2 {
				expired := time.Now().Add(3 * time.Second) // the second until it expires, and the longest stale answer while the origin answers
				cache.until("stale answers in every coding", func() bool {
					for _, c := range clients[2:6] {
						c.get()
					}
					return t.Failed() || time.Now().After(expired)
				})
				if resp, _ := cache.get(gammaPath, "X-API-Key", secret); resp.StatusCode != http.StatusBadGateway && resp.StatusCode != http.StatusServiceUnavailable {
					t.Errorf("with a key, of a dead origin: %d", resp.StatusCode)
				}
				if refused := len(origin.exchanges(http.StatusBadGateway)); refused == 0 {
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
	keyed := 0
	last, documents := map[string]time.Time{}, map[string][]string{} // by coding: the last request, and the tags that were sent
	for _, x := range origin.asked(mark, gammaPath) {
		coding := strings.TrimSuffix(x.asked.Get("Accept-Encoding"), ", identity") // which nginx adds
		if x.asked.Get("X-API-Key") != "" {
			keyed++
			continue
		}
		if gap := x.at.Sub(last[coding]); gap < 900*time.Millisecond { // max-age, and the rounding of two clocks
			t.Errorf("%s: asked again after %v", coding, gap)
		}
		last[coding] = x.at
		switch tag := x.answered.Get("ETag"); {
		case x.status == http.StatusOK && !slices.Contains(documents[coding], tag):
			documents[coding] = append(documents[coding], tag)
		case x.status == http.StatusOK && x.asked.Get("If-None-Match") == "": // nginx has no document after a second
		case x.status != http.StatusNotModified:
			t.Errorf("%s: %d with the tag %s, of which the origin has sent %q", coding, x.status, tag, documents[coding])
		}
	}
	if want := clients[0].asked + clients[1].asked; keyed != want {
		t.Errorf("%d requests with a key reached the origin, want %d", keyed, want)
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

// revalidatesKeyed checks that the If-None-Match of a request with a key reaches the origin.
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
	v := varnish(t, origin.URL, "25s")
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

// Behind nginx and Varnish, in either order, a poller that obeys max-age sees a change at most 5 seconds after the origin has it. At
// the origin, max-age and the next change agree within 2 seconds.
func TestFaultTwoCachesInARow(t *testing.T) {
	if !full() {
		t.Skip("run by make faults")
	}
	installed(t, "nginx")
	installed(t, "varnishd")
	p := serveReady(t, "--data-dir", t.TempDir())
	p.until("the past is filled in, which changes answers beside the schedule", func() bool { return strings.Contains(p.logged(), "history filled in") })
	chains := map[string]string{
		"the origin":         p.url,
		"nginx then Varnish": nginx(t, unpacked25(t, p.url).url, "1s").url,
		"Varnish then nginx": unpacked25(t, nginx(t, p.url, "1s").url).url,
		"nginx":              nginx(t, p.url, "1s").url,
		"Varnish":            unpacked25(t, p.url).url,
	}
	const changes = 4 // of which the first is not complete
	watched := watchChanges(t, p.url, changes)
	var all sync.WaitGroup
	for name, url := range chains {
		all.Go(func() { pollObediently(t, name, url, watched) })
	}
	all.Wait()
	<-watched.end
	watched.compare(t)
}

// unpacked25 is [unpacked] with the longest stale answer of strikecache.vcl.
func unpacked25(t *testing.T, origin string) *process {
	return varnish(t, origin, "25s", "-p", "http_gzip_support=off")
}

// watch is what a client sees that asks the origin ten times a second.
type watch struct {
	end chan struct{} // closed after the last change

	mu       sync.Mutex
	changed  map[string]time.Time // by entity tag, when the answer was there
	promises []promise
}

// promise is what an answer said of the next change.
type promise struct {
	tag   string
	until time.Time
}

// watchChanges watches gex/spx until it has changed n times.
func watchChanges(t *testing.T, url string, n int) *watch {
	w := &watch{end: make(chan struct{}), changed: map[string]time.Time{}}
	go func() {
		defer close(w.end)
		for last := ""; len(w.changed) <= n && !t.Failed(); time.Sleep(100 * time.Millisecond) {
			resp, _, err := fetch(http.MethodGet, url+gammaPath)
			if err != nil {
				t.Error(err)
				return
			}
			tag := resp.Header.Get("ETag")
			w.mu.Lock()
			if tag != last {
				w.changed[tag], last = time.Now(), tag
			}
			w.promises = append(w.promises, promise{tag, time.Now().Add(lifetime(resp))})
			w.mu.Unlock()
		}
	}()
	return w
}

// lifetime returns max-age less Age, at least a second.
func lifetime(resp *http.Response) time.Duration {
	seconds, age := 0, 0
	_, directive, _ := strings.Cut(resp.Header.Get("Cache-Control"), "max-age=")
	_, _ = fmt.Sscan(strings.TrimRight(strings.Fields(directive)[0], ","), &seconds)
	_, _ = fmt.Sscan(resp.Header.Get("Age"), &age)
	return time.Duration(max(seconds-age, 1)) * time.Second
}

// compare compares each promise with the change that came.
func (w *watch) compare(t *testing.T) {
	t.Helper()
	next := map[string]time.Time{} // by tag, when the following answer was there
	tags := slices.SortedFunc(maps.Keys(w.changed), func(a, b string) int { return w.changed[a].Compare(w.changed[b]) })
	for i := range len(tags) - 1 {
		next[tags[i]] = w.changed[tags[i+1]]
	}
	early, late, n := time.Duration(0), time.Duration(0), 0
	for _, x := range w.promises {
		if at, known := next[x.tag]; known {
			early, late, n = min(early, x.until.Sub(at)), max(late, x.until.Sub(at)), n+1
		}
	}
	figure(t, "%d answers of the origin over %d changes: max-age ended from %v before to %v after the change", n, len(next), -early, late)
	if n == 0 || early < -2*time.Second || late > 2*time.Second {
		t.Errorf("max-age and the next change differ by more than 2 s")
	}
}

// pollObediently polls gex/spx when max-age less Age has passed, until the origin has changed often enough.
func pollObediently(t *testing.T, name, url string, w *watch) {
	began, asked, slowest, seen := time.Now(), 0, time.Duration(0), 0
	for last := ""; ; {
		resp, _, err := fetch(http.MethodGet, url+gammaPath)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %v %v", name, resp, err)
			return
		}
		asked++
		if tag := resp.Header.Get("ETag"); tag != last {
			w.mu.Lock()
			at, known := w.changed[tag]
			w.mu.Unlock()
			if known && last != "" {
				slowest, seen = max(slowest, time.Since(at)), seen+1
			}
			last = tag
		}
		select {
		case <-w.end:
			figure(t, "behind %s: %d changes, seen at most %v after the origin had them; %.0f requests an hour", name, seen, slowest, float64(asked)/time.Since(began).Hours())
			if seen < 2 || slowest > 5*time.Second {
				t.Errorf("behind %s: %d changes, the slowest after %v", name, seen, slowest)
			}
			return
		case <-time.After(lifetime(resp)):
		}
	}
}
