package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// flowItem has what the table of unusual activity shows of a row.
type flowItem struct {
	ID         string
	Symbol     string
	Type       string `json:"option_type"`
	Strike     float64
	Days       float64 `json:"days_to_expiration"`
	Score      float64
	Direction  string
	Confidence float64 `json:"direction_confidence"`
	Side       string
	Premium    float64
	Volume     float64
	OI         float64  `json:"open_interest"`
	Ratio      *float64 `json:"volume_oi_ratio"`
	Volatility *float64 `json:"implied_volatility"`
	Moneyness  float64  `json:"moneyness_pct"`
	ObservedAt string   `json:"observed_at"`
}

// flowColumns are the columns that sort, each with the text or the number by which it sorts. A nil is an unknown value.
var flowColumns = map[string]func(flowItem) any{
	"score":    func(x flowItem) any { return x.Score },
	"contract": func(x flowItem) any { return fmt.Sprintf("%s %012.0f", x.Symbol, x.Strike*1000) },
	"days":     func(x flowItem) any { return x.Days },
	"direction": func(x flowItem) any {
		switch x.Direction {
		case "bullish":
			return 1 + x.Confidence
		case "bearish":
			return -1 - x.Confidence
		case "neutral":
			return 0.0
		}
		return nil
	},
	"premium": func(x flowItem) any { return x.Premium },
	"side": func(x flowItem) any {
		if x.Side == "unknown" {
			return nil
		}
		return x.Side
	},
	"volume": func(x flowItem) any { return x.Volume },
	"oi":     func(x flowItem) any { return x.OI },
	"ratio":  func(x flowItem) any { return known(x.Ratio) },
	"iv":     func(x flowItem) any { return known(x.Volatility) },
	"spot":   func(x flowItem) any { return x.Moneyness },
	"time":   func(x flowItem) any { return x.ObservedAt },
}

func known(x *float64) any {
	if x == nil {
		return nil
	}
	return *x
}

// ordered returns the ids of items in the order of a column. Unknown values are last in both orders.
func ordered(items []flowItem, by func(flowItem) any, rises bool) (ids []string) {
	compare := func(a, b flowItem) int {
		x, y := by(a), by(b)
		sign := map[bool]int{true: 1, false: -1}[rises]
		switch {
		case x == nil && y == nil:
			return 0
		case x == nil:
			return 1
		case y == nil:
			return -1
		}
		if text, ok := x.(string); ok {
			return sign * strings.Compare(text, y.(string))
		}
		switch x, y := x.(float64), y.(float64); {
		case x < y:
			return -sign
		case x > y:
			return sign
		}
		return 0
	}
	for _, x := range slices.SortedStableFunc(slices.Values(items), compare) {
		ids = append(ids, x.ID)
	}
	return ids
}

const (
	flowRows = `[...document.querySelectorAll("#flow tbody tr")].map(r => r.dataset.id)`
	// A panel loads when it comes near the window.
	flowReady = `document.querySelector("#flow").scrollIntoView({block: "center", behavior: "instant"}), document.querySelectorAll("#flow tbody tr").length > 0`
	painReady = `document.querySelector("#max-pain").scrollIntoView({block: "center", behavior: "instant"}), document.querySelector("#max-pain .reading")?.textContent`
)

// pick chooses an option of a filter, as a user does.
func (b *browser) pick(label, value string) {
	b.t.Helper()
	if !eval[bool](b, `(() => {
		const field = [...document.querySelectorAll("#flow label")].find(l => l.textContent === %s)?.control;
		if (!field) return false;
		field.value = %s;
		field.dispatchEvent(new Event("change"));
		return field.value === %[2]s;
	})()`, label, value) {
		b.t.Fatalf("%s cannot be %s", label, value)
	}
}

