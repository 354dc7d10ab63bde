package compute_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"strikecache/compute"
)

// greeksVector is one line of testdata/greeks_vectors.json, which testdata/greeks_vectors.py made with mpmath 1.3.0 and 50
// digits, from delta alone: its vanna and charm are numerical derivatives. The inputs are exact float64s.
type greeksVector struct {
	Right, Delta, Vanna, Charm string
	Spot, Strike, Seconds      float64
	Rate, Forward, V           float64
}

// The greeks have 12 digits, also below the floor of 15 minutes, with a negative carry and a negative rate.
func TestGreeksOfManyDigits(t *testing.T) {
	text, err := os.ReadFile("testdata/greeks_vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []greeksVector
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	equal(t, "vectors", len(vectors), 32)
	for _, v := range vectors {
		name := fmt.Sprintf("%s %v at %v, %v s", v.Right, v.Strike, v.Spot, v.Seconds)
		got := compute.BlackGreeks(v.Spot, v.Forward, v.Strike, v.V, v.Seconds/(365*86400), v.Rate)
		right := map[string]compute.Right{"C": compute.Call, "P": compute.Put}[v.Right]
		// The rounding of d1 moves the tail of N(d1) by d1² units, and its density too.
		within(t, name+" delta", got.Delta[right], number(t, v.Delta), 1e-12)
		within(t, name+" vanna", got.Vanna, number(t, v.Vanna), 1e-12)
		within(t, name+" charm", got.Charm[right], number(t, v.Charm), 1e-11) // its two terms may almost cancel
	}
}

// deltaOf is the delta of METHODS.md §1.4 as a function of what it is differentiated by.
func deltaOf(right compute.Right, spot, strike, sigma, carry, rate, years float64) float64 {
	v := sigma * math.Sqrt(years)
	d1 := math.Log(spot/strike)/v + carry*years/v + v/2
	side := 1 - 2*float64(right)
	return side * math.Exp((carry-rate)*years) * 0.5 * math.Erfc(-side*d1/math.Sqrt2)
}

// The exposures of a contract are central differences of its delta, in dollars, per point of volatility and per day.
func TestExposuresAreDifferencesOfDelta(t *testing.T) {
	const asOf, contracts, rate = "2026-08-11T20:00:00Z", 25.0, 0.03
	for _, c := range []struct {
		symbol string
		hours  float64 // T
		strike float64
		iv     float64
		carry  float64
	}{
		{"SPXW260821C07000000", 240, 7000, 0.15, 0.01}, {"SPXW260821P07000000", 240, 7000, 0.15, 0.01}, {"SPXW260821C06600000", 240, 6600, 0.2, -0.05},
		{"SPXW260821P06600000", 240, 6600, 0.2, -0.05}, {"SPXW260821C07300000", 240, 7300, 0.12, 0.04}, {"SPXW260821P07300000", 240, 7300, 0.12, 0},
		{"SPX261218C07500000", 128*24 + 18.5, 7500, 0.17, -0.02}, {"SPX261218P07500000", 128*24 + 18.5, 7500, 0.17, -0.02},
	} {
		// The forward comes from the other settlement of the date, whose contracts nobody holds.
		other, hours := "SPX"+c.symbol[4:10], c.hours-6.5
		if c.symbol[3] != 'W' {
			other, hours = "SPXW"+c.symbol[3:9], c.hours+6.5
		}
		forward := 7000 * math.Exp(c.carry*years(c.hours))
		chain := build(t, index(7000, asOf), append(parity(other, forward, rate, hours), row{c.symbol, published(c.iv, contracts)})...)
		contract := chain.Contracts[slices.IndexFunc(chain.Contracts, func(x compute.Contract) bool { return x.OpenInterest > 0 })]
		r := compute.GammaExposure(compute.GammaInput{Chain: chain, Calendar: cal, RiskFreeRate: rate})
		byExpiration := r.Data.ByExpiration[slices.IndexFunc(r.Data.ByExpiration, func(x compute.ExpirationGamma) bool { return x.Settlement == contract.Settlement })]
		equal(t, c.symbol+" forward", byExpiration.ForwardSource, "other_settlement")
		weight := contracts * 100 * 7000
		if contract.Right == compute.Put {
			weight = -weight // dealers are short puts
		}
		delta := func(sigma, days float64) float64 {
			return weight * deltaOf(contract.Right, 7000, c.strike, sigma, c.carry, rate, years(c.hours+24*days))
		}
		const h = 1e-4
		e, own := r.Data.Exposures, byExpiration.Exposures
		near(t, c.symbol+" delta", e.Delta, delta(c.iv, 0), 1e-6*math.Abs(weight))
		near(t, c.symbol+" vanna", e.Vanna, (delta(c.iv+h, 0)-delta(c.iv-h, 0))/(2*h)*0.01, 1e-6*math.Abs(weight))
		near(t, c.symbol+" charm", e.Charm, (delta(c.iv, -h)-delta(c.iv, h))/(2*h), 1e-6*math.Abs(weight))
		near(t, c.symbol+" delta of its expiration", own.Delta, float64(*e.Delta), 0)
		near(t, c.symbol+" vanna of its expiration", own.Vanna, float64(*e.Vanna), 0)
		near(t, c.symbol+" charm of its expiration", own.Charm, float64(*e.Charm), 0)
	}
}

// Exposures are null when nothing is used or the document contradicts itself; a row with nothing used has 0.
func TestUnknownExposures(t *testing.T) {
	unused := exposure(t, index(7000, closing), row{"SPXW260821C07000000", published(0.2, 0)}).Data
	if unused.Exposures != (compute.Exposures{}) {
		t.Errorf("nothing used: %s", marshal(t, unused.Exposures))
	}
	near(t, "delta of the row", unused.ByExpiration[0].Delta, 0, 0)
	near(t, "vanna of the row", unused.ByExpiration[0].Vanna, 0, 0)
	near(t, "charm of the row", unused.ByExpiration[0].Charm, 0, 0)
	contradicting := exposure(t, index(7800, closing), fitted(5)...).Data
	equal(t, "status", contradicting.FlipStatus, compute.FlipSpotMismatch)
	if contradicting.Exposures != (compute.Exposures{}) || contradicting.ByExpiration[0].Exposures != (compute.Exposures{}) {
		t.Errorf("contradiction: %s", marshal(t, contradicting.ByExpiration))
	}
}
