package e2e

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	devinput "github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

type matrixData struct {
	Spot        float64 `json:"effective_spot"`
	Session     string  `json:"session_date"`
	Expirations []struct {
		Expiration, Settlement string
		Net                    *float64 `json:"net_gex_dollars"`
	}
	Strikes []struct {
		Strike float64
		Net    *float64 `json:"net_gex_dollars"`
	}
	Net   [][]*float64 `json:"net_gex_dollars"`
	Parts []matrixPart
}

type matrixPart struct {
	Name, From, To string
	Strikes        []strikeRow `json:"by_strike"`
}

// during says when the contracts expire, as the page does.
func (p matrixPart) during() string {
	if p.From == p.To {
		return "on " + written(p.To)
	}
	return "from " + written(p.From) + " to " + written(p.To)
}

// part returns the part of a name.
func (m matrixData) part(name string) matrixPart {
	for _, p := range m.Parts {
		if p.Name == name {
			return p
		}
	}
	return matrixPart{}
}

// written writes a date as the page does: 20 Nov 2026.
func written(date string) string {
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		panic(err)
	}
	return day.Format("2 Jan 2006")
}

// shown returns the indexes of the strikes within a share of the spot, highest first.
func (m matrixData) shown(share float64) (rows []int) {
	for i := len(m.Strikes) - 1; i >= 0; i-- {
		if math.Abs(m.Strikes[i].Strike/m.Spot-1) <= share {
			rows = append(rows, i)
		}
	}
	return rows
}

// series names a column as the page does: 20 Nov 2026 PM.
func (m matrixData) series(column int) string {
	e := m.Expirations[column]
	return written(e.Expiration) + " " + strings.ToUpper(e.Settlement)
}

func figureOf(x *float64, none string) string {
	if x == nil {
		return none
	}
	return dollars(*x)
}

type strikeRow struct {
	Strike  float64
	Calls   float64 `json:"call_gex_dollars"`
	Puts    float64 `json:"put_gex_dollars"`
	Net     float64 `json:"net_gex_dollars"`
	CallOI  float64 `json:"call_open_interest"`
	PutOI   float64 `json:"put_open_interest"`
	CallVol float64 `json:"call_volume"`
	PutVol  float64 `json:"put_volume"`
}

type strikesData struct {
	Spot        float64     `json:"effective_spot"`
	Strikes     []strikeRow `json:"by_strike"`
	Expirations []struct {
		Expiration, Settlement string
		Net, Delta             float64
	} `json:"by_expiration"`
	Changes struct {
		Net map[string]float64 `json:"net_gex_dollars"`
	}
	Exposures map[string]float64
}

// The panels Strike × expiration, By strike, By expiration and Changes in a real browser, and the explained words.
func TestViews(t *testing.T) {
	t.Parallel()
	installed(t, "chromium")
	p := serveReady(t, "--listen", freePort(t), "--data-dir", storedDay(t), "--sim-start", marketStart)
	b := browse(t, p.url)
	b.sections()
	t.Run("matrix", func(t *testing.T) { b.within(t).matrix(p) })
	t.Run("strikes", func(t *testing.T) { b.within(t).strikes(p) })
	t.Run("expirations", func(t *testing.T) { b.within(t).expirationRows(p) })
	t.Run("changes", func(t *testing.T) { b.within(t).changes(p) })
	t.Run("words", func(t *testing.T) { b.within(t).words() })
	t.Run("sizes", func(t *testing.T) { b.within(t).viewSizes() })
	t.Run("settled", func(t *testing.T) { b.within(t).settledStrikes() })
	b.t = t
	b.clean()
	p.stop()
}

var viewPanels = []string{"matrix", "strikes", "expirations", "changes"}

// sections scrolls to each panel of this test, because it loads when it comes near the window.
func (b *browser) sections() {
	for _, id := range viewPanels {
		b.see("#" + id)
		b.until(id+" has its answer", fmt.Sprintf(`document.querySelector("#%s[aria-busy=false] .ages")?.innerText.startsWith("Quotes of ")`, id))
	}
}

