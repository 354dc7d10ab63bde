package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The parts of the answers that the tests look for on the page.
type gammaData struct {
	Spot     float64
	CallWall float64 `json:"call_wall"`
	PutWall  float64 `json:"put_wall"`
	Flip     float64 `json:"zero_gamma_flip"`
	Net      float64 `json:"net_gex_dollars"`
	Strikes  []struct {
		Strike float64
		Net    float64 `json:"net_gex_dollars"`
	} `json:"by_strike"`
	Profile []struct{ Spot float64 }
}

type trackData struct {
	Date    string   `json:"date"`
	Session string   `json:"session_date"`
	Columns []string `json:"columns"`
	Rows    [][]any  `json:"rows"`
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
	Expiration  string
	MaxPain     float64 `json:"max_pain"`
	Expirations []struct{ Expiration string }
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
	return strings.TrimPrefix(text, map[bool]string{true: "+"}[math.Round(x*100) == 0])
}

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
	return sign + "$" + strconv.FormatFloat(size, 'f', decimals, 64) + units[unit]
}

// allLoaded says that every panel has its answer. It scrolls to a panel that has none, because a panel loads when it comes near
// the window.
const allLoaded = `(() => {
	const waiting = document.querySelector("section[aria-busy=true]");
	waiting?.scrollIntoView({block: "center", behavior: "instant"});
	return !waiting && !document.querySelector(".notice:not([hidden])");
})()`

// The dashboard in a real browser: its charts, tables and pickers, and what it says while the server is gone.
func TestDashboard(t *testing.T) {
	t.Parallel()
	installed(t, "chromium")
	args := []string{"--listen", freePort(t), "--data-dir", storedDay(t)}
	p := serveReady(t, append(args, "--sim-start", marketStart)...)
	dates := p.sessions()
	b := browse(t, p.url)
	b.until("every panel has its answer", allLoaded)
	if got := b.text("#banners"); !strings.Contains(got, "The market is simulated") {
		t.Errorf("the page does not say that the market is simulated: %q", got)
	}
	b.shoot("first")
	t.Run("charts", func(t *testing.T) { b.within(t).charts(p) })
	t.Run("tables", func(t *testing.T) { b.within(t).tables(p) })
	t.Run("dates", func(t *testing.T) { b.within(t).dates(p, dates) })
	t.Run("expirations", func(t *testing.T) { b.within(t).expirations(p) })
	t.Run("keyboard", func(t *testing.T) { b.within(t).keyboard() })
	t.Run("looks", func(t *testing.T) { b.within(t).looks() })
	t.Run("polling", func(t *testing.T) { b.within(t).polling() })
	b.t = t
	b.clean()

	p.kill()
	b.until("the page says that the server is gone", `document.querySelector(".banner.down[role=alert]")?.innerText.includes("does not answer")`)
	b.until("every panel has noticed", `asked.filter(a => a.status === 0).map(a => a.url).filter((u, i, all) => all.indexOf(u) === i).length >= 4`)
	if b.text("#today .levels dd") == "–" {
		t.Error("the last answer is gone")
	}
	b.shoot("down")
	p = serveReady(t, append(args, "--sim-start", "2026-11-20T17:00:00Z")...)
	b.until("the page recovers", `!document.querySelector(".banner.down") && `+allLoaded)
	b.clean()
	p.stop()
}

// within makes b report to a subtest until the subtest ends.
func (b *browser) within(t *testing.T) *browser {
	outer := b.t
	b.t = t
	t.Cleanup(func() { b.t = outer })
	return b
}

// chart has the texts of a chart, its number of points, and its number of coloured pixels (Ink).
type chart struct {
	Panel, Title, Value, Summary string
	Points, Ink                  int
}

// chartsScript reads the charts, with plain spaces and without the joiners between signs and amounts.
const chartsScript = `[...document.querySelectorAll("figure.chart")].filter(f => f.querySelector(".plot")).map(f => {
	const plot = f.querySelector(".plot"), canvas = f.querySelector("canvas");
	const pixels = canvas ? canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data : [];
	let ink = 0;
	for (let i = 0; i < pixels.length; i += 4) {
		const [r, g, b, a] = pixels.slice(i, i + 4);
		if (a > 200 && Math.max(r, g, b) - Math.min(r, g, b) > 60) ink++;
	}
	return {panel: f.closest("section").id, title: f.querySelector("h3").textContent, points: Number(plot.dataset.points), ink,
		value: (plot.getAttribute("aria-valuetext") ?? "").replace(/\u2060/g, "").replace(/\s+/g, " "), summary: f.querySelector(".summary").textContent};
})`

