package refresh_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/refresh"
	"strikecache/refresh/upstream"
)

// Each document that a run refuses is counted under its own reason, and the run's log line names it with the reason. If
// another document of the run is good, the job does not back off.
func TestEveryRefusalIsCounted(t *testing.T) {
	xlf, spy, xle := xlfDocument, upstream.Options("SPY"), upstream.Quotes("XLE")
	const funds = 12
	for _, c := range []struct {
		what    string
		job     string
		faults  map[upstream.Name]string
		partial bool
		refused []string
		named   []string
	}{
		{"a chain", "xlf", map[upstream.Name]string{xlf: "ahead"}, false, []string{"clock_ahead"}, []string{string(xlf)}},
		{"another chain", "spy", map[upstream.Name]string{spy: "html"}, false, []string{"upstream_html"}, []string{string(spy)}},
		{"a timeout", "xlf", map[upstream.Name]string{xlf: "silent"}, false, nil, []string{string(xlf)}},
		{"an unreadable quote", "sectors", map[upstream.Name]string{xle: "garbage"}, true, []string{"upstream_empty"}, []string{"XLE"}},
		{"an unreachable quote", "sectors", map[upstream.Name]string{xle: "silent"}, true, nil, []string{"XLE"}},
		{"every quote", "sectors", map[upstream.Name]string{"": "html"}, false, slices.Repeat([]string{"upstream_html"}, funds), []string{"SPY", "XLE"}},
		{"the settlement file and the closes", "vix", map[upstream.Name]string{"": "html"}, false,
			slices.Repeat([]string{"upstream_html"}, 3), []string{"settlement/2026-11-19.csv", "quotes/_VIX.json", "quotes/_VIX3M.json"}},
		{"a close", "vix", map[upstream.Name]string{upstream.Quotes("_VIX"): "ahead"}, true, []string{"clock_ahead"}, []string{"_VIX"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var refused []string
			r := newRig(t, t.TempDir(), "2026-11-20 16:45", func(cfg *refresh.Config) {
				cfg.Underlyings = []string{"SPX", "XLF", "SPY"}
				cfg.Observe = func(_, _ string, reasons []string, _ time.Duration) { refused = reasons }
			})
			for name, f := range c.faults {
				r.market.Fail(name, f)
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
