package compute_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"strikecache/compute"
)

// rated are expirations of 45 to 400 days from noon of 2026-08-11, with one on each side.
var rated = []string{"260918", "261016", "261120", "261218", "270319", "270618", "270820", "280121"}

// The rate of a chain made at a rate, whatever the carry: within 1e-4, from quotes of half a point as from those of one strike in 50.
func TestRateOf(t *testing.T) {
	for _, c := range []struct {
		name, symbol, root  string
		rate                float64
		step, reach, spread float64
		noise               float64 // points, of each mid
		dates               []string
		want, within        float64
		source              compute.RateSource
	}{
		{"negative", "SPX", "SPXW", -0.005, 25, 0.3, 0.5, 0, rated, -0.005, 1e-6, compute.RateDocument},
		{"zero", "SPX", "SPX", 0, 25, 0.3, 0.5, 0, rated, 0, 1e-6, compute.RateDocument},
		{"as in 2020", "SPX", "SPXW", 0.005, 25, 0.3, 0.5, 0, rated, 0.005, 1e-6, compute.RateDocument},
		{"as in 2023", "NDX", "NDXP", 0.056, 25, 0.3, 2, 0, rated, 0.056, 1e-6, compute.RateDocument},
		{"the most", "RUT", "RUTW", 0.1, 50, 0.2, 0.5, 0, rated, 0.1, 1e-6, compute.RateDocument},
		{"over the most", "SPX", "SPXW", 0.15, 25, 0.3, 0.5, 0, rated, 0.1, 0, compute.RateDocument},
		{"under the least", "SPX", "SPXW", -0.03, 25, 0.3, 0.5, 0, rated, -0.01, 0, compute.RateDocument},
		{"noisy mids", "SPX", "SPXW", 0.043, 25, 0.25, 0.5, 0.25, rated, 0.043, 1e-3, compute.RateDocument},
		{"wide quotes", "SPX", "SPXW", 0.043, 25, 0.25, 4, 1, rated, 0.043, 4e-3, compute.RateDocument},
		{"few strikes", "XSP", "XSP", 0.043, 100, 0.05, 0.5, 0, rated, 0.043, 1e-6, compute.RateDocument},
		{"three strikes", "SPX", "SPXW", 0.043, 100, 0.03, 0.5, 0, rated[:6], 0.04, 0, compute.RateConfigured},
		{"quotes that say nothing", "SPX", "SPXW", 0.043, 25, 0.02, 40, 20, rated, 0.04, 0, compute.RateConfigured},
		{"two series", "SPX", "SPXW", 0.043, 25, 0.3, 0.5, 0, []string{"260918", "261016", "261120", "280121"}, 0.04, 0, compute.RateConfigured},
		{"American", "SPY", "SPY", 0.043, 25, 0.3, 0.5, 0, rated, 0.04, 0, compute.RateConfigured},
	} {
		g := rand.New(rand.NewPCG(5, 7))
		var rows []row
		for _, d := range c.dates {
			f := 6000 * math.Exp(0.03*term(c.root+d, at(noon)))
			around := strikes(math.Ceil(6000*(1-c.reach)/c.step)*c.step, 6000*(1+c.reach), c.step)
			rows = append(rows, priced(c.root+d, noon, f, c.rate, around, always(0.18), func(_ float64, _ compute.Right, price float64) compute.Quote {
				mid := price + c.noise*g.NormFloat64()
				return quoted(mid-c.spread/2, mid+c.spread/2, 1)
			})...)
		}
		rate, source := compute.RateOf(build(t, of(c.symbol, 6000), rows...), cal, 0.04)
		equal(t, c.name, source, c.source)
		nearly(t, c.name, rate, c.want, c.within)
	}
}

// Series whose C − P rises with the strike discount at no rate.
func TestRateOfNonsense(t *testing.T) {
	var rows []row
	for _, d := range rated {
		for k := 5000.0; k <= 7000; k += 100 {
			rows = append(rows, row{symbolOf("SPXW"+d+"C", k), quoted(k/10, k/10+1, 1)}, row{symbolOf("SPXW"+d+"P", k), quoted(100, 101, 1)})
		}
	}
	rate, source := compute.RateOf(build(t, of("SPX", 6000), rows...), cal, 0.04)
	equal(t, "source", source, compute.RateConfigured)
	equal(t, "rate", rate, 0.04)
}

// The rate of recorded days, and how little a tick moves it.
func TestRecordedRate(t *testing.T) {
	chain := recordedChain(t, spxChain)
	rate, source := compute.RateOf(chain, cal, 0)
	equal(t, "source", source, compute.RateDocument)
	nearly(t, "2026-08-11", rate, 0.0449, 0.0002)
	for i := 0; i < len(chain.Contracts); i += 97 {
		before := chain.Contracts[i].Ask
		chain.Contracts[i].Ask += 0.05
		ticked, _ := compute.RateOf(chain, cal, 0)
		nearly(t, chain.Contracts[i].Symbol()+": a tick", ticked, rate, 5e-5)
		chain.Contracts[i].Ask = before
	}
}
