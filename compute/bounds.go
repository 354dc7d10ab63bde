package compute

import "math"

// NumberKind is the kind of a number in an upstream document.
type NumberKind uint8

// The kinds of numbers.
const (
	OptionNumber    NumberKind = iota // bid, ask, last price, open interest, volume, iv, gamma and delta of a contract
	Price                             // of an index or a fund, in a quote, the head of a chain or a history; of a future other than VX
	VolatilityPrice                   // of VIX and VIX3M, in a quote or a history; settlement of a VX future
	Percentage                        // change of a price since the session before
)

// bounds holds the range of usable numbers of each kind, both ends included. No market has a number outside its range: such
// a number is an error of the upstream, and a product of such numbers could overflow.
var bounds = [...]struct{ least, most float64 }{
	OptionNumber:    {1e-6, 1e9}, // range of |x|; 0 is usable, too
	Price:           {1e-6, 1e6},
	VolatilityPrice: {1, 1_000},
	Percentage:      {-100, 1_000},
}

// Usable returns x, or NaN when x is outside the range of the kind. A NaN counts as an absent number.
func (k NumberKind) Usable(x float64) float64 {
	b, size := &bounds[k], x
	if k == OptionNumber {
		if size = math.Abs(x); x == 0 {
			return x
		}
	}
	if !(size >= b.least && size <= b.most) {
		return math.NaN()
	}
	return x
}
