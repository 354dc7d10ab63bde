package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	devinput "github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// budget is the most that all files of the page may have on the wire together, with their header fields: 75 KB.
const budget = 75_000

// watchShifts sums the layout shifts of a page as Chromium scores them, and keeps their sources. It also notes when the
// first chart is drawn.
const watchShifts = `(() => {
	window.shifted = 0;
	window.shifts = [];
	new PerformanceObserver(list => {
		for (const e of list.getEntries()) {
			window.shifted += e.value;
			window.shifts.push(e.value.toFixed(4) + " " + e.sources.map(s => (s.node?.id || s.node?.className || s.node?.nodeName) + " " + s.previousRect.y + " to " + s.currentRect.y).join(", "));
		}
	}).observe({type: "layout-shift", buffered: true});
	const look = new MutationObserver(() => {
		if (!document.querySelector(".plot canvas")) return;
		look.disconnect();
		requestAnimationFrame(() => requestAnimationFrame(() => { window.firstChart = performance.now(); }));
	});
	look.observe(document, {childList: true, subtree: true});
})()`

// The page as a tool: the track of the session, choices in the address, the pointer, and what a first visit costs.
func TestPage(t *testing.T) {
	t.Parallel()
	installed(t, "chromium")
	p := shared(t)
	b := browse(t, p.url)
	if _, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watchShifts}); err != nil {
		t.Fatal(err)
	}
	b.until("the first panel has its answer", `document.querySelector("#today[aria-busy=false] .plot[data-points]")`)
	t.Run("pointer", func(t *testing.T) { b.within(t).pointer(p) })
	t.Run("address", func(t *testing.T) { b.within(t).address(p) })
	t.Run("history", func(t *testing.T) { b.within(t).history(p) })
	t.Run("there-and-back", func(t *testing.T) { b.within(t).thereAndBack(p) })
	t.Run("shift", func(t *testing.T) { b.within(t).shift(p) })
	t.Run("budget", func(t *testing.T) { b.within(t).budget(p) })
	b.t = t
	b.clean()
}

// box is where the drawing of a chart lies in the window.
type box struct{ X, Y, Width, Height float64 }

func (b *browser) box(plot string) (out box) {
	b.t.Helper()
	b.see(plot)
	return eval[box](b, `(({x, y, width, height}) => ({x, y, width, height}))(document.querySelector(%s).querySelector(".u-over").getBoundingClientRect())`, plot)
}

func (b *browser) mouse(kind devinput.DispatchMouseEventType, x, y float64, options ...chromedp.MouseOption) {
	b.t.Helper()
	b.do(chromedp.MouseEvent(kind, x, y, options...))
}

// hint returns the tooltip of a chart with plain spaces, and "" while it is hidden.
func (b *browser) hint(plot string) string {
	b.t.Helper()
	return b.text(plot + " .hint:not([hidden])")
}

// row writes a row of the track as the tooltip of the first chart does.
func (d trackData) row(i int) string {
	at := func(column string) any {
		for c, name := range d.Columns {
			if name == column {
				return d.Rows[i][c]
			}
		}
		return nil
	}
	level := func(column string) string {
		if x, ok := at(column).(float64); ok {
			return grouped(x)
		}
		return "–"
	}
	regime, _ := at("gamma_regime").(string)
	band := "–"
	if low, ok := at("flip_low").(float64); ok {
		band = grouped(math.Round(low)) + " to " + grouped(math.Round(at("flip_high").(float64)))
	}
	return fmt.Sprintf("Spot %s Flip %s Flip band %s Call wall %s Put wall %s Regime %s",
		level("spot"), level("zero_gamma_flip"), band, level("call_wall"), level("put_wall"), regime)
}

