package compute

import (
	"math"
	"slices"
	"strconv"
	"sync"
)

// The number types of every result. Each holds an unrounded value and is rounded, half away from zero, only
// when it is marshalled. A value that is not finite is marshalled as null.
type (
	// Dollars is an amount in US dollars, marshalled as a whole number.
	Dollars float64
	// Level is an index level, a price or a strike, marshalled with at most 2 decimals.
	Level float64
	// Ratio is a percentage, a ratio, a volatility, or a price in volatility points, marshalled with at most 4 decimals.
	Ratio float64
	// GammaDiff is a difference of two gammas (per USD or index point), marshalled with at most 7 decimals.
	GammaDiff float64
	// Score is a flow score or one of its components, marshalled with at most 1 decimal.
	Score float64
	// Count is a number of contracts, marshalled as a whole number.
	Count float64
)

// MarshalJSON implements [encoding/json.Marshaler].
func (x Dollars) MarshalJSON() ([]byte, error) { return marshalFixed(float64(x), 0) }

// MarshalJSON implements [encoding/json.Marshaler].
func (x Level) MarshalJSON() ([]byte, error) { return marshalFixed(float64(x), 2) }

// MarshalJSON implements [encoding/json.Marshaler].
func (x Ratio) MarshalJSON() ([]byte, error) { return marshalFixed(float64(x), 4) }

// MarshalJSON implements [encoding/json.Marshaler].
func (x GammaDiff) MarshalJSON() ([]byte, error) { return marshalFixed(float64(x), 7) }

// MarshalJSON implements [encoding/json.Marshaler].
func (x Score) MarshalJSON() ([]byte, error) { return marshalFixed(float64(x), 1) }

// MarshalJSON implements [encoding/json.Marshaler].
func (x Count) MarshalJSON() ([]byte, error) { return marshalFixed(float64(x), 0) }

// marshalFixed returns x rounded half away from zero to at most the given number of decimals (0 to 7), without trailing
// zeros and without a negative zero.
func marshalFixed(x float64, decimals int) ([]byte, error) {
	return marshalled(func(b []byte) []byte { return appendFixed(b, x, decimals) }), nil
}

func appendFixed(b []byte, x float64, decimals int) []byte {
	if !finite(x) {
		return append(b, "null"...)
	}
	units := inLastPlace(x, decimals)
	if !(math.Abs(units) < 1e15) { // up to 15 digits, the decimal is the shortest text of its float64
		return strconv.AppendFloat(b, roundTo(x, decimals), 'f', -1, 64)
	}
	if units < 0 {
		b = append(b, '-')
	}
	n, one := uint64(math.Abs(units)), uint64(pow10[decimals])
	b = strconv.AppendUint(b, n/one, 10)
	if n %= one; n > 0 {
		b = append(b, '.')
	}
	for ; n > 0; n %= one {
		n *= 10
		b = append(b, "0123456789"[n/one])
	}
	return b
}

// chunks are blocks of memory that hold the JSON of many values, so that not each value of a matrix needs an allocation.
var chunks = sync.Pool{New: func() any { return new([]byte) }}

const (
	chunkSize = 4 << 10
	mostText  = 32 // of a usual value; a longer one gets memory of its own
)

// marshalled returns what write appends. It is the caller's, like all of the block but what others have of it.
func marshalled(write func([]byte) []byte) []byte {
	chunk := chunks.Get().(*[]byte)
	if cap(*chunk)-len(*chunk) < mostText {
		*chunk = make([]byte, 0, chunkSize)
	}
	start := len(*chunk)
	text := write((*chunk)[start:start:cap(*chunk)])
	if cap(text) == cap(*chunk)-start { // it is in the block
		*chunk = (*chunk)[:start+len(text)]
	}
	chunks.Put(chunk)
	return text[:len(text):len(text)]
}

var pow10 = [...]float64{1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7}

