package e2e

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	devinput "github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The hero: one price axis for the session and the bars by strike, a replay that moves all levels, and the closes of a date without a track.
func TestPageHero(t *testing.T) {
	t.Parallel()
	installed(t, "chromium")
	p := shared(t)
	b := browse(t, p.url)
	b.until("the hero has its bars and those of the close before", `document.querySelector("#strikes .plot")?.getAttribute("aria-valuetext")?.includes("Close of ")`)
	b.priceAxis(p)
	b.bars(p)
	b.readable()
	b.replay(p)
	b.closes(p)
	b.clean()
}

// at returns a figure of a row of the track.
func (d trackData) at(row int, column string) float64 {
	return trackData{d.Columns, d.Rows[:row+1]}.last(column)
}

func (b *browser) priceAxis(p *process) {
	gamma := dataOf[struct {
		Spot float64 `json:"effective_spot"`
		Flip float64 `json:"zero_gamma_flip"`
		Move float64 `json:"expected_move_1d"`
		Call float64 `json:"call_wall"`
		Put  float64 `json:"put_wall"`
	}](p, gammaPath)
	axis := func() (low, high float64) {
		if _, err := fmt.Sscanf(eval[string](b, `document.querySelector(".hero").dataset.prices`), "%f to %f", &low, &high); err != nil {
			b.t.Fatal(err)
		}
		return low, high
	}
	low, high := axis()
	if low > min(gamma.Spot, gamma.Flip) || high < max(gamma.Spot, gamma.Flip) || high-low > 4*gamma.Move {
		b.t.Errorf("the price axis is from %g to %g, with spot %g, flip %g and an expected move of %g", low, high, gamma.Spot, gamma.Flip, gamma.Move)
	}
	const place = `(({top, height}) => [top, height])(document.querySelector("%s .u-over").getBoundingClientRect())`
	b.until("price and bars have one axis", fmt.Sprintf(place, ".price")+`.every((x, i) => Math.abs(x - `+fmt.Sprintf(place, "#strikes")+`[i]) < 1)`)
	b.until("the cone of the session has that from now on in it", `document.querySelector("#today .summary").textContent.includes("What is left of it from ")`)
	b.press(".price .plot", kb.Home, "+", "+")
	b.until("a zoom fits the axis anew", fmt.Sprintf(`document.querySelector(".hero").dataset.prices !== "%.2f to %.2f"`, low, high))
	b.press(".price .plot", "-", "-", kb.Escape)
	b.until("and its end", fmt.Sprintf(`document.querySelector(".hero").dataset.prices === "%.2f to %.2f"`, low, high))
	b.press("#strikes .plot", "-")
	b.eventually("minus on the bars shows all walls", func() bool {
		l, h := axis()
		return l < min(low, gamma.Put) && h > max(high, gamma.Call)
	})
	b.press("#strikes .plot", "+")
	b.until("and plus no longer", fmt.Sprintf(`document.querySelector(".hero").dataset.prices === "%.2f to %.2f"`, low, high))

	b.press("#today .choice button[value=so-far]", kb.Enter)
	low, high = axis()
	track := dataOf[trackData](p, trackPath)
	at := eval[struct{ X, Y, Width, Height float64 }](b, `(({x, y, width, height}) => ({x, y, width, height}))(document.querySelector(".price .u-over").getBoundingClientRect())`)
	when := func(row int) float64 {
		as, err := time.Parse(time.RFC3339, track.Rows[row][0].(string))
		if err != nil {
			b.t.Fatal(err)
		}
		return float64(as.UnixMilli())
	}
	last := len(track.Rows) - 1
	x := func(row int) float64 { return (when(row) - when(0)) / (when(last) - when(0)) * at.Width }
	b.eventually("the cursor stands on its point", func() bool { // a drawing after an answer has no cursor until the mouse moves
		b.mouse(devinput.DispatchMouseEventTypeMouseMoved, at.X+x(2)+0.2*(x(3)-x(2)), at.Y+at.Height/2)
		b.mouse(devinput.DispatchMouseEventTypeMouseMoved, at.X+x(2)+0.3*(x(3)-x(2)), at.Y+at.Height/2)
		return eval[bool](b, fmt.Sprintf(`Math.abs(new DOMMatrix(getComputedStyle(document.querySelector(".price .u-cursor-x")).transform).e - %f) < 1.5 && !!document.querySelector(".price .hint:not([hidden])")?.innerText.includes(%q)
			&& ((hint, plot) => hint.bottom <= plot.top || hint.top >= plot.bottom)(document.querySelector(".price .hint").getBoundingClientRect(), document.querySelector(".price .u-over").getBoundingClientRect())
			&& ((tag, top) => document.querySelector(".price .plot").chart.tagged.every(y => Math.abs(tag.top + tag.height / 2 - top - y) > 18))(document.querySelector(".cross b").getBoundingClientRect(), document.querySelector(".price .u-over").getBoundingClientRect().top)
			&& Math.abs(Number(document.querySelector(".cross:not([hidden]) b")?.textContent.replace(",", "")) - %f) < %f`, x(2), grouped(track.at(2, "spot")), (low+high)/2, (high-low)/50))
	})
	b.press("#today .choice button[value=session]", kb.Enter)
	b.mouse(devinput.DispatchMouseEventTypeMouseMoved, 2, 2)
}

