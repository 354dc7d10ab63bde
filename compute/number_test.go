package compute

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestNumberRounding(t *testing.T) {
	for _, c := range []struct {
		value json.Marshaler
		want  string
	}{
		// Half away from zero, at the decimals of METHODS.md §0: whole dollars, 2 for levels, 4 for ratios, 7 for
		// differences of gammas, 1 for scores. A float64 holds these halves exactly.
		{Dollars(2.5), "3"}, {Dollars(3.5), "4"}, {Dollars(-2.5), "-3"}, {Dollars(0.5), "1"}, {Dollars(-0.5), "-1"},
		{Level(0.125), "0.13"}, {Level(-0.125), "-0.13"}, {Level(7728.375), "7728.38"},
		{Level(1.005), "1.01"}, {Level(-1.005), "-1.01"}, // halves as decimals, a little less as float64s
		{Ratio(0.03125), "0.0313"}, {Ratio(-0.03125), "-0.0313"}, {Ratio(0.09375), "0.0938"},
		{GammaDiff(0.00390625), "0.0039063"}, {GammaDiff(-0.00390625), "-0.0039063"},
		{Score(0.25), "0.3"}, {Score(-0.25), "-0.3"}, {Score(69.75), "69.8"}, {Score(0.75), "0.8"},
		{Count(1.5), "2"}, {Ratio(17.03125), "17.0313"},
		// No half.
		{Dollars(1.49), "1"}, {Level(7728.2002), "7728.2"}, {Ratio(12.34567), "12.3457"}, {Score(99.94), "99.9"},
		{Dollars(2.49999999999999), "2"}, {Level(1.00499999999999), "1"}, {Dollars(999999999.499999), "999999999"},
		{GammaDiff(2.7788457e-5), "0.0000278"}, {Ratio(17.4555), "17.4555"},
		// Trailing zeros are dropped. Inner and leading zeros stay.
		{Level(7400), "7400"}, {Level(157.5), "157.5"}, {Level(1.05), "1.05"}, {Level(100.01), "100.01"},
		{Ratio(0.0001), "0.0001"}, {Ratio(10.01), "10.01"}, {Ratio(-0.5), "-0.5"}, {GammaDiff(1e-7), "0.0000001"},
		{Ratio(20), "20"}, {Score(100), "100"}, {Dollars(1000), "1000"}, {Count(2960), "2960"},
		// Zero has no sign.
		{Dollars(math.Copysign(0, -1)), "0"}, {Dollars(-0.4), "0"}, {Level(-0.004), "0"}, {Ratio(-0.00004), "0"},
		{GammaDiff(-4e-8), "0"}, {Score(-0.04), "0"},
		// Large numbers lose nothing.
		{Dollars(4294967296.5), "4294967297"}, {Dollars(-4294967296.5), "-4294967297"},
		{Dollars(1 << 53), "9007199254740992"}, {Dollars(-1e18), "-1000000000000000000"},
		{Dollars(123456789012345), "123456789012345"}, {Level(1e15 + 0.5), "1000000000000000.5"},
		{Level(90071992547409.91), "90071992547409.9"}, {Ratio(1e12), "1000000000000"},
		{Dollars(1e300), "1" + strings.Repeat("0", 300)},
	} {
		got, err := json.Marshal(c.value)
		if err != nil || string(got) != c.want {
			t.Errorf("%T %v: %s, %v, want %s", c.value, c.value, got, err, c.want)
		}
	}
}

func TestNumberWithoutJSONIsNull(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, v := range []json.Marshaler{Dollars(x), Level(x), Ratio(x), GammaDiff(x), Score(x), Count(x)} {
			if b, err := json.Marshal(v); err != nil || string(b) != "null" {
				t.Errorf("%T %v marshals as %s, %v", v, x, b, err)
			}
		}
	}
}

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
