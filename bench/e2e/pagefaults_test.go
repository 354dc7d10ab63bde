package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

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
func TestPageSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	installed(t, "chromium")
	r := &rewriter{}
	proxy := newFront(t, shared(t).url, r.modify)
	proxy.request = func(r *http.Request) {
		r.Header.Del("Accept-Encoding")
		r.Header.Del("If-None-Match") // so that every answer has a body to change
	}
	b := browse(t, "about:blank")
	b.origin = proxy.URL
	b.onLoad(`window.notified = [];
		window.Notification = class { static permission = "granted"; constructor(text) { notified.push(text); } };
		try { localStorage.setItem("notify", "yes"); } catch { /* about:blank has none */ }`)
	b.do(chromedp.Navigate(proxy.URL))
	b.hurry = true
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
	replace := func(from, to string) func(string, int, []byte) (int, []byte) {
		return func(_ string, status int, body []byte) (int, []byte) {
			return status, regexp.MustCompile(from).ReplaceAll(body, []byte(to))
		}
	}
	const hostile = `<img src=x onerror="window.hurt=1">`
	for _, c := range []struct {
		name, selector, want string
		change               func(string, int, []byte) (int, []byte)
	}{
		{"stale", ".banner.stale", "Unusual options activity. The last good answer is shown: newer quotes have not come.", freshness("stale", "upstream_lag")},
		{"closed", ".banner.closed", "Market closed. Next quotes: Mon 23 Nov, 09:45 ET, 15 minutes late, if the exchange opens. The last session is shown.", freshness("closed", "outside_session")},
		{"refused", "#flow .notice", "This resource has no answer yet. Trying again", refusal("unusual", 503, "not_ready", "this resource has no answer yet")},
		{"limited", "#sectors .notice", "Too many requests a minute.", refusal("rotation", 429, "rate_limited", "too many requests a minute")},
		{"no document", "#flow .notice", "The answer cannot be read. Trying again", func(_ string, status int, _ []byte) (int, []byte) { return status, []byte("<html>") }},
		{"no capture time", "#flow .ages", " old · checked ", replace(`"captured_at":"[^"]*"`, `"captured_at":null`)},
		{"another day", "#today-heading", "Thursday 19 Nov", replace(`"session_date":"[^"]*"`, `"session_date":"2026-11-19"`)},
		{"two spots", ".levels", "implied spot 7,501.25", replace(`"effective_spot":[0-9.]+,"spot_source":"index"`, `"effective_spot":7501.25,"spot_source":"implied"`)},
		{"traces", ".levels", "none: negative but for traces", replace(`"zero_gamma_flip":[0-9.]+,"flip_status":"[a-z_]+"`, `"zero_gamma_flip":null,"flip_status":"none_all_negative"`)},
		{"at the flip", ".reading", "The flip is at spot.", replace(`"flip_distance_pct":[-0-9.]+`, `"flip_distance_pct":-0.004`)},
		{"another rank", "#volatility .facts", "IV rank41", replace(`"rank_1y":[0-9.]+`, `"rank_1y":41.25`)},
		{"a wall that jumps", "#events ol", "Put wall 7,450, was 7,500", replace(`("2026-11-20T15:3[^]]*,)7500,("positive"|"negative"|"neutral")`, `${1}7450,$2`)},
		{"nothing known", "#flow .empty", "No unusual activity has been found", forgotten},
		{"hostile text", "#flow .notice", hostile, refusal("unusual", 500, "internal_error", hostile)},
	} {
		r.set(c.change)
		if c.name == "nothing known" { // in any panel: all must load again
			b.do(chromedp.Reload())
			b.until("every panel has its answer", allLoaded)
		}
		b.eventually(c.name, func() bool {
			return strings.Contains(eval[string](b, `[...document.querySelectorAll(%s)].map(e => e.textContent).join("; ").replace(/\s+/g, " ")`, c.selector), c.want)
		})
		b.plain()
		if c.name == "a wall that jumps" {
			b.until("it is in the list, on the price chart and in its table, and notifications have said it once", wallMoved)
		}
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

// wallMoved says that the move of the put wall is an event everywhere. On the price chart only its sign has the pure accent colour.
const wallMoved = `(() => {
	const said = "Put wall 7,450, was 7,500", table = document.querySelector(".price .data"), c = document.querySelector(".price canvas");
	const entry = [...document.querySelectorAll("#events li")].find(e => e.textContent.includes(said));
	if (!entry || !c) return false;
	table.open = true;
	const accent = getComputedStyle(entry.querySelector("i")).color.match(/\d+/g).map(Number);
	const {data} = c.getContext("2d").getImageData(0, 0, c.width, c.height);
	let ink = 0;
	for (let i = 0; i < data.length; i += 4) ink += accent.every((x, k) => x === data[i + k]) && data[i + 3] === 255;
	return ink > 20 && table.textContent.includes(said) && notified.filter(n => n === "SPX: " + said).length === 1;
})()`

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
		"cash_regime vol_level atm_30d model_free_30d risk_reversal_25_30d term_slope rank_1y percentile_1y realised_20d realised_60d implied_minus_realised " +
		"atm_volatility risk_reversal_25 risk_reversal_10 expected_move atm_straddle vix1d vix9d vix6m vix1y vvix skew vxn rvx day week month_return quarter ytd rrg tone cyclical_minus_defensive_pct")
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

