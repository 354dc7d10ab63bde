package refresh_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/refresh"
	"strikecache/refresh/product"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// A document that is not believed is counted under its reason, is named in the log, and leaves no trace: not in memory, not
// in the series, not on the disk. The next good document is accepted.
func TestWhatIsRefusedLeavesNoTrace(t *testing.T) {
	long(t)
	xlkQuote, spxName := upstream.Quotes("XLK"), spxDocument
	type lie struct {
		fault  fault
		name   upstream.Name
		job    string
		reason upstream.Reason
	}
	lies := []lie{
		{faultClockAhead, spxName, "spx", upstream.ClockAhead},
		{faultPriceJump, spxName, "spx", upstream.PriceJump},
		{faultQuotesMissing, spxName, "spx", upstream.QuotesMissing},
		{faultAbsurdPrice, spxName, "spx", upstream.Empty},
		{faultGarbagePrice, spxName, "spx", upstream.Empty},
		{faultEmptyOptions, spxName, "spx", upstream.Empty},
		{faultShrink, spxName, "spx", upstream.Shrunk},
		{faultBackwardClock, spxName, "spx", upstream.Backwards},
		{faultShrink, xlfDocument, "xlf", upstream.Shrunk},
		{faultBackwardClock, xlfDocument, "xlf", upstream.Backwards},
		{faultClockAhead, xlfDocument, "xlf", upstream.ClockAhead},
		{faultPriceJump, xlfDocument, "xlf", upstream.PriceJump},
		{faultQuotesMissing, xlfDocument, "xlf", upstream.QuotesMissing},
		{faultClockAhead, xlkQuote, "sectors", upstream.ClockAhead},
		{faultPriceJump, xlkQuote, "sectors", upstream.PriceJump},
		{faultAbsurdPrice, xlkQuote, "sectors", upstream.Empty},
	}
	synctest.Test(t, func(t *testing.T) {
		dir, counted := t.TempDir(), map[string]int{}
		r := newRig(t, dir, "2026-11-20 11:00", func(c *refresh.Config) {
			c.Observe = func(job, code string, refused []string, _ time.Duration) { counted[fmt.Sprint(job, code, refused)]++ }
		})
		r.once()
		for _, l := range lies {
			before, accepted, editions := tree(t, dir), refresh.Accepted(r.Refresher, l.name), map[string]*snapshots.Edition{}
			for _, name := range allResources {
				editions[name] = r.store.Current(name)
			}
			r.log.Reset()
			clear(counted)
			r.market.Fail(l.name, l.fault, 1)
			time.Sleep(30 * time.Second)
			ok := refresh.RunJob(r.Refresher, t.Context(), l.job)
			what := fmt.Sprintf("%s of %s", l.reason, l.name)
			if oneOfMany := l.job == "sectors"; ok != oneOfMany || len(counted) != 1 || counted[fmt.Sprint(l.job, l.reason, []string{string(l.reason)})] != 1 {
				t.Errorf("%s: succeeded %v, counted %v", what, ok, counted)
			}
			if !strings.Contains(r.log.String(), "reason="+string(l.reason)) {
				t.Errorf("%s: log %q", what, r.log.String())
			}
			if refresh.Accepted(r.Refresher, l.name) != accepted {
				t.Errorf("%s: accepted", what)
			}
			for name, e := range editions {
				if got := r.store.Current(name); got != e && (l.job != "sectors" || name != product.SectorsResource) {
					t.Errorf("%s: %s was replaced", what, name)
				}
			}
			if l.job != "sectors" && !maps.EqualFunc(before, tree(t, dir), bytes.Equal) {
				t.Errorf("%s: files changed", what)
			}
			time.Sleep(30 * time.Second)
			r.once()
			if refresh.Accepted(r.Refresher, l.name) == accepted {
				t.Errorf("%s: the good document after it was not accepted", what)
			}
		}
	})
}

