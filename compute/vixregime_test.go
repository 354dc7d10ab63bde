package compute_test

import (
	"fmt"
	"strings"
	"testing"

	"strikecache/compute"
)

// prices returns a curve of 2026-10-05 from the October contract on.
func prices(values ...float64) []compute.FuturesSettlement {
	var rows []compute.FuturesSettlement
	for _, f := range october5() {
		if strings.HasPrefix(f.Symbol, "VX/") && len(rows) < len(values) {
			f.Price = values[len(rows)]
			rows = append(rows, f)
		}
	}
	return rows
}

// The fields that need more months than a short curve has are null.
func TestShortCurve(t *testing.T) {
	r, _ := curve(t, evening("2026-10-05", prices(17)...))
	isNull(t, "contango M1 M2", r.ContangoM1M2)
	isNull(t, "contango M4 M7", r.ContangoM4M7)
	isNull(t, "front spread", r.FrontSpread)
	isNull(t, "roll yield", r.RollYield)
	isNull(t, "slope", r.Slope)
	isNull(t, "regime", r.Regime)
	isNull(t, "cm30", r.CM30) // 16 days, and no later month
	r, _ = curve(t, evening("2026-10-05", prices(17, 18, 19, 20, 21, 22)...))
	isNull(t, "slope of six", r.Slope)
	isNull(t, "contango M4 M7 of six", r.ContangoM4M7)
	near(t, "contango M1 M2 of six", r.ContangoM1M2, 100.0/17, 1e-12)
	r, _ = curve(t, evening("2026-10-05", prices(17, 18, 19, 20, 21, 22, 23)...))
	near(t, "slope of seven", r.Slope, 1, 1e-12)
	near(t, "contango M4 M7 of seven", r.ContangoM4M7, 15, 1e-12)
	r, _ = curve(t, evening("2026-10-05", prices(17, 18, 19, 20, 21, 22, 23, 99)...))
	near(t, "slope of eight", r.Slope, 1, 1e-12)
}

// On contango M1 to M2, M1 = 20: ≥ 8 steep_contango, ≥ 1.5 contango, > -1.5 flat, > -8 backwardation, else steep.
func TestVIXRegime(t *testing.T) {
	for _, c := range []struct {
		m2   float64
		want string
	}{
		{25, "steep_contango"}, {21.6, "steep_contango"}, {21.5999, "contango"}, {20.3001, "contango"}, {20.2999, "flat"},
		{20, "flat"}, {19.7001, "flat"}, {19.7, "backwardation"}, {18.4001, "backwardation"}, {18.3999, "steep_backwardation"},
		{10, "steep_backwardation"},
	} {
		r, _ := curve(t, evening("2026-10-05", prices(20, c.m2, 30)...))
		text(t, fmt.Sprint("M2 ", c.m2), r.Regime, c.want)
		equal(t, "basis", r.RegimeBasis, "m1_m2")
	}
}

// With at most 2 sessions left in (settlement date, expiration of M1], the regime is that of M2 and M3.
func TestRegimeBasis(t *testing.T) {
	rows := prices(20, 15, 20) // M1 expires on Wednesday 2026-10-21
	for _, c := range []struct{ date, basis, regime string }{
		{"2026-10-15", "m1_m2", "steep_backwardation"}, // Thursday: 4 left
		{"2026-10-16", "m1_m2", "steep_backwardation"}, // Friday: Monday to Wednesday, 3
		{"2026-10-19", "m2_m3", "steep_contango"},      // Monday: 2
		{"2026-10-20", "m2_m3", "steep_contango"},
	} {
		r, _ := curve(t, evening(c.date, rows...))
		equal(t, c.date, r.RegimeBasis, c.basis)
		text(t, c.date, r.Regime, c.regime)
		near(t, "contango stays M1 to M2", r.ContangoM1M2, -25, 1e-12)
	}
	r, _ := curve(t, evening("2026-10-20", prices(20, 15)...))
	equal(t, "basis without M3", r.RegimeBasis, "m2_m3")
	isNull(t, "regime without M3", r.Regime)
	// Over a holiday: the Tuesday 2026-05-19 is reached from Friday 05-15 in two sessions.
	r, _ = curve(t, evening("2026-05-15", future("VX/K6", "2026-05-19", 20), future("VX/M6", "2026-06-17", 15), future("VX/N6", "2026-07-22", 20)))
	equal(t, "basis", r.RegimeBasis, "m2_m3")
	// On the expiration day itself M1 is the next month, far away.
	r, _ = curve(t, evening("2026-10-21", rows...))
	equal(t, "basis on the expiration day", r.RegimeBasis, "m1_m2")
}

// The target of 30 days lies between two months, on one, before the first or after the last.
func TestConstantMaturity(t *testing.T) {
	rows := prices(17, 18, 20) // 2026-10-21, 11-18, 12-16
	for _, c := range []struct {
		date         string
		want         float64
		extrapolated bool
	}{
		{"2026-10-05", 17.5, false},        // 16 and 44 days
		{"2026-09-21", 17, false},          // 30 days: M1 itself
		{"2026-09-18", 17, true},           // 33 days: M1
		{"2026-10-19", 18, false},          // 2 and 30 days: M2 itself
		{"2026-10-20", 18 + 2.0/28, false}, // 29 and 57 days: M2 and M3
	} {
		r, _ := curve(t, evening(c.date, rows...))
		near(t, c.date, r.CM30, c.want, 1e-12)
		equal(t, c.date+" extrapolated", r.CM30Extrapolated, c.extrapolated)
	}
	r, _ := curve(t, evening("2026-12-01", rows...)) // 15 days, and no later month
	isNull(t, "after the last", r.CM30)
	equal(t, "after the last is not extrapolated", r.CM30Extrapolated, false)
	r, _ = curve(t, evening("2026-10-21", rows...)) // the expired month is not on the curve: 28 and 56 days
	near(t, "expiration day", r.CM30, 18+2.0/28*2, 1e-12)
}