// madeTrack is the track of a session from 09:30 to 16:00 New York with a gap of an hour: rows that were filled in every five
// minutes, and then more rows every 15 seconds. From 13:30 to 14:00 the flip has no band, and from 14:30 to 15:00 a band that is
// far wider than the walls.
func madeTrack() (d trackData) {
	d.Date, d.Session = marketDay, marketDay
	d.Columns = strings.Fields("as_of spot effective_spot net_gex_dollars zero_gamma_flip call_wall put_wall gamma_regime expected_move_1d zero_dte_net_gex_dollars zero_dte_gross_share_pct flip_low flip_high")
	open := time.Date(2026, 11, 20, 14, 30, 0, 0, time.UTC)
	for at := time.Duration(0); at <= 390*time.Minute; {
		if at < 120*time.Minute || at >= 180*time.Minute { // 11:30 to 12:25 is missing
			spot := math.Round((7550.25+20*math.Sin(at.Minutes()/45))*100) / 100
			var low, high any = 7525.5 + at.Minutes()/100, 7560.0
			switch {
			case at >= 240*time.Minute && at <= 270*time.Minute:
				low, high = nil, nil
			case at >= 300*time.Minute && at <= 330*time.Minute:
				low, high = 6000.0, 9000.0
			}
			d.Rows = append(d.Rows, []any{open.Add(at).Format(time.RFC3339), spot, spot, math.Round((spot - 7545) * 3e8), 7545.5, 7700.0, 7500.0, "neutral", 70.5, 5e9, 6.5, low, high})
		}
		if at < 370*time.Minute {
			at += 5 * time.Minute
		} else {
			at += 15 * time.Second
		}
	}
	return d
}

// pointer reads the tooltip, and zooms with the mouse and with keys. The track is made, with a gap.
func (b *browser) pointer(p *process) {
	track := madeTrack()
	front := newFront(b.t, p.url, func(r *http.Response) {
		if r.Request.URL.Path != trackPath {
			return
		}
		var doc map[string]any
		if err := json.NewDecoder(r.Body).Decode(&doc); err != nil {
			b.t.Error(err)
		}
		doc["data"] = track
		body, err := json.Marshal(doc)
		if err != nil {
			b.t.Error(err)
		}
		r.Body.Close()
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	})
	front.request = func(r *http.Request) {
		r.Header.Del("Accept-Encoding")
		r.Header.Del("If-None-Match") // so that every answer has a body
	}
	b.mu.Lock()
	b.front = front.URL
	b.mu.Unlock()
	b.do(chromedp.Navigate(front.URL))
	const plot = "#today .plot"
	b.until("the track is drawn with its gap", fmt.Sprintf(`Number(document.querySelector("%s").dataset.points) === %d`, plot, len(track.Rows)+1))
	if got := b.text("#today .summary"); !strings.Contains(got, "143 snapshots, from 09:30:00 to 16:00:00 in New York, with 1 gap.") ||
		!strings.Contains(got, "The flip band is the range of the flip in the model and its scenarios, at last 7,529 to 7,560.") {
		b.t.Errorf("the summary says %q", got)
	}
	b.press(plot, append([]string{kb.Home, kb.PageUp, kb.PageUp}, slices.Repeat([]string{kb.ArrowRight}, 4)...)...)
	if got := b.hint(plot); !strings.HasPrefix(got, "11:25:00 to 12:30:00, no snapshot Spot – Flip –") {
		b.t.Errorf("in the gap the tooltip says %q", got)
	}

	b.press(plot, kb.Home)
	if got := b.hint(plot); !strings.HasSuffix(got, track.row(0)) {
		b.t.Errorf("the first point says %q, want %q", got, track.row(0))
	}
	b.band(plot, track)
	b.press(plot, kb.Home)
	b.do(chromedp.KeyEvent(kb.Escape))
	if got := b.hint(plot); got != "" {
		b.t.Errorf("escape does not close the tooltip %q", got)
	}
	at := b.box(plot)
	middle := at.Y + at.Height/2
	left := func() string {
		b.mouse(devinput.DispatchMouseEventTypeMouseMoved, at.X+at.Width/2, middle)
		b.mouse(devinput.DispatchMouseEventTypeMouseMoved, at.X+2, middle)
		return b.hint(plot)
	}
	b.eventually("the tooltip at the left edge has the first row", func() bool { return strings.HasSuffix(left(), track.row(0)) })
	whole := left()
	b.shoot("tooltip")

	drag := func() {
		b.t.Helper()
		redraw := `dispatchEvent(new Event("themechange"))` // draws all charts anew, one in each frame, as an answer does
		b.mouse(devinput.DispatchMouseEventTypeMouseMoved, at.X+at.Width*0.4, middle)
		eval[bool](b, redraw)
		b.mouse(devinput.DispatchMouseEventTypeMousePressed, at.X+at.Width*0.4, middle, chromedp.ButtonLeft, chromedp.ClickCount(1))
		eval[bool](b, redraw)
		time.Sleep(500 * time.Millisecond)
		b.mouse(devinput.DispatchMouseEventTypeMouseMoved, at.X+at.Width*0.5, middle, chromedp.ButtonLeft)
		b.mouse(devinput.DispatchMouseEventTypeMouseMoved, at.X+at.Width*0.6, middle, chromedp.ButtonLeft)
		b.mouse(devinput.DispatchMouseEventTypeMouseReleased, at.X+at.Width*0.6, middle, chromedp.ButtonLeft, chromedp.ClickCount(1))
		b.until("both charts of the session are zoomed", `document.querySelectorAll("#today .unzoom:not([hidden])").length === 2`)
		b.eventually("the left edge shows a later row", func() bool { got := left(); return got != "" && got != whole })
	}
	reset := func(how string) {
		b.t.Helper()
		b.until(how+" shows everything again", `document.querySelectorAll("#today .unzoom:not([hidden])").length === 0`)
		b.eventually("the left edge shows the first row", func() bool { return left() == whole })
	}
	drag()
	b.shoot("zoomed")
	for range 2 {
		b.mouse(devinput.DispatchMouseEventTypeMousePressed, at.X+at.Width/2, middle, chromedp.ButtonLeft, chromedp.ClickCount(2))
		b.mouse(devinput.DispatchMouseEventTypeMouseReleased, at.X+at.Width/2, middle, chromedp.ButtonLeft, chromedp.ClickCount(2))
	}
	reset("a double click")
	drag()
	b.press(plot, kb.Escape, kb.Escape) // the first closes the tooltip
	reset("escape")
	drag()
	b.press("#today .unzoom", kb.Enter)
	reset("the button")
	b.press(plot, kb.End, "+")
	b.until("plus zooms", `document.querySelectorAll("#today .unzoom:not([hidden])").length === 2`)
	b.do(chromedp.KeyEvent("-"))
	reset("minus")
	b.finger()
}

