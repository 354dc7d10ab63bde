package refresh_test

import (
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

// When a quote of VIX cannot be used, the job asks for all other documents and uses them.
func TestOneUnusableQuoteOfVIX(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.TempDir(), "2026-11-20 16:45")
		defer r.close()
		r.market.Fail(upstream.Quotes("_VIX"), faultHTMLPage, -1)
		refresh.RunJob(r.Refresher, t.Context(), "vix")
		var curve cashCurve
		if r.data(refresh.VIXResource, &curve); !curve.complete() || curve.Settled != "2026-11-19" {
			t.Errorf("%+v", curve)
		}
		for _, symbol := range []string{"_VIX", "_VIX3M"} {
			if asked := r.market.asked; asked[upstream.Quotes(symbol)] != 1 || asked[upstream.History(symbol)] != 1 {
				t.Errorf("%s: asked for %v", symbol, asked)
			}
		}
	})
}

// On an early close, the quotes of VIX and VIX3M have their closes three hours earlier.
func TestClosesOfAnEarlyClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.TempDir(), "2026-11-27 13:20")
		defer r.close()
		for _, at := range []string{"2026-11-27 13:40", "2026-11-27 18:45"} {
			time.Sleep(ny(t, at).Sub(r.clock.Now()))
			r.market.Fail(upstream.History("_VIX"), faultHTMLPage, -1)
			r.market.Fail(upstream.History("_VIX3M"), faultHTMLPage, -1)
			refresh.RunJob(r.Refresher, t.Context(), "vix")
		}
		var curve cashCurve
		if r.data(refresh.VIXResource, &curve); !curve.complete() || curve.Settled != "2026-11-27" {
			t.Errorf("%+v", curve)
		}
	})
}

// When a later step of the feed fails, the next run gives the curve.
func TestClosesOfACurveThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.TempDir(), "2026-11-20 16:45")
		defer r.close()
		restore := refresh.BreakQuality(refresh.VIXResource)
		ok := refresh.RunJob(r.Refresher, t.Context(), "vix")
		restore()
		if !ok || r.store.Current(refresh.VIXResource) != nil {
			t.Errorf("succeeded partly: %v, or there is an answer", ok)
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
