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

// with returns a quote with 10 open contracts, two sides and a published volatility.
func with(bid, ask, iv float64) compute.Quote {
	q := quoted(bid, ask, 10)
	q.IV = iv
	return q
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
