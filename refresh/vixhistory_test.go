package refresh_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/compute"
	"strikecache/refresh"
	"strikecache/refresh/fleet"
	"strikecache/refresh/product"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// ladderCurve is the part of a VIX curve that these tests look at.
type ladderCurve struct {
	Settled string `json:"settlement_date"`
	Stale   int    `json:"stale_sessions"`
	Curve   []struct{ Change *float64 }
	VIX     *float64
	VIX3M   *float64
	Basis   *float64 `json:"spot_basis_pct"`
	Regime  *string  `json:"cash_regime"`
	Cash    map[string]*struct {
		Value  float64
		AsOf   time.Time `json:"as_of"`
		Change *float64  `json:"change_pct"`
	}
}

// complete says whether the closes of VIX and VIX3M are known.
func (c ladderCurve) complete() bool {
	return c.VIX != nil && c.VIX3M != nil && c.Basis != nil && c.Regime != nil
}

// vixJob runs the job of the curve at a time, and returns what is served then.
func (r *rig) vixJob(at string) (c ladderCurve) {
	r.t.Helper()
	time.Sleep(ny(r.t, at).Sub(r.clock.Now()))
	if !refresh.RunJob(r.Refresher, r.t.Context(), "vix") {
		r.t.Errorf("%s: the job failed", at)
	}
	r.data(product.VIXResource, &c)
	return c
}

// past returns the stored answer of a date, nil if there is none.
func (r *rig) past(resource, date string) []byte {
	r.t.Helper()
	s, err := r.store.Historical(resource, date)
	if errors.Is(err, snapshots.ErrNoSnapshot) {
		return nil
	}
	must(r.t, err)
	return s.Body(snapshots.Identity)
}

// The curve of a date is stored until the date closes. After that, the newer quotes of the next session, its count of sessions and a
// start change what is served, and not the file.
func TestTheCurveOfADateIsFinal(t *testing.T) {
	play(t, "2026-11-19 18:45", func(t *testing.T, r *rig) {
		r.vixJob("2026-11-19 18:46")
		evening := r.vixJob("2026-11-19 19:05") // 00:05 UTC
		final := r.past(product.VIXResource, "2026-11-19")
		if evening.Settled != "2026-11-19" || evening.Curve[0].Change != nil || evening.Stale != 0 || final == nil || evening.Cash["vix"].Value != *evening.VIX {
			t.Fatalf("in the evening: %+v", evening)
		}
		for _, at := range []string{"2026-11-20 00:30", "2026-11-20 11:00", "2026-11-20 16:50", "2026-11-20 18:20"} {
			c := r.vixJob(at)
			if newer := c.Cash["skew"].AsOf.After(evening.Cash["skew"].AsOf); c.Settled != "2026-11-19" || c.Stale != 1 || newer != (at != "2026-11-20 00:30") {
				t.Errorf("%s: %+v", at, c)
			}
			if !bytes.Equal(r.past(product.VIXResource, "2026-11-19"), final) {
				t.Errorf("%s: the stored answer of the date before has changed", at)
			}
		}
		must(t, refresh.Member(r.Refresher).Join(fleet.Origin{Market: ny(t, "2026-11-19 18:50"), Wall: time.Now(), Speed: 1}))
		refresh.RunJob(r.Refresher, t.Context(), "vix")
		if !bytes.Equal(r.past(product.VIXResource, "2026-11-19"), final) {
			t.Error("a clock that was set back has changed the stored answer")
		}
		r = r.again("2026-11-20 18:25").restored()
		r.vixJob("2026-11-20 18:26")
		if !bytes.Equal(r.past(product.VIXResource, "2026-11-19"), final) {
			t.Error("a start has changed the stored answer")
		}
		if c := r.vixJob("2026-11-20 18:45"); c.Settled != "2026-11-20" || c.VIX == nil || c.Cash["vix"] == nil || c.Curve[0].Change == nil || r.past(product.VIXResource, "2026-11-20") == nil {
			t.Errorf("the next settlements: %+v", c)
		}
		identical(t, r.dir, "2026-11-19", product.VIXResource, product.VIXSeriesResource)
		identical(t, r.dir, "2026-11-20", product.VIXResource, product.VIXSeriesResource)
	})
}