// see scrolls an element to the middle of the window.
func (b *browser) see(selector string) {
	b.t.Helper()
	if !eval[bool](b, `(e => { e?.scrollIntoView({block: "center", behavior: "instant"}); return !!e; })(document.querySelector(%s))`, selector) {
		b.t.Fatalf("%s is not on the page", selector)
	}
}

// equal waits until two texts are equal. The page may show a new answer a little later than the server has it.
func (b *browser) equal(what string, texts func() (got, want string)) {
	b.t.Helper()
	var got, want string
	until(b.t, what, func() bool { got, want = texts(); return got == want }, func() string { return fmt.Sprintf("%q, want %q", got, want) })
}

// matrix reads cells at the pointer, by keyboard and by touch, and the table.
func (b *browser) matrix(p *process) {
	const tip = ".figure:popover-open"
	b.see("#matrix canvas:not(.strikes)")
	m := dataOf[matrixData](p, matrixPath)
	row, column := len(m.shown(0.03))/2, 2
	place := func() (x, y float64) {
		at := eval[[]float64](b, `(r => [r.left + (%s + .5) / %s * r.width, r.top + (%s + .5) / %s * r.height])(document.querySelector("#matrix canvas:not(.strikes)").getBoundingClientRect())`,
			column, len(m.Expirations), row, len(m.shown(0.03)))
		return at[0], at[1]
	}
	says := func(what, selector, separator string) {
		b.t.Helper()
		b.equal(what, func() (got, want string) {
			m = dataOf[matrixData](p, matrixPath)
			strike := m.shown(0.03)[row]
			where, x := "all expirations", m.Strikes[strike].Net
			if column >= 0 {
				where, x = m.series(column), m.Net[strike][column]
			}
			return b.text(selector), grouped(m.Strikes[strike].Strike) + ", " + where + separator + figureOf(x, "no open contract")
		})
	}
	x, y := place()
	b.do(chromedp.MouseEvent(devinput.DispatchMouseEventTypeMouseMoved, x, y))
	says("the cell at the pointer has the figure of the answer", tip, " ")
	b.shoot("matrix-pointer")
	b.do(chromedp.MouseEvent(devinput.DispatchMouseEventTypeMouseMoved, 2, 2))
	b.until("the figure goes with the pointer", `!document.querySelector(".figure:popover-open")`)

	b.press("#matrix .heat-map", kb.ArrowDown) // the first key shows the cell
	b.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowUp), chromedp.KeyEvent(kb.ArrowUp))
	row, column = row-1, column+2
	says("the cell of the arrow keys has the figure of the answer", tip, " ")
	says("screen readers hear it", "#matrix output", ": ")
	eval[chromedp.Void](b, `scrollTo({top: 0, behavior: "instant"})`)
	b.do(chromedp.KeyEvent(kb.ArrowUp))
	row--
	b.until("the arrow keys bring their cell into the window", `(r => r.top > 0 && r.bottom < innerHeight)(document.querySelector("#matrix .mark").getBoundingClientRect())`)
	says("and its figure stays", tip, " ")
	b.do(chromedp.KeyEvent(kb.Home), chromedp.KeyEvent(kb.ArrowLeft))
	column = -1
	says("left of the first expiration are the sums by strike", tip, " ")
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until("escape closes the figure", `!document.querySelector(".figure:popover-open")`)

	row, column = 3, 15
	for _, i := range m.shown(0.03) {
		if c := slices.Index(m.Net[i], nil); c >= 0 {
			row, column = slices.Index(m.shown(0.03), i), c
			break
		}
	}
	x, y = place()
	b.tap(x, y)
	says("a touched cell without contracts says so", tip, " ")

	eval[bool](b, `document.querySelector("#matrix details").open = true`)
	b.equal("the table has every figure", func() (string, string) {
		m = dataOf[matrixData](p, matrixPath)
		got := eval[[][]string](b, `[...document.querySelectorAll("#matrix tbody tr")].map(r => [...r.cells].map(c => c.textContent.replace(/\u2060/g, "").replace(/\s+/g, " ")))`)
		want := [][]string{{"All strikes", ""}}
		for _, e := range m.Expirations {
			want[0] = append(want[0], figureOf(e.Net, "–"))
		}
		for _, i := range m.shown(0.03) {
			cells := []string{grouped(m.Strikes[i].Strike), figureOf(m.Strikes[i].Net, "–")}
			for _, x := range m.Net[i] {
				cells = append(cells, figureOf(x, "–"))
			}
			want = append(want, cells)
		}
		for i := range min(len(got), len(want)) {
			if !slices.Equal(got[i], want[i]) {
				return fmt.Sprintf("%q", got[i]), fmt.Sprintf("%q", want[i])
			}
		}
		return fmt.Sprintf("%d rows", len(got)), fmt.Sprintf("%d rows", len(want))
	})
	eval[bool](b, `document.querySelector("#matrix details").open = false`)

	b.press(`#matrix button[value="10"]`, kb.Enter)
	count := fmt.Sprintf(`document.querySelector("#matrix .summary").innerText.includes(" cells of %d strikes")`, len(m.shown(0.10)))
	b.until("the range is in the address", `location.search.includes("matrix=10") && `+count)
	b.do(chromedp.Reload())
	b.sections()
	b.until("a reload shows the same range", count+` && document.querySelector('#matrix button[value="10"][aria-pressed=true]')`)
	b.press(`#matrix button[value="3"]`, kb.Enter)
	b.until("the first range is not in the address", `!location.search.includes("matrix")`)
}

