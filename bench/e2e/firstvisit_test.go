package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// budget is the most that all files of the page may have on the wire together, with their header fields: 83 KB. With the two answers
// of the first chart, 12 KB, they stay below atFirst. After that chart, the first screen of a phone asks for five more answers, 20 KB.
const (
	budget  = 83_000
	atFirst = 100_000
)

// watchShifts sums the layout shifts of a page as Chromium scores them, and keeps their sources.
const watchShifts = `(() => {
	window.shifted = 0;
	window.shifts = [];
	new PerformanceObserver(list => {
		for (const e of list.getEntries()) {
			window.shifted += e.value;
			window.shifts.push(e.value.toFixed(4) + " " + e.sources.map(s => (s.node?.id || s.node?.className || s.node?.nodeName) + " " + s.previousRect.y + " to " + s.currentRect.y).join(", "));
		}
	}).observe({type: "layout-shift", buffered: true});
})()`

// tallerThanReserved lists the parts of the page that have become taller than the height that heights.css reserves, with their heights.
const tallerThanReserved = `[...document.querySelectorAll("#head, main > section")]
	.filter(s => !s.style.getPropertyValue("--tall") && s.offsetHeight > parseFloat(getComputedStyle(s).getPropertyValue("--tall")) + 1)
	.map(s => s.id + " " + s.offsetHeight)`

// A first visit at three widths: the files of the page are within their budget, the page asks once for what it preloads, and
// nothing moves by itself.
func TestFirstVisit(t *testing.T) {
	t.Parallel()
	installed(t, "chromium")
	p := shared(t)
	for _, width := range []int64{1400, 2560, 390} {
		b := browse(t, "about:blank")
		b.origin = p.url
		b.onLoad(watchShifts)
		b.onLoad(`(now => { Date.now = () => now; })(Date.now())`) // ages stay as they are, however slow the machine is
		loaded := b.downloads()
		b.view(width, 900, "light")
		b.do(chromedp.Navigate(p.url))
		b.until("the first chart is drawn", `document.querySelector(".plot canvas") && document.querySelector("#today[aria-busy=false]")`)
		for _, path := range []string{gammaPath, trackPath} { // the page preloads the track; a poll has a tag
			if n := eval[[]int](b, `[performance.getEntriesByType("resource").filter(e => e.name.endsWith(%[1]s)).length, asked.filter(a => a.url.endsWith(%[1]s)).length]`, path); n[0] < 1 || n[0] > n[1] {
				t.Errorf("%s was loaded %d times, and the page asked %d times", path, n[0], n[1])
			}
		}
		switch width {
		case 1400: // price, strikes, levels and 0DTE are above the fold
			b.until("they are in the window", `scrollY === 0 && ["#today .price canvas", "#strikes canvas", "#levels .ladder", "#zero-dte canvas"].every(s => document.querySelector(s)?.getBoundingClientRect().bottom <= innerHeight - 28)`)
		case 2560:
			b.until("the events follow the ladder", `(([a, b]) => b.top > a.bottom && b.top < a.bottom + 60 && b.bottom < innerHeight)([".ladder li:last-child", "#events"].map(s => document.querySelector(s).getBoundingClientRect()))`)
		case 390:
			b.until("a phone shows the head and two views, the first of which begins in the first screen", `document.querySelector("#today .price canvas").getBoundingClientRect().top < 600 && document.querySelector("#today h2").offsetHeight < 60 && document.querySelector("#today .controls").getBoundingClientRect().bottom <= document.querySelector("#today .price").getBoundingClientRect().top && document.documentElement.scrollHeight < 3000 && document.querySelectorAll(".folded .fold").length === document.querySelectorAll("main > section").length - 3`)
		}
		b.until("every panel is seen", allLoaded)
		b.frames()
		if shifted := eval[float64](b, `window.shifted`); shifted >= 0.01 {
			t.Errorf("%d wide: layout shift %.4f: %q", width, shifted, eval[[]string](b, `window.shifts`))
		}
		if taller := eval[[]string](b, tallerThanReserved); len(taller) > 0 { // what stands below moves if it is seen by then
			t.Errorf("%d wide: taller than heights.css says: %q", width, taller)
		}
		files, answers := 0, 0
		for _, d := range loaded() {
			if d.path == gammaPath || d.path == trackPath {
				answers += d.bytes
			}
			if !strings.HasPrefix(d.path, "/api/") && d.path != "/healthz" && d.path != "/readyz" { // the page asks that again and again
				files += d.bytes
			}
		}
		figure(t, "whole page on the wire: %d bytes of files, of %d; with the answers of the first chart %d", files, budget, files+answers)
		if files > budget || files < 20_000 || files+answers > atFirst {
			t.Errorf("%d bytes of files: %+v", files, loaded())
		}
		if width == 390 {
			b.press("#history .fold", kb.Enter)
			b.until("a view unfolds and loads", `document.querySelector("#history:not(.folded)[aria-busy=false] .plot canvas")`)
			b.do(chromedp.KeyEvent(kb.Enter))
			b.until("it folds again", `!document.querySelector("#history .body").checkVisibility()`)
		}
		b.clean()
	}
}
