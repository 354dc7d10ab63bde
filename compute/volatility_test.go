package compute_test

import (
	"math"
	"testing"

	"strikecache/compute"
)

func strikeGamma(t *testing.T, r compute.GammaResult, k float64) compute.StrikeGamma {
	t.Helper()
	for _, row := range r.Data.ByStrike {
		if float64(row.Strike) == k {
			return row
		}
	}
	t.Errorf("no row for strike %v", k)
	return compute.StrikeGamma{}
}

// wantVolatility checks that the exposure of a strike with 10 calls and 10 puts is that of the volatility v at the forward
// f, undiscounted.
func wantVolatility(t *testing.T, r compute.GammaResult, spot, f, k, v float64) {
	t.Helper()
	d1 := math.Log(f/k)/v + v/2
	want := f / spot * math.Exp(-d1*d1/2) / math.Sqrt(2*math.Pi) / (spot * v) * spot * spot * 10
	got := strikeGamma(t, r, k)
	near(t, "call", got.Call, want, 1e-6*want)
	near(t, "put", got.Put, -want, 1e-6*want)
}

// steps returns the share of open interest by step of the volatility rule.
func steps(r compute.GammaResult) map[string]float64 {
	out := map[string]float64{}
	for _, s := range r.Quality.Volatility {
		if s.OpenInterest != nil {
			out[s.Step] = float64(*s.OpenInterest)
		}
	}
	return out
}

func wantStep(t *testing.T, r compute.GammaResult, step string) {
	t.Helper()
	for _, name := range []string{"implied", "published", "interpolated", "none"} {
		want := 0.0
		if name == step {
			want = 100
		}
		if got := steps(r)[name]; got != want {
			t.Errorf("share of %s is %v, want %v", name, got, want)
		}
	}
}

// with returns a quote with 10 open contracts, two sides and a published volatility.
func with(bid, ask, iv float64) compute.Quote {
	q := quoted(bid, ask, 10)
	q.IV = iv
	return q
}

// Steps 1 and 2 at one strike. No forward is known, so F = S = 7000 and the call is out of the money at 7000 and above. 4
// hours are left. The calls and puts of v = 0.01 at 7050 and 6950 come from the plain formula.
func TestVolatilitySteps(t *testing.T) {
	const v = 0.01
	year := years(4)
	high, low := black(7000, 7050, v, true), black(7000, 6950, v, false)
	none := with(0, 0, 0)
	for _, c := range []struct {
		name      string
		k         float64
		call, put compute.Quote
		want      float64
		step      string
	}{
		{"implied from the call above", 7050, with(high-1, high+1, 0.5), with(1, 500, 0.6), v, "implied"},
		{"implied from the put below", 6950, with(1, 500, 0.6), with(low-1, low+1, 0.5), v, "implied"},
		{"locked quote", 7050, with(high, high, 0.5), none, v, "implied"},
		{"call at K = F", 7000, with(0.4*70-1, 0.4*70+1, 0.5), with(1, 500, 0.6), newV(t, 28, 7000), "implied"},
		{"published of the out-of-the-money side: zero bid", 7050, with(0, 5, 0.5), with(50, 60, 0.6), 0.5 * math.Sqrt(year), "published"},
		{"crossed", 7050, with(6, 5, 0.5), with(50, 60, 0.6), 0.5 * math.Sqrt(year), "published"},
		{"worth more than the forward", 7050, with(7000, 7200, 0.5), with(50, 60, 0.6), 0.5 * math.Sqrt(year), "published"},
		{"put worth more than the strike", 6950, with(50, 60, 0.6), with(6950, 7200, 0.5), 0.5 * math.Sqrt(year), "published"},
		{"published of the other side", 7050, with(0, 5, 0), with(50, 60, 0.6), 0.6 * math.Sqrt(year), "published"},
		{"published of the other side: NaN", 6950, with(50, 60, 0.6), with(math.NaN(), 5, math.NaN()), 0.6 * math.Sqrt(year), "published"},
		{"infinite is absent", 7050, with(0, 5, math.Inf(1)), with(50, 60, 0.6), 0.6 * math.Sqrt(year), "published"},
		{"negative is absent", 7050, with(0, 5, -0.5), with(50, 60, 0.6), 0.6 * math.Sqrt(year), "published"},
		{"none", 7050, with(0, 5, 0), with(50, 60, 0), 0, "none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := exposure(t, index(7000, noon), row{symbolOf("SPXW260811C", c.k), c.call}, row{symbolOf("SPXW260811P", c.k), c.put})
			wantStep(t, r, c.step)
			if c.want > 0 {
				wantVolatility(t, r, 7000, 7000, c.k, c.want)
			}
		})
	}
}

