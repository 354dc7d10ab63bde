package e2e

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// hold keeps the answers of SPY back until letThrough is called.
const hold = `(() => {
	const ask = fetch, gate = new Promise(done => { window.letThrough = done; });
	window.fetch = async (target, init) => { if (String(target).includes("/spy")) await gate; return ask(target, init); };
})()`

// waitsFor lists the panels whose address is of SPY, and which show figures or do not say that they wait.
const waitsFor = `[...document.querySelectorAll("main > section")].filter(s => s.querySelector(".source")?.textContent.includes("/spy"))
	.filter(s => s.ariaBusy !== "true" || [...s.querySelectorAll(".body *")].some(e => e.checkVisibility({visibilityProperty: true}))).map(s => s.id)`

// By keyboard alone: the picker finds an underlying by its name and keeps it in the address, the page shows it without another load and
// no figure of the one before, the back button and the strip switch too, and the table of all underlyings is closed at first and sorts.
func TestPageUnderlyings(t *testing.T) {
	t.Parallel()
	installed(t, "chromium")
	p := shared(t)
	b := browse(t, "about:blank")
	b.origin = p.url
	b.onLoad(hold)
	b.do(chromedp.Navigate(p.url + "/?expiration=2026-12-18&span=hour"))
	const options, active = `[...document.querySelectorAll("#underlyings [role=option]")].map(e => e.id.slice(11)).join()`, `document.querySelector("#underlying").getAttribute("aria-activedescendant")`
	b.until("the picker is there", `document.querySelector("#underlying")?.value === "SPX"`)
	b.press("#underlying", kb.ArrowDown)
	b.until("the list opens", `document.querySelector("#underlying[aria-expanded=true]") && `+options+` === "spx,spy,xlf,ndx,aapl"`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until("escape closes the list", `document.querySelector("#underlyings").hidden && document.querySelector("#underlying[aria-expanded=false]").value === "SPX"`)
	b.do(chromedp.KeyEvent("no such"))
	b.until("nothing is found", `document.querySelector("#underlyings").innerText.includes("No underlying here")`)
	b.press("#underlying", kb.Escape)
	b.do(chromedp.KeyEvent("s&p"))
	b.until("a name finds two", options+` === "spx,spy" && `+active+` === "underlying-spx"`)
	b.until("every panel has its answer", allLoaded)
	eval[chromedp.Void](b, `window.sameLoad = true`)
	b.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	b.until("its symbol is shown", `location.search === "?span=hour&u=spy&flow-symbol=SPY" && document.querySelector("#underlying").value === "SPY" && document.querySelector("#strip [aria-current]").dataset.u === "spy"`)
	if shown := eval[[]string](b, waitsFor); len(shown) > 0 || eval[bool](b, `document.querySelector("#head .levels").checkVisibility({visibilityProperty: true})`) {
		t.Errorf("figures of another underlying are shown in %q", shown)
	}
	eval[chromedp.Void](b, `letThrough()`)
	levels := func(symbol string) {
		t.Helper()
		b.eventually("the levels are those of "+symbol, func() bool {
			return strings.Contains(b.text("#head .levels"), "Spot "+grouped(dataOf[gammaData](p, "/api/v1/gex/"+symbol).Spot))
		})
	}
	levels("spy")
	b.until("the title says it", `/^SPY \d+\.\d\d [▲▼] [+−±]γ$/.test(document.title)`)
	b.until("every panel has its answer", allLoaded+` && !document.querySelector(".away") && document.querySelector("#matrix .source").textContent.includes("/spy/")`)
	eval[bool](b, `history.back() ?? true`)
	b.until("the back button shows the one before", `document.querySelector("#underlying").value === "SPX" && document.title.startsWith("SPX ")`)
	levels("spx")
	b.press(`#strip a[data-u="spy"]`, kb.Enter)
	levels("spy")
	b.until("the page was not loaded again", `window.sameLoad`)
	b.press("#underlying", kb.ArrowDown)
	b.until("recent ones are first", options+` === "spy,spx,xlf,ndx,aapl"`)

	type row struct {
		Symbol string
		Net    *float64 `json:"net_gex_dollars"`
	}
	rows := dataOf[struct{ Rows []row }](p, "/api/v1/underlyings").Rows
	slices.SortStableFunc(rows, func(x, y row) int { return cmp.Compare(*y.Net, *x.Net) })
	var want []string
	for _, r := range rows {
		want = append(want, r.Symbol+" "+dollars(*r.Net))
	}
	b.until("the table is closed at first", `!document.querySelector("#overview").checkVisibility()`)
	b.press("#compare", kb.Enter)
	b.until("the table is open", fmt.Sprintf(`document.querySelectorAll("#overview:popover-open tbody tr").length === %d`, len(rows)))
	b.press("#overview thead th:nth-child(4) button", kb.Enter)
	b.until("the table is sorted", `document.querySelector("#overview thead th:nth-child(4)[aria-sort=descending]")`)
	got := eval[[]string](b, `[...document.querySelectorAll("#overview tbody tr")].map(r => (r.querySelector("a").textContent + " " + r.children[3].textContent).replace(/\u2060/g, "").replace(/\s+/g, " "))`)
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	b.press(`#overview tbody a[href*="u=xlf"]`, kb.Enter)
	b.until("a row opens its underlying, and the table goes", `!document.querySelector("#overview:popover-open") && location.search === "?span=hour&u=xlf&flow-symbol=XLF" && document.querySelector("#underlying")?.value === "XLF"`)
	b.see("#matrix")
	b.until("its matrix shows more than its few strikes near the spot", `document.querySelector("#matrix .choice [aria-pressed=true]")?.value === "10"`)
	b.see("#flow")
	b.until("flow shows it alone", `[...document.querySelectorAll("#flow tbody th b")].every(e => e.textContent === "XLF") && document.querySelector("#flow[aria-busy=false]")`)
	b.do(chromedp.Navigate(p.url + "/?u=AAPL"))
	b.until("capital letters are the same symbol", `document.querySelector("#underlying")?.value === "AAPL"`)
	b.do(chromedp.Navigate(p.url + "/?u=zzz"))
	b.eventually("a sentence names an underlying that is not served", func() bool { return b.text("#status") == "This server has no underlying ZZZ. Show SPX" })
	if shown := b.text("body"); strings.Contains(shown, "error.underlyings") {
		t.Errorf("the page shows a text for programs: %s", shown)
	}
	b.press("#status a", kb.Enter)
	b.until("its link shows SPX", `location.search === "" && document.querySelector("#underlying")?.value === "SPX"`)
	b.do(chromedp.Navigate(p.url + "/?date=2026-11-14")) // a Saturday
	b.until("the strip is there", `document.querySelector("#strip a[data-u=spy] small")?.textContent && document.querySelector("body.past")`)
	eval[chromedp.Void](b, `letThrough()`)
	b.press(`#strip a[data-u="spy"]`, kb.Enter)
	b.until("the nearest date of the other is shown", `new URLSearchParams(location.search).get("date") !== "2026-11-14" && /^SPY has no snapshot of 14 Nov 2026: .* is shown\.$/.test(document.querySelector("#status").innerText.trim()) && !document.querySelector("#today.missing, #today[aria-busy=true]")`)
	b.until("few closes are no picture: the bars have the hero, and the tags of the levels", `document.querySelector(".hero.alone #strikes .plot")?.chart.tagged.length >= 3`)
	b.clean()
}