// Each document that a run refuses is counted under its own reason, and the run's log line names it with the reason. If
// another document of the run is good, the job does not back off.
func TestEveryRefusalIsCounted(t *testing.T) {
	xlf, spy, xle := xlfDocument, upstream.Options("SPY"), upstream.Quotes("XLE")
	const funds = 12
	for _, c := range []struct {
		what    string
		job     string
		faults  map[upstream.Name]fault
		partial bool
		refused []string
		named   []string
	}{
		{"a chain", "xlf", map[upstream.Name]fault{xlf: faultClockAhead}, false, []string{"clock_ahead"}, []string{string(xlf)}},
		{"another chain", "spy", map[upstream.Name]fault{spy: faultHTMLPage}, false, []string{"upstream_html"}, []string{string(spy)}},
		{"a timeout", "xlf", map[upstream.Name]fault{xlf: faultStall}, false, nil, []string{string(xlf)}},
		{"an unreadable quote", "sectors", map[upstream.Name]fault{xle: faultGarbagePrice}, true, []string{"upstream_empty"}, []string{"XLE"}},
		{"an unreachable quote", "sectors", map[upstream.Name]fault{xle: faultStall}, true, nil, []string{"XLE"}},
		{"every quote", "sectors", map[upstream.Name]fault{"": faultHTMLPage}, false, slices.Repeat([]string{"upstream_html"}, funds), []string{"SPY", "XLE"}},
		{"the settlement file and the closes", "vix", map[upstream.Name]fault{"": faultHTMLPage}, false,
			slices.Repeat([]string{"upstream_html"}, 3), []string{"settlement/2026-11-19.csv", "quotes/_VIX.json", "quotes/_VIX3M.json"}},
		{"a close", "vix", map[upstream.Name]fault{upstream.Quotes("_VIX"): faultClockAhead}, true, []string{"clock_ahead"}, []string{"_VIX"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var refused []string
			r := newRig(t, t.TempDir(), "2026-11-20 16:45", func(cfg *refresh.Config) {
				cfg.Underlyings = []string{"SPX", "XLF", "SPY"}
				cfg.Observe = func(_, _ string, reasons []string, _ time.Duration) { refused = reasons }
			})
			for name, f := range c.faults {
				r.market.Fail(name, f, -1)
			}
			if ok := refresh.RunJob(r.Refresher, t.Context(), c.job); ok != c.partial || !slices.Equal(refused, c.refused) {
				t.Errorf("%s: succeeded %v, refused %q, want %v and %q", c.what, ok, refused, c.partial, c.refused)
			}
			for i, name := range c.named {
				if !strings.Contains(r.log.String(), name) || i < len(c.refused) && !strings.Contains(r.log.String(), c.refused[i]) {
					t.Errorf("%s: the log does not name %s: %s", c.what, name, r.log.String())
				}
			}
		})
	}
}

// A start whose clock is behind the stored answers says so in one line, and reports the clock as impaired. The refreshes go on
// at the time of the clock, without the documents of later times, and are served.
func TestAClockBehindTheStoredAnswers(t *testing.T) {
	long(t)
	play(t, "2026-11-18 16:40", func(t *testing.T, r *rig) {
		r.once()
		time.Sleep(48 * time.Hour)
		r.once()
		must(t, r.ClockError())
		again := r.again("2026-11-19 11:00").restored()
		if n := strings.Count(again.log.String(), "level=ERROR"); n != 1 || !strings.Contains(again.log.String(), "clock is behind the stored answers") {
			t.Errorf("%d lines:\n%s", n, again.log.String())
		}
		if err := again.ClockError(); err == nil {
			t.Error("the clock is not impaired")
		}
		again.market.Fail(xlfDocument, faultHTMLPage, -1)
		if err := again.RefreshOnce(t.Context()); err == nil {
			t.Error("a page instead of a chain is accepted")
		}
		again = again.again("2026-11-19 11:01").restored() // what is stored is what was served
		for _, name := range []string{product.GammaResource, product.FlowResource} {
			if age := again.clock.Now().Sub(again.meta(name).AsOf); age < 0 || age > 20*time.Minute {
				t.Errorf("the refresh is not served: %s is %v old", name, age)
			}
		}
	})
}

// Within ten minutes of the clock, the newer answer stays. After three documents that are older, it says so.
func TestOlderDocuments(t *testing.T) {
	play(t, "2026-11-20 11:05", func(t *testing.T, r *rig) {
		r.once()
		again := r.again("2026-11-20 11:00").restored()
		before, files := again.meta(product.GammaResource), tree(t, r.dir)
		for range 3 {
			time.Sleep(time.Minute)
			refresh.RunJob(again.Refresher, t.Context(), "spx")
		}
		m := again.meta(product.GammaResource)
		if !m.AsOf.Equal(before.AsOf) || m.Freshness.State != "stale" || *m.Freshness.Reason != string(upstream.Older) || again.LastFailure(product.GammaResource) != string(upstream.Older) {
			t.Errorf("as_of %s, before %s: %+v, last failure %q", m.AsOf, before.AsOf, m.Freshness, again.LastFailure(product.GammaResource))
		}
		for name, body := range tree(t, r.dir) {
			if was := files[name]; was != nil && !bytes.Equal(was, body) {
				t.Errorf("%s is replaced", name)
			}
		}
	})
}

// After a restart, documents are still compared with those accepted before it.
func TestRefusalsSurviveARestart(t *testing.T) {
	long(t)
	play(t, "2026-11-20 11:00", func(t *testing.T, r *rig) {
		r.once()
		for fault, reason := range map[fault]string{
			faultShrink: "shrunk", faultBackwardClock: "clock_backwards", faultPriceJump: "price_jump", faultQuotesMissing: "quotes_missing",
		} {
			r = r.again("2026-11-20 11:01").restored()
			r.market.Fail("", fault, -1)
			err := r.RefreshOnce(t.Context())
			for _, name := range []upstream.Name{spxDocument, xlfDocument} {
				if want := string(name) + ": " + reason; err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("after the restart: %v, want %s", err, want)
				}
			}
		}
	})
}