// The table of unusual activity: every column sorts, the filters choose rows, the address keeps both, and new rows are marked.
func TestFlow(t *testing.T) {
	t.Parallel()
	installed(t, "chromium")
	r := &rewriter{}
	server := shared(t)
	proxy := newFront(t, server.url, r.modify)
	proxy.request = func(r *http.Request) {
		r.Header.Del("Accept-Encoding")
		r.Header.Del("If-None-Match") // so that every answer has a body to change
	}
	_, frozen := server.get(flowPath + "?limit=100")
	var answer struct {
		Data struct{ Items []flowItem }
	}
	if err := json.Unmarshal(frozen, &answer); err != nil || len(answer.Data.Items) < 20 {
		t.Fatalf("%d rows: %v", len(answer.Data.Items), err)
	}
	items := answer.Data.Items
	serve := func(body []byte) {
		r.set(func(path string, status int, other []byte) (int, []byte) {
			if path == flowPath {
				return 200, body
			}
			return status, other
		})
	}
	serve(frozen)
	b := browse(t, proxy.URL+"/?flow-rows=100")
	b.until("the rows are shown", flowReady)
	eval[bool](b, `(window.marked = [], new MutationObserver(() => {
		for (const r of document.querySelectorAll("#flow tr.fresh")) if (!marked.includes(r.dataset.id)) marked.push(r.dataset.id);
	}).observe(document.querySelector("#flow tbody"), {childList: true}), true)`)
	t.Run("sort", func(t *testing.T) { b.within(t).sorts(items) })
	t.Run("filter", func(t *testing.T) { b.within(t).filters(items) })
	t.Run("new rows", func(t *testing.T) { b.within(t).newRows(frozen, serve) })
	t.Run("phone", func(t *testing.T) { b.within(t).phone() })
	b.t = t
	b.clean()
}

func (b *browser) sorts(items []flowItem) {
	b.t.Helper()
	n := 0
	for key, by := range flowColumns {
		head := `#flow th[data-key="` + key + `"]`
		for range 2 {
			if n++; n%2 == 0 {
				b.press(head+" button", "\r")
			} else {
				eval[chromedp.Void](b, `document.querySelector(%s).click()`, head+" button")
			}
			order := eval[string](b, `document.querySelector(%s).ariaSort ?? ""`, head)
			if order != "ascending" && order != "descending" {
				b.t.Fatalf("%s: aria-sort is %q", key, order)
			}
			want := ordered(items, by, order == "ascending")
			if got := eval[[]string](b, flowRows); !slices.Equal(got, want) {
				b.t.Errorf("%s, %s:\n%q\nwant\n%q", key, order, got[:5], want[:5])
			}
		}
	}
	if heads := eval[int](b, `document.querySelectorAll("#flow thead th").length`); heads != len(flowColumns) {
		b.t.Errorf("%d columns, and %d of them are known to this test", heads, len(flowColumns))
	}
	if n := eval[int](b, `document.querySelectorAll("#flow [aria-sort]").length`); n != 1 {
		b.t.Errorf("%d columns say that they sort", n)
	}
}

