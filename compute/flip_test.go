package compute_test

import (
	"math"
	"testing"

	"strikecache/compute"
)

// tenDays is T of SPXW 2026-08-21 at the close of 2026-08-11, and flatIV the published volatility at which v is wanted.
const (
	closing = "2026-08-11T20:00:00Z"
	ten     = 10 * 24.0
)

func flatIV(v float64) float64 { return v / math.Sqrt(years(ten)) }

// strangle is one put and one call of the same volatility v on the same date.
func strangle(put, putInterest, call, callInterest, v float64) []row {
	return []row{
		{symbolOf("SPXW260821P", put), published(flatIV(v), putInterest)},
		{symbolOf("SPXW260821C", call), published(flatIV(v), callInterest)},
	}
}

// strangleFlip solves OI_c·φ(d1(K_c)) = OI_p·φ(d1(K_p)) by hand: with x = ln S', a = ln K_c, b = ln K_p,
//
//	d1_p² - d1_c² = (a - b)/v² · (2x - a - b + v²) = 2 ln(OI_p/OI_c)
func strangleFlip(put, putInterest, call, callInterest, v float64) float64 {
	a, b := math.Log(call), math.Log(put)
	return math.Exp((2*math.Log(putInterest/callInterest)*v*v/(a-b) + a + b - v*v) / 2)
}

func TestFlipStatus(t *testing.T) {
	for _, c := range []struct {
		name string
		rows []row
		want compute.FlipStatus
	}{
		{"calls", []row{{"SPXW260821C07000000", published(0.2, 10)}}, compute.FlipNonePositive},
		{"puts", []row{{"SPXW260821P07000000", published(0.2, 10)}}, compute.FlipNoneNegative},
		{"as many puts as calls", []row{{"SPXW260821C07000000", published(0.2, 10)}, {"SPXW260821P07000000", published(0.2, 10)}},
			compute.FlipInsufficient}, // G is 0 everywhere
		{"strike 0", []row{{"SPXW260821C00000000", published(0.2, 10)}}, compute.FlipInsufficient},
		// At v = 0.001 a strike 60 % away is 470 standard deviations out: e^(-d1²/2) underflows.
		{"underflow", []row{{"SPXW260821C11200000", published(flatIV(0.001), 10)}}, compute.FlipInsufficient},
		// 40 standard deviations from the nearest grid point, e^(-800) underflows. At 30, e^(-450) does not.
		{"all but underflow", []row{{symbolOf("SPXW260821P", math.Round(8050*math.Exp(0.3))), published(flatIV(0.01), 10)}}, compute.FlipNoneNegative},
		// The crossing of this pair lies 17 % below the spot, outside the grid.
		{"crossing out of reach", strangle(5500, 10, 6100, 10, 0.05), compute.FlipNonePositive},
		{"crossing out of reach above", strangle(8500, 10, 9000, 10, 0.05), compute.FlipNoneNegative},
	} {
		g := exposure(t, index(7000, closing), c.rows...).Data
		equal(t, c.name, g.FlipStatus, c.want)
		isNull(t, c.name+" flip", g.Flip)
		isNull(t, c.name+" distance", g.FlipDistance)
		equal(t, c.name+" flips", len(g.Flips), 0)
	}
}