// band checks the band of the flip: for screen readers, in the table, and as a shade on the canvas.
func (b *browser) band(plot string, track trackData) {
	if got := eval[string](b, `document.querySelector(%s).getAttribute("aria-valuetext")`, plot); !strings.Contains(got, "Flip 7,545.50, Flip band 7,526 to 7,560, Call wall") {
		b.t.Errorf("screen readers hear %q", got)
	}
	b.press(plot, append([]string{kb.Home}, slices.Repeat([]string{kb.PageUp}, 4)...)...)
	if got, want := b.hint(plot), "13:45:00 "+track.row(39); got != want {
		b.t.Errorf("without a band the tooltip says %q, want %q", got, want)
	}
	eval[bool](b, `document.querySelector("#today details.data").open = true`)
	cells := `[...document.querySelectorAll("#today .chart:first-child tbody tr")].map(r => r.cells[3].innerText)`
	b.until("the table has the band", `document.querySelector("#today .chart:first-child thead tr")?.cells[3].innerText === "Flip band"`)
	if got := eval[[]string](b, cells); len(got) != len(track.Rows)+1 || got[0] != "7,526 to 7,560" || got[24] != "–" || got[25] != "7,527 to 7,560" {
		b.t.Errorf("the table has the bands %q", got)
	}
	eval[bool](b, `document.querySelector("#today details.data").open = false`)

	// shaded returns the part of the plot's height that is shaded at an hour. The axis reaches from 09:30 to 16:15.
	shaded := func(hour float64) float64 {
		return eval[float64](b, `(([plot, part]) => {
			const canvas = document.querySelector(plot).querySelector("canvas"), over = document.querySelector(plot).querySelector(".u-over");
			const x = Math.round((over.offsetLeft + part * over.clientWidth) * devicePixelRatio);
			const alphas = canvas.getContext("2d").getImageData(x, 0, 1, canvas.height).data.filter((_, i) => (i & 3) === 3);
			return alphas.filter(a => Math.abs(a - 0.16 * 255) < 2).length / (over.clientHeight * devicePixelRatio);
		})([%s, %s])`, plot, (hour-9.5)/6.75)
	}
	for _, c := range []struct {
		what              string
		hour              float64
		smallest, largest float64
	}{{"rows with a band", 10.55, 0.05, 0.3}, {"the gap", 12, 0, 0}, {"rows without a band", 13.8, 0, 0}, {"a band wider than the walls", 14.8, 0.8, 1}} {
		if got := shaded(c.hour); got < c.smallest || got > c.largest {
			b.t.Errorf("at %s, %.2f of the height is shaded", c.what, got)
		}
	}
}

