package compute_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"strikecache/compute"
)

// near60 are expirations within 60 days of the night of 2026-08-11. The last one is 43 days away.
var near60 = []string{"260813", "260814", "260818", "260821", "260828", "260904", "260911", "260923"}

// made returns the rows of a market at a level, with a carry of 1 %. q is the instant of the quotes, dates are the expirations of
// SPXW.
func made(level float64, q string, dates ...string) []row {
	return madeOf("SPXW", level, q, dates, func(int) float64 { return level })
}

// madeOf returns the rows of a market around a level. of is the price that the quotes of a date are made at.
func madeOf(root string, level float64, q string, dates []string, of func(i int) float64) (rows []row) {
	var around []float64
	for j := -20; j <= 20; j++ {
		around = append(around, math.Round(level*(1+0.007*float64(j))))
	}
	for i, d := range dates {
		f := of(i) * math.Exp(0.01*term(root+d, at(q)))
		rows = append(rows, priced(root+d, q, f, 0, around, always(0.16), func(_ float64, _ compute.Right, price float64) compute.Quote { return quoted(price, price, 100) })...)
	}
	return rows
}

// METHODS.md §1.0: which spot the figures use at the limits of the age of the index, of its difference from the quotes, and of
// the series that imply a spot. The made markets show the rest.
func TestSpotSource(t *testing.T) {
	for _, c := range []struct {
		name, asOf, q string
		percent       float64 // the true level over the published one
		dates         []string
		want          compute.SpotSource
	}{
		{"5 minutes", "2026-08-12T15:00:00Z", "2026-08-12T15:05:00Z", 0.1, near60, compute.SpotIndex},
		{"over 5 minutes", "2026-08-12T15:00:00Z", "2026-08-12T15:05:01Z", 0.1, near60, compute.SpotImplied},
		{"the index agrees", "2026-08-12T15:00:00Z", "2026-08-12T15:00:00Z", 0.149, near60, compute.SpotIndex},
		{"the index lags at the open", "2026-08-12T13:30:05Z", "2026-08-12T13:31:00Z", 0.151, near60, compute.SpotImplied},
		{"five within 7 days", "2026-08-11T20:00:00Z", "2026-08-12T06:00:00Z", 1.3,
			[]string{"260812", "260813", "260814", "260817", "260818"}, compute.SpotIndexStale},
		{"five over 7 days, 60 days away", "2026-08-13T20:00:00Z", "2026-08-13T20:10:00Z", 1.3,
			[]string{"260814", "260817", "260818", "260821", "261012"}, compute.SpotImplied},
		{"the last is 10 minutes too far", "2026-08-13T19:40:00Z", "2026-08-13T19:50:00Z", 1.3,
			[]string{"260814", "260817", "260818", "260819", "261012"}, compute.SpotIndexStale},
		{"almost a contradiction", "2026-08-11T20:00:00Z", "2026-08-12T06:00:00Z", 9.9, near60, compute.SpotImplied},
		{"a contradiction", "2026-08-11T20:00:00Z", "2026-08-12T06:00:00Z", 10.1, near60, compute.SpotImplied},
		{"a contradiction in session", "2026-08-12T15:00:00Z", "2026-08-12T15:00:00Z", -10.1, near60, compute.SpotImplied},
	} {
		u := index(7000, c.asOf)
		u.CapturedAt = at(c.q).Add(15 * time.Minute)
		r := exposure(t, u, made(7000*(1+c.percent/100), c.q, c.dates...)...)
		equal(t, c.name, r.Data.SpotSource, c.want)
		level := 7000.0
		if c.want == compute.SpotImplied {
			level *= 1 + c.percent/100
		}
		nearly(t, c.name+": effective spot", r.Data.EffectiveSpot, level, 1e-6)
		if contradicts := math.Abs(c.percent) > 10; contradicts != (r.Data.FlipStatus == compute.FlipSpotMismatch) {
			t.Errorf("%s: flip status %s", c.name, r.Data.FlipStatus)
		}
	}
}