// bars compares the bar at the spot with the answers of now, of the close before, and of what expires today.
func (b *browser) bars(p *process) {
	type row struct {
		Strike float64
		Net    float64 `json:"net_gex_dollars"`
		Call   float64 `json:"call_gex_dollars"`
		OI     float64 `json:"call_open_interest"`
	}
	type answer struct {
		Spot float64 `json:"effective_spot"`
		Rows []row   `json:"by_strike"`
	}
	dates := p.sessions()
	before := dates[len(dates)-2]
	now, then := dataOf[answer](p, gammaPath), dataOf[answer](p, datePath+before)
	zero := dataOf[struct {
		Parts []struct {
			Rows []row `json:"by_strike"`
		}
	}](p, matrixPath).Parts[0].Rows
	near := func(rows []row) row {
		return rows[slices.IndexFunc(rows, func(r row) bool { return r.Strike >= now.Spot })]
	}
	r := near(now.Rows)
	old := then.Rows[slices.IndexFunc(then.Rows, func(o row) bool { return o.Strike == r.Strike })]
	day, _ := time.Parse(time.DateOnly, before)
	says := func(what, want string) {
		b.t.Helper()
		b.eventually(what+": "+want, func() bool {
			return strings.HasPrefix(eval[[]chart](b, chartsScript+`.filter(c => c.title === "By strike")`)[0].Value, want)
		})
	}
	choice := func(value string) { b.press("#today .choice button[value='"+value+"']", kb.Enter) }
	says("net, with the close before", fmt.Sprintf("Strike %s: Close of %s %s, Net %s, Calls %s", grouped(r.Strike), day.Format("2 Jan"), dollars(old.Net), dollars(r.Net), dollars(r.Call)))
	choice("gamma")
	says("calls and puts", fmt.Sprintf("Strike %s: Calls %s, Puts ", grouped(r.Strike), dollars(r.Call)))
	eval[bool](b, `(paint => { window.tags = {}; CanvasRenderingContext2D.prototype.fillText = function (text, ...at) { if (this.canvas.closest(".price")) tags[/flip|call wall/i.exec(text)?.[0].toLowerCase()] = text; return paint.call(this, text, ...at); }; return true; })(CanvasRenderingContext2D.prototype.fillText)`)
	choice("0dte")
	z := near(zero)
	says("of today's expiration", fmt.Sprintf("Strike %s: Calls %s, Puts ", grouped(z.Strike), dollars(z.Call)))
	own := dataOf[struct {
		Zero struct {
			Flip  float64 `json:"zero_gamma_flip"`
			Walls []row   `json:"call_walls"`
		} `json:"zero_dte"`
	}](p, gammaPath).Zero
	b.until("the tags at the price axis are of it, too", fmt.Sprintf(`/^0DTE call wall %s\b/.test(tags["call wall"]) && /^0DTE flip %s\b/.test(tags.flip) && document.querySelector(".note").textContent === "Pale lines are of all expirations." && document.querySelector(".strip h3").textContent === "Net gamma, 0DTE" && document.querySelector(".profile h3").textContent === "Gamma profile, all expirations"`, grouped(own.Walls[0].Strike), grouped(own.Flip)))
	choice("all")
	choice("net")
	says("net again", fmt.Sprintf("Strike %s: Close of ", grouped(r.Strike)))
	b.until("they are drawn", `!document.querySelector("#strikes.blank")`)
	b.eventually("the profile shows the strike, too", func() bool { // a drawing after an answer has no cursor until the next key
		b.press("#strikes .plot", kb.ArrowUp)
		return eval[bool](b, `!!document.querySelector("#strikes .hint:not([hidden])") && new DOMMatrix(getComputedStyle(document.querySelector(".profile .u-cursor-x")).transform).e > 0`)
	})
	b.do(chromedp.KeyEvent(kb.Escape))
}