// finger moves a finger sideways over a chart: the tooltip follows, and the page stays where it is.
func (b *browser) finger() {
	const plot = "#today .plot"
	at := b.box(plot)
	touch := func(kind devinput.DispatchTouchEventType, points ...*devinput.TouchPoint) {
		b.t.Helper()
		if _, err := chromedp.Call(b.ctx, devinput.DispatchTouchEvent, devinput.DispatchTouchEventParams{Type: kind, TouchPoints: points}); err != nil {
			b.t.Fatal(err)
		}
	}
	b.touchScreen(true)
	defer b.touchScreen(false)
	before := eval[float64](b, `scrollY`)
	touch(devinput.DispatchTouchEventTypeTouchStart, &devinput.TouchPoint{X: at.X + 40, Y: at.Y + 40})
	last := ""
	for i := range 6 {
		touch(devinput.DispatchTouchEventTypeTouchMove, &devinput.TouchPoint{X: at.X + 60 + float64(i)*at.Width/10, Y: at.Y + 40})
		b.eventually(fmt.Sprintf("the tooltip follows the finger to point %d", i), func() bool {
			was := last
			last = b.hint(plot)
			return last != "" && last != was
		})
		eval[bool](b, `dispatchEvent(new Event("themechange"))`) // as an answer does
		if !eval[bool](b, `(([tip, chart]) => tip.top >= 0 && tip.bottom <= innerHeight && (tip.bottom <= chart.top || tip.top >= chart.bottom))([%s, %s].map(s => document.querySelector(s).getBoundingClientRect()))`, plot+" .hint", plot) {
			b.t.Errorf("at point %d the tooltip is under the finger", i)
		}
	}
	touch(devinput.DispatchTouchEventTypeTouchEnd)
	if after := eval[float64](b, `scrollY`); after != before {
		b.t.Errorf("the page scrolled from %v to %v", before, after)
	}
	if got := eval[string](b, `getComputedStyle(document.querySelector(".plot")).touchAction`); got != "pan-y pinch-zoom" {
		b.t.Errorf("upwards, a finger on a chart does not scroll the page: %q", got)
	}
}

// address reloads a link with choices, and goes back.
func (b *browser) address(p *process) {
	dates := p.sessions()
	date := dates[len(dates)-4]
	b.do(chromedp.Navigate(p.url))
	picked := func(value string) string {
		return fmt.Sprintf(`document.querySelector("#today select").value === %q && !document.querySelector("#today[aria-busy=true]")`, value)
	}
	b.until("the dates are offered", fmt.Sprintf(`[...document.querySelectorAll("#today option")].some(o => o.value === %q)`, date))
	eval[bool](b, `(s => { s.value = %s; return s.dispatchEvent(new Event("change")); })(document.querySelector("#today select"))`, date)
	b.press(`#today button[value="so-far"]`, kb.Enter)
	b.until("the choices are in the address", fmt.Sprintf(`location.search === "?date=%s&span=so-far"`, date))
	gamma := dataOf[gammaData](p, datePath+date)
	shown := func(what string) {
		b.t.Helper()
		b.until(what, picked(date)+` && document.querySelector('#today button[value="so-far"][aria-pressed=true]') && document.querySelector("#today h2").innerText !== "Today"`)
		b.eventually("the levels are those of "+date, func() bool { return strings.Contains(b.text("#today .levels"), "Spot "+grouped(gamma.Spot)) })
	}
	shown("the date is shown")
	b.do(chromedp.Reload())
	shown("a reload shows the same")
	eval[bool](b, `history.back() ?? true`)
	b.until("the back button undoes the date", picked("")+` && document.querySelector("#today h2").innerText === "Today"`)
	eval[bool](b, `history.forward() ?? true`)
	shown("the forward button shows it again")
	if got := b.text("#status"); strings.Contains(got, "closed") {
		b.t.Errorf("a past date says %q", got)
	}
	if got := b.text("#today .ages"); !strings.HasPrefix(got, "Quotes of ") || strings.Contains(got, "old") {
		b.t.Errorf("a past date has the age %q", got)
	}
	if got := b.text("#today .tile"); strings.Count(got, grouped(gamma.Spot)) != 1 {
		b.t.Errorf("the spot of a past date is said twice: %q", got)
	}
	b.unstored(p, dates)
}

