package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// watchDrawing keeps on each canvas, since it was last cleared or filled as a whole, the boxes of its texts and of its straight
// lines, in its own pixels.
const watchDrawing = `(() => {
	const drawing = CanvasRenderingContext2D.prototype;
	const before = (name, f) => { const was = drawing[name]; drawing[name] = function (...args) { f(this, ...args); return was.apply(this, args); }; };
	const box = (ctx, x0, y0, x1, y1) => {
		const m = ctx.getTransform(), [a, b] = [[x0, y0], [x1, y1]].map(([x, y]) => m.transformPoint({x, y}));
		return {left: Math.min(a.x, b.x), right: Math.max(a.x, b.x), top: Math.min(a.y, b.y), bottom: Math.max(a.y, b.y)};
	};
	const keep = (ctx, kind, thing) => (ctx.canvas.drawn ??= {texts: [], lines: []})[kind].push(thing);
	const clear = (ctx, x, y, w, h) => {
		const b = box(ctx, x, y, x + w, y + h);
		if (b.left <= 0 && b.top <= 0 && b.right >= ctx.canvas.width && b.bottom >= ctx.canvas.height) ctx.canvas.drawn = {texts: [], lines: []};
	};
	before("clearRect", clear);
	before("fillRect", clear);
	before("fillText", (ctx, text, x, y) => {
		const m = ctx.measureText(text);
		keep(ctx, "texts", {text, ...box(ctx, x - m.actualBoundingBoxLeft, y - m.actualBoundingBoxAscent, x + m.actualBoundingBoxRight, y + m.actualBoundingBoxDescent)});
	});
	before("moveTo", (ctx, x, y) => { ctx.from = [x, y]; });
	before("lineTo", (ctx, x, y) => { keep(ctx, "lines", box(ctx, ...ctx.from, x, y)); ctx.from = [x, y]; });
})()`

// covered names what lies on a label: another label or a line. Of the rotation, it names the dots and names that touch a name.
const covered = `(() => {
	const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
	const among = (texts, others, what) => texts.flatMap((t, i) => [
		...texts.slice(i + 1).filter(o => meet(t, o)).map(o => t.text + " and " + o.text),
		...others.filter(o => meet(t, o)).map(() => what + " and " + t.text)]);
	const funds = [...document.querySelectorAll("#sectors .fund text")].map(e => {
		const {left, right, top, bottom} = e.getBoundingClientRect(), pad = (bottom - top) / 6; // above and below the letters
		return {text: e.textContent, left, right, top: top + pad, bottom: bottom - pad};
	});
	return [...[...document.querySelectorAll("#strikes canvas, #max-pain canvas, #matrix canvas.strikes")].flatMap(c => among(c.drawn.texts, c.drawn.lines, "a line")),
		...among(funds, [...document.querySelectorAll("#sectors .fund circle")].map(e => e.getBoundingClientRect()), "a dot")];
})()`

// Labels of charts cover neither each other nor a line, at three widths, wherever the levels lie.
func TestLabels(t *testing.T) {
	t.Parallel()
	installed(t, "chromium")
	r := &rewriter{}
	proxy := newFront(t, shared(t).url, r.modify)
	proxy.request = func(r *http.Request) { r.Header.Del("Accept-Encoding") }
	b := browse(t, proxy.URL)
	if _, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watchDrawing}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		levels map[string]float64 // how far from the spot
	}{
		{"as served", nil},
		{"near each other", map[string]float64{"zero_gamma_flip": 3, "call_wall": 6, "put_wall": -4, "vol_trigger": -2}},
		{"equal", map[string]float64{"zero_gamma_flip": 0, "call_wall": 5, "put_wall": 5, "vol_trigger": 5}},
		{"at the edges", map[string]float64{"zero_gamma_flip": 330, "call_wall": 340, "put_wall": -340, "vol_trigger": -335}},
	} {
		r.set(func(path string, status int, body []byte) (int, []byte) {
			var doc map[string]any
			if path != gammaPath || json.Unmarshal(body, &doc) != nil {
				return status, body
			}
			data := doc["data"].(map[string]any)
			for name, away := range c.levels {
				data[name] = data["effective_spot"].(float64) + away
			}
			other, err := json.Marshal(doc)
			if err != nil {
				t.Error(err)
			}
			return status, other
		})
		b.do(chromedp.Navigate(proxy.URL))
		b.until("every panel has its answer", allLoaded)
		if r.set(nil) == 0 && c.levels != nil {
			t.Errorf("%s: nothing was changed", c.name)
		}
		for _, width := range []int64{2560, 1400, 390} {
			b.view(width, 900, "light")
			for _, reach := range []string{"15", "levels"} {
				b.press(fmt.Sprintf("#strikes button[value=%q]", reach), kb.Enter)
				b.until("the charts have the width", `[...document.querySelectorAll("#strikes .plot, #max-pain .plot")].every(p => Math.abs(p.clientWidth - (p.querySelector(".uplot")?.clientWidth ?? 0)) < 2)`)
				if bad := eval[[]string](b, covered); len(bad) > 0 {
					t.Errorf("%s, %d wide, reach %s: %q", c.name, width, reach, bad)
				}
			}
			for _, want := range []string{"Spot ", "Flip ", "Call wall ", "Put wall ", "Vol trigger "} {
				if !eval[bool](b, `document.querySelector("#strikes canvas").drawn.texts.some(t => t.text.startsWith(%s))`, want) {
					t.Errorf("%s, %d wide: %q is not drawn", c.name, width, want)
				}
			}
			if got := b.text("#strikes .legend"); !regexp.MustCompile(`^Calls Puts Exp\. move ±\d+$`).MatchString(got) {
				t.Errorf("the legend says %q", got)
			}
			if steps := eval[[]int](b, `[...new Set(document.querySelector("#matrix canvas.strikes").drawn.texts.map(t => Number(t.text.replace(",", ""))).map((x, i, all) => (i ? all[i - 1] - x : 0)))].slice(1)`); len(steps) != 1 {
				t.Errorf("%d wide: the strikes of the matrix have the steps %v", width, steps)
			}
			b.shoot(fmt.Sprintf("labels-%s-%d", strings.ReplaceAll(c.name, " ", "-"), width))
		}
	}
	if got, want := b.text("#matrix .legend"), regexp.MustCompile(`^Net gamma −\$\S+ m or less \$\S+ m or more no open contract spot 7,\d{3}\.\d\d$`); !want.MatchString(got) {
		t.Errorf("the legend of the matrix says %q", got)
	}
	b.clean()
}
