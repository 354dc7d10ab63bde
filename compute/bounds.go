package compute

import "math"

// NumberKind is the kind of a number in an upstream document.
type NumberKind uint8

// The kinds of numbers.
const (
	OptionPrice       NumberKind = iota // bid, ask and last price of a contract, USD
	ContractCount                       // open interest and volume of a contract
	ImpliedVolatility                   // of a contract, a decimal per year
	OptionDelta                         // of a contract
	OptionGamma                         // of a contract, per index point or USD
	Price                               // of an index or a fund, in a quote, the head of a chain or a history; of a future other than VX
	VolatilityPrice                     // of an index VIX…, in a quote or a history; settlement of a VX future
	Percentage                          // change of a price since the session before
)

// bounds holds the range of usable numbers of each kind, both ends included, and the least size of a number that is not 0. No
// market has a number outside its range: such a number is an error of the upstream, and a product of such numbers could
// overflow. On the recorded SPX chain, the largest price is 8,261, the largest count 303,428, the largest volatility 8.2 and
// the largest gamma 0.0652, and delta is from -1 to 1. A cheap stock has larger gammas: at the money, gamma is about
// 0.4 / (price * volatility * sqrt(T)), which is 75 for a stock at 0.50 USD with a volatility of 1, an hour before expiration.
var bounds = [...]struct{ least, most, leastSize float64 }{
	OptionPrice:       {0, 1e6, 1e-6},
	ContractCount:     {0, 1e8, 1e-6},
	ImpliedVolatility: {0, 100, 1e-6},
	OptionDelta:       {-1, 1, 1e-6},
	OptionGamma:       {-100, 100, 1e-6},
	Price:             {1e-6, 1e6, 0},
	VolatilityPrice:   {1, 1_000, 0},
	Percentage:        {-100, 1_000, 0},
}

// Usable returns x, or NaN when x is outside the range of the kind. A NaN counts as an absent number.
func (k NumberKind) Usable(x float64) float64 {
	b := &bounds[k]
	if !(x >= b.least && x <= b.most) || x != 0 && math.Abs(x) < b.leastSize {
		return math.NaN()
	}
	return x
}
