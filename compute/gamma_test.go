package compute_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"strikecache/compute"
)

// gammaOf is the gamma of METHODS.md §1.1 for a spot s, total volatility v and no carry.
func gammaOf(s, k, v float64) float64 {
	d1 := math.Log(s/k)/v + v/2
	return math.Exp(-d1*d1/2) / math.Sqrt(2*math.Pi) / (s * v)
}

// dollarsOf returns the value of one contract of a gamma, in dollars of delta: 100 shares, 1 % of the spot.
func dollarsOf(s, gamma float64) float64 { return gamma * 100 * s * s * 0.01 }

// years returns T for a number of hours.
func years(hours float64) float64 { return hours / (365 * 24) }

func dollars(x float64) *compute.Dollars { return new(compute.Dollars(x)) }

// With no used contract, every number that needs a contract is null. The other numbers are there.
func TestNothingUsed(t *testing.T) {
	for name, rows := range map[string][]row{
		"all settled":   {{"SPX260821C07000000", published(0.2, 5)}},
		"no volatility": {{"SPXW260918C07000000", blank(5)}, {"SPXW260918P06900000", blank(5)}},
		"no interest":   {{"SPXW260918C07000000", published(0.2, 0)}},
		"all skipped":   {{"SPX1260918C07000000", published(0.2, 5)}},
	} {
		g := exposure(t, index(7000, "2026-08-21T15:00:00Z"), rows...).Data
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(marshal(t, g), &fields); err != nil {
			t.Fatal(err)
		}
		for _, key := range strings.Fields(`net_gex_dollars call_gex_dollars put_gex_dollars gross_gex_dollars gamma_tilt
			zero_gamma_flip flip_distance_pct flip_band gamma_regime call_wall put_wall vol_trigger abs_gamma_strike
			expected_move_1d`) {
			equal(t, name+": "+key, string(fields[key]), "null")
		}
		equal(t, name+": status", g.FlipStatus, compute.FlipInsufficient)
		equal(t, name+": flips", string(fields["flips"]), "[]")
		equal(t, name+": walls", string(fields["walls"]),
			`{"gross":{"call":null,"put":null},"net":{"call":null,"put":null},"open_interest":{"call":null,"put":null}}`)
		equal(t, name+": 0DTE", string(fields["zero_dte"]),
			`{"net_gex_dollars":0,"gross_share_pct":null,"zero_gamma_flip":null,"contracts":0,"settled":false}`)
	}
}

// The same rows give the same bytes, in any order.
func TestSameInputSameBytes(t *testing.T) {
	g := &generator{Rand: rand.New(rand.NewPCG(25, 26)), seen: map[string]int{}}
	for i := range 4 {
		m := g.market(t, i, "SPX", "SPXW")
		in := compute.GammaInput{Chain: m.chain, Calendar: cal, RiskFreeRate: m.rate}
		once := compute.GammaExposure(in)
		twice := compute.GammaExposure(in)
		equal(t, "data", string(marshal(t, twice.Data)), string(marshal(t, once.Data)))
		equal(t, "quality", string(marshal(t, twice.Quality)), string(marshal(t, once.Quality)))
		seen := map[string]bool{}
		rows := slices.DeleteFunc(slices.Clone(g.rows), func(r row) bool { // the first of two duplicates counts, so their order matters
			duplicate := seen[r.symbol]
			seen[r.symbol] = true
			return duplicate
		})
		g.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		in.Chain = build(t, m.chain.Underlying, rows...)
		equal(t, "shuffled", string(marshal(t, compute.GammaExposure(in).Data)), string(marshal(t, once.Data)))
	}
}