// unstored opens dates that are not stored. The page names the nearest dates and opens them.
func (b *browser) unstored(p *process, dates []string) {
	const notice, buttons = "#today .notice:not([hidden])", "#today .notice:not([hidden]) button"
	named := func(date string) string {
		day, err := time.Parse(time.DateOnly, date)
		if err != nil {
			b.t.Fatal(err)
		}
		return day.Format("2 Jan 2006")
	}
	b.do(chromedp.Navigate(p.url + "/?date=2020-01-01&span=nonsense"))
	b.equal("a date before the first names the first", func() (got, want string) {
		return b.text(notice), "No snapshot of that date is stored. The nearest stored date is " + named(dates[0]) + "."
	})
	const saturday, friday, monday = "2026-11-14", "2026-11-13", "2026-11-16"
	b.do(chromedp.Navigate(p.url + "/?date=" + friday))
	b.until("a stored date is shown", `document.querySelector("#today[aria-busy=false]")`)
	b.do(chromedp.Navigate(p.url + "/?date=" + saturday))
	b.equal("a date between two names both", func() (got, want string) {
		return b.text(notice), "No snapshot of that date is stored. The nearest stored dates are " + named(friday) + " and " + named(monday) + "."
	})
	if !eval[bool](b, `(r => r.top > document.querySelector("#today > header").getBoundingClientRect().bottom && r.bottom < innerHeight)(document.querySelector(%s).getBoundingClientRect())`, notice) {
		b.t.Error("the reason is not at the top of the panel")
	}
	b.press(buttons+":last-child", kb.Enter)
	shown := func(date string) {
		b.t.Helper()
		b.until(date+" is shown", fmt.Sprintf(`location.search === "?date=%s" && document.querySelector("#today .source").textContent === "%s" && !document.querySelector("#today[aria-busy=true]")`, date, datePath+date))
	}
	shown(monday)
	if got := eval[string](b, `document.querySelector("#today").className + document.activeElement.id`); strings.Contains(got, "missing") || !strings.HasSuffix(got, "panels") {
		b.t.Errorf("after a nearest date was opened, the panel and the focus are %q", got)
	}
	eval[bool](b, `history.back() ?? true`)
	shown(saturday)
	if got := eval[[]string](b, `[...document.querySelectorAll("#today .body > *")].filter(e => e.checkVisibility({visibilityProperty: true})).map(e => e.className)`); !slices.Equal(got, []string{"notice"}) {
		b.t.Errorf("of a date that is not stored, %q are shown", got)
	}
}

// history opens a date by a click on a chart, and another by the enter key.
func (b *browser) history(p *process) {
	dates := p.sessions()
	const plot = "#history .plot"
	b.do(chromedp.Navigate(p.url))
	b.until("the history is drawn", fmt.Sprintf(`(document.querySelector("#history").scrollIntoView(), document.querySelector("%s")?.dataset.points) === "%d"`, plot, len(dates)))
	i := len(dates) / 2
	var at box
	var x float64
	day, err := time.Parse(time.DateOnly, dates[i])
	if err != nil {
		b.t.Fatal(err)
	}
	b.eventually("the tooltip is that of "+dates[i], func() bool {
		at = b.box(plot)
		x = at.X + at.Width*(float64(i)+0.6)/(float64(len(dates))+0.2) // the axis reaches from -0.6 to n - 0.4
		b.mouse(devinput.DispatchMouseEventTypeMouseMoved, x, at.Y+50)
		return strings.Contains(b.hint(plot), day.Format("2 Jan 2006"))
	})
	b.mouse(devinput.DispatchMouseEventTypeMousePressed, x, at.Y+50, chromedp.ButtonLeft, chromedp.ClickCount(1))
	b.mouse(devinput.DispatchMouseEventTypeMouseReleased, x, at.Y+50, chromedp.ButtonLeft, chromedp.ClickCount(1))
	opened := func(what, date string) {
		b.t.Helper()
		b.equal(what, func() (got, want string) {
			return eval[string](b, `location.search + " " + document.querySelector("#today .source").textContent`), "?date=" + date + " " + datePath + date
		})
		b.until(what+", and its answer comes", `!document.querySelector("#today[aria-busy=true]")`)
	}
	opened("a click opens the day", dates[i])
	b.press(plot, kb.Home, kb.ArrowRight, kb.Enter)
	opened("enter opens another", dates[1])
}

