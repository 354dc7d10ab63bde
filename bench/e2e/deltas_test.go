package e2e

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httputil"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// withDeltas is what Chromium accepts when it has a dictionary.
const withDeltas = "gzip, deflate, br, zstd, dcb, dcz"

// announced is the Available-Dictionary of a client that has an uncompressed answer.
func announced(answer []byte) string {
	digest := sha256.Sum256(answer)
	return ":" + base64.StdEncoding.EncodeToString(digest[:]) + ":"
}

// poller is a client that polls a path through a cache, as a browser does: it announces an answer that it has.
type poller struct {
	p       *process
	path    string
	accepts string
	behind  int // 0: announces its last answer; 1: the answer before, and so on; -1: none; -2: one that the server never sent

	have   [][]byte // different answers, newest first
	deltas int      // answers in dcz
}

// poll asks once, decodes the answer, and asks again with the tag.
func (c *poller) poll() error {
	var dictionary []byte
	headers := []string{"Accept-Encoding", c.accepts}
	if c.behind == -2 {
		dictionary = []byte("never sent")
	} else if c.behind >= 0 && len(c.have) > c.behind {
		dictionary = c.have[c.behind]
	}
	if dictionary != nil {
		headers = append(headers, "Available-Dictionary", announced(dictionary))
	}
	resp, body := c.p.get(c.path, headers...)
	a, err := checkAnswer(resp, body, dictionary)
	if err != nil {
		return err
	}
	if coding := resp.Header.Get("Content-Encoding"); coding == "dcz" {
		c.deltas++
	} else if !strings.Contains(c.accepts, coding) {
		return fmt.Errorf("%s is not in %s", coding, c.accepts)
	}
	if again, _ := c.p.get(c.path, append(headers, "If-None-Match", resp.Header.Get("ETag"))...); again.StatusCode != http.StatusNotModified && again.StatusCode != http.StatusOK {
		return fmt.Errorf("with its tag: %d", again.StatusCode)
	}
	if len(c.have) == 0 || string(c.have[0]) != string(a.text) {
		c.have = append([][]byte{a.text}, c.have[:min(len(c.have), 4)]...)
	}
	return nil
}

// deltasThrough checks that each client of a cache gets bytes that it can decode: clients that have announced different answers,
// none, or one that the server never sent. The cache stores deltas too.
func deltasThrough(t *testing.T, cache *process, origin *front) {
	t.Helper()
	var clients []*poller
	for _, path := range []string{painPath, flowPath, flowPath + "?limit=100"} {
		for _, c := range []poller{
			{accepts: withDeltas}, {accepts: withDeltas}, {accepts: withDeltas, behind: 1}, {accepts: "dcz", behind: 2}, {accepts: withDeltas, behind: -1},
			{accepts: withDeltas, behind: -2}, {accepts: "zstd", behind: 0}, {accepts: "br", behind: -1}, {accepts: "identity", behind: -1},
		} {
			clients = append(clients, &poller{p: cache, path: path, accepts: c.accepts, behind: c.behind})
		}
	}
	want := count(20)
	cache.until("every client that can gets deltas", func() bool {
		var all sync.WaitGroup
		for _, c := range clients {
			all.Go(func() {
				if err := c.poll(); err != nil {
					t.Errorf("%s, accepts %s, %d behind: %v", c.path, c.accepts, c.behind, err)
				}
			})
		}
		all.Wait()
		return t.Failed() || !slices.ContainsFunc(clients, func(c *poller) bool {
			return c.behind >= 0 && strings.Contains(c.accepts, "dcz") && c.deltas < want
		})
	})
	sent, received := 0, 0
	for _, x := range origin.exchanges(http.StatusOK) {
		if x.answered.Get("Content-Encoding") == "dcz" {
			sent++
		}
	}
	for _, c := range clients {
		if received += c.deltas; c.deltas > 0 && (c.behind < 0 || !strings.Contains(c.accepts, "dcz")) {
			t.Errorf("%s, accepts %s, %d behind: %d deltas", c.path, c.accepts, c.behind, c.deltas)
		}
	}
	if sent >= received {
		t.Errorf("the origin sent %d deltas, the clients got %d: the cache stores none", sent, received)
	}
	figure(t, "%d deltas of the origin answered %d requests, each decoded to the answer of its tag", sent, received)
}

// download is an answer that a browser got from the network.
type download struct {
	path, coding string
	status       int
	bytes        int // on the wire, head and body
}

// downloads records what a browser loads from its origin from now on. loaded returns what has been loaded so far.
func (b *browser) downloads() (loaded func() []download) {
	b.t.Helper()
	var mu sync.Mutex
	var finished []download
	begun := map[network.RequestID]download{}
	if err := chromedp.Listen(b.ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *network.EventResponseReceived:
			coding, _ := e.Response.Headers["Content-Encoding"].(string)
			begun[e.RequestID] = download{path: strings.TrimPrefix(e.Response.URL, b.origin), coding: coding, status: int(e.Response.Status)}
		case *network.EventLoadingFinished:
			if d, ok := begun[e.RequestID]; ok {
				d.bytes = int(e.EncodedDataLength)
				finished = append(finished, d)
			}
		}
	}); err != nil {
		b.t.Fatal(err)
	}
	return func() []download {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(finished)
	}
}

var staleTime = regexp.MustCompile(`stale-while-revalidate=\d+`)

// The dashboard in Chromium polls deltas, without a line of script for them, and shows what they decode to. A busy machine may
// refresh late, so a proxy lets the dictionaries live longer.
func TestFaultDeltasInChromium(t *testing.T) {
	if !full() {
		t.Skip("depends on when Chromium stores a dictionary: runs in make faults alone")
	}
	t.Parallel()
	installed(t, "chromium")
	p := serveReady(t, "--gex-every", "60s", "--sim-speed", "12")
	front := newFront(t, p.url, func(r *http.Response) {
		h := r.Header
		h.Set("Cache-Control", staleTime.ReplaceAllString(h.Get("Cache-Control"), "stale-while-revalidate=600"))
	})
	b := browse(t, "about:blank")
	b.hurry = true
	b.origin = front.URL
	all := b.downloads()
	loaded := func(path string) []download {
		return slices.DeleteFunc(all(), func(d download) bool { return d.path != path || d.status != http.StatusOK })
	}
	b.view(1400, 9000, "light") // every panel is visible, so every panel polls
	b.do(chromedp.Navigate(front.URL))
	b.until("every panel is seen", allLoaded)
	for _, path := range []string{trackPath, seriesPath, painPath, flowPath + "?limit=100", sectorsPath} {
		b.eventually("a delta of "+path, func() bool {
			resp, body := p.get(path, "Accept-Encoding", "br")
			head, err := httputil.DumpResponse(resp, false)
			must(t, err)
			whole := len(head) + len(body) // as the bytes of a download
			return slices.ContainsFunc(loaded(path), func(d download) bool { return d.coding == "dcz" && d.bytes < whole })
		})
	}
	if all := loaded(gammaPath); len(all) == 0 || slices.ContainsFunc(all, func(d download) bool { return d.coding == "dcz" }) {
		t.Errorf("%v", all)
	}
	b.until("each delta is decoded to a document", `!document.querySelector(".notice:not([hidden]), section[aria-busy=true]")`)
	b.clean()
}