// readable looks whether a text covers another: with the longest heading, with the explanation, and beside the slider.
func (b *browser) readable() {
	const covered = `(of => { const all = [...document.querySelectorAll(of)].map(e => [e, e.getBoundingClientRect()]).filter(([, r]) => r.width > 1), end = document.querySelector("#today").getBoundingClientRect().right;
		return all.flatMap(([e, r], i) => [...(r.right > end ? [e] : []), ...all.slice(i + 1).filter(([, s]) => r.left < s.right - 1 && s.left < r.right - 1 && r.top < s.bottom - 1 && s.top < r.bottom - 1).map(([f]) => f)]).map(e => e.className + " " + e.textContent); })`
	free := func(what, of string) {
		b.t.Helper()
		b.until(what, covered+`("`+of+`").length === 0`)
	}
	const heading = `document.querySelector("#today-heading")`
	said := eval[string](b, `(h => (h.dataset.was = h.textContent, h.textContent = "Wednesday 25 Nov", h.dataset.was))(`+heading+`)`)
	for _, width := range []int64{1100, 1400} {
		b.do(chromedp.EmulateViewport(width, 900))
		free("no control covers the heading", "#today > header > h2, #today .choice, #today .tell")
	}
	if cut := eval[bool](b, `(h => h.scrollWidth > h.clientWidth)(`+heading+`)`); cut {
		b.t.Error("the longest heading is cut at 1,400 pixels")
	}
	eval[bool](b, `(`+heading+`.textContent = "`+said+`", true)`)
	plot := eval[float64](b, `document.querySelector(".price .plot").clientHeight`)
	b.do(chromedp.Click("#today .tell"))
	free("the explanation covers nothing", "#today header > *, #today .summary, #today .data, #today .plot, .scrub, .note, .hero .about")
	if told := eval[float64](b, `document.querySelector(".price .plot").clientHeight`); told < 0.7*plot {
		b.t.Errorf("with the explanation the plot has %g of %g pixels", told, plot)
	}
	b.do(chromedp.Click("#today .tell"))
}

// replay moves through the track by keyboard and by mouse, plays it, and pauses.
func (b *browser) replay(p *process) {
	track := dataOf[trackData](p, trackPath)
	last := len(track.Rows) - 1
	shows := func(what string, row int) {
		b.t.Helper()
		want := []string{"Spot " + grouped(track.at(row, "spot")), "Net gamma " + dollars(track.at(row, "net_gex_dollars")), "flip " + grouped(track.at(row, "zero_gamma_flip")), "Call wall " + grouped(track.at(row, "call_wall"))}
		b.eventually(fmt.Sprintf("%s: %q", what, want), func() bool {
			got := b.text("#head .levels")
			return !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(got, w) }) && strings.Contains(b.text("#levels .ladder .spot"), grouped(track.at(row, "effective_spot")))
		})
	}
	const slider, button = ".scrub", `document.querySelector(".play")`
	const now = `[...document.querySelectorAll("#strip > a, #zero-dte, .hero .profile")].map(e => getComputedStyle(e).opacity)`
	const ladder = `document.querySelector("#levels .ladder").textContent`
	b.press(slider, kb.Home)
	shows("the first row", 0)
	b.barsAt(p, track.Rows[0])
	first, _ := time.Parse(time.RFC3339, track.Rows[0][0].(string))
	b.until("the ladder has the levels of the moment only", `getComputedStyle(document.querySelector("#levels")).opacity == 1 && /Flip/.test(`+ladder+`) && !/0DTE|trigger|pain|Largest/.test(`+ladder+`)`)
	b.until("what is of now is dimmed, but not what the strip hides, and the status says the moment", now+`.every(o => o < 0.5) && getComputedStyle(document.querySelector("#strip")).opacity == 1 && /^Replay, +`+first.Add(-5*time.Hour).Format("15:04")+` ET. Pale panels show the last quotes.$/.test(document.querySelector("#status [data-key=replay]")?.textContent)`)
	b.do(chromedp.KeyEvent(kb.ArrowRight))
	shows("the second row", 1)
	b.do(chromedp.KeyEvent(kb.PageDown), chromedp.KeyEvent(kb.End))
	shows("the last row", last)
	b.until("nothing is dimmed", now+`.every(o => o == 1) && !document.querySelector("#status [data-key=replay]")`)
	at := eval[struct{ X, Y, Width, Height float64 }](b, `(({x, y, width, height}) => ({x, y, width, height}))(document.querySelector(%s).getBoundingClientRect())`, slider)
	b.do(chromedp.MouseClickXY(at.X+2, at.Y+at.Height/2))
	shows("a click at the left", 0)
	eval[bool](b, `(window.said = [], new MutationObserver(() => said.push(`+button+`.textContent)).observe(`+button+`, {childList: true}), true)`)
	for _, key := range []struct{ focus, key string }{{slider, "p"}, {".price .plot", " "}} {
		b.press(key.focus, key.key)
		b.until("the key plays to the end", `said.join() === "❚❚ Pause,▶ Replay" && (said.length = 0, true)`)
		shows("the end", last)
	}
	const press = `dispatchEvent(new KeyboardEvent("keydown", {key: "p", bubbles: true}))`
	if said := eval[[]string](b, `(at => (at.`+press+`, [`+button+`.textContent].concat((at.`+press+`, `+button+`.textContent))))(document.body)`); !slices.Equal(said, []string{"❚❚ Pause", "▶ Replay"}) {
		b.t.Errorf("after p and p: %q", said)
	}
	shows("a pause stays where it is", 0)
	b.until("no event of later is listed", `[...document.querySelectorAll("#events time")].every(t => t.textContent.replace(/^\D+/, "") <= "`+first.Add(-5*time.Hour).Format("15:04")+`")`)
	b.press(slider, kb.Escape)
	shows("Escape ends the replay", last)
	const cells = `(c => { const {data} = c.getContext("2d").getImageData(0, 0, c.width, c.height); let n = 0; for (let i = 0; i < data.length; i += 4) n += data[i + 3] > 8 && Math.max(data[i], data[i + 1]) > data[i + 2] + 30; return n; })(document.querySelector(".price canvas"))`
	b.press("#today .choice button[value=so-far]", kb.Enter)
	before := eval[int](b, cells)
	b.press("#today .choice button[value=on]", kb.Enter)
	b.eventually("the map paints its cells", func() bool { return eval[int](b, cells) > 5*before })
	b.press("#today .choice button[value=off]", kb.Enter)
	b.eventually("and no longer", func() bool { return eval[int](b, cells) < 2*before })
}