// A settlement file that is published on the next morning gives its closed date an answer: the first, which then stays. So it does beside a
// back-fill, which fills in the dates that had closed at the start.
func TestTheCurveOfADateThatClosedBeforeItsSettlements(t *testing.T) {
	for _, backfills := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, t.TempDir(), "2026-11-19 16:45", func(c *refresh.Config) {
				if backfills {
					history(3)(c)
				}
			})
			r.vixJob("2026-11-19 16:46")
			r.market.Fail(upstream.Settlement("2026-11-19"), faultStaleSettlement, -1)
			for _, at := range []string{"2026-11-19 18:45", "2026-11-19 20:00", "2026-11-20 10:00"} {
				if c := r.vixJob(at); c.Settled != "2026-11-18" || r.past(product.VIXResource, "2026-11-19") != nil {
					t.Errorf("%s: %+v", at, c)
				}
			}
			r.market.ClearFaults()
			c := r.vixJob("2026-11-20 10:20")
			first := r.past(product.VIXResource, "2026-11-19")
			if c.Settled != "2026-11-19" || c.VIX == nil || (c.Curve[0].Change == nil) != backfills || first == nil {
				t.Fatalf("the late settlements: %+v, stored %.100s", c, first)
			}
			for _, at := range []string{"2026-11-20 10:40", "2026-11-20 18:20"} {
				r.vixJob(at)
				if !bytes.Equal(r.past(product.VIXResource, "2026-11-19"), first) {
					t.Errorf("%s: the stored answer has changed", at)
				}
			}
			rows := r.vixRows()
			if left := r.past(product.VIXResource, "2026-11-18") == nil; left != backfills || (len(rows) == 1) != backfills || rows[len(rows)-1][0] != "2026-11-19" {
				t.Errorf("rows %v; the date before is left to the back-fill: %v", rows, left)
			}
		})
	}
}

// vixRows returns the rows of the series that is served.
func (r *rig) vixRows() [][]any {
	r.t.Helper()
	var table struct {
		Columns []string
		Rows    [][]any
	}
	r.data(product.VIXSeriesResource, &table)
	for _, row := range table.Rows {
		if len(row) != len(table.Columns) {
			r.t.Errorf("row %v of the columns %v", row, table.Columns)
		}
	}
	return table.Rows
}

// Each date has a row. A stored answer that is damaged has no row. The next start
// goes on with the rows.
func TestSeriesOfCurves(t *testing.T) {
	play(t, "2026-11-16 18:45", func(t *testing.T, r *rig) {
		dates := []string{"2026-11-16", "2026-11-17", "2026-11-18"}
		for _, date := range dates {
			r.vixJob(date + " 18:46")
		}
		rows := r.vixRows()
		for i, date := range dates {
			if len(rows) != len(dates) || rows[i][0] != date {
				t.Fatalf("rows %v", rows)
			}
		}
		if m := r.meta(product.VIXSeriesResource); m.DelayMinutes != nil || !m.AsOf.Equal(ny(t, "2026-11-18 16:00")) || m.RefreshSeconds != 300 || string(m.Quality) != `{"rows":3}` {
			t.Errorf("meta %+v", m)
		}
		r.close()
		must(t, os.WriteFile(filepath.Join(r.dir, "simulated", "2026-11-17", "vix-term-structure"), []byte("{}"), 0o644))
		r = newRig(t, r.dir, "2026-11-18 18:50").restored()
		r.vixJob("2026-11-18 18:51")
		if again := r.vixRows(); fmt.Sprint(again) != fmt.Sprint([][]any{rows[0], rows[2]}) {
			t.Errorf("rows after the start: %v", again)
		}
	})
}