// tap touches a point of the window with a finger.
func (b *browser) tap(x, y float64) {
	b.t.Helper()
	touch := func(on bool) {
		if _, err := chromedp.Call(b.ctx, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: on}); err != nil {
			b.t.Fatal(err)
		}
	}
	touch(true)
	for _, e := range []devinput.DispatchTouchEventParams{
		{Type: devinput.DispatchTouchEventTypeTouchStart, TouchPoints: []*devinput.TouchPoint{{X: x, Y: y}}},
		{Type: devinput.DispatchTouchEventTypeTouchEnd, TouchPoints: []*devinput.TouchPoint{}},
	} {
		if _, err := chromedp.Call(b.ctx, devinput.DispatchTouchEvent, e); err != nil {
			b.t.Fatal(err)
		}
	}
	touch(false)
}

// strikeFigures are the figures of By strike, by the value of their button, as the chart says them to screen readers.
var strikeFigures = []struct {
	value string
	write func(strikeRow) string
}{
	{"gamma", func(r strikeRow) string {
		return "Calls " + dollars(r.Calls) + ", Puts " + dollars(r.Puts) + ", Net " + dollars(r.Net)
	}},
	{"oi", func(r strikeRow) string { return "Calls " + counted(r.CallOI) + ", Puts " + counted(r.PutOI) }},
	{"volume", func(r strikeRow) string { return "Calls " + counted(r.CallVol) + ", Puts " + counted(r.PutVol) }},
}

// counted writes a count as the page does: 6.40 k.
func counted(x float64) string { return strings.TrimPrefix(dollars(x), "$") }

// strike compares the first strike at or above the spot with that of the rows of an answer.
func (b *browser) strike(what string, write func(strikeRow) string, answer func() (spot float64, rows []strikeRow)) {
	b.t.Helper()
	b.equal(what, func() (got, want string) {
		spot, rows := answer()
		i := slices.IndexFunc(rows, func(r strikeRow) bool { return r.Strike >= spot })
		if i < 0 {
			return fmt.Sprintf("%d rows", len(rows)), "a strike above the spot"
		}
		got = eval[string](b, `(document.querySelector("#strikes .plot").getAttribute("aria-valuetext") ?? "").replace(/\u2060/g, "").replace(/\s+/g, " ")`)
		return got, "Strike " + grouped(rows[i].Strike) + ": " + write(rows[i])
	})
}