// barsAt compares the bars of a past moment with the row of gex/{u}/strikes at it or before it.
func (b *browser) barsAt(p *process, moment []any) {
	b.t.Helper()
	through := dataOf[trackData](p, gammaPath+"/strikes")
	var row []any
	for _, r := range through.Rows {
		if r[0].(string) <= moment[0].(string) {
			row = r
		}
	}
	get := func(name string) any { return row[slices.Index(through.Columns, name)] }
	at, err := time.Parse(time.RFC3339, get("as_of").(string))
	if err != nil {
		b.t.Fatal(err)
	}
	note := at.Add(-5 * time.Hour).Format("Bars of 15:04")
	b.until(note, `document.querySelector(".note").textContent === "`+note+`" && document.querySelector(".note").getBoundingClientRect().left > document.querySelector(".play").getBoundingClientRect().right`)
	var want []string
	for i, net := range get("net_gex_dollars").([]any) {
		if x, known := net.(float64); known {
			want = append(want, grouped(get("strikes").([]any)[i].(float64))+" "+dollars(x))
		}
	}
	const table = `document.querySelector("#strikes .data")`
	b.eventually("the bars are those of the row", func() bool {
		return slices.Equal(want, eval[[]string](b, `(`+table+`.open = true, [...`+table+`.querySelectorAll("tbody tr")].map(r => (r.firstChild.textContent + " " + r.lastChild.textContent).replace(/\u2060/g, "").replace(/\s/g, " ")))`))
	})
	eval[bool](b, table+`.open = false`)
}

// closes opens a date without a track: the hero shows the closes up to it, and a click opens one of them.
func (b *browser) closes(p *process) {
	dates := p.sessions()
	i := len(dates) - 10 // the last five have tracks
	b.do(chromedp.Navigate(p.url + "/?date=" + dates[i]))
	b.until("the hero says that there is no track", `document.querySelector(".note")?.textContent === "No track is stored for this date. Shown are the closes." && document.querySelector(".scrub").disabled`)
	spot := dataOf[gammaData](p, datePath+dates[i]).Spot
	b.eventually("the last close is that of the date", func() bool {
		return strings.HasPrefix(eval[[]chart](b, chartsScript+`.filter(c => c.title === "Spot, flip and walls")`)[0].Value, "Date "+writtenDate(dates[i])+": Spot "+grouped(spot))
	})
	var low, high float64
	if _, err := fmt.Sscanf(eval[string](b, `document.querySelector(".hero").dataset.prices`), "%f to %f", &low, &high); err != nil || math.Abs(spot-(low+high)/2) > (high-low)/2 {
		b.t.Errorf("the axis from %g to %g lacks the close %g: %v", low, high, spot, err)
	}
	day, _ := time.Parse(time.DateOnly, dates[i-1])
	b.until("the pale bars are those of the session before", fmt.Sprintf(`document.querySelector("#strikes .plot").getAttribute("aria-valuetext").includes("Close of %s ")`, day.Format("2 Jan")))
	b.until("0DTE has the expirations to come", `document.querySelector("#zero-dte [data-shown$=ahead] > :nth-child(3) canvas")?.checkVisibility() && !document.querySelector("#zero-dte [data-shown] > :nth-child(2)").checkVisibility()`)
	b.press(".price .plot", kb.ArrowLeft, kb.Enter)
	b.until("enter opens the date before", fmt.Sprintf(`location.search === "?date=%s"`, dates[i-1]))
}
