package compute_test

import (
	"math"
	"testing"
	"time"

	"strikecache/compute"
)

// near60 are expirations within 60 days of the night of 2026-08-11. The last one is 43 days away.
var near60 = []string{"260813", "260814", "260818", "260821", "260828", "260904", "260911", "260923"}

// made returns the rows of a market at a level, with a carry of 1 %. q is the instant of the quotes, dates are the expirations of
// SPXW.
func made(level float64, q string, dates ...string) []row {
	var rows []row
	for _, d := range dates {
		t := compute.PM.Instant(day("20"+d[:2]+"-"+d[2:4]+"-"+d[4:]), cal).Sub(at(q)).Hours() / (365 * 24)
		f := level * math.Exp(0.01*t)
		for k := 6000.0; k <= 8000; k += 50 {
			for right, letter := range "CP" {
				price := compute.BlackValue(compute.Right(right), f, k, 0.16*math.Sqrt(t))
				rows = append(rows, row{symbolOf("SPXW"+d+string(letter), k), quoted(price, price, 100)})
			}
		}
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
		left := func(series string) float64 {
			settlement, date := compute.PM, series[len(series)-6:]
			if len(series) == 9 {
				settlement = compute.AM
			}
			return settlement.Instant(day("20"+date[:2]+"-"+date[2:4]+"-"+date[4:]), cal).Sub(at(c.q)).Hours() / (365 * 24)
		}
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
