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
			in.History = append(in.History, compute.VIXHistory{ContangoM1M2: new(compute.Ratio(x))})
		}
		r, _ := curve(t, in)
		p := r.Percentiles
		equal(t, fmt.Sprint(c), p.ContangoM1M2.N, len(in.History)+1)
		if c.want == 0 {
			isNull(t, fmt.Sprint(c), p.ContangoM1M2.Percentile)
		} else {
			near(t, fmt.Sprint(c), p.ContangoM1M2.Percentile, c.want, 1e-9)
		}
	}
	in := evening("2026-10-05", prices(17, 18)...)
	for range 19 {
		in.History = append(in.History, compute.VIXHistory{ContangoM1M2: new(compute.Ratio(5.8824))}) // as 100/17 is stored
	}
	r, _ := curve(t, in)
	near(t, "contango of many digits", r.Percentiles.ContangoM1M2.Percentile, 50, 1e-9)
}