// thereAndBack goes to a past date and back. A zoom ends, the choice of expirations is there again, and while a date has no
// answer, no figure of another date is shown.
func (b *browser) thereAndBack(p *process) {
	dates := p.sessions()
	pick := func(date string) {
		eval[bool](b, `(s => { s.value = %s; return s.dispatchEvent(new Event("change")); })(document.querySelector("#today select"))`, date)
	}
	b.do(chromedp.Navigate(p.url + "/?expiring=0dte&date=" + dates[len(dates)-2]))
	b.see("#strikes") // it loads when it comes near the window
	b.until("0DTE is not offered", `document.querySelector('#strikes[aria-busy=false] button[value="0dte"]:disabled')`)
	b.until("the strikes are drawn", `document.querySelector("#strikes .plot canvas")`)
	b.press("#strikes .plot", "+", "+")
	b.until("the chart is zoomed", `document.querySelector("#strikes .unzoom:not([hidden])")`)
	pick("")
	b.until("the zoom has ended", `document.querySelectorAll("#strikes .unzoom:not([hidden])").length === 0 && document.querySelector("#today h2").innerText === "Today"`)
	b.until("0DTE is drawn", `document.querySelector("#strikes .why").innerText.startsWith("Sums over contracts expiring on") && Number(document.querySelector("#strikes .plot").dataset.points) > 0`)
	b.until("the answer is there", `document.querySelector("#today[aria-busy=false]:not(.other):not(.missing)")`)
	offline := func(on bool) {
		if _, err := chromedp.Call(b.ctx, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
			MatchedNetworkConditions: []*network.Conditions{{Offline: on, DownloadThroughput: -1, UploadThroughput: -1}},
		}); err != nil {
			b.t.Fatal(err)
		}
	}
	offline(true)
	defer offline(false)
	pick(dates[1])
	b.until("the levels are hidden", `getComputedStyle(document.querySelector("#today .levels")).visibility === "hidden"`)
	b.until("a banner says why", `document.querySelector("#status").innerText.includes("The page shows the last answers")`)
	if got := b.text("#today .notice"); !strings.HasPrefix(got, "The server does not answer.") {
		b.t.Errorf("the panel says %q", got)
	}
}

// shift visits the page at three widths, scrolls through it, and changes the date. Nothing may move by itself.
func (b *browser) shift(p *process) {
	dates := p.sessions()
	for _, width := range []int64{1400, 2560, 390} {
		b.view(width, 900, "light")
		b.do(chromedp.Navigate(p.url))
		b.until("the first panel has its answer", `document.querySelector("#today[aria-busy=false]")`)
		b.until("every panel is seen", allLoaded)
		for _, date := range []string{dates[len(dates)-3], ""} {
			eval[bool](b, `(scrollTo({top: 0, behavior: "instant"}), s => { s.value = %s; return s.dispatchEvent(new Event("change")); })(document.querySelector("#today select"))`, date)
			b.until("the date is shown", fmt.Sprintf(`document.querySelector("#today h2").innerText !== "" && document.querySelector("#today .source").textContent.endsWith("%s") && !document.querySelector("section[aria-busy=true]")`, date))
		}
		eval[bool](b, `requestAnimationFrame(() => requestAnimationFrame(() => { window.settled = true; })) > 0`)
		b.until("the last frame is drawn", `window.settled`)
		shifted := eval[float64](b, `window.shifted`)
		figure(b.t, "layout shift at %d px, with the whole page seen and the date changed twice: %.4f", width, shifted)
		if shifted >= 0.01 {
			b.t.Errorf("%d wide: layout shift %.4f: %q", width, shifted, eval[[]string](b, `window.shifts`))
		}
	}
	b.view(1400, 1000, "light")
}