func (b *browser) filters(items []flowItem) {
	b.t.Helper()
	b.do(chromedp.Navigate(strings.TrimSuffix(b.origin, "/") + "/?flow-rows=100"))
	b.until("the rows are shown", flowReady)
	chosen := func(what string, has func(flowItem) bool) {
		b.t.Helper()
		var want []string
		for _, x := range items {
			if has(x) {
				want = append(want, x.ID)
			}
		}
		if got := eval[[]string](b, flowRows); len(want) == 0 || len(want) == len(items) || !slices.Equal(got, want) {
			b.t.Errorf("%s: %d rows, want %d of %d", what, len(got), len(want), len(items))
		}
		if got, want := b.text("#flow .counted [role=status]"), fmt.Sprintf("%d of %d shown", len(want), len(items)); got != want {
			b.t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	symbol := items[0].Symbol
	b.pick("Symbol", symbol)
	chosen("symbol", func(x flowItem) bool { return x.Symbol == symbol })
	b.pick("Symbol", "")
	b.pick("Direction", "bullish")
	chosen("direction", func(x flowItem) bool { return x.Direction == "bullish" })
	b.press(`#flow .choice button:nth-child(3)`, "\r")
	chosen("puts", func(x flowItem) bool { return x.Direction == "bullish" && x.Type == "put" })
	b.pick("Direction", "")
	b.press(`#flow .choice button:nth-child(1)`, "\r")
	b.pick("Premium", "1000000")
	chosen("premium", func(x flowItem) bool { return x.Premium >= 1e6 })
	b.press(`#flow .days input:nth-of-type(1)`, "7")
	b.press(`#flow .days input:nth-of-type(2)`, "6", "0")
	both := func(x flowItem) bool { return x.Premium >= 1e6 && x.Days >= 7 && x.Days <= 60 }
	chosen("days and premium", both)
	b.press(`#flow th[data-key="volume"] button`, "\r")
	before := eval[[]string](b, flowRows)
	address := eval[string](b, `location.search`)
	b.do(chromedp.Reload())
	b.until("the rows are shown again", flowReady)
	if got := eval[[]string](b, flowRows); !slices.Equal(got, before) || eval[string](b, `location.search`) != address {
		b.t.Errorf("after a reload of %s: %q, want %q", address, got, before)
	}
	if got := eval[[]string](b, `[...document.querySelectorAll("#flow .days input")].map(f => f.value)`); !slices.Equal(got, []string{"7", "60"}) {
		b.t.Errorf("after a reload the fields have %q", got)
	}
	b.do(chromedp.Navigate(b.origin + "/?flow-premium=999999999"))
	b.until("the panel is loaded", `document.querySelector("#flow").scrollIntoView({block: "center", behavior: "instant"}), document.querySelector("#flow .counted [role=status]")?.innerText`)
	empty := func(want string) {
		b.t.Helper()
		b.until("nothing is left", `document.querySelector("#flow .empty")?.checkVisibility() && document.querySelector("#flow .counted [role=status]").innerText.startsWith("0 of ")`)
		if got := b.text("#flow .empty"); got != want {
			b.t.Errorf("of no row, the page says %q, want %q", got, want)
		}
	}
	empty("No row has all of this: premium $1 bn or more.")
	b.shoot("flow-empty")
	b.press(`#flow .choice button:nth-child(3)`, "\r")
	b.press(`#flow .days input:nth-of-type(1)`, "3", "0")
	b.press(`#flow .days input:nth-of-type(2)`, "3", "1")
	empty("No row has all of this: puts, premium $1 bn or more, 30 days or more, 31 days or less.")
	b.press(`#flow .days input:nth-of-type(2)`, kb.Backspace)
	empty("The first day (30) lies after the last (3).")
	b.press("#flow .counted button", "\r")
	b.until("the filters are reset", `location.search === "" && document.querySelectorAll("#flow tbody tr").length === 20 && !document.querySelector("#flow .empty").checkVisibility()`)
}

// newRows adds a row to the answer: this row alone is marked, and a minute later no row is.
func (b *browser) newRows(frozen []byte, serve func([]byte)) {
	b.t.Helper()
	if n := eval[int](b, `document.querySelectorAll("#flow tr.fresh").length`); n != 0 {
		b.t.Errorf("%d rows of the first answer are marked", n)
	}
	eval[bool](b, `(window.marked = [], new MutationObserver(() => {
		for (const r of document.querySelectorAll("#flow tr.fresh")) marked.push(r.dataset.id + " " + r.querySelector("th").textContent);
	}).observe(document.querySelector("#flow tbody"), {childList: true}), true)`)
	var document map[string]any
	if err := json.Unmarshal(frozen, &document); err != nil {
		b.t.Fatal(err)
	}
	data := document["data"].(map[string]any)
	items := data["items"].([]any)
	added := map[string]any{}
	for k, v := range items[0].(map[string]any) {
		added[k] = v
	}
	added["id"], added["symbol"], added["score"] = "added", "NEWS", 99.9
	data["items"] = append([]any{added}, items...)
	body, err := json.Marshal(document)
	if err != nil {
		b.t.Fatal(err)
	}
	serve(body)
	b.until("the new row is marked", `marked.length > 0`)
	b.shoot("flow-new")
	b.until("the mark goes", `document.querySelector("#flow tr[data-id=added]") && !document.querySelector("#flow tr.fresh")`)
	for _, m := range eval[[]string](b, `marked`) {
		if !strings.HasPrefix(m, "added New: NEWS") {
			b.t.Errorf("marked: %s", m)
		}
	}
}

// phone checks the order of a card, and that the page does not scroll sideways.
func (b *browser) phone() {
	b.t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		b.view(390, 844, scheme)
		b.until("the rows are cards", `getComputedStyle(document.querySelector("#flow tbody tr")).display === "grid"`)
		order := eval[[]string](b, `[...document.querySelector("#flow tbody tr").children].map(c => ({key: c.dataset.key, box: c.getBoundingClientRect()}))
			.sort((a, b) => Math.round((a.box.bottom - b.box.bottom) / 8) || a.box.left - b.box.left).map(c => c.key)`)
		if !slices.Equal(order[:2], []string{"direction", "premium"}) {
			b.t.Errorf("the card has the order %q", order)
		}
		if wide := eval[int](b, `document.documentElement.scrollWidth`); wide > 390 {
			b.t.Errorf("the page is %d wide", wide)
		}
		if wide := eval[[]string](b, `[...document.querySelectorAll("#flow tbody tr > *")].filter(c => c.scrollWidth > c.clientWidth + 1 || c.getBoundingClientRect().right > 390).map(c => c.textContent)`); len(wide) > 0 {
			b.t.Errorf("cut off: %q", wide)
		}
		eval[chromedp.Void](b, `document.querySelector("#flow").scrollIntoView({behavior: "instant"})`)
		b.shoot("flow-390-" + scheme)
	}
	b.press(`#flow th[data-key="premium"] button`, kb.Enter)
	if got := eval[string](b, `document.querySelector("#flow [aria-sort]").dataset.key`); got != "premium" {
		b.t.Errorf("a phone sorts by %s", got)
	}
	b.view(1400, 1000, "light")
}

// The menu of expirations has one group per month, says what each expiration has open, and is in the address.
func TestExpirationMenu(t *testing.T) {
	t.Parallel()
	installed(t, "chromium")
	p := shared(t)
	all := dataOf[painData](p, painPath).Expirations
	last := all[len(all)-1].Expiration
	b := browse(t, p.url+"/?expiration="+last)
	b.until("the panel has its answer", painReady)
	if got := eval[string](b, `document.querySelector("#max-pain .source").textContent`); got != painPath+"?expiration="+last {
		t.Errorf("the address has %s, and the panel asks for %s", last, got)
	}
	const menu = `document.querySelector("#max-pain .controls select")`
	months := map[string]int{}
	for _, x := range all {
		months[x.Expiration[:7]]++
	}
	if got := eval[int](b, menu+`.querySelectorAll("optgroup").length`); got != len(months) {
		t.Errorf("%d groups of %d months", got, len(months))
	}
	if got := eval[string](b, menu+`.value`); got != last {
		t.Errorf("the menu shows %s, not %s", got, last)
	}
	if bad := eval[[]string](b, `[...`+menu+`.querySelectorAll("optgroup option")].map(o => o.textContent).filter(t => !/^\d+ [A-Z][a-z]+ · (AM|PM|AM\+PM) · [\d.]+( |\u00a0)?[km]? open$/.test(t))`); len(bad) > 0 {
		t.Errorf("options: %q", bad)
	}
	b.press("#max-pain .controls select", kb.Home)
	b.until("the nearest is shown", `!location.search && document.querySelector("#max-pain .source").textContent === "`+painPath+`"`)
	b.do(chromedp.Navigate(p.url + "/?expiration=2001-01-19"))
	b.until("the panel has its answer", painReady)
	b.until("a settled expiration is said", `document.querySelector("#max-pain .reading").textContent.startsWith("19 Jan 2001 has settled") && !location.search`)
	b.clean()
}