// partStrikes compares each figure under the filter for a part of the expirations with the answer.
func (b *browser) partStrikes(p *process, filter, name string) {
	b.t.Helper()
	b.press(fmt.Sprintf("#strikes button[value=%q]", filter), kb.Enter)
	for _, f := range strikeFigures {
		b.press(fmt.Sprintf("#strikes button[value=%q]", f.value), kb.Enter)
		b.strike(f.value+" of "+name, f.write, func() (float64, []strikeRow) {
			m := dataOf[matrixData](p, matrixPath)
			return m.Spot, m.part(name).Strikes
		})
	}
	if got := b.text("#strikes .why"); !strings.HasPrefix(got, "Sums over contracts expiring "+dataOf[matrixData](p, matrixPath).part(name).during()) {
		b.t.Errorf("under %s the panel says %q", filter, got)
	}
	if n := eval[int](b, `document.querySelectorAll("#strikes button:disabled").length`); n != 0 {
		b.t.Errorf("%d choices are disabled", n)
	}
}

// strikes compares the first strike at or above the spot with the answers, for each choice.
func (b *browser) strikes(p *process) {
	const plot = "#strikes .plot"
	b.see(plot)
	for _, f := range strikeFigures {
		b.press(fmt.Sprintf("#strikes button[value=%q]", f.value), kb.Enter)
		all := func() (float64, []strikeRow) {
			d := dataOf[strikesData](p, "/api/v1/gex/spx")
			return d.Spot, d.Strikes
		}
		b.strike(f.value+" of calls and puts", f.write, all)
		if f.value == "oi" {
			b.do(chromedp.Reload())
			b.sections()
			b.strike("the same after a reload", f.write, all)
		}
	}
	b.partStrikes(p, "0dte", "zero_dte")
	b.partStrikes(p, "week", "this_week")
	if got := eval[string](b, `location.search`); !strings.Contains(got, "figure=volume") || !strings.Contains(got, "expiring=week") {
		b.t.Errorf("the address has %q", got)
	}
	b.shoot("strikes-week")
	b.press("#strikes button[value=all]", kb.Enter)
	b.press("#strikes button[value=gamma]", kb.Enter)
	b.press(`#strikes button[value="15"]`, kb.Enter)
	d := dataOf[strikesData](p, "/api/v1/gex/spx")
	b.until("all strikes are shown", fmt.Sprintf(`Math.abs(document.querySelector(%q).dataset.points - %d) < 3`, plot, len(d.Strikes)))
	b.press("#strikes button[value=levels]", kb.Enter)

	dates := p.sessions()
	date := dates[len(dates)-2]
	b.do(chromedp.Navigate(p.url + "/?expiring=0dte&date=" + date))
	b.sections()
	b.until("a stored date has all expirations only", `document.querySelectorAll("#strikes button:disabled").length === 2 &&
		document.querySelector("#strikes .why").innerText.startsWith("A stored date") && document.querySelector("#strikes button[value=all][aria-pressed=true]")`)
	if want := "historical?date=" + date; !strings.HasSuffix(b.text("#changes .source"), want) || !strings.HasSuffix(b.text("#expirations .source"), want) {
		b.t.Errorf("a panel does not show %s", date)
	}
	if !strings.Contains(b.text("#matrix .summary"), "not of the chosen date") {
		b.t.Error("the matrix does not say that it is of now")
	}
	b.do(chromedp.Navigate(p.url))
	b.sections()
}

// settledStrikes looks at the strikes on a Tuesday after the close: 0DTE has settled, and the rest of the week has not.
func (b *browser) settledStrikes() {
	p := serveReady(b.t, "--data-dir", storedDay(b.t), "--sim-speed", "0", "--sim-start", "2026-11-24T21:30:00Z")
	p.until("the contracts of Tuesday have settled", func() bool {
		m := dataOf[matrixData](p, matrixPath)
		return m.Session == "2026-11-24" && len(m.part("zero_dte").Strikes) == 0 && m.part("this_week").To == "2026-11-27"
	})
	b.mu.Lock()
	b.front = p.url
	b.mu.Unlock()
	b.do(chromedp.Navigate(p.url + "/?expiring=0dte&figure=volume"))
	b.see("#strikes")
	b.until("the panel says that 0DTE has settled", `document.querySelector("#strikes .summary")?.innerText === "The contracts expiring on 24 Nov 2026 have settled." &&
		document.querySelector("#strikes .plot").dataset.points === "0"`)
	b.shoot("strikes-settled")
	b.partStrikes(p, "week", "this_week")
}

