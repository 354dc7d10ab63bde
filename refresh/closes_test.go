package refresh_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/refresh"
	"strikecache/refresh/upstream"
)

// cashCurve is the part of a VIX curve that rests on the closes of VIX and VIX3M.
type cashCurve struct {
	VIX, VIX3M *float64
	SpotBasis  *float64 `json:"spot_basis_pct"`
	CashRegime *string  `json:"cash_regime"`
	Settled    string   `json:"settlement_date"`
}

func (c cashCurve) complete() bool {
	return c.VIX != nil && c.VIX3M != nil && c.SpotBasis != nil && c.CashRegime != nil
}

// documentsAsked counts the requests for each document.
type documentsAsked struct {
	*faultyMarket
	asked map[upstream.Name]int
}

func (s documentsAsked) Fetch(ctx context.Context, name upstream.Name, since *upstream.Document) (*upstream.Document, error) {
	s.asked[name]++
	return s.faultyMarket.Fetch(ctx, name, since)
}

// When a quote of VIX cannot be used, the job asks for all other documents and uses them. The run counts as failed in part,
// and its error names the quote.
func TestOneUnusableQuoteOfVIX(t *testing.T) {
	vix, vix3m := upstream.Quotes("_VIX"), upstream.Quotes("_VIX3M")
	for f, reason := range map[fault]upstream.Reason{
		faultAbsurdPrice: upstream.Empty, faultHTMLPage: upstream.HTML, faultClockAhead: upstream.ClockAhead, faultTradeAhead: upstream.ClockAhead,
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			counted, asked := map[string]int{}, map[upstream.Name]int{}
			r := newRig(t, t.TempDir(), "2026-11-20 16:45", func(c *refresh.Config) {
				c.Source = documentsAsked{c.Source.(*faultyMarket), asked}
				c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
				c.Observe = func(_, code string, refused []string, _ time.Duration) {
					for _, reason := range append(refused, "run "+code) {
						counted[reason]++
					}
				}
			})
			defer r.close()
			r.market.Fail(vix, f, -1)
			if ok := refresh.RunJob(r.Refresher, t.Context(), "vix"); !ok || len(counted) != 2 || counted[string(reason)] != 1 || counted["run "+string(reason)] != 1 {
				t.Errorf("%s: succeeded in part %v, counted %v", reason, ok, counted)
			}
			if _, end, _ := strings.Cut(log.String(), `"refresh failed"`); !strings.Contains(end, string(vix)) || !strings.Contains(end, string(reason)) {
				t.Errorf("%s: log %s", reason, log.String())
			}
			var curve cashCurve
			if r.data(refresh.VIXResource, &curve); !curve.complete() || curve.Settled != "2026-11-19" {
				t.Errorf("%s: %+v", reason, curve)
			}
			for _, name := range []upstream.Name{vix, vix3m, upstream.History("_VIX"), upstream.History("_VIX3M")} {
				if asked[name] != 1 {
					t.Errorf("%s: asked %d times for %s", reason, asked[name], name)
				}
			}
		})
	}
}

// When a later step of the feed fails, the next run gives the curve.
func TestClosesOfACurveThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.TempDir(), "2026-11-20 16:45")
		defer r.close()
		restore := refresh.BreakQuality(refresh.VIXResource)
		ok := refresh.RunJob(r.Refresher, t.Context(), "vix")
		restore()
		if ok {
			t.Error("succeeded")
		}
		time.Sleep(time.Minute)
		ok = refresh.RunJob(r.Refresher, t.Context(), "vix")
		r.meta(refresh.VIXResource) // there is an answer
		var curve cashCurve
		if r.data(refresh.VIXResource, &curve); !ok || !curve.complete() {
			t.Errorf("the next run: succeeded %v, %+v", ok, curve)
		}
	})
}
