package compute_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"strikecache/compute"
)

// recordedSPX are the recorded chains of SPX that are whole.
var recordedSPX = []string{
	spxChain, "chains/SPX-2022-07-12T1210.json.gz", "chains/SPX-2023-03-01T2038.json.gz", "chains/SPX-2023-03-02T2220.json.gz",
	"chains/SPX-2023-03-06T2039.json.gz", "chains/SPX-2023-03-07T2037.json.gz", "chains/SPX-2023-03-09T2037.json.gz",
	"chains/SPX-2023-03-17T2119.json.gz", "chains/SPX-2023-04-14T1912.json.gz", "chains/SPX-2026-07-01-evening.json.gz",
	"chains/SPX-2026-08-04-evening.json.gz",
}

// cell is a cell of the table of METHODS.md §7: the differences of ours from the published figures.
type cell struct{ volatility, gamma []float64 }

// Our volatilities and gammas are those of the exchange, by time and distance from the money, as the table of METHODS.md §7 says.
func TestPublishedFigures(t *testing.T) {
	terms := []struct {
		name string
		days float64 // the greatest T
	}{{"under 1 day", 1}, {"1 to 30 days", 30}, {"30 to 400 days", 400}, {"over 400 days", math.Inf(1)}}
	distances := []float64{0.5, 1, 2, math.Inf(1)} // |ln(K/F)|/v
	table := make([][]cell, len(terms))
	for i := range table {
		table[i] = make([]cell, len(distances))
	}
	for _, name := range recordedSPX {
		chain := recordedChain(t, name)
		published := map[string]compute.Quote{}
		for _, c := range chain.Contracts {
			published[c.Symbol()] = c.Quote
		}
		rate, _ := compute.RateOf(chain, cal, 0.04)
		r := compute.GammaExposure(compute.GammaInput{Chain: chain, Calendar: cal, RiskFreeRate: rate})
		r.State.EachStrike(func(s compute.Series, years, forward, k, v float64) {
			term := slices.IndexFunc(terms, func(term struct {
				name string
				days float64
			}) bool {
				return years*365 <= term.days
			})
			letter := "C"
			if k < forward {
				letter = "P"
			}
			q, listed := published[symbolOf(s.Root+s.Expiration.Midnight().Format("060102")+letter, k)]
			if !listed || !q.TwoSided() || !(q.IV > 0.01) {
				return
			}
			away := math.Abs(math.Log(k/forward)) / v
			at := &table[term][slices.IndexFunc(distances, func(x float64) bool { return away <= x })]
			at.volatility = append(at.volatility, 100*math.Abs(v/math.Sqrt(years)-q.IV))
			own := compute.BlackGamma(r.State.Spot, r.State.Spot, forward, k, v, math.Exp(-r.State.Rate*years))
			at.gamma = append(at.gamma, 1e5*math.Abs(own-q.Gamma))
		})
	}
	methods, err := os.ReadFile("METHODS.md")
	must(t, err)
	for i, term := range terms {
		row := "| " + term.name + " |"
		for _, c := range table[i] {
			row += fmt.Sprintf(" %.2f, %.2f · %.1f, %.1f |", quantile(c.volatility, 0.5), quantile(c.volatility, 0.95), quantile(c.gamma, 0.5), quantile(c.gamma, 0.95))
		}
		if t.Log(row, len(table[i][0].volatility), len(table[i][3].volatility)); !strings.Contains(string(methods), row) {
			t.Errorf("METHODS.md lacks the row\n%s", row)
		}
	}
}

// quantile returns the value that a part of the values is below.
func quantile(xs []float64, part float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	slices.Sort(xs)
	return xs[int(part*float64(len(xs)-1))]
}

// The 30-day volatility of the evening is the close of the VIX of the day.
func TestPublishedVIX(t *testing.T) {
	for name, vix := range map[string]float64{"2023-03-17T2119": 25.51, "2023-04-14T1912": 17.07} {
		chain := recordedChain(t, "chains/SPX-"+name+".json.gz")
		rate, _ := compute.RateOf(chain, cal, 0.04)
		r := compute.GammaExposure(compute.GammaInput{Chain: chain, Calendar: cal, RiskFreeRate: rate})
		t.Logf("%s: %.4f", name, *r.Volatility.Data.ModelFree30)
		near(t, name, r.Volatility.Data.ModelFree30, vix, 0.02)
	}
}