// When a quote of VIX cannot be used, the job asks for all other documents and uses them.
func TestOneUnusableQuoteOfVIX(t *testing.T) {
	play(t, "2026-11-20 16:45", func(t *testing.T, r *rig) {
		r.market.Fail(upstream.Quotes("_VIX"), faultHTMLPage, -1)
		if c := r.vixJob("2026-11-20 16:45"); !c.complete() || c.Settled != "2026-11-19" {
			t.Errorf("%+v", c)
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
	play(t, "2026-11-27 13:20", func(t *testing.T, r *rig) {
		r.market.Fail(upstream.History("_VIX"), faultHTMLPage, -1)
		r.market.Fail(upstream.History("_VIX3M"), faultHTMLPage, -1)
		r.vixJob("2026-11-27 13:40")
		if c := r.vixJob("2026-11-27 18:45"); !c.complete() || c.Settled != "2026-11-27" {
			t.Errorf("%+v", c)
		}
	})
}

// No failure of the ladder fails or delays the settlements: those that are missing are null and named, the others are served.
func TestFaultLadder(t *testing.T) {
	play(t, "2026-11-20 11:00", func(t *testing.T, r *rig) {
		vvix, skew := upstream.Quotes("_VVIX"), upstream.Quotes("_SKEW")
		r.market.Fail(vvix, faultGarbagePrice, -1)
		r.market.Fail(skew, faultHTMLPage, -1)
		c := r.vixJob("2026-11-20 11:01")
		quality := string(r.meta(product.VIXResource).Quality)
		if c.Settled != "2026-11-19" || c.Cash["vvix"] != nil || c.Cash["skew"] != nil || c.Cash["vix9d"] == nil || !strings.Contains(quality, `"cash":"no quote is known of VVIX, SKEW"`) {
			t.Errorf("two quotes are missing: %+v, quality %s", c, quality)
		}
		// A quote is asked for once in ten minutes, also when it was refused.
		asked := r.market.asked[vvix]
		r.vixJob("2026-11-20 11:06")
		if n := r.market.asked[vvix]; n != asked || r.market.asked[upstream.Quotes("_VIX9D")] != 1 {
			t.Errorf("asked for %v", r.market.asked)
		}
		// A quote that was made before the last one of its index changes nothing.
		r.market.ClearFaults()
		r.market.Fail(upstream.Quotes("_VIX9D"), faultBackwardClock, 1)
		first := c
		c = r.vixJob("2026-11-20 11:12")
		if c.Cash["vix9d"].AsOf != first.Cash["vix9d"].AsOf || !c.Cash["vix1y"].AsOf.After(first.Cash["vix1y"].AsOf) {
			t.Errorf("after an older quote: %+v, first %+v", c.Cash["vix9d"], first.Cash["vix9d"])
		}
		if next := r.vixJob("2026-11-20 11:23"); !next.Cash["vix9d"].AsOf.After(c.Cash["vix1y"].AsOf) {
			t.Errorf("after the next quote: %+v", next.Cash["vix9d"])
		}
		if c.Cash["vvix"] == nil || c.Cash["skew"] == nil || strings.Contains(string(r.meta(product.VIXResource).Quality), `"cash"`) {
			t.Errorf("all are there again: %+v", c)
		}
		// The upstream answers settlements alone. The quotes stay, the next settlements are served, and nothing is stale.
		for _, name := range compute.VIXIndices {
			r.market.Fail(upstream.Quotes("_"+name), faultStall, -1)
		}
		for _, at := range []string{"2026-11-20 16:50", "2026-11-20 17:10", "2026-11-20 17:30", "2026-11-20 18:45"} {
			before := r.market.askedFor(upstream.QuotesKind)
			c = r.vixJob(at)
			if n := r.market.askedFor(upstream.QuotesKind) - before; n > 3 {
				t.Errorf("%s: asked for %d quotes of an upstream that does not answer", at, n)
			}
		}
		if c.Settled != "2026-11-20" || c.Cash["vvix"] == nil || r.meta(product.VIXResource).Freshness.State != "closed" {
			t.Errorf("the settlements: %+v, %+v", c, r.meta(product.VIXResource).Freshness)
		}
	})
}

// silentMarket is a market that does not answer for VIX9D.
type silentMarket struct{ *faultyMarket }

func (m silentMarket) Fetch(ctx context.Context, name upstream.Name, since *upstream.Document) (*upstream.Document, error) {
	if name != upstream.Quotes("_VIX9D") {
		return m.faultyMarket.Fetch(ctx, name, since)
	}
	<-ctx.Done()
	return nil, &upstream.Error{Name: name, Reason: upstream.TimedOut, Err: ctx.Err()}
}

// The settlements are served before the ladder is asked for, and the job waits for it only so long that its next run is not late.
func TestFaultSilentLadder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.TempDir(), "2026-11-20 18:45", func(c *refresh.Config) { c.Source = silentMarket{c.Source.(*faultyMarket)} })
		c := r.vixJob("2026-11-20 18:46")
		if took := r.clock.Now().Sub(r.meta(product.VIXResource).ComputedAt); c.Settled != "2026-11-20" || c.VIX == nil || c.Cash["vix"] == nil || took < time.Minute || took > 4*time.Minute {
			t.Errorf("published %s before the end of the job: %+v", took, c)
		}
	})
}
