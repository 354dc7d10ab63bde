package compute

import (
	"math"
	"testing"
)

func TestUsable(t *testing.T) {
	for _, c := range []struct {
		kind    NumberKind
		usable  []float64
		outside []float64
	}{
		{OptionPrice, []float64{0, 1e-6, 8261.4, 1e6}, []float64{9.9e-7, -0.05, 1e6 + 1, 9e8, 1e300}},
		{ContractCount, []float64{0, 1e-6, 303_428, 1e8}, []float64{9.9e-7, -1, 1e8 + 1, 1e9, 1e300}},
		{ImpliedVolatility, []float64{0, 1e-6, 8.2182, 100}, []float64{9.9e-7, -0.2, 100.1, 1e9, 1e300}},
		{OptionDelta, []float64{0, 1e-6, -1e-6, 1, -1}, []float64{9.9e-7, -9.9e-7, 1.0001, -1.0001, 5e8}},
		{OptionGamma, []float64{0, 1e-6, -1e-6, 0.0652, 75, 100, -100}, []float64{9.9e-7, -9.9e-7, 100.1, -100.1, 1e9}},
		{Price, []float64{1e-6, 0.5, 7728.2, 1e6}, []float64{0, -1, 9.9e-7, 1e6 + 1, 1042857132428570400}},
		{VolatilityPrice, []float64{1, 17.4555, 1000}, []float64{0, -17, 0.99, 1000.01, 1e300}},
		{Percentage, []float64{-100, -0.21, 0, 1000}, []float64{-100.1, 1000.1, 1e301}},
	} {
		for _, x := range c.usable {
			if got := c.kind.Usable(x); got != x {
				t.Errorf("kind %d: %v becomes %v", c.kind, x, got)
			}
		}
		for _, x := range append(c.outside, math.NaN(), math.Inf(1), math.Inf(-1)) {
			if got := c.kind.Usable(x); !math.IsNaN(got) {
				t.Errorf("kind %d: %v is usable: %v", c.kind, x, got)
			}
		}
	}
}
