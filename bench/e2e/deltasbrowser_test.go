package e2e

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// download is an answer that a browser got from the network.
type download struct {
	path, coding string
	status       int
	bytes        int // on the wire, head and body
}

// downloads records what a browser loads from its origin from now on.
func (b *browser) downloads() (loaded func(path string) []download) {
	b.t.Helper()
	var mu sync.Mutex
	var finished []download
	begun := map[network.RequestID]download{}
	if err := chromedp.Listen(b.ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *network.EventResponseReceived:
			d := download{path: strings.TrimPrefix(e.Response.URL, b.origin), status: int(e.Response.Status)}
			for name, value := range e.Response.Headers {
				if strings.EqualFold(name, "Content-Encoding") {
					d.coding, _ = value.(string)
				}
			}
			begun[e.RequestID] = d
		case *network.EventLoadingFinished:
			if d, ok := begun[e.RequestID]; ok {
				d.bytes = int(e.EncodedDataLength)
				finished = append(finished, d)
			}
		}
	}); err != nil {
		b.t.Fatal(err)
	}
	return func(path string) []download {
		mu.Lock()
		defer mu.Unlock()
		return slices.DeleteFunc(slices.Clone(finished), func(d download) bool { return d.path != path || d.status != http.StatusOK })
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
	p := serveReady(t, quickly...)
	front := newFront(t, p.url, func(r *http.Response) {
		h := r.Header
		h.Set("Cache-Control", staleTime.ReplaceAllString(h.Get("Cache-Control"), "stale-while-revalidate=600"))
	})
	b := browse(t, "about:blank")
	b.origin = front.URL
	loaded := b.downloads()
	b.view(1400, 9000, "light") // every panel is visible, so every panel polls
	b.do(chromedp.Navigate(front.URL))
	b.until("every panel is seen", allLoaded)
	for _, path := range slices.DeleteFunc(slices.Clone(deltaPaths), func(path string) bool { return path == flowPath }) {
		_, whole := p.get(path, "Accept-Encoding", "br")
		b.eventually("a delta of "+path, func() bool {
			return slices.ContainsFunc(loaded(path), func(d download) bool { return d.coding == "dcz" && d.bytes < len(whole) })
		})
	}
	if all := loaded(gammaPath); len(all) == 0 || slices.ContainsFunc(all, func(d download) bool { return d.coding == "dcz" }) {
		t.Errorf("%v", all)
	}
	b.until("each delta is decoded to a document", `!document.querySelector(".notice:not([hidden]), section[aria-busy=true]")`)
	b.clean()
}
