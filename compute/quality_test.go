package compute_test

import (
	"math"
	"strings"
	"testing"

	"strikecache/compute"
)

func share(t *testing.T, r compute.GammaResult, step string) compute.VolatilityShare {
	t.Helper()
	for _, s := range r.Quality.Volatility {
		if s.Step == step {
			return s
		}
	}
	t.Fatalf("no step %s", step)
	return compute.VolatilityShare{}
}

// Shares by step: of open interest over all with T > 0, of gross exposure at the spot and at the flip over the used.
func TestVolatilityShares(t *testing.T) {
	const v = 0.04
	call := newBigBlack(7000, 7100, v).call
	rows := []row{
		{"SPXW260821C07100000", quoted(call, call, 30)},              // implied
		{"SPXW260821P06900000", published(flatIV(v), 50)},            // published
		{"SPXW260821C06800000", blank(10)},                           // interpolated: flat, v = 0.04
		{"SPXW260828C07000000", blank(110)},                          // none
		{"SPXW260811C07000000", published(flatIV(v), 1e6)},           // settled
		{"SPX1260821C07000000", published(flatIV(v), 1e6)},           // skipped
		{"SPXW260821P07100000", full(0, math.NaN(), 0.7, 0, 0, 1e9)}, // no open interest
	}
	r := exposure(t, index(7000, closing), rows...)
	flip := float64(*r.Data.Flip)
	at := func(s float64) (implied, published, interpolated float64) {
		return 30 * gammaOf(s, 7100, v), 50 * gammaOf(s, 6900, v), 10 * gammaOf(s, 6800, v)
	}
	i, p, x := at(7000)
	fi, fp, fx := at(flip)
	for _, c := range []struct {
		step                string
		interest, spot, off float64
	}{
		{"implied", 30 / 2.0, i / (i + p + x) * 100, fi / (fi + fp + fx) * 100},
		{"published", 50 / 2.0, p / (i + p + x) * 100, fp / (fi + fp + fx) * 100},
		{"interpolated", 10 / 2.0, x / (i + p + x) * 100, fx / (fi + fp + fx) * 100},
		{"none", 110 / 2.0, 0, 0},
	} {
		s := share(t, r, c.step)
		near(t, c.step+" of open interest", s.OpenInterest, c.interest, 1e-9)
		near(t, c.step+" at the spot", s.GrossAtSpot, c.spot, 2e-4)
		near(t, c.step+" at the flip", s.GrossAtFlip, c.off, 2e-4)
	}
	// Without a flip there is no share at it.
	r = exposure(t, index(7000, closing), rows[0])
	isNull(t, "share at no flip", share(t, r, "implied").GrossAtFlip)
	near(t, "share at the spot", share(t, r, "implied").GrossAtSpot, 100, 0)
}

// The share of the used contracts that have a two-sided quote: 3 of 4.
func TestTwoSidedShare(t *testing.T) {
	r := exposure(t, index(7000, closing),
		row{"SPXW260821C07000000", full(1, 2, 0.2, 0, 1, 0)}, row{"SPXW260821P07000000", full(5, 5, 0.2, 0, 1, 0)},
		row{"SPXW260821P06900000", full(0, 5, 0.2, 0, 1, 0)}, row{"SPXW260821C07100000", full(3, 4, 0.2, 0, 1, 0)},
		row{"SPXW260821C07200000", full(0, 4, 0.2, 0, 0, 0)}, row{"SPXW260811C07200000", full(0, 4, 0.2, 0, 5, 0)})
	near(t, "two-sided", r.Quality.TwoSidedShare, 75, 1e-12)
}

// |published - recomputed| over used contracts with T > 2 days: of {0.001, 0.002, 0.003, 0.005} the median is 0.0025 and
// the linear 95th percentile lies 0.85 between the last two, 0.0047.
func TestPublishedGammaDifference(t *testing.T) {
	v := 0.3 * math.Sqrt(years(ten))
	off := func(k, by float64) row {
		return row{symbolOf("SPXW260821C", k), full(0, 0, 0.3, gammaOf(7000, k, v)+by, 1, 0)}
	}
	rows := []row{off(7000, 0.001), off(7100, -0.002), off(7200, 0.003), off(7300, -0.005)}
	rows = append(rows, row{"SPXW260821C07400000", full(0, 0, 0.3, math.NaN(), 1, 0)}, // no published gamma
		row{"SPXW260821C07500000", full(0, 0, 0.3, 9, 0, 0)}, // not used
		row{"SPXW260813C07500000", full(0, 0, 0.3, 9, 1, 0)}) // 2 days to the second
	d := exposure(t, index(7000, closing), rows...).Quality.GammaDifference
	equal(t, "contracts", d.Contracts, 4)
	near(t, "median", d.Median, 0.0025, 1e-12)
	near(t, "95th percentile", d.Percentile95, 0.0047, 1e-12)
	// A second earlier the contract of 2 days counts.
	d = exposure(t, index(7000, "2026-08-11T19:59:59Z"), rows...).Quality.GammaDifference
	equal(t, "contracts", d.Contracts, 5)
	d = exposure(t, index(7000, closing), rows[1]).Quality.GammaDifference
	near(t, "median of one", d.Median, 0.002, 1e-12)
	near(t, "95th percentile of one", d.Percentile95, 0.002, 1e-12)
	d = exposure(t, index(7000, closing), rows[6]).Quality.GammaDifference
	equal(t, "contracts", d.Contracts, 0)
	isNull(t, "median of none", d.Median)
	isNull(t, "percentile of none", d.Percentile95)
}

func TestQualityClockAndCalendar(t *testing.T) {
	u := index(7000, "2026-08-11T20:14:59Z")
	u.CapturedAt = at("2026-08-11T20:36:41Z")
	q := exposure(t, u, row{"SPXW260821C07000000", published(0.2, 10)}).Quality
	equal(t, "age", q.QuoteAgeSeconds, 21*60+42)
	isNull(t, "calendar", q.Calendar)
	q = exposure(t, u, row{"SPXW311219C07000000", published(0.2, 0)}).Quality
	if q.Calendar == nil || !strings.Contains(*q.Calendar, "2014-2030") {
		t.Errorf("calendar note of 2031: %v", q.Calendar)
	}
	if body := string(marshal(t, q)); !strings.Contains(body, `"forwards":{"extrapolated":0,"interpolated":0,"none":1,`) {
		t.Error(body)
	}
}