func (b *browser) charts(p *process) {
	b.eventually("the charts show what the server serves", func() bool {
		// If a refresh comes between the two reads, both are read again.
		gamma, pain, track := dataOf[gammaData](p, gammaPath), dataOf[painData](p, painPath), dataOf[trackData](p, trackPath)
		want := []struct {
			panel, title, value string
			points              int // at least
		}{
			{"today", "Spot, flip and walls", "Spot " + grouped(track.last("spot")) + ", Flip " + grouped(track.last("zero_gamma_flip")), len(track.Rows)},
			{"today", "Net gamma", "Net " + dollars(track.last("net_gex_dollars")), len(track.Rows)},
			{"strikes", "Gamma profile", "Hypothetical spot ", len(gamma.Profile)},
			{"history", "Flip, walls and spot", "Spot " + grouped(gamma.Spot), 31},
			{"history", "Net gamma", "Net " + dollars(gamma.Net), 31},
			{"vix", "Term structure", "M1", 9},
			{"max-pain", "Payout at settlement", "Settlement price " + grouped(pain.MaxPain), 20},
			{"max-pain", "Open interest", "Strike ", 20},
		}
		got := eval[[]chart](b, chartsScript)
		for _, w := range want {
			i := slices.IndexFunc(got, func(c chart) bool { return c.Panel == w.panel && c.Title == w.title })
			if i < 0 {
				b.t.Fatalf("no chart %q in %s: %+v", w.title, w.panel, got)
			}
			g := got[i]
			if g.Ink < 100 || g.Summary == "" {
				b.t.Fatalf("%+v, want %+v", g, w)
			}
			if g.Points < w.points || !strings.Contains(g.Value, w.value) {
				b.t.Logf("%d points, want %d; %q has no %q", g.Points, w.points, g.Value, w.value)
				return false
			}
		}
		return true
	})
	if n := eval[int](b, `document.querySelectorAll("#sectors svg .fund circle").length`); n != 11 {
		b.t.Errorf("%d funds in the rotation", n)
	}
}

// tables compares the tables of VIX futures, sectors and flow with the answers.
func (b *browser) tables(p *process) {
	b.eventually("the tables show what the server serves", func() bool {
		vix := dataOf[struct {
			Curve []struct{ Settlement float64 }
		}](p, vixPath)
		sectors := dataOf[struct {
			Sectors []struct {
				Symbol  string
				Returns map[string]float64 `json:"returns_pct"`
			}
		}](p, sectorsPath)
		flow := dataOf[struct {
			Items []struct {
				Symbol string
				Score  float64
			}
		}](p, flowPath)
		eval[bool](b, `document.querySelector("#vix details").open = true`)
		b.until("the table opens", `!!document.querySelector("#vix details table")`)
		table, grid, first := b.text("#vix details table"), b.text("#sectors table"), b.text("#flow tbody tr")
		for _, m := range vix.Curve {
			if !strings.Contains(table, fmt.Sprintf("%.2f pts", m.Settlement)) {
				b.t.Logf("%.2f is not in %s", m.Settlement, table)
				return false
			}
		}
		for _, s := range sectors.Sectors {
			for _, v := range s.Returns {
				if !strings.Contains(grid, percent(v)) {
					b.t.Logf("%s: %s is not in %s", s.Symbol, percent(v), grid)
					return false
				}
			}
		}
		return len(sectors.Sectors) == 11 && len(flow.Items) == 20 && strings.HasPrefix(first, fmt.Sprintf("%.1f %s", flow.Items[0].Score, flow.Items[0].Symbol))
	})
	eval[bool](b, `document.querySelector("#vix details").open = false`)
}

