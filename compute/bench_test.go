package compute_test

import (
	"math/rand/v2"
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
}

// largeChain is a chain of 40 expirations with 380 strikes each: 30,400 contracts.
func largeChain(b *testing.B) *compute.Chain {
	g := &generator{Rand: rand.New(rand.NewPCG(1, 2)), seen: map[string]int{}, carry: 0.02}
	u := index(7000, "2026-08-11T16:00:00Z")
	var rows []row
	for day := range 40 {
		g.rows = nil
		expiration := cal.OnOrBefore(cal.SessionDate(u.AsOf) + compute.Date(1+day*day/3+day))
		if len(rows) > 0 && rows[len(rows)-1].symbol[4:10] == expiration.Midnight().Format("060102") {
			continue
		}
		for shift := -190; shift < 190; shift += 38 {
			g.series(moment{u.AsOf.String(), 7000 + float64(shift)*5, 5}, u, 0.04, "SPXW", expiration, quotedWell)
		}
		rows = append(rows, g.rows...)
	}
	return build(b, u, rows...)
}
