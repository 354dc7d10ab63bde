package compute_test

import (
	"encoding/json"
	"math"
	"os"
	"strconv"
	"testing"

	"strikecache/compute"
)

// normal is the distribution function of the normal distribution.
func normal(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

// unit is the largest relative error of rounding a number to a float64.
const unit = 0x1p-53

// bsVector is one line of testdata/bs_vectors.json. It was computed with 50 digits by mpmath 1.2.1 and printed with 17. Its
// inputs are exact float64s.
type bsVector struct {
	ID                int    `json:"id"`
	Right             string `json:"right"`
	Seconds           int    `json:"seconds"`
	Spot              string `json:"spot"`
	Strike            string `json:"strike"`
	Rate              string `json:"rate"`
	Forward           string `json:"forward"`
	V                 string `json:"total_vol"`
	Price             string `json:"undiscounted_price"`
	Gamma             string `json:"gamma"`
	ShiftedSpot       string `json:"spot_shifted"`
	ShiftedGamma      string `json:"gamma_at_spot_shifted"`
	QuoteMid          string `json:"quote_mid"`
	VFromQuoteMid     string `json:"total_vol_from_quote_mid"`
	right             compute.Right
	growth            float64 // e^{rT}
	spot, f, k, v     float64
	price, mid, fromQ float64
}

func bsVectors(t *testing.T) []bsVector {
	t.Helper()
	text, err := os.ReadFile("testdata/bs_vectors.json")
	must(t, err)
	var file struct{ Vectors []bsVector }
	must(t, json.Unmarshal(text, &file))
	if len(file.Vectors) != 40 {
		t.Fatalf("%d vectors, want 40", len(file.Vectors))
	}
	for i := range file.Vectors {
		v := &file.Vectors[i]
		v.right = map[string]compute.Right{"C": compute.Call, "P": compute.Put}[v.Right]
		v.growth = math.Exp(number(t, v.Rate) * float64(v.Seconds) / (365 * 86400))
		v.spot, v.f, v.k, v.v = number(t, v.Spot), number(t, v.Forward), number(t, v.Strike), number(t, v.V)
		v.price, v.mid, v.fromQ = number(t, v.Price), number(t, v.QuoteMid), number(t, v.VFromQuoteMid)
	}
	return file.Vectors
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(s, 64)
	must(t, err)
	return x
}

// within fails the test unless got is within a relative tolerance of want.
func within(t *testing.T, name string, got, want, relative float64) {
	t.Helper()
	if !(math.Abs(got-want) <= relative*math.Abs(want)) {
		t.Errorf("%s = %.17g, want %.17g: off by %.2g, allowed %.2g", name, got, want, math.Abs(got/want-1), relative)
	}
}

// The rounding of v and S' to doubles (half a unit each), of the logarithms and of the quotient moves d1 by at most
// some 6 units of itself and gamma by d1 times that. Below 1e-300 the last bits are lost to underflow.
func TestGammaVectors(t *testing.T) {
	for _, v := range bsVectors(t) {
		name := "gamma " + strconv.Itoa(v.ID)
		within(t, name, compute.BlackGamma(v.spot, v.spot, v.f, v.k, v.v, 1/v.growth), number(t, v.Gamma), 1e-12)

		shifted, want := number(t, v.ShiftedSpot), number(t, v.ShiftedGamma)
		got := compute.BlackGamma(v.spot, shifted, v.f, v.k, v.v, 1/v.growth)
		if want < 1e-300 {
			nearly(t, name+" shifted", got, want, 1e-300)
			continue
		}
		d1 := (math.Log(v.f/v.k)+math.Log(shifted/v.spot))/v.v + v.v/2
		within(t, name+" shifted", got, want, 1e-12+6*unit*d1*d1)
	}
}

// The value of an out-of-the-money option is the difference of F·N and K·N, each known to a few units times 1 + d1².
func TestValueVectors(t *testing.T) {
	for _, v := range bsVectors(t) {
		d1, otm := math.Log(v.f/v.k)/v.v+v.v/2, 1.0
		if v.k < v.f {
			otm = -1
		}
		terms := v.f*normal(otm*d1) + v.k*normal(otm*(d1-v.v))
		tolerance := 8 * unit * (1 + d1*d1) * terms / v.price
		if tolerance > 1e-8 {
			t.Fatalf("vector %d is ill-conditioned: %g", v.ID, tolerance)
		}
		within(t, "value "+strconv.Itoa(v.ID), compute.BlackValue(v.right, v.f, v.k, v.v), v.price, tolerance)
	}
}

// stopsAt is the relative error that the solver may have after its last step.
const stopsAt = 1e-14

func TestImpliedVectors(t *testing.T) {
	for _, v := range bsVectors(t) {
		got, ok := compute.ImpliedTotalVolatility(v.right, v.price, v.f, v.k, 0)
		if !ok {
			t.Errorf("vector %d: no volatility from the price", v.ID)
		}
		within(t, "v from price "+strconv.Itoa(v.ID), got, v.v, 1e-9)
		got, ok = compute.ImpliedTotalVolatility(v.right, v.mid*v.growth, v.f, v.k, 0.9*v.v)
		if !ok {
			t.Errorf("vector %d: no volatility from the quote", v.ID)
		}
		within(t, "v from quote "+strconv.Itoa(v.ID), got, v.fromQ, 1e-9)
	}
}

// For any input, the solver answers within its domain, and its answer reprices to the value.
func FuzzImpliedTotalVolatility(f *testing.F) {
	f.Add(true, 22.3, 7728.4, 7750.0)
	f.Add(false, 0.05, 7728.2, 7690.0)
	f.Add(true, 7527.7, 7728.0, 200.0)
	f.Add(false, 3669.5, 7281.0, 54682380.0)
	f.Add(true, 1e-300, 7000.0, 7000.0)
	f.Add(true, 6999.999999999999, 7000.0, 7000.0)
	f.Add(false, 5e-324, 1.0, 1.0)
	f.Add(true, math.NaN(), math.Inf(1), -1.0)
	f.Add(true, compute.BlackValue(compute.Call, 7728.2, 7314.626520414114, 0.5), 7728.2, 7314.626520414114) // a step is exact
	special := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, -1, 7000}
	for _, forward := range special {
		for _, strike := range append(special, 6900, 7100, 100) {
			for _, value := range append(special, forward, strike, math.Abs(forward-strike), 99.99, 6999, 7001) { // at both bounds, and beyond
				f.Add(true, value, forward, strike)
				f.Add(false, value, forward, strike)
			}
		}
	}
	f.Fuzz(func(t *testing.T, call bool, value, forward, strike float64) {
		right, intrinsic, bound := compute.Put, math.Max(strike-forward, 0), strike
		if call {
			right, intrinsic, bound = compute.Call, math.Max(forward-strike, 0), forward
		}
		v, ok := compute.ImpliedTotalVolatility(right, value, forward, strike, 0)
		if !(value > intrinsic && value < bound) || !(forward > 0 && strike > 0) || forward+strike > math.MaxFloat64 {
			if ok {
				t.Errorf("v = %v from a value outside (%v, %v)", v, intrinsic, bound)
			}
			return
		}
		if !(forward > 1e-3 && forward < 1e9 && strike > 1e-3 && strike < 1e9 && value-intrinsic > 1e-290) {
			return // no market has such an index or price, and a moneyness of e^700 overflows the formula
		}
		if !ok {
			if bound-value > 1e-12*bound {
				t.Errorf("no v for %v in (%v, %v)", value, intrinsic, bound)
			}
			return
		}
		if !(v > 0) || math.IsInf(v, 1) {
			t.Fatalf("v = %v", v)
		}
		again := compute.BlackValue(right, forward, strike, v)
		d1 := math.Log(forward/strike)/v + v/2
		perV := forward * math.Exp(-d1*d1/2) / math.Sqrt(2*math.Pi) * v
		if off := math.Abs(again - value); !(off <= 1.1*stopsAt*perV+1e-14*(forward+strike)) {
			t.Errorf("v = %v reprices to %v, not %v", v, again, value)
		}
	})
}