func (b *browser) expirationRows(p *process) {
	b.eventually("a row per expiration has its figures", func() bool {
		d := dataOf[struct {
			Session string `json:"session_date"`
			Rows    []struct {
				Expiration string
				Net        float64 `json:"net_gex_dollars"`
				Delta      float64 `json:"delta_dollars"`
				Vanna      float64 `json:"vanna_dollars_per_vol_point"`
				Charm      float64 `json:"charm_dollars_per_day"`
			} `json:"by_expiration"`
		}](p, "/api/v1/gex/spx")
		got := eval[[][]string](b, `[...document.querySelectorAll("#expirations tbody tr")].map(r => [...r.cells].map(c => c.textContent.replace(/\u2060/g, "").replace(/\s+/g, " ").trim()))`)
		if len(got) != len(d.Rows) || len(got) == 0 {
			return false
		}
		for i, r := range d.Rows {
			if (r.Expiration == d.Session) != strings.HasSuffix(got[i][0], "0DTE") {
				b.t.Errorf("%s: %q", r.Expiration, got[i][0])
			}
			if got[i][1] != dollars(r.Net) || got[i][4] != dollars(r.Delta) || got[i][5] != dollars(r.Vanna) || got[i][6] != dollars(r.Charm) {
				return false
			}
		}
		return true
	})
}

// changes compares the waterfall with the answer. Each bar begins where the one before it ends, and the last ends at net gamma.
func (b *browser) changes(p *process) {
	b.see("#changes")
	type step struct {
		Name, Figure string
		From, To     float64 // in percent of the width
		Rises        bool
	}
	b.eventually("the waterfall has the parts of the answer", func() bool {
		d := dataOf[strikesData](p, "/api/v1/gex/spx")
		net := d.Changes.Net
		got := eval[[]step](b, `[...document.querySelectorAll("#changes .waterfall tbody tr")].map(r => {
			const bar = r.querySelector(".floating i"), from = parseFloat(bar.style.left), to = from + parseFloat(bar.style.width), rises = bar.className === "positive";
			return {name: r.cells[0].innerText, figure: r.cells[2].textContent.replace(/\u2060/g, "").replace(/\s+/g, " "), from: rises ? from : to, to: rises ? to : from, rises};
		})`)
		parts := []string{"expired", "spot", "time", "volatility", "open_interest", "listed"}
		if len(got) != len(parts)+2 || net == nil {
			return false
		}
		sum, zero := net["from"], got[0].From
		at, scale := got[0].To, (got[0].To-zero)/net["from"] // percent per dollar
		for i, part := range parts {
			g := got[i+1]
			want := dollars(net[part])
			if net[part] > 0 {
				want = "+" + want
			}
			if g.Figure != want || math.Abs(g.From-at) > 0.01 || math.Abs(g.To-at-net[part]*scale) > 0.01 {
				return false
			}
			at, sum = g.To, sum+net[part]
		}
		return math.Abs(sum-net["to"]) < 10 && math.Abs(got[7].To-at) < 0.01 && got[0].Figure == dollars(net["from"]) && got[7].Figure == dollars(net["to"])
	})
	b.eventually("the exposures have the figures and the right side", func() bool {
		d := dataOf[strikesData](p, "/api/v1/gex/spx")
		text := b.text("#changes .exposures")
		side := func(x float64) string {
			if x > 0 {
				return "sell " + dollars(x)
			}
			return "buy " + dollars(-x)
		}
		return strings.Contains(text, dollars(d.Exposures["delta_dollars"])) &&
			strings.Contains(text, "rises by one point, modelled dealers must "+side(d.Exposures["vanna_dollars_per_vol_point"])) &&
			strings.Contains(text, "nothing else changes, modelled dealers must "+side(d.Exposures["charm_dollars_per_day"]))
	})
	rows := dataOf[struct {
		Changes []struct{ From, To float64 } `json:"open_interest_changes"`
	}](p, "/api/v1/gex/spx").Changes
	last := eval[[]string](b, `[...document.querySelectorAll("#changes .contracts tbody tr")].map(r => r.cells[3].innerText)`)
	if len(last) != len(rows) || len(rows) == 0 {
		b.t.Fatalf("%d rows of open interest, want %d", len(last), len(rows))
	}
	for i, r := range rows {
		if got, err := strconv.ParseFloat(strings.NewReplacer(",", "", "−", "-", "+", "").Replace(last[i]), 64); err != nil || got != r.To-r.From {
			b.t.Errorf("open interest %d: %q, want %v", i, last[i], r.To-r.From)
		}
	}
}