// dates picks a stored date by keyboard, and returns to now.
func (b *browser) dates(p *process, dates []string) {
	const picker = "#today .controls select"
	b.until("all dates are offered", fmt.Sprintf(`document.querySelector("%s").options.length === %d`, picker, len(dates)+1))
	b.press(picker, kb.ArrowDown, kb.ArrowDown, kb.ArrowDown) // now, the newest, and the two before it
	date := dates[len(dates)-3]
	if got := eval[string](b, `document.querySelector(%s).value`, picker); got != date {
		b.t.Fatalf("%s is picked, not %s", got, date)
	}
	gamma := dataOf[gammaData](p, datePath+date)
	b.eventually("the levels are those of "+date, func() bool {
		levels := b.text("#today .levels")
		return strings.Contains(levels, "Spot "+grouped(gamma.Spot)) && strings.Contains(levels, "Call wall "+grouped(gamma.CallWall))
	})
	if eval[int](b, `asked.filter(a => a.url.endsWith(%s)).length`, "historical?date="+date) != 1 {
		b.t.Error("a past date is asked for more than once") // by all panels together
	}
	b.press(picker, kb.Home)
	b.until("now is shown again", `document.querySelector("#today .source").textContent === "/api/v1/gex/spx" && !document.querySelector("#today[aria-busy=true]")`)
}

func (b *browser) expirations(p *process) {
	const picker = "#max-pain .controls select"
	all := dataOf[painData](p, painPath).Expirations
	b.until("all expirations are offered", fmt.Sprintf(`document.querySelector("%s").options.length === %d`, picker, len(all)+1))
	b.press(picker, kb.End)
	last := all[len(all)-1].Expiration
	b.eventually("the last expiration is shown", func() bool {
		pain := dataOf[painData](p, "/api/public/spx-max-pain?expiration="+last)
		return strings.Contains(b.text("#max-pain .reading"), "max pain "+grouped(pain.MaxPain)+",")
	})
	b.press(picker, kb.Home)
	b.until("the nearest is shown again", `document.querySelector("#max-pain .source").textContent === "/api/public/spx-max-pain" && !document.querySelector("#max-pain[aria-busy=true]")`)
}

// keyboard walks through a chart's points, opens a score, and reaches every control with the tab key.
func (b *browser) keyboard() {
	b.press(".skip")
	reached := map[string]bool{}
	for range 250 {
		if reached["flow score"] {
			break
		}
		b.do(chromedp.KeyEvent(kb.Tab))
		reached[eval[string](b, `(e => e.closest("section")?.id + " " + (e.className || e.tagName))(document.activeElement)`)] = true
	}
	for _, want := range []string{
		"undefined BUTTON", "today SELECT", "today BUTTON", "today term", "today plot", "today SUMMARY", "today source", "history plot",
		"vix plot", "max-pain SELECT", "max-pain plot", "sectors scroller", "flow SELECT", "flow score",
	} {
		if !reached[want] {
			b.t.Errorf("the tab key does not reach %q; it reaches %v", want, reached)
		}
	}

	const plot, value = "#today .plot", `document.querySelector("#today .plot").getAttribute("aria-valuetext")`
	b.press(plot, kb.Home)
	first := eval[string](b, value)
	b.press(plot, kb.ArrowRight)
	if second := eval[string](b, value); first == second || !strings.HasPrefix(second, "New York time ") {
		b.t.Errorf("%q, then %q", first, second)
	}
	b.press("#flow button.score")
	b.until("the score shows its parts", `document.querySelectorAll(".tip:not([hidden]) li").length === 6`)
	b.shoot("tip")
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until("escape closes it", `document.querySelector(".tip").hidden`)
}

// looks checks that nothing is wider than the window, in any theme and width.
func (b *browser) looks() {
	eval[chromedp.Void](b, `document.activeElement.blur(); scrollTo({top: 0, behavior: "instant"})`)
	for _, width := range []int64{2560, 1400, 768, 390} {
		for _, scheme := range []string{"light", "dark"} {
			b.view(width, 900, scheme)
			b.until("the charts have the width", `[...document.querySelectorAll(".plot")].every(p => Math.abs(p.clientWidth - (p.querySelector(".uplot")?.clientWidth ?? 0)) < 2)`)
			if wide := eval[int](b, `document.documentElement.scrollWidth`); wide > int(width) {
				b.t.Errorf("%d wide: the page is %d wide", width, wide)
			}
			if cut := eval[[]string](b, `[...document.querySelectorAll(".top a")].filter(a => a.getBoundingClientRect().right > innerWidth).map(a => a.textContent)`); len(cut) > 0 {
				b.t.Errorf("%d wide: the links to %q are cut off", width, cut)
			}
			for _, c := range eval[[]chart](b, chartsScript) {
				if c.Ink < 100 {
					b.t.Errorf("%d wide, %s: nothing is drawn in %s", width, scheme, c.Title)
				}
			}
			b.plain()
			b.shoot(fmt.Sprintf("%d-%s", width, scheme))
		}
	}
	b.view(1400, 1000, "light")
}

