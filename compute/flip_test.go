package compute_test

import (
	"fmt"
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

func TestFlipByHand(t *testing.T) {
	for _, c := range []struct{ put, putInterest, call, callInterest, v float64 }{
		{6900, 10, 7100, 10, 0.03}, {6900, 30, 7100, 10, 0.03}, {6900, 10, 7100, 45, 0.03}, {6500, 7, 7700, 5, 0.2},
		{6995, 100, 7005, 100, 0.002}, {5000, 10, 9900, 10, 0.4},
	} {
		r := exposure(t, index(7000, closing), strangle(c.put, c.putInterest, c.call, c.callInterest, c.v)...)
		g := r.Data
		want := strangleFlip(c.put, c.putInterest, c.call, c.callInterest, c.v)
		name := fmt.Sprint(c)
		near(t, name+" flip", g.Flip, want, 0.01)
		equal(t, name+" status", g.FlipStatus, compute.FlipFound)
		if len(g.Flips) != 1 || g.Flips[0].Price != *g.Flip || g.Flips[0].Direction != "negative_to_positive" {
			t.Errorf("%s: %+v", name, g.Flips)
		}
		near(t, name+" distance", g.FlipDistance, (7000-want)/7000*100, 2e-4)
		// The scenarios scale v. Without the nearest date, no contract is left. Within 90 days, all contracts are.
		down, up := strangleFlip(c.put, c.putInterest, c.call, c.callInterest, 0.9*c.v), strangleFlip(c.put, c.putInterest, c.call, c.callInterest, 1.1*c.v)
		for i, wanted := range []float64{down, up, want, 0, want} {
			s := g.Scenarios[i]
			if i == 3 {
				isNull(t, name+" "+s.Name, s.Flip)
				isNull(t, name+" "+s.Name+" net", s.Net)
				continue
			}
			near(t, name+" "+s.Name, s.Flip, wanted, 0.01)
		}
		at := func(v float64) float64 {
			return c.callInterest*dollarsOf(7000, gammaOf(7000, c.call, v)) - c.putInterest*dollarsOf(7000, gammaOf(7000, c.put, v))
		}
		near(t, name+" net down", g.Scenarios[0].Net, at(0.9*c.v), 1e-6*float64(*g.Gross))
		near(t, name+" net up", g.Scenarios[1].Net, at(1.1*c.v), 1e-6*float64(*g.Gross))
		nearly(t, name+" band low", g.FlipBand.Low, math.Min(want, math.Min(down, up)), 0.01)
		nearly(t, name+" band high", g.FlipBand.High, math.Max(want, math.Max(down, up)), 0.01)
	}
}

// The other direction, and two flips: a put between two calls.
func TestFlipDirections(t *testing.T) {
	r := exposure(t, index(7000, closing), row{"SPXW260821C06900000", published(flatIV(0.01), 10)},
		row{"SPXW260821P07100000", published(flatIV(0.01), 10)})
	if g := r.Data; len(g.Flips) != 1 || g.Flips[0].Direction != "positive_to_negative" {
		t.Errorf("%+v", g.Flips)
	}
	near(t, "mirrored", r.Data.Flip, strangleFlip(6900, 10, 7100, 10, 0.01), 0.01)

	low, high := strangleFlip(6900, 10, 7010, 10, 0.005), strangleFlip(7010, 10, 7100, 10, 0.005)
	for _, c := range []struct{ spot, nearest float64 }{{6940, low}, {7003, low}, {7006, high}, {7200, high}} {
		r := exposure(t, index(c.spot, closing), row{"SPXW260821C06900000", published(flatIV(0.005), 10)},
			row{"SPXW260821P07010000", published(flatIV(0.005), 10)}, row{"SPXW260821C07100000", published(flatIV(0.005), 10)})
		g := r.Data
		equal(t, "status", g.FlipStatus, compute.FlipMultiple)
		if len(g.Flips) != 2 || g.Flips[0].Direction != "positive_to_negative" || g.Flips[1].Direction != "negative_to_positive" {
			t.Fatalf("%+v", g.Flips)
		}
		nearly(t, "low", g.Flips[0].Price, low, 0.01)
		nearly(t, "high", g.Flips[1].Price, high, 0.01)
		near(t, "nearest", g.Flip, c.nearest, 0.01)
		near(t, "distance", g.FlipDistance, (c.spot-c.nearest)/c.spot*100, 6e-4)
	}
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

// Two narrow terms are two lobes, whose peaks are proportional to OI·K: S'·e^(-d1²/2) has its peak K at d1 = v. The
// crossing counts when the smaller lobe reaches 1 % of the larger. Otherwise the status is the sign of the larger.
func TestMateriality(t *testing.T) {
	for _, c := range []struct {
		putInterest, callInterest float64
		want                      compute.FlipStatus
	}{
		{10_000, 100, compute.FlipFound}, // 100·7700 / (10000·7000) = 1.1 %
		{10_000, 92, compute.FlipFound},  // 1.012 %
		{10_000, 90, compute.FlipNoneNegative},
		{90, 10_000, compute.FlipNonePositive}, // 0.82 %
		{111, 10_000, compute.FlipFound},       // 1.009 %
	} {
		r := exposure(t, index(7350, closing), strangle(7000, c.putInterest, 7700, c.callInterest, 0.01)...)
		equal(t, fmt.Sprint(c.putInterest, " ", c.callInterest), r.Data.FlipStatus, c.want)
		if c.want == compute.FlipFound {
			near(t, "flip", r.Data.Flip, strangleFlip(7000, c.putInterest, 7700, c.callInterest, 0.01), 0.01)
		} else {
			isNull(t, "flip", r.Data.Flip)
		}
	}
}
