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

// The dashboard in Chromium polls deltas, without a line of script for them. Beside it, a Chromium without dictionaries polls
// the same answers in br. A busy machine may refresh late, so a proxy lets the dictionaries live longer.
func TestDeltasInChromium(t *testing.T) {
	t.Parallel()
	installed(t, "chromium")
	p := serveReady(t, quickly...)
	front := newFront(t, p.url, func(r *http.Response) {
		h := r.Header
		h.Set("Cache-Control", staleTime.ReplaceAllString(h.Get("Cache-Control"), "stale-while-revalidate=600"))
	})
	visit := func(options ...chromedp.ExecAllocatorOption) (*browser, func(string) []download) {
		b := browse(t, "about:blank", options...)
		b.origin = front.URL
		loaded := b.downloads()
		b.view(1400, 9000, "light") // every panel is visible, so every panel polls
		b.do(chromedp.Navigate(front.URL))
		return b, loaded
	}
	with, loadedWith := visit()
	without, loadedWithout := visit(chromedp.Flag("disable-features", "CompressionDictionaryTransport"))
	polled := slices.DeleteFunc(slices.Clone(deltaPaths), func(path string) bool { return path == flowPath })
	inDCZ := func(d download) bool { return d.coding == "dcz" }
	size := func(all []download) (sum int) {
		for _, d := range all {
			sum += d.bytes
		}
		return sum / max(len(all), 1)
	}
	wanted := count(20)
	with.until("every panel is seen", allLoaded)
	without.until("every panel is seen without dictionaries", allLoaded)
	for _, path := range polled {
		var deltas, whole []download
		with.eventually("deltas of "+path, func() bool {
			deltas = slices.DeleteFunc(loadedWith(path), func(d download) bool { return !inDCZ(d) })
			whole = loadedWithout(path)
			return len(deltas) >= wanted && len(whole) > wanted
		})
		if slices.ContainsFunc(whole, inDCZ) {
			t.Errorf("%s: dcz for a browser without dictionaries", path)
		}
		figure(t, "Chromium polled %s: %d answers in dcz of %d bytes on the wire, %d in br of %d", path, len(deltas), size(deltas), len(whole), size(whole))
		if size(deltas)*4 > size(whole)*3 {
			t.Errorf("%s: %v and %v", path, deltas, whole)
		}
	}
	if all := loadedWith(gammaPath); len(all) == 0 || slices.ContainsFunc(all, inDCZ) {
		t.Errorf("%v", all)
	}
	with.clean()
	without.clean()
}