// polling checks that the page asks conditionally, no faster than max-age, and not while it is hidden.
func (b *browser) polling() {
	b.until("flow was asked for four times", `asked.filter(a => a.url.includes("flow") && a.status).length >= 4`)
	wrong := eval[[]string](b, `(() => {
		const last = {}, wrong = [];
		for (const a of asked) {
			const before = last[a.url];
			if (before?.status) {
				const age = Number(/max-age=(\d+)/.exec(before.cache)?.[1] ?? 0) * 1000; // 0: an error, such as a date without a track
				if (a.at - before.at < age) wrong.push(a.url + " after " + (a.at - before.at) + " of " + age);
				if (!a.tag && age > 0 && age < 86400e3) wrong.push(a.url + " without a tag");
			}
			last[a.url] = a;
		}
		return wrong;
	})()`)
	for _, w := range wrong {
		// After a pick, the page asks for these paths anew, at once and without a tag.
		if !strings.HasPrefix(w, gammaPath+" ") && !strings.HasPrefix(w, trackPath+" ") && !strings.HasPrefix(w, painPath+" ") {
			b.t.Errorf("asked: %s", w)
		}
	}
	if n := eval[int](b, `asked.filter(a => a.status === 304).length`); n == 0 {
		b.t.Error("nothing was answered 304")
	}
	eval[bool](b, `(() => {
		Object.defineProperty(document, "hidden", {configurable: true, get: () => true});
		document.dispatchEvent(new Event("visibilitychange"));
		window.hiddenAt = Date.now();
		return true;
	})()`)
	b.until("a minute passes", `Date.now() - hiddenAt > 60e3`)
	// Requests that were under way may end, and no new one begins.
	if n := eval[int](b, `asked.filter(a => a.at > hiddenAt).length`); n != 0 {
		b.t.Errorf("%d requests of a hidden page", n)
	}
	eval[bool](b, `delete document.hidden && document.dispatchEvent(new Event("visibilitychange"))`)
	b.until("a page that is shown again asks at once", `asked.filter(a => a.at > hiddenAt).length >= 4`)
}

// rewriter changes the answers that a front sends to the dashboard.
type rewriter struct {
	mu      sync.Mutex
	change  func(path string, status int, body []byte) (int, []byte)
	changed int
}

// set replaces the change, and returns how many answers the previous change has changed.
func (r *rewriter) set(change func(path string, status int, body []byte) (int, []byte)) (changed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed, r.change, r.changed = r.changed, change, 0
	return changed
}

func (r *rewriter) modify(resp *http.Response) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.change == nil || !strings.HasPrefix(resp.Request.URL.Path, "/api/") {
		return
	}
	body, _ := io.ReadAll(resp.Body) // a body that is cut off is no document
	resp.Body.Close()
	status, other := r.change(resp.Request.URL.Path, resp.StatusCode, body)
	if status != resp.StatusCode || !bytes.Equal(other, body) {
		r.changed++
	}
	resp.StatusCode, resp.Body = status, io.NopCloser(bytes.NewReader(other))
	resp.Header.Set("Content-Length", strconv.Itoa(len(other)))
}