// METHODS.md §1.1: after the last parity forward, forwards grow by the rate, or by the slope of the parity forwards if these span 30 days. No
// slope is over 1. The quotes are 1 bp above the index: over seconds, that is no carry.
func TestForwardsAfterTheLast(t *testing.T) {
	const far = "SPXW281215"
	for _, c := range []struct {
		name, q string
		quoted  []string // series with a parity forward
		carry   float64  // of these
		want    float64  // carry after the last
	}{
		{"five seconds", "2026-08-12T19:59:55Z", []string{"SPXW260812"}, 0, 0.04},
		{"an hour", "2026-08-12T19:00:00Z", []string{"SPXW260812"}, 0, 0.04},
		{"a week", "2026-08-12T19:59:55Z", []string{"SPXW260812", "SPXW260819"}, 0.02, 0.04},
		{"30 days but for hours", "2026-08-19T15:00:00Z", []string{"SPXW260819", "SPX260918"}, 0.02, 0.04},
		{"30 days", "2026-08-18T15:00:00Z", []string{"SPXW260818", "SPXW260917"}, 0.02, 0.02},
		{"years", "2026-08-18T15:00:00Z", []string{"SPXW260818", "SPXW260917", "SPXW270820"}, -0.03, -0.03},
		{"a bound", "2026-08-18T15:00:00Z", []string{"SPXW260818", "SPXW260917"}, 1.1, 1},
		{"the other bound", "2026-08-18T15:00:00Z", []string{"SPXW260818", "SPXW260917"}, -1.1, -1},
	} {
		left := func(series string) float64 { return term(series, at(c.q)) }
		rows, last, lastLeft := []row{{far + "C07000000", published(0.2, 10)}}, 0.0, 0.0
		for _, series := range c.quoted {
			last, lastLeft = 7000*math.Exp(0.0001+c.carry*left(series)), left(series)
			for _, k := range []float64{6990, 7000, 7010} {
				rows = append(rows, pair(series, k, (last-k)*math.Exp(-0.04*lastLeft))...)
			}
		}
		r := compute.GammaExposure(compute.GammaInput{Chain: build(t, index(7000, c.q), rows...), Calendar: cal, RiskFreeRate: 0.04})
		row := r.Data.ByExpiration[len(c.quoted)]
		equal(t, c.name, string(row.ForwardSource), "extrapolated")
		nearly(t, c.name, row.Forward, last*math.Exp(c.want*(left(far)-lastLeft)), 1e-6)
		marshal(t, r.Data)
	}
}

