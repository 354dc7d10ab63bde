package compute_test

import (
	"encoding/json"
	"fmt"
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
	ID, Seconds  int
	Right        string
	Spot         float64 `json:",string"`
	Strike       float64 `json:",string"`
	Rate         float64 `json:",string"`
	Forward      float64 `json:",string"`
	V            float64 `json:"total_vol,string"`
	Price        float64 `json:"undiscounted_price,string"`
	Gamma        float64 `json:",string"`
	ShiftedSpot  float64 `json:"spot_shifted,string"`
	ShiftedGamma float64 `json:"gamma_at_spot_shifted,string"`
	Mid          float64 `json:"quote_mid,string"`
	VFromMid     float64 `json:"total_vol_from_quote_mid,string"`
}

var rightOf = map[string]compute.Right{"C": compute.Call, "P": compute.Put}

// growth returns e^(rT).
func (v *bsVector) growth() float64 { return math.Exp(v.Rate * float64(v.Seconds) / (365 * 86400)) }

func bsVectors(t *testing.T) []bsVector {
	t.Helper()
	var file struct{ Vectors []bsVector }
	decodeFile(t, "bs_vectors.json", &file)
	equal(t, "vectors", len(file.Vectors), 40)
	return file.Vectors
}

// decodeFile decodes a file of testdata.
func decodeFile(t *testing.T, name string, v any) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	must(t, err)
	must(t, json.Unmarshal(text, v))
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
		within(t, name, compute.BlackGamma(v.Spot, v.Spot, v.Forward, v.Strike, v.V, 1/v.growth()), v.Gamma, 1e-12)

		got := compute.BlackGamma(v.Spot, v.ShiftedSpot, v.Forward, v.Strike, v.V, 1/v.growth())
		if v.ShiftedGamma < 1e-300 {
			nearly(t, name+" shifted", got, v.ShiftedGamma, 1e-300)
			continue
		}
		d1 := (math.Log(v.Forward/v.Strike)+math.Log(v.ShiftedSpot/v.Spot))/v.V + v.V/2
		within(t, name+" shifted", got, v.ShiftedGamma, 1e-12+6*unit*d1*d1)
	}
}

// The value of an out-of-the-money option is the difference of F·N and K·N, each known to a few units times 1 + d1².
func TestValueVectors(t *testing.T) {
	for _, v := range bsVectors(t) {
		d1, otm := math.Log(v.Forward/v.Strike)/v.V+v.V/2, 1.0
		if v.Strike < v.Forward {
			otm = -1
		}
		terms := v.Forward*normal(otm*d1) + v.Strike*normal(otm*(d1-v.V))
		tolerance := 8 * unit * (1 + d1*d1) * terms / v.Price
		if tolerance > 1e-8 {
			t.Fatalf("vector %d is ill-conditioned: %g", v.ID, tolerance)
		}
		within(t, "value "+strconv.Itoa(v.ID), compute.BlackValue(rightOf[v.Right], v.Forward, v.Strike, v.V), v.Price, tolerance)
	}
}

// stopsAt is the relative error that the solver may have after its last step.
const stopsAt = 1e-14

func TestImpliedVectors(t *testing.T) {
	for _, v := range bsVectors(t) {
		for _, c := range []struct{ value, guess, want float64 }{{v.Price, 0, v.V}, {v.Mid * v.growth(), 0.9 * v.V, v.VFromMid}} {
			got, ok := compute.ImpliedTotalVolatility(rightOf[v.Right], c.value, v.Forward, v.Strike, c.guess)
			equal(t, fmt.Sprintf("v from %v of vector %d", c.value, v.ID), ok, true)
			within(t, fmt.Sprintf("v from %v of vector %d", c.value, v.ID), got, c.want, 1e-9)
		}
	}
}

// greeksVector is one line of testdata/greeks_vectors.json, which testdata/greeks_vectors.py made with mpmath 1.3.0 and 50
// digits, from delta alone: its vanna and charm are numerical derivatives. The inputs are exact float64s.
type greeksVector struct {
	Right                                   string
	Spot, Strike, Seconds, Rate, Forward, V float64
	Delta                                   float64 `json:",string"`
	Vanna                                   float64 `json:",string"`
	Charm                                   float64 `json:",string"`
}

// The greeks have 12 digits, also below the floor of 15 minutes, with a negative carry and a negative rate.
func TestGreeksOfManyDigits(t *testing.T) {
	var vectors []greeksVector
	decodeFile(t, "greeks_vectors.json", &vectors)
	equal(t, "vectors", len(vectors), 32)
	for _, v := range vectors {
		name := fmt.Sprintf("%s %v at %v, %v s", v.Right, v.Strike, v.Spot, v.Seconds)
		got := compute.BlackGreeks(v.Spot, v.Forward, v.Strike, v.V, v.Seconds/(365*86400), v.Rate)
		right := rightOf[v.Right]
		// The rounding of d1 moves the tail of N(d1) by d1² units, and its density too.
		within(t, name+" delta", got.Delta[right], v.Delta, 1e-12)
		within(t, name+" vanna", got.Vanna, v.Vanna, 1e-12)
		within(t, name+" charm", got.Charm[right], v.Charm, 1e-11) // its two terms may almost cancel
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