// The regimes of the closes of the indices. Without the closes they are null.
func TestCashRegime(t *testing.T) {
	for _, c := range []struct {
		vix, vix3m float64
		regime     string
		level      string
	}{
		{14.99, 20, "deep_contango", "low"}, {16.98, 20, "deep_contango", "normal"}, {17, 20, "contango", "normal"},
		{18.33, 20, "contango", "normal"}, {18.34, 20, "flattening", "normal"}, {19.99, 20, "flattening", "normal"},
		{20, 20, "inverted", "elevated"}, {29.99, 25, "inverted", "elevated"}, {30, 25, "inverted", "stress"},
		{15, 25, "deep_contango", "normal"}, {80, 60, "inverted", "stress"},
	} {
		in := evening("2026-10-05", prices(17, 18)...)
		in.VIX, in.VIX3M = new(c.vix), new(c.vix3m)
		r, _ := curve(t, in)
		name := fmt.Sprint(c.vix, " / ", c.vix3m)
		text(t, name, r.CashRegime, c.regime)
		text(t, name, r.VolLevel, c.level)
		near(t, name, r.VIXRatio, c.vix/c.vix3m, 1e-12)
		near(t, name, r.SpotBasis, (17/c.vix-1)*100, 1e-12)
	}
	in := evening("2026-10-05", prices(17, 18)...)
	r, _ := curve(t, in)
	isNull(t, "vix", r.VIX)
	isNull(t, "vix3m", r.VIX3M)
	isNull(t, "basis", r.SpotBasis)
	isNull(t, "ratio", r.VIXRatio)
	isNull(t, "cash regime", r.CashRegime)
	isNull(t, "level", r.VolLevel)
	in.VIX = new(16.0)
	r, _ = curve(t, in)
	near(t, "basis", r.SpotBasis, 6.25, 1e-12)
	text(t, "level", r.VolLevel, "normal")
	isNull(t, "ratio of VIX alone", r.VIXRatio)
	in.VIX, in.VIX3M = nil, new(18.0)
	r, _ = curve(t, in)
	near(t, "vix3m", r.VIX3M, 18, 0)
	isNull(t, "basis without VIX", r.SpotBasis)
	isNull(t, "cash regime without VIX", r.CashRegime)
}

// A percentile is null with fewer than 20 values, including today's. It is the share of the values below today's, of equal
// values half. Today's contango is 5 %.
func TestPercentiles(t *testing.T) {
	m1, m2 := 20.0, 21.0
	for _, c := range []struct {
		below, equal, above int
		want                float64 // 0: null
	}{
		{0, 0, 0, 0}, {18, 0, 0, 0}, {19, 0, 0, 19.5 / 20 * 100}, {40, 0, 0, 40.5 / 41 * 100}, {0, 0, 40, 0.5 / 41 * 100},
		{0, 38, 0, 50}, {10, 4, 6, 12.5 / 21 * 100},
	} {
		in := evening("2026-10-05", prices(m1, m2)...)
		for i := range c.below + c.equal + c.above {
			x := 10.0
			switch {
			case i < c.below:
				x = 1
			case i < c.below+c.equal:
				x = (m2/m1 - 1) * 100
			}
			in.History = append(in.History, compute.VIXHistory{ContangoM1M2: new(compute.Ratio(x))}, compute.VIXHistory{SpotBasis: new(compute.Ratio(x))})
		}
		r, _ := curve(t, in)
		p := r.Percentiles
		equal(t, fmt.Sprint(c), p.ContangoM1M2.N, len(in.History)/2+1)
		if c.want == 0 {
			isNull(t, fmt.Sprint(c), p.ContangoM1M2.Percentile)
		} else {
			near(t, fmt.Sprint(c), p.ContangoM1M2.Percentile, c.want, 1e-9)
		}
		// Today's VIX is not known, so there is no basis to rank.
		isNull(t, "basis", p.SpotBasis.Percentile)
		equal(t, "stored bases", p.SpotBasis.N, len(in.History)/2)
	}
	in := evening("2026-10-05", prices(m1, m2)...)
	in.VIX = new(16.0)
	for range 19 {
		in.History = append(in.History, compute.VIXHistory{SpotBasis: new(compute.Ratio(25))}) // the same as today's
	}
	r, _ := curve(t, in)
	near(t, "basis", r.Percentiles.SpotBasis.Percentile, 50, 1e-9)
	in = evening("2026-10-05", prices(17, 18)...)
	for range 19 {
		in.History = append(in.History, compute.VIXHistory{ContangoM1M2: new(compute.Ratio(5.8824))}) // as 100/17 is stored
	}
	r, _ = curve(t, in)
	near(t, "contango of many digits", r.Percentiles.ContangoM1M2.Percentile, 50, 1e-9)
}