// words opens explanations by keyboard, pointer and finger.
func (b *browser) words() {
	const open = ".word:popover-open:not(.figure)"
	b.see("#changes .exposures")
	b.press("#changes .exposures .term", kb.Tab)
	b.until("focus explains a word", `document.querySelector(".word:popover-open")?.id === "word-delta"`)
	if eval[string](b, `document.activeElement.getAttribute("aria-describedby")`) != "word-delta" {
		b.t.Error("a screen reader does not find the explanation")
	}
	b.shoot("word")
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until("escape closes it", `!document.querySelector(".word:popover-open")`)
	center := func(selector string) (x, y float64) {
		at := eval[[]float64](b, `(r => [r.left + r.width / 2, r.top + r.height / 2])(document.querySelector(%s).getBoundingClientRect())`, selector)
		return at[0], at[1]
	}
	const vanna = "#changes .exposures div:nth-child(3) .term"
	before := eval[float64](b, `document.querySelector("#changes").offsetHeight`)
	x, y := center(vanna)
	b.do(chromedp.MouseEvent(devinput.DispatchMouseEventTypeMouseMoved, x, y))
	b.until("the pointer explains a word", `document.querySelector(".word:popover-open")?.id === "word-vanna"`)
	if after := eval[float64](b, `document.querySelector("#changes").offsetHeight`); after != before {
		b.t.Errorf("the panel is %v high, and was %v", after, before)
	}
	b.do(chromedp.MouseEvent(devinput.DispatchMouseEventTypeMouseMoved, 2, 2))
	b.until("it closes when the pointer leaves", `!document.querySelector(".word:popover-open")`)

	b.view(390, 844, "light")
	b.see(vanna)
	x, y = center(vanna)
	b.tap(x, y)
	b.until("a tap explains a word", `document.querySelector(".word:popover-open")?.id === "word-vanna"`)
	if !eval[bool](b, `(r => r.left >= 0 && r.right <= innerWidth && r.top >= 0 && r.bottom <= innerHeight)(document.querySelector(%s).getBoundingClientRect())`, open) {
		b.t.Error("the explanation is not inside the window")
	}
	b.shoot("word-390")
	b.tap(x, y)
	b.until("a second tap closes it", `!document.querySelector(".word:popover-open")`)
	b.tap(x, y)
	b.until("a third tap opens it", `!!document.querySelector(".word:popover-open")`)
	b.tap(380, 20)
	b.until("a tap beside it closes it", `!document.querySelector(".word:popover-open")`)
	b.view(1400, 1000, "light")
}

// viewSizes checks that no panel is wider than the window, at each width and in each theme.
func (b *browser) viewSizes() {
	eval[chromedp.Void](b, `document.activeElement.blur()`)
	for _, width := range []int64{1400, 2560, 390} {
		for _, scheme := range []string{"light", "dark"} {
			b.view(width, 900, scheme)
			b.sections()
			b.until("the charts have the width", `[...document.querySelectorAll("#strikes .plot")].every(p => Math.abs(p.clientWidth - (p.querySelector(".uplot")?.clientWidth ?? 0)) < 2)`)
			if wide := eval[int](b, `document.documentElement.scrollWidth`); wide > int(width) {
				b.t.Errorf("%d wide: the page is %d wide", width, wide)
			}
			b.plain()
			b.shoot(fmt.Sprintf("views-%d-%s", width, scheme))
		}
	}
	b.view(1400, 1000, "light")
}
