package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The keys open a symbol, panels, dates and the theme, and ? lists them. They are letters in a field. The events of the session are
// listed, and a phone has a menu whose targets are large enough for a finger.
func TestPageKeys(t *testing.T) {
	t.Parallel()
	installed(t, "chromium")
	p := shared(t)
	b := browse(t, p.url)
	b.until("the dates and the strip are there", `document.querySelectorAll(".pick select option").length > 3 && document.querySelector("#strip small").textContent`)
	key := func(keys, what, holds string) {
		t.Helper()
		b.do(chromedp.KeyEvent(keys))
		b.until(keys+" "+what, holds)
	}
	dates := p.sessions()
	b.until("now shows the newest date", `document.querySelector("#today[aria-busy=false]")`)
	key("[", "shows the date before that of now", `location.search === "?date=`+dates[len(dates)-2]+`" && document.title === "SPX `+writtenDate(dates[len(dates)-2])+`"`)
	key("[", "shows the date before", `location.search === "?date=`+dates[len(dates)-3]+`"`)
	key("]", "shows the date after", `location.search === "?date=`+dates[len(dates)-2]+`"`)
	key("]", "shows now", `location.search === ""`)
	key("9", "leads to VIX", `location.hash === "#vix" && document.activeElement.id === "vix" && document.querySelector("#vix[aria-busy=false]")`)
	key("i", "explains the panel of the last key", `document.querySelector("#vix.told")`)
	key(kb.ArrowRight, "reaches its chart", `document.activeElement.matches("#vix .plot:has(.hint:not([hidden]))")`)
	key("1", "leads to today", `location.hash === "#today"`)
	key(".", "shows the next underlying", `document.querySelector("#underlying").value === "SPY"`)
	key(",", "shows the one before", `document.querySelector("#underlying").value === "SPX"`)
	key("t", "changes the theme that is seen", `document.documentElement.dataset.theme === "dark"`)
	key("?", "lists the keys", `document.querySelector("#help[open]").innerText.includes("The date before")`)
	key(kb.Escape, "closes the list", `!document.querySelector("#help[open]")`)
	key("/", "leads to the symbol", `document.activeElement.id === "underlying"`)
	b.do(chromedp.KeyEvent("t"))
	if theme := eval[string](b, `document.documentElement.dataset.theme`); theme != "dark" {
		t.Errorf("a letter in a field has changed the theme to %s", theme)
	}
	b.press("#underlying", kb.Escape)
	b.press("#today .tell", kb.Enter)
	b.until("the button i shows address and age", `document.querySelector("#today .source").checkVisibility() && document.querySelector("#today .ages").textContent.startsWith("Quotes of ")`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.press("#bell", kb.Enter)
	b.until("the events are listed", `document.querySelectorAll("#events:popover-open li").length > 0`)
	if listed := b.text("#events"); strings.Contains(listed, "undefined") || strings.Contains(listed, "NaN") {
		t.Errorf("the events: %s", listed)
	}
	b.do(chromedp.KeyEvent(kb.Escape))

	b.view(390, 844, "light")
	b.press("#menu", kb.Enter)
	b.until("the menu opens", `document.querySelector("#views:popover-open")`)
	if small := eval[[]string](b, `[...document.querySelectorAll("header.top :is(button, input, select), #views a, #strip a, main > section:not(.folded) > header button, .bottom a")].filter(e => e.checkVisibility() && (e.offsetHeight < 40 || e.offsetWidth < 40)).map(e => e.id || e.className || e.textContent)`); len(small) > 0 {
		t.Errorf("below 40 px: %q", small)
	}
	b.press(`#views a[href="#history"]`, kb.Enter)
	b.until("a link of the menu unfolds its panel at the top", `!document.querySelector("#views:popover-open") && document.querySelector("#history:not(.folded)[aria-busy=false]") && Math.abs(document.querySelector("#history").getBoundingClientRect().top) < 20`)
	b.clean()
}