// roundTo rounds x half away from zero to the given number of decimals, 0 to 7.
func roundTo(x float64, decimals int) float64 {
	if p := pow10[decimals]; math.Abs(x) <= 1<<53/p {
		return inLastPlace(x, decimals) / p
	}
	return x // every double this large is already a multiple of the last place
}

// inLastPlace returns x rounded half away from zero, in units of the last of the given number of decimals. It first adds about one
// rounding error to a small number. So 1.005, whose float64 is slightly less, rounds up as the decimal does.
func inLastPlace(x float64, decimals int) float64 {
	const noise = 4e-16
	scaled := x * pow10[decimals]
	if math.Abs(scaled) < 1e9 {
		scaled *= 1 + noise
	}
	return math.Round(scaled)
}

// decimal rounds x to 9 decimals. Ratios of quotes and prices are compared with decimal thresholds. Without the rounding, a
// ratio equal to a threshold could compare as less or greater, and so contradict the rounded number that is served.
func decimal(x float64) float64 { return math.Round(x*1e9) / 1e9 }

func finite(x float64) bool { return x-x == 0 }

// finiteOrNil returns a pointer to x, or nil when x is NaN or infinite, such as a ratio with denominator 0.
func finiteOrNil[T ~float64](x T) *T {
	if !finite(float64(x)) {
		return nil
	}
	return &x
}

// positive returns x if it is > 0 and finite, else 0, so that an absent number (NaN) adds nothing to a sum.
func positive(x float64) float64 {
	if x > 0 && !math.IsInf(x, 1) {
		return x
	}
	return 0
}

// percentOf returns part/whole in percent, nil when the whole is 0.
func percentOf(part, whole float64) *Ratio {
	if whole == 0 {
		return nil
	}
	return new(Ratio(part / whole * 100))
}

// rung is a class of numbers: those from a limit on.
type rung struct {
	from float64
	name string
}

// classOf returns the name of the last of rising rungs that x reaches, and lowest if it reaches none.
func classOf(x float64, lowest string, rising ...rung) string {
	for _, r := range rising {
		if x >= r.from {
			lowest = r.name
		}
	}
	return lowest
}

// median returns the median of xs, the mean of the middle two for an even count, and sorts xs. It is NaN for
// an empty slice.
func median(xs []float64) float64 { return quantile(xs, 0.5) }

// quantile returns the p-quantile of xs with linear interpolation between order statistics (type 7 of Hyndman
// and Fan, The American Statistician 50, 1996), and sorts xs. It is NaN for an empty slice.
func quantile(xs []float64, p float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	slices.Sort(xs)
	at := p * float64(len(xs)-1)
	i := int(at)
	if i+1 == len(xs) {
		return xs[i]
	}
	return xs[i] + (at-float64(i))*(xs[i+1]-xs[i])
}

// midRank returns the percentile of x among values, of which it is one: the mid-rank of Hazen's plotting position.
func midRank(x float64, values []float64) Ratio {
	below := 0.0
	for _, v := range values {
		if v < x {
			below++
		} else if v == x {
			below += 0.5
		}
	}
	return Ratio(below / float64(len(values)) * 100)
}

// weighted is a point of a least-squares line.
type weighted struct{ x, y, weight float64 }

// leastSquares returns the weighted least-squares line of y on x, and the standard error of its slope. They are NaN without two different x.
func leastSquares(points []weighted) (slope, intercept, off float64) {
	var sum, x, y float64
	for _, p := range points {
		sum += p.weight
		x += p.weight * p.x
		y += p.weight * p.y
	}
	x, y = x/sum, y/sum
	var xx, xy, yy float64
	for _, p := range points {
		dx, dy := p.x-x, p.y-y
		xx += p.weight * dx * dx
		xy += p.weight * dx * dy
		yy += p.weight * dy * dy
	}
	slope = xy / xx
	residual := max(yy-slope*slope*xx, 0) / float64(len(points)-2)
	return slope, y - slope*x, math.Sqrt(residual / xx)
}

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
