package compute_test

import (
	"math"
	"testing"

	"strikecache/compute"
)

// BenchmarkGammaExposure measures the exposure of a chain of the size of a recorded one, with the changes since the session
// before and without.
func BenchmarkGammaExposure(b *testing.B) {
	chain := largeChain(b)
	in := compute.GammaInput{Chain: chain, Calendar: cal, RiskFreeRate: 0.04}
	state := compute.GammaExposure(in).State
	changed := in
	changed.Reference = state
	run := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
	}
	run("without reference", func() { compute.GammaExposure(in) })
	run("with changes", func() { compute.GammaExposure(changed) })
	run("rate alone", func() { compute.RateOf(chain, cal, 0.04) })
}

// largeChain is a chain of 40 expirations with 380 strikes each: 30,400 contracts.
func largeChain(b *testing.B) *compute.Chain {
	u := index(7000, "2026-08-11T16:00:00Z")
	var rows []row
	for i := range 40 {
		expiration := cal.SessionDate(u.AsOf) + compute.Date(1+i*i/3+i)
		years := compute.PM.Instant(expiration, cal).Sub(u.AsOf).Hours() / (365 * 24)
		forward := 7000 * math.Exp(0.02*years)
		for k := 6050.0; k < 7950; k += 5 {
			v := (0.16 + 0.3*math.Abs(math.Log(k/forward))) * math.Sqrt(years)
			for right, letter := range "CP" {
				price := compute.BlackValue(compute.Right(right), forward, k, v) * math.Exp(-0.04*years)
				q := quoted(math.Max(0, price-0.1), price+0.1, k/10)
				q.Gamma, q.Volume = 0.001, 100
				rows = append(rows, row{symbolOf("SPXW"+expiration.Midnight().Format("060102")+string(letter), k), q})
			}
		}
	}
	return build(b, u, rows...)
}
