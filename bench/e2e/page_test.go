package e2e

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	devinput "github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The parts of the answers that the tests look for on the page.
type gammaData struct {
	Spot     float64
	CallWall float64 `json:"call_wall"`
	Net      float64 `json:"net_gex_dollars"`
	Profile  []struct{ Spot float64 }
}

type trackData struct {
	Columns []string
	Rows    [][]any
}

// last returns a number of the last row.
func (d trackData) last(column string) float64 {
	if len(d.Rows) == 0 {
		return 0
	}
	x, _ := d.Rows[len(d.Rows)-1][slices.Index(d.Columns, column)].(float64)
	return x
}

type painData struct {
	MaxPain     float64 `json:"max_pain"`
	Expirations []struct{ Expiration string }
}

// writtenDate writes a date as the page does: 20 Nov 2026.
func writtenDate(date string) string {
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		panic(err)
	}
	return day.Format("2 Jan 2006")
}

// grouped writes a level as the page does: 7,514.62 or 7,500.
func grouped(x float64) string {
	whole, fraction, _ := strings.Cut(strings.TrimSuffix(strconv.FormatFloat(x, 'f', 2, 64), ".00"), ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction == "" {
		return whole
	}
	return whole + "." + fraction
}

// percent writes a percentage as the page does: +0.61 %, with a real minus.
func percent(x float64) string {
	text := strings.Replace(fmt.Sprintf("%+.2f %%", x), "-", "−", 1)
	return strings.TrimLeft(text, map[bool]string{true: "+−"}[math.Round(x*100) == 0])
}

// hundredths rounds a figure of 4 decimals to 2, a tie away from zero, as the page does.
func hundredths(x float64) float64 { return math.Round(math.Round(x*1e4)/100) / 100 }

// dollars writes an amount as the page does: −$6.40 bn.
func dollars(x float64) string {
	sign, size, unit, decimals := "", math.Abs(x), 0, 0
	if x < 0 {
		sign = "−"
	}
	units := []string{"", " k", " m", " bn", " tn"}
	for ; unit < len(units)-1 && size >= 999.5; unit++ {
		size /= 1000
	}
	switch {
	case unit > 0 && size < 9.995:
		decimals = 2
	case unit > 0 && size < 99.95:
		decimals = 1
	}
	scale := math.Pow10(decimals)
	size = math.Floor(size*scale+0.5) / scale // a tie goes up, as in JavaScript
	return sign + "$" + strconv.FormatFloat(size, 'f', decimals, 64) + units[unit]
}

// allLoaded says that every panel has its answer, but those that a phone folds. It scrolls to a panel that has none, because a panel
// loads when it comes near the window. Charts are drawn later: one a frame.
const allLoaded = `(() => {
	const waiting = [...document.querySelectorAll("section[aria-busy=true]")].find(s => !s.querySelector(".fold[aria-expanded=false]")?.checkVisibility());
	waiting?.scrollIntoView({block: "center", behavior: "instant"});
	return !waiting && !document.querySelector(".notice:not([hidden]), .banner.down");
})()`

// One visit of each view: the figures of each are those of the answers, and pointer, keys, finger and address do what they
// promise. The clock of the server stands still.
func TestPage(t *testing.T) {
	t.Parallel()
	installed(t, "chromium")
	p := shared(t)
	b := browse(t, "about:blank")
	b.origin = p.url
	b.onLoad(`if (navigator.clipboard) navigator.clipboard.writeText = async text => { window.copied = text; } // the machine has one clipboard, and more than one test
		const ask = fetch;
		window.fetch = (target, init) => (target === "/readyz" ? Promise.resolve(new Response('{"history":"12 of 65"}')) : ask(target, init));`)
	b.do(chromedp.Navigate(p.url))
	b.until("every panel has its answer", allLoaded)
	b.until("every chart is drawn", allDrawn)
	if got := b.text("#banners"); !strings.Contains(got, "The market is simulated") {
		t.Errorf("the page does not say that the market is simulated: %q", got)
	}
	b.until("the status line says how far the past is", `document.querySelector("#ages").textContent.endsWith(" · History: 12 of 65 sessions")`)
	b.charts(p)
	b.tables(p)
	b.volatility(p)
	b.zeroDTE(p)
	b.levels(p)
	b.matrix(p)
	b.words()
	b.keyboard()
	b.zoom()
	b.flow()
	b.looks()
	b.address(p)
	b.clean()
}

// chart has the texts of a chart, its number of points, and its number of coloured pixels, up to 100 (Ink).
type chart struct {
	Panel, Title, Value, Summary string
	Points, Ink                  int
}

// chartsScript reads the charts, with plain spaces and without the joiners between signs and amounts.
const chartsScript = `[...document.querySelectorAll("figure.chart")].filter(f => f.checkVisibility() && f.querySelector(".plot")).map(f => {
	const plot = f.querySelector(".plot"), canvas = f.querySelector("canvas");
	const pixels = canvas ? canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data : [];
	let ink = 0;
	for (let i = 0; i < pixels.length && ink < 100; i += 4) {
		const r = pixels[i], g = pixels[i + 1], b = pixels[i + 2];
		if (pixels[i + 3] > 150 && Math.max(r, g, b) - Math.min(r, g, b) > 60) ink++;
	}
	return {panel: f.closest("section").id, title: f.querySelector("h3").textContent, points: Number(plot.dataset.points), ink,
		value: (plot.getAttribute("aria-valuetext") ?? "").replace(/\u2060/g, "").replace(/\s+/g, " "), summary: f.querySelector(".summary").textContent};
})`

const allDrawn = chartsScript + `.every(c => c.ink >= 100)`

func (b *browser) charts(p *process) {
	gamma, pain, track := dataOf[gammaData](p, gammaPath), dataOf[painData](p, painPath), dataOf[trackData](p, trackPath)
	got := eval[[]chart](b, chartsScript)
	for _, w := range []struct {
		panel, title, value string
		points              int // at least
	}{
		{"today", "Spot, flip and walls", "Spot " + grouped(track.last("spot")) + ", Flip " + grouped(track.last("zero_gamma_flip")), len(track.Rows)},
		{"today", "Net gamma", "Net " + dollars(track.last("net_gex_dollars")), len(track.Rows)},
		{"today", "Gamma profile", "Hypothetical spot ", len(gamma.Profile)},
		{"history", "Flip, walls and spot", "Spot " + grouped(gamma.Spot), storedBefore + 1},
		{"history", "Net gamma", "Net " + dollars(gamma.Net), storedBefore + 1},
		{"vix", "Term structure", "M1", 9},
		{"vix", "Volatility indices", "VIX1D", 6},
		{"vix", "First two futures", "M1 ", storedBefore},
		{"zero-dte", "0DTE by strike", "Strike ", 5},
		{"volatility", "At the money, by expiration", "Now ", 30},
		{"volatility", "Skew, by expiration", "25 delta ", 30},
		{"volatility", "Implied and realised", "Implied, 30 days ", storedBefore + 1},
		{"max-pain", "Payout at settlement", "Settlement price " + grouped(pain.MaxPain), 10},
		{"max-pain", "Open interest", "Strike ", 10},
		{"max-pain", "Max pain by expiration", "Max pain " + grouped(pain.MaxPain), len(pain.Expirations)},
	} {
		i := slices.IndexFunc(got, func(c chart) bool { return c.Panel == w.panel && c.Title == w.title })
		if i < 0 {
			b.t.Errorf("no chart %q in %s: %+v", w.title, w.panel, got)
		} else if g := got[i]; g.Ink < 100 || g.Summary == "" || g.Points < w.points || !strings.Contains(g.Value, w.value) {
			b.t.Errorf("%+v, want %+v", g, w)
		}
	}
	if n := eval[int](b, `document.querySelectorAll("#sectors svg .fund circle").length`); n != 11 {
		b.t.Errorf("%d funds in the rotation", n)
	}
}

// tables compares the tables of expirations, changes, VIX futures, sectors and flow with the answers.
func (b *browser) tables(p *process) {
	gamma := dataOf[struct {
		Rows []struct {
			Expiration string
			Net        float64 `json:"net_gex_dollars"`
			Delta      float64 `json:"delta_dollars"`
		} `json:"by_expiration"`
		Changes struct {
			Net map[string]float64 `json:"net_gex_dollars"`
		}
		OI []struct{ From, To float64 } `json:"open_interest_changes"`
	}](p, gammaPath)
	var expirations, parts, contracts, settlements, returns []string
	for _, r := range gamma.Rows {
		expirations = append(expirations, dollars(r.Net), dollars(r.Delta))
	}
	for _, part := range []string{"expired", "spot", "time", "volatility", "open_interest", "listed"} {
		parts = append(parts, dollars(gamma.Changes.Net[part]))
	}
	for _, r := range gamma.OI {
		contracts = append(contracts, grouped(math.Abs(r.To-r.From)))
	}
	vix := dataOf[struct {
		Curve []struct{ Settlement float64 }
	}](p, vixPath)
	b.press("#vix .tell", kb.Enter)
	eval[bool](b, `document.querySelector("#vix details").open = true`)
	b.until("the table opens", `!!document.querySelector("#vix details table")`)
	for _, m := range vix.Curve {
		settlements = append(settlements, fmt.Sprintf("%.2f pts", m.Settlement))
	}
	sectors := dataOf[struct {
		Sectors []struct {
			Returns map[string]float64 `json:"returns_pct"`
		}
	}](p, sectorsPath)
	for _, s := range sectors.Sectors {
		for _, v := range s.Returns {
			returns = append(returns, percent(v))
		}
	}
	flow := dataOf[struct {
		Items []struct {
			Symbol, Side string
			Score        float64
		}
	}](p, flowPath+"?limit=100")
	sided := slices.IndexFunc(flow.Items, func(x struct {
		Symbol, Side string
		Score        float64
	}) bool {
		return x.Side != "unknown"
	})
	if len(gamma.Rows) == 0 || len(gamma.Changes.Net) == 0 || len(gamma.OI) == 0 || len(vix.Curve) == 0 || len(sectors.Sectors) != 11 || sided < 0 {
		b.t.Errorf("the answers lack parts: %+v %+v %+v", gamma, vix, sectors)
	}
	b.has("#expirations tbody", expirations...)
	b.has("#changes .waterfall", parts...)
	b.has("#changes .contracts", contracts...)
	b.has("#vix details table", settlements...)
	b.has("#sectors table", returns...)
	b.has("#flow tbody tr", fmt.Sprintf("%.1f %s", flow.Items[sided].Score, flow.Items[sided].Symbol))
}

// volatility compares the panel with the answers of now and of the session before, the indices with those of VIX, and the cone of
// today's chart with the first row of the track.
func (b *browser) volatility(p *process) {
	type answer struct {
		Session     string  `json:"session_date"`
		ATM         float64 `json:"atm_30d"`
		Reversal    float64 `json:"risk_reversal_25_30d"`
		Realised    float64 `json:"realised_20d"`
		Sessions    int
		Expirations []struct {
			ATM      float64  `json:"atm_volatility"`
			Reversal *float64 `json:"risk_reversal_25"`
		}
	}
	dates := p.sessions()
	now, before := dataOf[answer](p, volPath), dataOf[answer](p, volPath+"/historical?date="+dates[len(dates)-2])
	b.eventually("the previous close is compared", func() bool {
		change := strings.TrimSuffix(percent(hundredths(now.ATM-before.ATM)), " %")
		return strings.Contains(b.text("#volatility .facts"), fmt.Sprintf("ATM, 30 days %.2f %% %s since %s", hundredths(now.ATM), change, strings.TrimSuffix(writtenDate(before.Session), before.Session[:4])))
	})
	b.has("#volatility .facts", fmt.Sprintf("Risk reversal −%.2f 25 Δ: puts dearer", -hundredths(now.Reversal)), fmt.Sprintf("of %d sessions", now.Sessions), fmt.Sprintf("Realised, 20 d %.2f %%", hundredths(now.Realised)))
	b.press("#volatility .tell", kb.Enter)
	eval[bool](b, `[...document.querySelectorAll("#volatility details")].every(d => d.open = true)`)
	b.until("the tables open", `document.querySelectorAll("#volatility details table").length === 3`)
	atm, reversals := []string{fmt.Sprintf(" %.2f %%", hundredths(before.Expirations[len(before.Expirations)-1].ATM))}, []string{}
	for _, e := range now.Expirations {
		atm = append(atm, fmt.Sprintf(" %.2f %%", hundredths(e.ATM)))
		if e.Reversal != nil { // else on its last day
			reversals = append(reversals, strings.Replace(fmt.Sprintf(" %+.2f ", hundredths(*e.Reversal)), "-", "−", 1))
		}
	}
	b.has("#volatility .chart:nth-child(1) table", atm...)
	b.has("#volatility .chart:nth-child(2) table", reversals...)
	for name, quote := range dataOf[struct {
		Cash map[string]struct{ Value float64 }
	}](p, vixPath).Cash {
		b.has("#vix .body", fmt.Sprintf("%s %.2f", strings.ToUpper(name), quote.Value))
	}
	track := dataOf[trackData](p, trackPath)
	first := trackData{track.Columns, track.Rows[:1]}
	b.until("the cone has its words", `document.querySelector("#today .summary").textContent.includes("The cone is the expected move of the session from 09:30, one standard deviation: at the close ")`)
	low, high := first.last("effective_spot")-first.last("expected_move_1d"), first.last("effective_spot")+first.last("expected_move_1d")
	for i, end := range eval[[]float64](b, `document.querySelector("#today .summary").textContent.match(/at the close ([\d,]+) to ([\d,]+)/).slice(1).map(x => Number(x.replace(",", "")))`) {
		if math.Abs(end-[]float64{low, high}[i]) > 1 { // the first row is of some seconds after the open
			b.t.Errorf("the cone ends at %g, want %g to %g", end, low, high)
		}
	}
}

// zeroDTE opens the view with its key, and compares it with the answers.
func (b *browser) zeroDTE(p *process) {
	gamma := dataOf[struct {
		Spot float64 `json:"effective_spot"`
		Zero struct {
			Net   float64 `json:"net_gex_dollars"`
			Share float64 `json:"gross_share_pct"`
			Flip  float64 `json:"zero_gamma_flip"`
		} `json:"zero_dte"`
	}](p, gammaPath)
	option := dataOf[struct {
		Expirations []struct {
			Move float64 `json:"expected_move"`
		}
	}](p, volPath).Expirations[0]
	far := func(name string, price float64) string { // from the spot, by more than is expected until the close
		if math.Abs(price-gamma.Spot) > option.Move {
			name += ", outside"
		}
		return name + " " + grouped(price)
	}
	want := []string{"Net gamma " + dollars(gamma.Zero.Net), fmt.Sprintf("%.1f %% of gross", gamma.Zero.Share), far("Flip", gamma.Zero.Flip) + " " + percent((gamma.Zero.Flip/gamma.Spot-1)*100)}
	for _, l := range dataOf[struct {
		Levels []struct {
			Name  string
			Price float64
		}
	}](p, gammaPath+"/levels").Levels {
		switch l.Name {
		case "zero_dte_call_wall": // below the spot it is no wall
			want = append(want, map[bool]string{true: "Call wall ", false: "Largest +γ "}[l.Price >= gamma.Spot]+grouped(l.Price))
		case "zero_dte_put_wall":
			want = append(want, map[bool]string{true: "Put wall ", false: "Largest −γ "}[l.Price < gamma.Spot]+grouped(l.Price))
		case "zero_dte_pin":
			want = append(want, far("Pin", l.Price))
		}
	}
	b.has("#zero-dte .facts", append(want, fmt.Sprintf("±%.3g", option.Move))...)
	if len(want) != 6 {
		b.t.Errorf("the levels lack the walls: %q", want)
	}
	type row struct {
		Strike float64
		Call   float64 `json:"call_gex_dollars"`
	}
	near := dataOf[struct {
		Parts []struct {
			Rows []row `json:"by_strike"`
		}
	}](p, matrixPath).Parts[0].Rows // of zero_dte
	i := slices.IndexFunc(near, func(r row) bool { return r.Strike >= gamma.Spot })
	value := "Strike " + grouped(near[i].Strike) + ": Calls " + dollars(near[i].Call)
	if got := eval[[]chart](b, chartsScript+`.filter(c => c.title === "0DTE by strike")`); len(got) != 1 || !strings.HasPrefix(got[0].Value, value) {
		b.t.Errorf("%+v, want %s", got, value)
	}
	b.press("#zero-dte .choice button:last-child", kb.Enter)
	net := "Net " + dollars(dataOf[trackData](p, trackPath).last("zero_dte_net_gex_dollars"))
	b.eventually("a narrow card shows its session in place of its strikes", func() bool {
		got := eval[[]chart](b, chartsScript+`.filter(c => c.panel === "zero-dte")`)
		return len(got) == 1 && got[0].Ink >= 100 && strings.Contains(got[0].Value, net)
	})
	b.press("#zero-dte .choice button", kb.Enter)
	eval[chromedp.Void](b, `scrollTo({top: 0, behavior: "instant"}); document.activeElement.blur()`)
	b.do(chromedp.KeyEvent("0"))
	b.until("the key leads to the view", `location.hash === "#zero-dte" && document.querySelector("#zero-dte").getBoundingClientRect().top >= 0 && document.querySelector("#zero-dte").getBoundingClientRect().bottom <= innerHeight`)
	eval[chromedp.Void](b, `history.replaceState(null, "", location.pathname); scrollTo({top: 0, behavior: "instant"})`)
}

// levels compares the ladder with the answer, and copies a price and the line. The page says so to screen readers.
func (b *browser) levels(p *process) {
	wall := dataOf[gammaData](p, gammaPath).CallWall
	_, line := p.get(levelsPath + "?format=line")
	b.press("#levels .controls button", kb.Enter)
	b.until("the line is there", `document.querySelector("#levels .line input").value`)
	for _, c := range []struct{ selector, says, text string }{
		{fmt.Sprintf(`#levels .copy[aria-label^="Copy Call wall"][aria-label$=" %s"]`, grouped(wall)), "Call wall " + grouped(wall) + " copied.", fmt.Sprint(wall)},
		{"#levels .line button", "The line copied.", strings.TrimSpace(string(line))},
	} {
		b.press(c.selector, kb.Enter)
		b.until(c.says, fmt.Sprintf(`window.copied === %q && document.querySelector("#levels output").textContent === %q`, c.text, c.says))
	}
	levels := dataOf[struct {
		Levels []struct {
			Price    float64
			Distance float64 `json:"distance_pct"`
		}
		Futures []struct{ Levels []struct{ Price float64 } }
	}](p, levelsPath)
	b.has("#levels table", grouped(levels.Futures[0].Levels[0].Price))
	for _, l := range levels.Levels {
		b.has("#levels .ladder", grouped(l.Price)+" "+percent(hundredths(l.Distance)))
	}
	if cut := eval[[]string](b, `[...document.querySelectorAll(".ladder span")].filter(e => e.scrollHeight > e.clientHeight + 1 || e.scrollWidth > e.clientWidth + 1).map(e => e.textContent)`); len(cut) > 0 {
		b.t.Errorf("names of the ladder are cut: %q", cut)
	}
	if href := eval[string](b, `document.querySelector("#levels .line a").getAttribute("href")`); href != levelsPath+"?format=csv" {
		b.t.Errorf("CSV: %s", href)
	}
}

// has checks that an element has texts.
func (b *browser) has(selector string, texts ...string) {
	b.t.Helper()
	got := b.text(selector)
	for _, want := range texts {
		if !strings.Contains(got, want) {
			b.t.Errorf("%q is not in %s: %q", want, selector, got)
		}
	}
}

// matrix reads a cell at the pointer.
func (b *browser) matrix(p *process) {
	m := dataOf[struct {
		Spot        float64                                   `json:"effective_spot"`
		Expirations []struct{ Expiration, Settlement string } `json:"expirations"`
		Strikes     []struct{ Strike float64 }
		Net         [][]*float64 `json:"net_gex_dollars"`
	}](p, matrixPath)
	var rows []int // shown, highest strike first: the page widens ±3 % when that has under 20 strikes
	for i := len(m.Strikes) - 1; i >= 0; i-- {
		if math.Abs(m.Strikes[i].Strike/m.Spot-1) <= 0.1 {
			rows = append(rows, i)
		}
	}
	row, column := len(rows)/2, 2
	const cell = `#matrix tbody tr:nth-child(%d) > :nth-child(%d)`
	at := fmt.Sprintf(cell, row+1, column+3)
	b.see(at)
	e, x, figure := m.Expirations[column], m.Net[rows[row]][column], "no open contract"
	if x != nil {
		figure = dollars(*x)
	}
	want := grouped(m.Strikes[rows[row]].Strike) + ", " + writtenDate(e.Expiration) + " " + strings.ToUpper(e.Settlement) + ": " + figure
	b.eventually("the cell at the pointer: "+want, func() bool { // again and again: the matrix moves while panels above it load
		p := eval[[]float64](b, `(r => [r.left + r.width / 2, r.top + r.height / 2])(document.querySelector(%s).getBoundingClientRect())`, at)
		b.mouse(devinput.DispatchMouseEventTypeMouseMoved, p[0], p[1])
		return b.text("#matrix output") == want
	})
	b.mouse(devinput.DispatchMouseEventTypeMouseMoved, 2, 2)
	b.until("the figure goes with the pointer", `document.querySelector("#matrix output").textContent === ""`)
	b.until("the line of the spot lies between its strikes", fmt.Sprintf(`(r => [r.previousSibling, r].map(e => Number(e.firstChild.textContent.replace(",", ""))))(document.querySelector("#matrix .spot")).every((k, i) => (k > %g) === (i === 0))`, m.Spot))
}

// words opens explanations by keyboard, pointer and finger.
func (b *browser) words() {
	const open, vanna = `document.querySelector(".word:popover-open")`, "#changes .exposures .facts > :nth-child(3) .term"
	b.see(vanna)
	b.press("#changes .exposures .term", kb.Tab)
	b.until("focus explains a word", open+`?.id === "word-delta" && document.activeElement.getAttribute("aria-describedby") === "word-delta"`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until("escape closes the explanation", "!"+open)
	b.see(vanna)
	at := eval[[]float64](b, `(r => [r.left + r.width / 2, r.top + r.height / 2])(document.querySelector(%s).getBoundingClientRect())`, vanna)
	b.mouse(devinput.DispatchMouseEventTypeMouseMoved, at[0], at[1])
	b.until("the pointer explains a word", open+`?.id === "word-vanna"`)
	b.mouse(devinput.DispatchMouseEventTypeMouseMoved, 2, 2)
	b.until("the explanation closes when the pointer leaves", "!"+open)
	for _, c := range []struct{ what, holds string }{{"a tap explains a word", open + `?.id === "word-vanna"`}, {"a second tap closes the explanation", "!" + open}} {
		b.eventually(c.what, func() bool { // a finger that a slow machine lifts late has pressed, and not tapped
			b.tap(at[0], at[1])
			b.frames()
			return eval[bool](b, "!!("+c.holds+")")
		})
	}
}

// keyboard reaches every kind of control with the tab key, walks through a chart's points, and opens a score.
func (b *browser) keyboard() {
	b.press(".skip")
	reached := map[string]bool{}
	for i := 0; i < 350 && !reached["flow score"]; i++ {
		b.do(chromedp.KeyEvent(kb.Tab))
		reached[eval[string](b, `(e => e.closest("section")?.id + " " + (e.className || e.tagName))(document.activeElement)`)] = true
	}
	for _, want := range []string{
		"undefined BUTTON", "undefined INPUT", "undefined SELECT", "head term", "today BUTTON", "today plot", "today tell", "history plot", "history term",
		"levels copy", "vix plot", "max-pain SELECT", "max-pain plot", "sectors scroller", "flow SELECT", "flow score",
	} {
		if !reached[want] {
			b.t.Errorf("the tab key does not reach %q; it reaches %v", want, reached)
		}
	}
	b.press("#flow button.score")
	b.until("the score shows its parts", `document.querySelectorAll(".tip:popover-open li").length === 6`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until("escape closes the parts", `!document.querySelector(".tip:popover-open")`)
	const plot, value = "#today .plot", `document.querySelector("#today .plot").getAttribute("aria-valuetext")`
	b.press(plot, kb.Home)
	first := eval[string](b, value)
	b.press(plot, kb.ArrowRight)
	if second := eval[string](b, value); first == second || !strings.HasPrefix(second, "New York time ") {
		b.t.Errorf("%q, then %q", first, second)
	}
}

// zoom drags over a chart with the mouse, while other charts are drawn anew as an answer does, and magnifies with keys.
func (b *browser) zoom() {
	const plot = "#today .plot"
	b.see(plot)
	at := eval[struct{ X, Y, Width, Height float64 }](b, `(({x, y, width, height}) => ({x, y, width, height}))(document.querySelector(%s).querySelector(".u-over").getBoundingClientRect())`, plot)
	b.mouse(devinput.DispatchMouseEventTypeMouseMoved, at.X+at.Width*0.2, at.Y+at.Height/2)
	b.until("the pointer shows a tooltip", `document.querySelector("#today .plot .hint:not([hidden])")?.innerText.includes("Spot")`)
	const redraw = `dispatchEvent(new Event("themechange"))`
	drag := func() {
		b.t.Helper()
		b.mouse(devinput.DispatchMouseEventTypeMousePressed, at.X+at.Width*0.05, at.Y+at.Height/2, chromedp.ButtonLeft, chromedp.ClickCount(1))
		eval[bool](b, redraw)
		b.frames()
		b.mouse(devinput.DispatchMouseEventTypeMouseMoved, at.X+at.Width*0.1, at.Y+at.Height/2, chromedp.ButtonLeft)
		b.mouse(devinput.DispatchMouseEventTypeMouseMoved, at.X+at.Width*0.2, at.Y+at.Height/2, chromedp.ButtonLeft)
		b.mouse(devinput.DispatchMouseEventTypeMouseReleased, at.X+at.Width*0.2, at.Y+at.Height/2, chromedp.ButtonLeft, chromedp.ClickCount(1))
		b.until("both charts of the session are zoomed", `document.querySelectorAll("#today .unzoom:not([hidden])").length === 2`)
	}
	const whole = `document.querySelectorAll("#today .unzoom:not([hidden])").length === 0`
	drag()
	b.press("#today .unzoom", kb.Enter)
	b.until("the button shows everything again", whole)
	drag()
	b.press(plot, kb.Escape, kb.Escape) // the first closes the tooltip
	b.until("escape shows everything again", whole)
	b.press(plot, kb.End, "+")
	b.until("plus zooms", `document.querySelectorAll("#today .unzoom:not([hidden])").length === 2`)
	b.do(chromedp.KeyEvent("-"))
	b.until("minus shows everything again", whole)
}

// flow sorts and filters the table of unusual activity. The address keeps both.
func (b *browser) flow() {
	const rows = `[...document.querySelectorAll("#flow tbody tr")].map(r => r.dataset.id)`
	before := eval[[]string](b, rows)
	b.press(`#flow th[data-key="volume"] button`, kb.Enter)
	b.until("the table is sorted", `document.querySelector("#flow [aria-sort=descending]")?.dataset.key === "volume"`)
	b.press(`#flow .choice button:nth-child(3)`, kb.Enter)
	b.until("puts only are shown", `[...document.querySelectorAll("#flow tbody th")].every(e => e.innerText.endsWith(" put"))`)
	chosen := eval[[]string](b, rows)
	if len(chosen) == 0 || slices.Equal(chosen, before) {
		b.t.Errorf("%q, and before %q", chosen, before)
	}
	b.do(chromedp.Reload())
	b.until("the table is loaded again", allLoaded+` && location.search === "?flow-sort=volume.desc&flow-type=put" && document.querySelector("#flow tbody tr")`)
	if got := eval[[]string](b, rows); !slices.Equal(got, chosen) {
		b.t.Errorf("after a reload: %q, want %q", got, chosen)
	}
	b.press("#flow .counted button:last-child", kb.Enter)
	b.press(`#flow th[data-key="score"] button`, kb.Enter)
	b.until("the address is empty", `location.search === ""`)
	hidden := eval[int](b, `Number(document.querySelector("#flow .counted button").textContent.match(/^(\d+) of unknown side hidden/)[1])`)
	b.press("#flow .counted button", kb.Enter)
	b.until("the rows of unknown side are shown", fmt.Sprintf(`location.search === "?flow-sides=all" && Number(document.querySelector("#flow .counted p").textContent.match(/of (\d+) shown/)[1]) >= %d`, max(1, hidden)))
	b.press("#flow .counted button", kb.Enter)
	b.until("the address is empty again", `location.search === ""`)
}

// looks checks that charts are drawn and that nothing is wider than the window, in each theme and width.
func (b *browser) looks() {
	eval[chromedp.Void](b, `document.activeElement.blur(); scrollTo({top: 0, behavior: "instant"})`)
	for i, width := range []int64{2560, 1920, 1400, 1250, 1100, 700, 390} {
		scheme := []string{"dark", "light"}[i&1]
		b.view(width, 900, scheme)
		b.until("the charts have the width", `[...document.querySelectorAll(".plot")].every(p => Math.abs(p.clientWidth - (p.querySelector(".uplot")?.clientWidth ?? 0)) < 2)`)
		if wide := eval[int](b, `document.documentElement.scrollWidth`); wide > int(width) {
			b.t.Errorf("%d wide: the page is %d wide: %s", width, wide, eval[string](b, `[...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroller, [popover]")).map(e => (e.closest("[id]")?.id ?? "") + " " + e.tagName + " " + e.className).slice(0, 9).join()`))
		}
		if over := eval[bool](b, `(a => [...document.querySelectorAll(".top .banner, .top > button")].some(e => e.checkVisibility() && e.offsetTop < a.bottom && e.offsetLeft < a.right))(document.querySelector(".pick select").getBoundingClientRect())`); over && width > 640 {
			b.t.Errorf("%d wide: the head of the page lies over its pickers", width)
		}
		if dark := eval[bool](b, `getComputedStyle(document.body).backgroundColor.match(/\d+/g).every(c => c < 128)`); dark != (scheme == "dark") {
			b.t.Errorf("%d wide, %s: dark is %v", width, scheme, dark)
		}
		b.until("every chart is drawn", allDrawn)
		b.plain()
	}
	b.view(1400, 1000, "light")
	b.press("#theme", kb.Enter)
	b.until("the button chooses the dark theme", `document.documentElement.dataset.theme === "dark"`)
	b.do(chromedp.KeyEvent(kb.Enter))
}

// address picks a stored date by keyboard, reloads the link, goes back, opens a date by a click on a chart, and opens dates that
// are not stored.
func (b *browser) address(p *process) {
	dates := p.sessions()
	const picker = ".pick select"
	b.until("all dates are offered", fmt.Sprintf(`document.querySelector(%q).options.length === %d`, picker, len(dates)+1))
	b.press(picker, kb.ArrowDown, kb.ArrowDown, kb.ArrowDown) // now, the newest, and the two before it
	shown := func(what, date string) {
		b.t.Helper()
		b.until(what, fmt.Sprintf(`location.search === "?date=%s" && document.querySelector("#today .source").textContent === "%s" && !document.querySelector("#today[aria-busy=true]")`, date, datePath+date))
	}
	levels := func(path string) {
		b.t.Helper()
		gamma := dataOf[gammaData](p, path)
		b.eventually("the levels are those of "+path, func() bool {
			got := b.text("#head .levels")
			return strings.Contains(got, "Spot "+grouped(gamma.Spot)) && strings.Contains(got, "Call wall "+grouped(gamma.CallWall))
		})
	}
	date := dates[len(dates)-3]
	shown("the date is shown", date)
	levels(datePath + date)
	b.until("the panels of now say so, and the others show the date", fmt.Sprintf(`[...document.querySelectorAll("section:has(> footer .ages)")]
		.filter(s => s.querySelector(".ages").textContent.startsWith("Of now, not of the chosen date")).map(s => s.id).join() === "matrix" && document.querySelector("#matrix.absent .now").checkVisibility() &&
		["levels", "vix", "sectors", "max-pain", "flow"].every(id => document.querySelector("#" + id + "[aria-busy=false] .source").textContent.endsWith("date=%s"))`, date))
	b.do(chromedp.Reload())
	shown("a reload shows the same", date)
	levels(datePath + date)
	eval[bool](b, `history.go(-3) ?? true`)
	b.until("the back button undoes the three choices", `location.search === "" && document.querySelector("#today .source").textContent === "`+gammaPath+`" && !document.querySelector("#today[aria-busy=true]")`)
	levels(gammaPath)
	b.until("every panel has its answer", allLoaded)
	b.press("#history .plot", kb.Home, kb.ArrowRight, kb.Enter)
	shown("enter on a chart opens its date", dates[1])
	b.until("what has no data says so, and cannot be chosen", `document.querySelector("#events li")?.textContent === "Events of this date are not stored." && document.querySelector("#zero-dte [value=volume]").disabled`)

	const saturday, friday, monday = "2026-11-14", "2026-11-13", "2026-11-16"
	b.do(chromedp.Navigate(p.url + "/?date=" + saturday + "&span=nonsense"))
	want := "No snapshot of that date is stored. The nearest stored dates are " + writtenDate(friday) + " and " + writtenDate(monday) + "."
	b.eventually(want, func() bool { return b.text("#today .notice:not([hidden])") == want })
	b.until("it is said once, and the others are one line", `document.querySelectorAll(".notice:not([hidden]) button").length === 2 && ["levels", "zero-dte"].every(id => document.querySelector("#" + id + ".gone")?.offsetHeight < 60)`)
	b.press("#today .notice:not([hidden]) button:last-child", kb.Enter)
	b.until("the nearest date is shown", fmt.Sprintf(`new URLSearchParams(location.search).get("date") === %q && !document.querySelector("#today.missing, #today[aria-busy=true]")`, monday))

	last := dataOf[painData](p, painPath).Expirations
	b.do(chromedp.Navigate(p.url + "/?expiration=" + last[len(last)-1].Expiration))
	pain := dataOf[painData](p, painPath+"?expiration="+last[len(last)-1].Expiration)
	b.until("every panel has its answer", allLoaded)
	b.has("#max-pain .facts", "Max pain "+grouped(pain.MaxPain))
}
