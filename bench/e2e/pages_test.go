package e2e

import (
	"slices"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The pages about the interface and the methods fit every window. They load nothing from elsewhere, and link to each other. The first
// has a search.
func TestReferencePages(t *testing.T) {
	t.Parallel()
	installed(t, "chromium")
	p := shared(t)
	b := browse(t, p.url+"/docs")
	for _, path := range []string{"/docs", "/methods"} {
		for _, width := range []int64{1400, 320} {
			b.view(width, 900, "light")
			if wide := eval[int](b, `document.documentElement.scrollWidth`); wide > int(width) {
				t.Errorf("%s, %d wide: the page is %d wide", path, width, wide)
			}
			if cut := eval[[]string](b, `[...document.querySelectorAll("nav, nav .contents")].filter(e => e.scrollHeight > e.clientHeight + 1).map(e => e.className || e.localName)`); width < 800 && len(cut) > 0 {
				t.Errorf("%s, %d wide: the contents are cut off in %q", path, width, cut)
			}
		}
		// On a phone the rows of /docs become paragraphs, and the tables of /methods scroll.
		if scrolls := eval[bool](b, `[...document.querySelectorAll(".table")].some(e => e.scrollWidth > e.clientWidth)`); scrolls != (path == "/methods") {
			t.Errorf("%s: on a phone a table scrolls: %v", path, scrolls)
		}
		other := map[string]string{"/docs": "/methods", "/methods": "/docs"}[path]
		b.press(`nav a[href="`+other+`"]`, "\r")
		b.until("the other page opens", `location.pathname === "`+other+`" && document.readyState === "complete"`)
	}
	b.view(1400, 1000, "light")
	b.search(p)
	b.withoutJavaScript(p)
	b.clean()
}

// search finds fields and endpoints of /docs by keyboard. What it looks for is in the address.
func (b *browser) search(p *process) {
	b.until("the search is there", `document.querySelector(".search").checkVisibility()`)
	b.do(chromedp.KeyEvent("/"))
	b.until("the key / leads to the search", `document.activeElement.id === "search"`)
	b.do(chromedp.KeyEvent(kb.Escape)) // the test's keyboard types the / although the page refuses it; a real keyboard does not
	b.do(chromedp.KeyEvent("call wall"))
	const first = `document.querySelector("#found a").getAttribute("href")`
	b.until("the field is found", `document.querySelector("#found a") && `+first+` === "#Gamma.call_wall"`)
	b.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowUp), chromedp.KeyEvent("\r"))
	const inView = `(e => e && e.getBoundingClientRect().top >= 0 && e.getBoundingClientRect().bottom <= innerHeight)(document.querySelector(":target"))`
	b.until("its row is shown", `location.hash === "#Gamma.call_wall" && `+inView)
	b.do(chromedp.Reload())
	b.until("a reload shows the same", `location.hash === "#Gamma.call_wall" && document.querySelector("#search").value === "call wall" && `+first+` === "#Gamma.call_wall" && `+inView)
	b.press("#search", kb.Escape)
	b.until("escape ends the search", `location.search === "" && !document.querySelector("#found a") && document.querySelector(".contents").checkVisibility()`)
	b.do(chromedp.KeyEvent("vix-term"), chromedp.KeyEvent("\r"))
	b.until("an endpoint is found", `location.hash === "#vix-term-structure"`)
	b.press("#search", kb.Escape)
	b.do(chromedp.KeyEvent("rate_limited"))
	b.until("an error is found", `document.querySelector("#found a")?.getAttribute("href") === "#response-TooMany"`)
	b.press("#search", kb.Escape)
	b.do(chromedp.KeyEvent("no such thing"))
	b.until("nothing is found", `document.querySelector("#count").textContent.startsWith("Nothing")`)
	if got, want := b.text("#gex-u .curl"), "curl -sS --compressed '"+p.url+"/api/v1/gex/spx'"; got != want {
		b.t.Errorf("%q, want %q", got, want)
	}
}

// withoutJavaScript checks that /docs shows the same, except the search.
func (b *browser) withoutJavaScript(p *process) {
	b.do(chromedp.Navigate(p.url + "/docs"))
	b.until("the search is there", `document.querySelector(".search").checkVisibility()`)
	const shown = `[...document.querySelectorAll("main tr[id], article, pre, summary")].filter(e => e.checkVisibility()).map(e => e.id || e.className || e.textContent.slice(0, 80))`
	with := eval[[]string](b, shown)
	_, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	must(b.t, err)
	b.do(chromedp.Reload())
	b.until("the page is there", `document.readyState === "complete" && document.querySelector("#headers")`)
	if eval[bool](b, `document.querySelector(".search").checkVisibility()`) {
		b.t.Error("a search is shown that cannot work")
	}
	if without := eval[[]string](b, shown); !slices.Equal(with, without) || len(with) < 300 {
		b.t.Errorf("%d parts are shown with JavaScript, and %d without", len(with), len(without))
	}
	b.press("#gex-u .try details + details summary", "\r") // after that of CSV
	b.until("the answer unfolds", `document.querySelector("#gex-u .try details + details pre").innerText.includes('"zero_gamma_flip"')`)
}