// The quotes of a date that is not refreshed, a dividend, and a price of another hour: which spot is right. Prices of a share are those of
// 600 on 2026-08-12. Its options closed at 16:15 (20:15 UTC).
func TestSpotOfOddDocuments(t *testing.T) {
	const noonQ, evening = "2026-08-12T16:00:00Z", "2026-08-12T20:15:00Z"
	weekly := []string{"260814", "260821", "260828", "260904", "260911", "260918"}
	today := append([]string{"260812"}, weekly...)
	times := func(x float64, which ...int) func(int) float64 {
		return func(i int) float64 {
			if slices.Contains(which, i) {
				return 600 * x
			}
			return 600
		}
	}
	after := func(ex int, x float64) func(int) float64 { // the dates from ex on
		return func(i int) float64 { return 600 * map[bool]float64{false: 1, true: x}[i >= ex] }
	}
	borrowed := func(i int) float64 { return 600 * math.Exp(-0.95*(2+7*float64(i))/365) }
	for _, c := range []struct {
		name, root, q, asOf string
		price, close        float64
		dates               []string
		of                  func(int) float64
		want                compute.SpotSource
		level               float64
		parity              int
	}{
		{"a stale date of an index", "XSP", noonQ, noonQ, 600, 0, today, times(0.99, 0), compute.SpotIndex, 600, 6},
		{"two stale dates", "XSP", noonQ, noonQ, 600, 0, today, times(0.99, 0, 3), compute.SpotIndex, 600, 5},
		{"two stale dates, the other way", "XSP", noonQ, noonQ, 600, 0, today, times(1.01, 0, 1), compute.SpotIndex, 600, 5},
		{"a stale date at night", "XSP", "2026-08-12T06:00:00Z", "2026-08-11T20:00:00Z", 594, 0, today, times(0.99, 0), compute.SpotImplied, 600, 6},
		{"a stale date beside a stale index", "XSP", noonQ, noonQ, 594, 0, today, times(0.99, 0), compute.SpotImplied, 600, 6},
		{"a stale date of a few", "XSP", noonQ, noonQ, 600, 0, today[:3], times(0.99, 0), compute.SpotIndex, 600, 2},
		{"an index that lags a few", "XSP", noonQ, noonQ, 594, 0, today[:3], times(1), compute.SpotIndex, 594, 3},
		{"an index in its last second", "XSP", "2026-08-12T19:59:59Z", "2026-08-12T19:59:59Z", 600.5, 0, weekly, times(1), compute.SpotIndex, 600.5, 6},
		{"an index at its close", "XSP", "2026-08-12T20:00:00Z", "2026-08-12T20:00:00Z", 600.5, 0, weekly, times(1), compute.SpotImplied, 600, 6},
		{"an early close", "XSP", "2026-11-27T18:05:00Z", "2026-11-27T18:05:00Z", 600.5, 0,
			[]string{"261130", "261201", "261204", "261211", "261218"}, times(1), compute.SpotImplied, 600, 5},
		{"a stale date of a fund", "SPY", noonQ, noonQ, 600, 0, today, times(0.99, 0), compute.SpotLast, 600, 6},
		{"a stale date of a fund, the other way", "SPY", noonQ, noonQ, 600, 0, today, times(1.01, 0), compute.SpotLast, 600, 6},
		{"a fund that lags", "SPY", noonQ, noonQ, 594, 0, today, times(1), compute.SpotImplied, 600, 7},
		{"a dividend of tomorrow", "SPY", noonQ, noonQ, 600, 0, today, after(1, 0.997), compute.SpotLast, 600, 7},
		{"a dividend before the first date", "XOM", noonQ, noonQ, 600, 0, weekly, after(0, 0.99), compute.SpotLast, 600, 6},
		{"a dividend among the dates", "SPY", evening, "2026-08-12T23:00:00Z", 590, 0, weekly, after(3, 0.997), compute.SpotImplied, 600, 6},
		{"a dividend of the next morning", "SPY", evening, "2026-08-12T23:00:00Z", 590, 600, weekly, after(0, 0.997), compute.SpotClose, 600, 6},
		{"an evening", "SPY", evening, "2026-08-12T23:00:00Z", 590, 600, weekly, times(1), compute.SpotImplied, 600, 6},
		{"an evening after earnings", "NVDA", "2026-08-12T20:00:00Z", "2026-08-12T23:00:00Z", 450, 600, weekly, times(1), compute.SpotImplied, 600, 6},
		{"few dates in the evening", "NVDA", "2026-08-12T20:00:00Z", "2026-08-12T23:00:00Z", 590, 600, weekly[:2], times(1), compute.SpotClose, 600, 2},
		{"few dates, no close", "NVDA", "2026-08-12T20:00:00Z", "2026-08-12T23:00:00Z", 590, 0, weekly[:2], times(1), compute.SpotLast, 590, 2},
		{"a share that seldom trades", "NVDA", noonQ, "2026-08-12T15:40:00Z", 597, 597, weekly, times(1), compute.SpotImplied, 600, 6},
		{"a share that is hard to borrow", "DJT", "2026-08-12T20:00:00Z", "2026-08-12T23:00:00Z", 540, 600, weekly, borrowed, compute.SpotImplied, 600, 6},
	} {
		u := index(c.price, c.asOf)
		u.Symbol, u.Close, u.CapturedAt = c.root, c.close, at(c.q).Add(15*time.Minute)
		r := exposure(t, u, madeOf(c.root, 600, c.q, c.dates, c.of)...)
		equal(t, c.name, r.Data.SpotSource, c.want)
		nearly(t, c.name+": effective spot", r.Data.EffectiveSpot, c.level, 0.15)
		equal(t, c.name+": parity forwards", r.Quality.Forwards["parity"], c.parity)
		equal(t, c.name+": mismatch", r.Data.FlipStatus == compute.FlipSpotMismatch, false)
	}
}

// One forward that its carry cannot explain contradicts the price.
func TestContradictionByOneForward(t *testing.T) {
	const q = "2026-08-12T16:00:00Z"
	for _, c := range []struct {
		name, root string
		price      float64
		dates      []string
		carry      float64
		want       bool
	}{
		{"before a split of ten", "NVDA", 60, []string{"260821"}, 0, true},
		{"after one", "NVDA", 6000, []string{"260821", "260828"}, 0, true},
		{"in cents", "F", 60000, []string{"270820"}, 0, true},
		{"a tenth of an index", "XSP", 60, []string{"260821"}, 0, true},
		{"before a split of two", "AAPL", 300, []string{"260821"}, 0, true},
		{"over 10 %", "AAPL", 535, []string{"260813"}, 0, true},
		{"under 10 %", "AAPL", 550, []string{"260813"}, 0, false},
		{"hard to borrow", "DJT", 600, []string{"261218"}, -0.94, false},
	} {
		u := index(c.price, q)
		u.Symbol = c.root
		r := exposure(t, u, madeOf(c.root, 600, q, c.dates, func(int) float64 { return 600 * math.Exp(c.carry*128/365) })...)
		equal(t, c.name, r.Data.FlipStatus == compute.FlipSpotMismatch, c.want)
	}
}