// budget counts the bytes of a first visit, and reports how soon a phone on a slow network shows the first chart.
func (b *browser) budget(p *process) {
	var mu sync.Mutex
	b.do(chromedp.Navigate("about:blank")) // the requests of an earlier visit end
	names, sizes := map[network.RequestID]string{}, map[string]int{}
	if err := chromedp.Listen(b.ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			names[e.RequestID] = strings.TrimPrefix(e.Request.URL, b.origin)
		case *network.EventLoadingFinished:
			sizes[names[e.RequestID]] += int(e.EncodedDataLength)
		}
	}); err != nil {
		b.t.Fatal(err)
	}
	sums := func() (files, data int) {
		mu.Lock()
		defer mu.Unlock()
		for name, size := range sizes {
			if strings.HasPrefix(name, "/api/") {
				data += size
			} else {
				files += size
			}
		}
		return files, data
	}
	b.slow(true)
	b.view(390, 844, "light")
	if _, err := chromedp.Call(b.ctx, network.ClearBrowserCache, cdp.Empty{}); err != nil {
		b.t.Fatal(err)
	}
	b.do(chromedp.Navigate(p.url))
	b.until("the first chart is drawn", `window.firstChart && document.querySelector("#today[aria-busy=false]")`)
	first := eval[float64](b, `window.firstChart`)
	for _, path := range []string{gammaPath, trackPath} { // the page preloads the track; a poll has a tag
		polls := eval[int](b, `asked.filter(a => a.url.endsWith(%s) && a.tag).length`, path)
		if n := eval[int](b, `performance.getEntriesByType("resource").filter(e => e.name.endsWith(%s)).length`, path); n < 1 || n > 1+polls {
			b.t.Errorf("the page asked %d times for %s, %d of them with a tag", n, path, polls)
		}
	}
	b.slow(false)
	files, data := sums()
	speed := "of this machine"
	if full() {
		speed = "of a quarter of its speed"
	}
	figure(b.t, "first chart of a phone with slow 4G and a CPU %s: %.0f ms; until then %d bytes of files and %d of data", speed, first, files, data)
	b.until("every panel is seen", allLoaded)
	files, data = sums()
	figure(b.t, "whole page on the wire: %d bytes of files, of %d, and %d of data", files, budget, data)
	if files > budget || files < 20_000 {
		sorted, err := json.Marshal(sizes)
		b.t.Errorf("%d bytes of files: %s %v", files, sorted, err)
	}
	b.view(1400, 1000, "light")
}

// slow emulates a phone on a slow network, with the values of Lighthouse: 150 ms for a round trip, 1.6 Mbit/s down and
// 750 kbit/s up, and in a full run a CPU of a quarter of the speed.
func (b *browser) slow(on bool) {
	b.t.Helper()
	n, rate := network.Conditions{DownloadThroughput: -1, UploadThroughput: -1}, 1.0
	if on {
		n = network.Conditions{Latency: 150, DownloadThroughput: 1.6e6 / 8, UploadThroughput: 750e3 / 8}
	}
	if on && full() { // on a busy machine, a slowed Chromium has not ended within minutes
		rate = 4
	}
	if _, err := chromedp.Call(b.ctx, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{MatchedNetworkConditions: []*network.Conditions{&n}}); err != nil {
		b.t.Fatal(err)
	}
	if _, err := chromedp.Call(b.ctx, emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: rate}); err != nil {
		b.t.Fatal(err)
	}
}

// A first start without the upstream: the page says why there is no answer, and says it once.
func TestPageWithoutUpstream(t *testing.T) {
	t.Parallel()
	installed(t, "chromium")
	p := serve(t, "--source", "cboe", "--cboe-base-url", "http://"+freePort(t), "--cboe-settlement-url", "http://"+freePort(t))
	b := browse(t, p.url)
	b.until("every panel has asked", allLoaded)
	b.until("the page says why", `document.querySelector("#status").innerText.includes("The server has no answers yet. The upstream cannot be reached.")`)
	b.shoot("no-upstream")
	if n := eval[int](b, `document.body.innerText.split(/cannot be reached|no answer yet|does not answer/).length - 1`); n != 1 {
		t.Errorf("the page says it %d times: %s", n, b.text("body"))
	}
	b.clean()
}

// touchScreen switches touch on or off.
func (b *browser) touchScreen(on bool) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: on}); err != nil {
		b.t.Fatal(err)
	}
}
