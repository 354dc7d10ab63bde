package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	devinput "github.com/chromedp/cdproto/input"
	devlog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// watched records each request of the page, and gives it a clock that later sets forward by 70 seconds: the page asks again for every answer.
const watched = `(() => {
	const now = Date.now, ask = fetch;
	let ahead = 0;
	Date.now = () => now() + ahead;
	window.later = () => {
		ahead += 70e3;
		document.dispatchEvent(new Event("visibilitychange"));
	};
	window.asked = [];
	window.fetch = (target, init) => {
		window.asked.push({url: target, tag: init?.headers?.["If-None-Match"] ?? ""});
		return ask(target, init);
	};
})()`

// browser is a Chromium with one page.
type browser struct {
	t      *testing.T
	ctx    context.Context
	origin string
	hurry  bool // while the test waits, the page's clock is set forward once a second

	mu       sync.Mutex
	foreign  []string // requests to other origins
	problems []string // errors on the console, and exceptions
}

// chromium is the browser that all tests share. Each test has a page, a cache and a storage of its own.
var chromium struct {
	once sync.Once
	ctx  context.Context
	stop func()
	err  error
}

func stopChromium() {
	if chromium.stop != nil {
		chromium.stop()
	}
}

func startChromium(path string) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(filepath.Join(scratch, "chromium")), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"), chromedp.Env("LANG=C"))
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	chromium.ctx, _ = chromedp.NewContext(allocator, chromedp.WithLogf(func(string, ...any) {}))
	chromium.stop = func() {
		_ = chromedp.Cancel(chromium.ctx) // waits for the end, so that the scratch folder can be removed
		cancel()
	}
	chromium.err = chromedp.Do(chromium.ctx)
}

// browse opens a page in Chromium. The page has the focus, as the only page of a user has.
func browse(t *testing.T, address string) *browser {
	t.Helper()
	path := installed(t, "chromium")
	chromium.once.Do(func() { startChromium(path) })
	if chromium.err != nil {
		t.Fatal(chromium.err)
	}
	u, err := url.Parse(address)
	must(t, err)
	ctx, cancel := chromedp.NewContext(chromium.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 6*patience) // of the whole test
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx, origin: u.Scheme + "://" + u.Host}
	must(t, chromedp.Listen(ctx, b.heard))
	b.onLoad(watched)
	if _, err := chromedp.Call(ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}); err != nil {
		t.Fatal(err)
	}
	b.view(1400, 1000, "light")
	b.do(chromedp.Navigate(address))
	return b
}

// onLoad runs a script before those of each page that is opened from now on.
func (b *browser) onLoad(script string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
	must(b.t, err)
}

func (b *browser) heard(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, b.origin+"/") && !strings.HasPrefix(e.Request.URL, "data:") {
			b.foreign = append(b.foreign, e.Request.URL)
		}
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, e.ExceptionDetails.Text)
	case *devlog.EventEntryAdded:
		// The browser itself logs failed requests, and some tests make requests fail.
		if e.Entry.Level == devlog.EntryLevelError && e.Entry.Source != devlog.EntrySourceNetwork {
			b.problems = append(b.problems, e.Entry.Text)
		}
	}
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	must(b.t, chromedp.Do(b.ctx, steps...))
}

// eval returns the value of an expression.
func eval[T any](b *browser, expression string, args ...any) T {
	b.t.Helper()
	for i, a := range args {
		text, err := json.Marshal(a)
		must(b.t, err)
		args[i] = string(text)
	}
	if len(args) > 0 {
		expression = fmt.Sprintf(expression, args...)
	}
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// text returns the text of the first element that a selector finds, with plain spaces.
func (b *browser) text(selector string) string {
	b.t.Helper()
	return eval[string](b, `(document.querySelector(%s)?.innerText ?? "").replace(/\u2060/g, "").replace(/\s+/g, " ").trim()`, selector)
}

// until polls an expression until it is true. A page that another replaces may not answer.
func (b *browser) until(what, expression string) {
	b.t.Helper()
	b.eventually(what, func() bool {
		holds, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if err != nil && (b.ctx.Err() != nil || !strings.Contains(err.Error(), "navigated or closed")) {
			b.t.Fatalf("%s: %v", expression, err)
		}
		return holds
	})
}

func (b *browser) eventually(what string, holds func() bool) {
	b.t.Helper()
	var moved time.Time
	until(b.t, what, func() bool {
		if holds() {
			return true
		}
		if b.hurry && time.Since(moved) > time.Second {
			moved = time.Now()
			_, _ = chromedp.Run(b.ctx, chromedp.Evaluate[chromedp.Void]("later()")) // a page that is being loaded is not moved
		}
		return false
	}, func() string { return fmt.Sprintf("banners: %s\nproblems: %q", b.text("#banners"), b.problems) })
}

// press focuses an element and presses keys.
func (b *browser) press(selector string, keys ...string) {
	b.t.Helper()
	if !eval[bool](b, `(e => { e?.focus(); return !!e && document.activeElement === e; })(document.querySelector(%s))`, selector) {
		b.t.Fatalf("%s cannot be focused", selector)
	}
	for _, k := range keys {
		b.do(chromedp.KeyEvent(k))
	}
}

// view sets the size of the window and the colour scheme.
func (b *browser) view(width, height int64, scheme string) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height))
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}} // no scroll lasts
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
	must(b.t, err)
}

// clean fails the test when the page asked another origin for something, or had an error.
func (b *browser) clean() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.foreign) > 0 || len(b.problems) > 0 {
		b.t.Errorf("other origins: %q; problems: %q", b.foreign, b.problems)
	}
}

// plain fails the test when the page shows NaN, undefined, Infinity or [object.
func (b *browser) plain() {
	b.t.Helper()
	if bad := eval[[]string](b, `document.body.innerText.match(/[^\n]*(NaN|undefined|Infinity|\[object)[^\n]*/g) ?? []`); len(bad) > 0 {
		b.t.Errorf("on the page: %q", bad)
	}
}

// see scrolls an element to the middle of the window.
func (b *browser) see(selector string) {
	b.t.Helper()
	if !eval[bool](b, `(e => { e?.scrollIntoView({block: "center", behavior: "instant"}); return !!e; })(document.querySelector(%s))`, selector) {
		b.t.Fatalf("%s is not on the page", selector)
	}
}

// frames waits until two frames are drawn.
func (b *browser) frames() {
	b.t.Helper()
	eval[bool](b, `(window.framed = false, requestAnimationFrame(() => requestAnimationFrame(() => { window.framed = true; })), true)`)
	b.until("two frames are drawn", `framed`)
}

func (b *browser) mouse(kind devinput.DispatchMouseEventType, x, y float64, options ...chromedp.MouseOption) {
	b.t.Helper()
	b.do(chromedp.MouseEvent(kind, x, y, options...))
}

// tap touches a point of the window with a finger.
func (b *browser) tap(x, y float64) {
	b.t.Helper()
	touch := func(on bool) {
		_, err := chromedp.Call(b.ctx, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: on})
		must(b.t, err)
	}
	touch(true)
	defer touch(false)
	for _, e := range []devinput.DispatchTouchEventParams{
		{Type: devinput.DispatchTouchEventTypeTouchStart, TouchPoints: []*devinput.TouchPoint{{X: x, Y: y}}},
		{Type: devinput.DispatchTouchEventTypeTouchEnd, TouchPoints: []*devinput.TouchPoint{}},
	} {
		_, err := chromedp.Call(b.ctx, devinput.DispatchTouchEvent, e)
		must(b.t, err)
	}
}
