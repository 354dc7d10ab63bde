package compute

import (
	"math"
	"slices"
)

const (
	leastPoints = 5 // points of a smile, and options of a model-free volatility, that determine it
	// mostSpread is the greatest ask over bid of a point: a spread above the mid says nothing about the price.
	mostSpread = 3
	// mostEnd is the greatest mid, as a part of that at the center, at which a side of a model-free volatility may end for want of quotes.
	mostEnd = 0.05
	// d1 at a call delta of 25 and 10 % is minus this, at a put delta plus this: N(d1) = 0.75 and 0.9.
	delta25 = 0.67448975019608174320
	delta10 = 1.28155156554460046696
)

// smile is the points of a series at which two-sided out-of-the-money quotes give the volatility, strikes rising. Between neighbouring
// points v² is linear in x. Outside them it is unknown.
type smile []smilePoint

// smilePoint is one strike.
type smilePoint struct {
	x   float64 // ln(K/F)
	w   float64 // v²
	mid float64 // of the out-of-the-money quote
}

// smile returns the points of a series that has a parity forward.
func (s *series) smile() smile {
	var m smile
	for i := range s.strikes {
		row := &s.strikes[i]
		otm := Call
		if row.k < s.forward {
			otm = Put
		}
		if c := row.contracts[otm]; row.step == volImplied && decimal(c.Ask/c.Bid) <= mostSpread {
			m = append(m, smilePoint{logMoneyness(row.k, s.forward), row.v * row.v, c.Mid()})
		}
	}
	return m
}

// atTheMoney returns w(0), or why it is unknown.
func (m smile) atTheMoney() (w float64, why string) {
	if len(m) < leastPoints {
		return 0, fewStrikes
	}
	i := slices.IndexFunc(m, func(p smilePoint) bool { return p.x >= 0 })
	if i < 0 || i == 0 && m[0].x > 0 {
		return 0, notBracketed
	}
	last := len(m) - 1
	if i < last && m[i].mid <= m[last].mid || i > 1 && m[i-1].mid <= m[0].mid {
		return 0, flatPrices
	}
	if m[i].x == 0 {
		return m[i].w, ""
	}
	w = between(m[i-1], m[i], 0)
	if max(-m[i-1].x, m[i].x) > math.Sqrt(w) {
		return 0, wideGap
	}
	return w, ""
}

// atTheMoney returns w(0) of the smile. Where that is unknown, v² is linear in ln K between the strikes around the forward, whatever gave
// their volatility, and flat outside the strikes. It is NaN without a volatility.
func (s *series) atTheMoney() float64 {
	if w, why := s.smile().atTheMoney(); why == "" {
		return w
	}
	var below *strike
	for i := range s.strikes {
		row := &s.strikes[i]
		switch {
		case row.step == volNone:
			return math.NaN() // of all strikes
		case row.k < s.forward:
			below = row
			continue
		case below == nil:
			return row.v * row.v
		}
		v := betweenStrikes(below, row, s.forward)
		return v * v
	}
	return below.v * below.v
}

// between returns w at x, linear between two points.
func between(a, b smilePoint, x float64) float64 { return a.w + (x-a.x)/(b.x-a.x)*(b.w-a.w) }

// atDelta returns w where d1 = -x/√w + √w/2 has the given value, at the crossing nearest the forward. It is NaN if no neighbouring
// points have the crossing between them.
func (m smile) atDelta(d1 float64) float64 {
	above := func(p smilePoint) bool { return -p.x/math.Sqrt(p.w)+math.Sqrt(p.w)/2 > d1 }
	found, nearest := math.NaN(), math.Inf(1)
	for i := 1; i < len(m); i++ {
		a, b := m[i-1], m[i]
		side := above(a)
		if side == above(b) {
			continue
		}
		low, high := a.x, b.x
		for high-low > 1e-12 {
			x := low + 0.5*(high-low)
			if above(smilePoint{x: x, w: between(a, b, x)}) == side {
				low = x
			} else {
				high = x
			}
		}
		if x := low + 0.5*(high-low); math.Abs(x) < nearest {
			found, nearest = between(a, b, x), math.Abs(x)
		}
	}
	return found
}

// straddle returns the mid of the call and the put at the strike nearest the forward, the lower on a tie; nil unless both are quoted.
func (s *series) straddle() *Level {
	nearest := &s.strikes[0]
	for i := range s.strikes {
		if row := &s.strikes[i]; math.Abs(row.k-s.forward) < math.Abs(nearest.k-s.forward) {
			nearest = row
		}
	}
	if !nearest.quoted() {
		return nil
	}
	return new(Level(nearest.contracts[Call].Mid() + nearest.contracts[Put].Mid()))
}

// quoted says whether call and put of a strike have two-sided quotes.
func (r *strike) quoted() bool {
	call, put := r.contracts[Call], r.contracts[Put]
	return call != nil && put != nil && call.TwoSided() && put.TwoSided()
}

// option is an option of the model-free volatility.
type option struct{ k, mid float64 }

// modelFree returns the total variance by the formula of the Cboe Volatility Index, NaN and the reason where unknown. The center K0 is
// the highest strike at or below the forward at which both rights are quoted.
//
// Source: Cboe, Volatility Index Mathematics Methodology, steps 1 and 2.
func (s *series) modelFree() (w float64, why string) {
	center := -1
	for i := range s.strikes {
		if row := &s.strikes[i]; row.k > 0 && row.k <= s.forward && row.quoted() {
			center = i
		}
	}
	if center < 0 {
		return math.NaN(), notBracketed
	}
	k0 := &s.strikes[center]
	at := option{k0.k, (k0.contracts[Call].Mid() + k0.contracts[Put].Mid()) / 2}
	puts, gap := s.outOfTheMoney(Put, center, at)
	calls, gapAbove := s.outOfTheMoney(Call, center, at)
	if gap || gapAbove {
		return math.NaN(), quoteGap
	}
	slices.Reverse(puts)
	options := append(append(puts, at), calls...)
	if len(options) < leastPoints {
		return math.NaN(), fewStrikes
	}
	sum := 0.0
	for i, o := range options {
		below, above := max(i-1, 0), min(i+1, len(options)-1)
		sum += (options[above].k - options[below].k) / float64(above-below) / (o.k * o.k) * o.mid
	}
	away := s.forward/k0.k - 1
	if w = 2*sum/s.discount - away*away; !(w > 0) {
		return math.NaN(), notPositive
	}
	return w, ""
}

// outOfTheMoney returns the quoted puts below the center or the quoted calls above it, nearest first. It ends at two neighbouring options
// that are not quoted. gap says that options are still dear there: what is behind them would be missed.
func (s *series) outOfTheMoney(right Right, center int, at option) (options []option, gap bool) {
	step, missing, last := 1, 0, at
	if right == Put {
		step = -1
	}
	for i := center + step; i >= 0 && i < len(s.strikes); i += step {
		switch c := s.strikes[i].contracts[right]; {
		case c == nil || s.strikes[i].k == 0:
			continue
		case c.TwoSided():
			last, missing = option{s.strikes[i].k, c.Mid()}, 0
			options = append(options, last)
		default:
			missing++
		}
		if missing == 2 {
			return options, last.mid > mostEnd*at.mid
		}
	}
	return options, false
}
