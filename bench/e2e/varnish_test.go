//go:build unix

package e2e

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// varnish starts varnishd with its built-in VCL in front of an origin.
func varnish(t *testing.T, origin string, params ...string) *process {
	t.Helper()
	path := installed(t, "varnishd")
	address := freeAddress(t)
	// Without -j none, varnishd would change to a user who may not enter the directory.
	return follow(t, append([]string{path, "-F", "-j", "none", "-T", "none", "-a", address, "-b", strings.TrimPrefix(origin, "http://"),
		"-n", filepath.Join(t.TempDir(), "varnish"), "-s", "malloc,64m"}, params...)...).serves(address)
}

// shortLived gives public answers of gammaPath a Cache-Control, and changes no other answer.
func shortLived(directives string) func(*http.Response) {
	return func(r *http.Response) {
		if r.Request.URL.Path == gammaPath && strings.HasPrefix(r.Header.Get("Cache-Control"), "public") {
			r.Header.Set("Cache-Control", directives)
		}
	}
}

// usageIn returns the usage member of an answer in any coding.
func usageIn(t testing.TB, resp *http.Response, body []byte) usage {
	t.Helper()
	plain, err := decode(resp, body)
	if err != nil {
		t.Fatal(err)
	}
	return usageOf(t, plain)
}

// cdnClient is one client behind the cache: anonymous, or with a key.
type cdnClient struct {
	p                  *process
	coding, secret, id string
	asked              int
	tags               []string // of the answers, each once, in order
	tag                string   // of the last answer
	counts             []int    // requests_today
}

// get asks once and checks that the answer is this client's own: in its coding, with its own usage, and with no older
// document than before.
func (c *cdnClient) get() {
	headers := []string{"Accept-Encoding", c.coding}
	if c.secret != "" {
		headers = append(headers, "X-API-Key", c.secret)
	}
	resp, body := c.p.get(gammaPath, headers...)
	c.asked++
	coding, tag, directives := resp.Header.Get("Content-Encoding"), resp.Header.Get("ETag"), resp.Header.Get("Cache-Control")
	if resp.StatusCode != http.StatusOK || coding != c.coding && coding+c.coding != "identity" {
		c.p.t.Errorf("%s: %d %v", c.coding, resp.StatusCode, resp.Header)
		return
	}
	u, limited := usageIn(c.p.t, resp, body), resp.Header.Get("RateLimit")+resp.Header.Get("X-RateLimit-Remaining") != ""
	keyed := c.secret != ""
	if u.Key != c.id || keyed != (u.Tier == "keyed") || keyed != limited || keyed != strings.HasPrefix(directives, "private") || keyed != strings.HasPrefix(tag, "W/") {
		c.p.t.Errorf("key %q has another client's answer: %+v %v", c.id, u, resp.Header)
	}
	if keyed {
		c.counts = append(c.counts, u.RequestsToday)
		return
	}
	if c.tag = tag; !slices.Contains(c.tags, tag) {
		c.tags = append(c.tags, tag)
	} else if c.tags[len(c.tags)-1] != tag {
		c.p.t.Errorf("%s: back to the older document %s of %q", c.coding, tag, c.tags)
	}
}

// Behind Varnish with its built-in VCL, a refresh costs the origin one document in each coding, whatever the number of
// clients. No client gets another's keyed answer. An unchanged document is answered 304. While the origin is gone, Varnish
// serves stored documents for the time of stale-while-revalidate.
func TestVarnish(t *testing.T) {
	dir := t.TempDir()
	secret, id := newKey(t, dir, "varnish", "--per-day", "1000000")
	p := serve(t, "--data-dir", dir, "--gex-every", "5s", "--sim-speed", "4")
	origin := newFront(t, p.url, shortLived("public, max-age=1, stale-while-revalidate=600"))
	v := varnish(t, origin.URL, "-p", "http_gzip_support=off")
	for _, path := range []string{gammaPath, vixPath} {
		p.until(path+" is there", func() bool { return p.answers(path, http.StatusOK) })
	}

	clients := []*cdnClient{{p: v, coding: "identity", secret: secret, id: id}, {p: v, coding: "zstd", secret: secret, id: id}}
	for range 3 {
		for _, coding := range codings {
			clients = append(clients, &cdnClient{p: v, coding: coding})
		}
	}
	mark := len(origin.exchanges(0))
	v.until("every client sees a refresh", func() bool {
		var all sync.WaitGroup
		for _, c := range clients {
			all.Go(c.get)
		}
		all.Wait()
		return t.Failed() || !slices.ContainsFunc(clients, func(c *cdnClient) bool { return c.secret == "" && len(c.tags) < 2 })
	})
	v.until("the origin has ended its answers", func() bool { // a client may have one before
		keyed := 0
		for _, x := range origin.asked(mark, gammaPath) {
			if x.asked.Get("X-API-Key") != "" {
				keyed++
			}
		}
		return keyed >= clients[0].asked+clients[1].asked
	})
	checkOrigin(t, origin.asked(mark, gammaPath), clients)

	for _, coding := range codings {
		v.until("304 in "+coding, func() bool { // again if a refresh came between the two requests
			resp, _ := v.get(gammaPath, "Accept-Encoding", coding)
			tag := resp.Header.Get("ETag")
			resp, body := v.get(gammaPath, "Accept-Encoding", coding, "If-None-Match", tag)
			return resp.StatusCode == http.StatusNotModified && resp.Header.Get("ETag") == tag && len(body) == 0
		})
	}

	checkUnpacking(t, p)
	origin.Close() // before the server ends: otherwise Varnish would get a 502, which its built-in VCL passes on
	p.kill()
	for _, c := range clients[2:6] {
		expired := time.Now().Add(2 * time.Second)
		v.until("stale answers", func() bool { c.get(); return t.Failed() || time.Now().After(expired) })
	}
	if resp, _ := v.get(gammaPath, "X-API-Key", secret); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("with a key, of a dead origin: %d", resp.StatusCode)
	}
}

// checkOrigin compares the requests at the origin with the answers that the clients got.
func checkOrigin(t *testing.T, seen []exchange, clients []*cdnClient) {
	t.Helper()
	var counts []int
	for _, c := range clients[:2] {
		if counts = append(counts, c.counts...); !slices.IsSorted(c.counts) {
			t.Errorf("requests_today of one connection: %v", c.counts)
		}
	}
	slices.Sort(counts)
	keyed, last := 0, map[string]time.Time{}
	documents := map[string][]string{} // tags by coding
	for _, x := range seen {
		coding := x.asked.Get("Accept-Encoding")
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
		case x.status != http.StatusNotModified:
			t.Errorf("%s: %d with the tag %s, of which the origin has sent %q", coding, x.status, tag, documents[coding])
		}
	}
	if compact := slices.Compact(slices.Clone(counts)); keyed != clients[0].asked+clients[1].asked || len(counts) != len(compact) || counts[len(counts)-1]-counts[0] != len(counts)-1 {
		t.Errorf("%d keyed requests at the origin, requests_today %v", keyed, counts)
	}
	for _, c := range clients[2:] {
		for _, tag := range c.tags {
			if !slices.Contains(documents[c.coding], tag) {
				t.Errorf("%s: the origin sent %q, a client has %q", c.coding, documents[c.coding], c.tags)
			}
		}
	}
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