// A first start without the upstream: the page says why there is no answer, and says it once. When the server is gone, the
// page says so, keeps the last answers, and recovers.
func TestPageWithoutAnswers(t *testing.T) {
	t.Parallel()
	installed(t, "chromium")
	address := freeAddress(t)
	p := serve(t, append([]string{"--listen", address}, noUpstream...)...)
	b := browse(t, p.url)
	b.hurry = true
	b.until("every panel has asked", allLoaded)
	b.until("the page says why", `document.querySelector("#status").innerText.includes("The server has no answers yet. The upstream cannot be reached.")`)
	if n := eval[int](b, `document.body.innerText.split(/cannot be reached|no answer yet|does not answer/).length - 1`); n != 1 {
		t.Errorf("the page says it %d times: %s", n, b.text("body"))
	}
	p.kill()
	data := storedDay(t)
	stored := func() *process {
		return serveReady(t, "--listen", address, "--data-dir", data, "--sim-start", marketStart, "--sim-speed", "0")
	}
	p = stored()
	b.until("the page has answers", `!document.querySelector(".banner.down, .banner.stale") && `+allLoaded)
	b.until("the spot is shown", `document.querySelector("#head .levels dd").innerText !== "–"`)
	p.kill()
	b.until("the page says that the server is gone", `document.querySelector(".banner.down[role=alert] button")?.parentNode.innerText.includes("does not answer")`)
	if b.text("#head .levels dd") == "–" {
		t.Error("the last answer is gone")
	}
	p = stored()
	eval[bool](b, `document.querySelector(".banner.down button")?.click() ?? true`) // it goes when the page has noticed
	b.until("the page recovers", `!document.querySelector(".banner.down") && `+allLoaded)
	b.clean()
	p.stop()
}

// A source without the documents of two panels: both say so themselves, the page does not say that the server is empty, and it asks
// again within a minute, not after the hour of Retry-After.
func TestPageOfASourceWithoutAll(t *testing.T) {
	t.Parallel()
	installed(t, "chromium")
	in := newInbox(t)
	in.put("options/_SPX.json", in.made("options/_SPX.json"))
	p := serve(t, "--data-dir", t.TempDir(), "--source", "folder", "--folder", in.dir)
	p.until("the chain is served", func() bool { return p.answers(gammaPath, http.StatusOK) })
	b := browse(t, p.url)
	b.hurry = true
	for _, panel := range []string{"#vix", "#sectors"} {
		b.see(panel)
		b.eventually(panel+" says why", func() bool {
			return strings.HasPrefix(b.text(panel+" .notice:not([hidden])"), "The source has no documents for this resource. Trying again")
		})
	}
	if said := b.text("#status"); strings.Contains(said, "no answers yet") {
		t.Errorf("the page says that the server is empty: %s", said)
	}
	eval[chromedp.Void](b, `asked.length = 0; later()`)
	b.until("the page asks again", `asked.some(a => a.url.endsWith("/rotation"))`)
	b.clean()
}