// The page says in plain words what is wrong with an answer.
func TestDashboardSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	installed(t, "chromium")
	r := &rewriter{}
	proxy := newFront(t, shared(t).url, r.modify)
	proxy.request = func(r *http.Request) {
		r.Header.Del("Accept-Encoding")
		r.Header.Del("If-None-Match") // so that every answer has a body to change
	}
	b := browse(t, proxy.URL)
	b.until("every panel has its answer", allLoaded)
	freshness := func(state, reason string) func(string, int, []byte) (int, []byte) {
		return func(path string, status int, body []byte) (int, []byte) {
			return status, bytes.Replace(body, []byte(`"freshness":{"state":"fresh","reason":null`), fmt.Appendf(nil, `"freshness":{"state":%q,"reason":%q`, state, reason), 1)
		}
	}
	refusal := func(endpoint string, status int, code, message string) func(string, int, []byte) (int, []byte) {
		return func(path string, was int, body []byte) (int, []byte) {
			if !strings.HasSuffix(path, endpoint) {
				return was, body
			}
			return status, fmt.Appendf(nil, `{"success":false,"error":{"code":%q,"message":%q},"meta":{},"usage":{}}`, code, message)
		}
	}
	const hostile = `<img src=x onerror="window.hurt=1">`
	for _, c := range []struct {
		name, selector, want string
		change               func(string, int, []byte) (int, []byte)
	}{
		{"stale", ".banner.stale", "Unusual options activity. The last good answer is shown: the quotes are over 32 minutes old.", freshness("stale", "upstream_lag")},
		{"closed", ".banner.closed", "Market closed. The exchange is closed, and the page shows the last values of the session.", freshness("closed", "outside_session")},
		{"refused", "#flow .notice", "This resource has no answer yet. Trying again", refusal("unusual", 503, "not_ready", "this resource has no answer yet")},
		{"limited", "#sectors .notice", "Too many requests a minute.", refusal("rotation", 429, "rate_limited", "too many requests a minute")},
		{"no document", "#flow .notice", "The answer cannot be read. Trying again", func(_ string, status int, _ []byte) (int, []byte) { return status, []byte("<html>") }},
		{"no capture time", "#flow .ages", " old · checked ", func(_ string, status int, body []byte) (int, []byte) {
			return status, regexp.MustCompile(`"captured_at":"[^"]*"`).ReplaceAll(body, []byte(`"captured_at":null`))
		}},
		{"nothing known", "#flow .empty", "No unusual activity has been found", forgotten},
		{"hostile text", "#flow .notice", hostile, refusal("unusual", 500, "internal_error", hostile)},
	} {
		r.set(c.change)
		if c.name == "nothing known" { // in any panel: all must load again
			b.do(chromedp.Reload())
			b.until("every panel has its answer", allLoaded)
		}
		b.eventually(c.name, func() bool { return strings.Contains(b.allText(c.selector), c.want) })
		b.plain()
		b.shoot("wrong-" + strings.ReplaceAll(c.name, " ", "-"))
		if r.set(nil) == 0 {
			t.Errorf("%s: nothing was changed", c.name)
		}
		b.until(c.name+" is over", `!document.querySelector(".banner.stale, .banner.closed, .banner.down") && `+allLoaded)
	}
	if eval[bool](b, `"hurt" in window || !!document.querySelector("#flow img")`) {
		t.Error("text became markup")
	}
	b.clean()
}

// forgotten makes null or empty every field of an answer that the API allows to be so.
func forgotten(_ string, status int, body []byte) (int, []byte) {
	var doc map[string]any
	if json.Unmarshal(body, &doc) != nil || doc["success"] != true {
		return status, body
	}
	forget(doc["data"])
	other, err := json.Marshal(doc)
	if err != nil {
		return status, body
	}
	return status, other
}

var (
	unknown = strings.Fields("net_gex_dollars call_gex_dollars put_gex_dollars gross_gex_dollars gross_share_pct gamma_tilt zero_gamma_flip flip_distance_pct " +
		"flip_band gamma_regime call_wall put_wall vol_trigger abs_gamma_strike expected_move_1d max_pain max_pain_range flatness payout_at_max_pain_dollars " +
		"distance_pct put_call_oi_ratio change vix vix3m contango_m1_m2_pct contango_m4_m7_pct vix_vix3m_ratio cm30 roll_yield_annualized_pct regime shape " +
		"cash_regime vol_level day week month_return quarter ytd rrg tone cyclical_minus_defensive_pct")
	empty = strings.Fields("by_strike profile open_interest items flips scenarios conventions")
)

func forget(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			list, ok := member.([]any)
			switch {
			case slices.Contains(unknown, key):
				v[key] = nil
			case ok && slices.Contains(empty, key):
				v[key] = []any{}
			default:
				for _, member := range list {
					forget(member)
				}
				forget(member)
			}
		}
	case []any: // a row of the series: its date and session stay
		for i := 2; i < len(v); i++ {
			if _, ok := v[i].(float64); ok {
				v[i] = nil
			}
		}
	}
}

// plain fails the test when the page shows NaN, undefined, Infinity or [object.
func (b *browser) plain() {
	b.t.Helper()
	if bad := eval[[]string](b, `document.body.innerText.match(/[^\n]*(NaN|undefined|Infinity|\[object)[^\n]*/g) ?? []`); len(bad) > 0 {
		b.t.Errorf("on the page: %q", bad)
	}
}

// allText returns the text of all elements that a selector finds, with plain spaces.
func (b *browser) allText(selector string) string {
	b.t.Helper()
	return eval[string](b, `[...document.querySelectorAll(%s)].map(e => e.textContent).join("; ").replace(/\s+/g, " ")`, selector)
}
