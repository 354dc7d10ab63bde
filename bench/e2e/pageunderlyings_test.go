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

// By keyboard alone: the picker finds an underlying by its name and keeps it in the address, the table of all underlyings sorts and
// opens one.
func TestPageUnderlyings(t *testing.T) {
	t.Parallel()
	installed(t, "chromium")
	p := shared(t)
	b := browse(t, p.url+"/?expiration=2026-12-18&span=hour")
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
	b.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	b.until("its page opens", `location.search === "?span=hour&u=spy&flow-symbol=SPY" && document.querySelector("#underlying")?.value === "SPY"`)
	b.eventually("the levels are its own", func() bool {
		return strings.Contains(b.text("#head .levels"), "Spot "+grouped(dataOf[gammaData](p, "/api/v1/gex/spy").Spot))
	})
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
	b.press("#compare", kb.Enter)
	b.until("the table is open", fmt.Sprintf(`document.querySelectorAll("#overview:not([hidden]) tbody tr").length === %d`, len(rows)))
	b.press("#overview thead th:nth-child(4) button", kb.Enter)
	b.until("the table is sorted", `document.querySelector("#overview thead th:nth-child(4)[aria-sort=descending]")`)
	got := eval[[]string](b, `[...document.querySelectorAll("#overview tbody tr")].map(r => (r.querySelector("a").textContent + " " + r.children[3].textContent).replace(/\u2060/g, "").replace(/\s+/g, " "))`)
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	b.press(`#overview tbody a[href*="u=xlf"]`, kb.Enter)
	b.until("a row opens its underlying", `location.search === "?span=hour&u=xlf&flow-symbol=XLF" && document.querySelector("#underlying")?.value === "XLF"`)
	b.see("#matrix")
	b.until("its matrix shows more than its few strikes near the spot", `document.querySelector("#matrix .choice [aria-pressed=true]")?.value === "10"`)
	b.see("#flow")
	b.until("flow shows it alone", `[...document.querySelectorAll("#flow tbody th b")].every(e => e.textContent === "XLF") && document.querySelector("#flow[aria-busy=false]")`)
	b.press("#compare", kb.Enter)
	b.do(chromedp.Reload())
	b.until("the table stays closed", `document.querySelector("#compare[aria-expanded=false]") && document.querySelector("#underlying")?.value === "XLF" && document.querySelector("#overview").hidden`)
	b.do(chromedp.Navigate(p.url + "/?u=AAPL"))
	b.until("capital letters are the same symbol", `document.querySelector("#underlying")?.value === "AAPL"`)
	b.do(chromedp.Navigate(p.url + "/?u=zzz"))
	b.eventually("a sentence names an underlying that is not served", func() bool { return b.text("#status") == "This server has no underlying ZZZ. Show SPX" })
	if shown := b.text("body"); strings.Contains(shown, "error.underlyings") {
		t.Errorf("the page shows a text for programs: %s", shown)
	}
	b.press("#status a", kb.Enter)
	b.until("its link shows SPX", `location.search === "" && document.querySelector("#underlying")?.value === "SPX"`)
	b.clean()
}