// newV solves the at-the-money formula price = F·erf(v/√8) by bisection.
func newV(t *testing.T, price, f float64) float64 {
	t.Helper()
	lo, hi := 0.0, 1.0
	for range 100 {
		if mid := (lo + hi) / 2; f*math.Erf(mid/math.Sqrt(8)) < price {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// A published volatility is scaled with a T of at least 15 minutes. Strikes that are floored are counted. Strikes with an
// implied volatility are not.
func TestVolatilityFloor(t *testing.T) {
	quarter := years(0.25)
	for _, c := range []struct {
		asOf    string
		seconds float64
		floored int
	}{
		{"2026-08-11T19:44:59Z", 901, 0}, {"2026-08-11T19:45:00Z", 900, 0}, {"2026-08-11T19:45:01Z", 899, 2},
		{"2026-08-11T19:59:59Z", 1, 2},
	} {
		r := exposure(t, index(7000, c.asOf),
			row{"SPXW260811C07000000", with(0, 1, 0.3)}, row{"SPXW260811P07000000", with(0, 1, 0.4)},
			row{"SPXW260811C07010000", with(0, 1, 0)}, row{"SPXW260811P07010000", with(0, 1, 0.2)},
			row{"SPXW260811C07020000", with(0.05, 0.1, 0.3)},
			row{"SPXW260812C07020000", with(0, 0.1, 0.3)})
		equal(t, c.asOf, r.Quality.FlooredStrikes, c.floored)
		wantVolatility(t, r, 7000, 7000, 7000, 0.3*math.Sqrt(math.Max(years(c.seconds/3600), quarter)))
		wantVolatility(t, r, 7000, 7000, 7010, 0.2*math.Sqrt(math.Max(years(c.seconds/3600), quarter)))
	}
}

// Step 3: v² linear in ln(K/F) between priced neighbours, whether or not they have open interest, flat outside. An
// interpolated strike does not count as a neighbour.
func TestInterpolatedVolatility(t *testing.T) {
	year := years(28)
	at := func(k float64, q compute.Quote) row { return row{symbolOf("SPXW260812C", k), q} }
	both := func(k float64) []row {
		return []row{at(k, blank(10)), {symbolOf("SPXW260812P", k), blank(10)}}
	}
	rows := []row{at(6400, published(0.8, 0)), at(8100, published(0.4, 0)), at(10000, published(0.6, 0))}
	for _, k := range []float64{6000, 6800, 7200, 8000, 9000, 11000} {
		rows = append(rows, both(k)...)
	}
	r := exposure(t, index(8000, noon), rows...)
	wantStep(t, r, "interpolated")
	variance := func(k, k0, iv0, k1, iv1 float64) float64 {
		w := (math.Log(k) - math.Log(k0)) / (math.Log(k1) - math.Log(k0))
		return math.Sqrt(year * (iv0*iv0 + w*(iv1*iv1-iv0*iv0)))
	}
	for k, want := range map[float64]float64{
		7200: variance(7200, 6400, 0.8, 8100, 0.4), // 7200² = 6400·8100: halfway, v² = T·0.4
		6800: variance(6800, 6400, 0.8, 8100, 0.4), 8000: variance(8000, 6400, 0.8, 8100, 0.4),
		9000: math.Sqrt(year * 0.26), // 9000² = 8100·10000: halfway between 0.16 and 0.36
	} {
		wantVolatility(t, r, 8000, 8000, k, want)
	}
	nearly(t, "halfway", variance(7200, 6400, 0.8, 8100, 0.4), math.Sqrt(year*0.4), 1e-15)
	// 6000 and 11000 lie outside ±15 %: their exposure is only in the totals.
	r = exposure(t, index(7000, noon), append(both(6900), at(6950, published(0.3, 0)), at(7050, published(0.5, 0)),
		row{"SPXW260812C07100000", blank(10)}, row{"SPXW260812P07100000", blank(10)})...)
	wantVolatility(t, r, 7000, 7000, 6900, 0.3*math.Sqrt(year))
	wantVolatility(t, r, 7000, 7000, 7100, 0.5*math.Sqrt(year))
}

// A strike of 0 has ln K = -∞. It has no gamma, does not count as a neighbour, and does not make the document fail.
func TestStrikeZero(t *testing.T) {
	r := exposure(t, index(7000, noon), row{"SPXW260821C00000000", with(6990, 7010, 8)}, row{"SPXW260821P00000000", published(0.5, 10)},
		row{"SPXW260821C06900000", blank(10)}, row{"SPXW260821P06900000", blank(10)},
		row{"SPXW260821C07000000", published(0.3, 10)})
	marshal(t, r.Data)
	equal(t, "used", r.Data.ContractsAnalyzed, 5)
	wantVolatility(t, r, 7000, 7000, 6900, 0.3*math.Sqrt(years(hoursPM)))
}
