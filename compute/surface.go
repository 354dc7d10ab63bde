package compute

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"time"
)

const (
	secondsPerYear = 365 * secondsPerDay // ACT/365
	// floorYears is 15 minutes: the least T with which a published volatility is scaled, and the least T in a vanna or a
	// charm, which grow without bound as T nears 0.
	floorYears = 15 * 60.0 / secondsPerYear
)

// Series names the contracts of one root and expiration.
type Series struct {
	Root       string
	Expiration Date
}

func (s Series) compare(o Series) int {
	return cmp.Or(cmp.Compare(s.Root, o.Root), cmp.Compare(s.Expiration, o.Expiration))
}

// forwardSource is the way in which the forward of a series was found. The constants are in order of preference.
type forwardSource string

const (
	forwardParity       forwardSource = "parity"           // put-call parity of its own quotes
	forwardOtherSide    forwardSource = "other_settlement" // ln(F/S) of the other settlement of the date
	forwardInterpolated forwardSource = "interpolated"     // ln(F/S) linear in T between parity forwards
	forwardExtrapolated forwardSource = "extrapolated"     // from the last parity forward on
	forwardNone         forwardSource = "none"             // no carry known: F = S
)

var forwardSources = []forwardSource{forwardParity, forwardOtherSide, forwardInterpolated, forwardExtrapolated, forwardNone}

// volStep is the step of METHODS.md that gave a strike its volatility.
type volStep uint8

const (
	volImplied volStep = iota
	volPublished
	volInterpolated
	volNone
	volSteps // how many
)

func (s volStep) String() string {
	return [...]string{"implied", "published", "interpolated", "none"}[s]
}

// series is one root and expiration with T > 0: its forward, a total volatility per strike, and its exposure.
type series struct {
	listedSeries
	settles  Date          // the session in which it settles: on or before the expiration
	years    float64       // T, ACT/365
	discount float64       // e^(-rT)
	logCarry float64       // ln(F/S)
	source   forwardSource // empty until it is known
	forward  float64       // F
	strikes  []strike
	american bool
	spot     float64 // published
	floored  int     // strikes whose published volatility was scaled by the floor

	used      int     // contracts that enter the sums
	call, put float64 // sums of GEX at the spot: >= 0, <= 0
	greeks    greeks  // sums of the other exposures
}

// strike is one strike of a series. Both rights share its volatility.
type strike struct {
	k           float64
	contracts   [2]*Contract // by right; nil where not listed
	off         bool         // call less put is off the forward
	contradicts bool         // its out-of-the-money quote cannot stand beside the others
	v           float64      // total volatility σ√T, > 0 unless step is volNone
	step        volStep
	usual       float64 // published volatility of the strikes around, 0 where unknown
	gex         float64 // unsigned GEX of one contract at the spot, set by [exposure.sum]; 0 if step is volNone
}

// all yields the contracts of a series with their strikes, rising, then those of unknown open interest, with nil.
func (s *series) all() iter.Seq2[*strike, *Contract] {
	return func(yield func(*strike, *Contract) bool) {
		for i := range s.strikes {
			for _, c := range s.strikes[i].contracts {
				if c != nil && !yield(&s.strikes[i], c) {
					return
				}
			}
		}
		for i := range s.unknown {
			if !yield(nil, &s.unknown[i]) {
				return
			}
		}
	}
}

// newSeries returns the unsettled series of a chain, in the order of the chain, each with its parity forward if it has one.
func newSeries(c *Chain, cal *Calendar, rate float64) []*series {
	var all []*series
	american := UnderlyingOf(c.Symbol).American()
	for _, l := range c.listed(cal) {
		years := l.left.Seconds() / secondsPerYear
		s := &series{
			listedSeries: l,
			settles:      cal.OnOrBefore(l.Expiration),
			years:        years,
			discount:     math.Exp(-rate * years),
			strikes:      groupStrikes(l.contracts),
			american:     american,
			spot:         c.Spot,
		}
		if f, ok := s.parityForward(); ok {
			s.forward, s.source = f, forwardParity
		}
		all = append(all, s)
	}
	return all
}

// price gives every series its forward and its volatilities.
func price(all []*series, spot, rate float64) {
	findCarries(all, spot, rate)
	for _, s := range all {
		if s.source != forwardParity { // exp(ln F) has another last digit: a strike that F is would not be at the forward
			s.forward = spot * math.Exp(s.logCarry)
		}
		s.findCrossed()
		s.findVolatilities()
	}
}

func groupStrikes(contracts []Contract) []strike {
	out := make([]strike, 0, (len(contracts)+1)/2)
	for i := range contracts {
		c := &contracts[i]
		if n := len(out); n == 0 || out[n-1].k != c.Strike {
			out = append(out, strike{k: c.Strike, step: volNone})
		}
		out[len(out)-1].contracts[c.Right] = c
	}
	return out
}

const (
	carrySpan = 30 * 24 * time.Hour // the least difference between the smallest T and the largest of forwards whose slope is a carry
	mostCarry = 1                   // the greatest size of such a carry, per year: shares have cost 94 % to borrow
)

// findCarries gives every series its ln(F/S) and says where it comes from.
func findCarries(all []*series, spot, rate float64) {
	parity, byDate := parityWithin(all, math.MaxInt64), map[Date]*series{}
	for _, s := range parity {
		s.logCarry = s.over(spot)
		byDate[s.Expiration] = s
	}
	beyond := rate // the carry per year after the last parity forward
	if n := len(parity); n > 0 && parity[n-1].left-parity[0].left >= carrySpan {
		slope, _ := fitForwards(parity, spot)
		beyond = max(-mostCarry, min(slope, mostCarry))
	}
	for _, s := range all {
		other := byDate[s.Expiration]
		switch {
		case s.source == forwardParity:
		case other != nil:
			s.logCarry, s.source = other.logCarry, forwardOtherSide
		case len(parity) > 0:
			s.logCarry, s.source = carryAt(s.years, parity, beyond)
		default:
			s.source = forwardNone
		}
	}
}

// carryAt returns ln(F/S) at T = years: linear between the parity forwards, which are sorted by T, and with the slope beyond after the last.
func carryAt(years float64, parity []*series, beyond float64) (float64, forwardSource) {
	i, _ := slices.BinarySearchFunc(parity, years, func(s *series, t float64) int { return cmp.Compare(s.years, t) })
	if i == len(parity) {
		last := parity[i-1]
		return last.logCarry + beyond*(years-last.years), forwardExtrapolated
	}
	before, next := &series{}, parity[i] // ln(F/S) is 0 at T = 0
	if i > 0 {
		before = parity[i-1]
	}
	w := (years - before.years) / (next.years - before.years)
	return before.logCarry + w*(next.logCarry-before.logCarry), forwardInterpolated
}

const (
	// leastPublished is the least published volatility that is one: upstreams write 1e-05 and 0.0001 for an unknown one.
	leastPublished = 0.01
	// mostValue is how many times its ask, or an ask nearer the money, an option may be worth at a published volatility. On recorded
	// chains, 0 to 10 of about 1,000 published volatilities are worth more. It is also how many times lower than its bid the value may
	// be, and how many times lower than that of the nearest quote nearer the money the volatility.
	mostValue = 2
	// usualReach is how many published volatilities on each side one is compared with, as many on both, at least leastUsual. usualFactor is how
	// many times it may be their median. On 16 recorded chains, 14 of 137,000 are further off, all of dates over 1,500 days away.
	usualReach, leastUsual = 4, 2
	usualFactor            = 1.25
)

// findVolatilities gives every strike its total volatility, and counts the strikes scaled to the floor.
func (s *series) findVolatilities() {
	for i := range s.strikes {
		row, otm := &s.strikes[i], s.outOf(s.strikes[i].k)
		if c := row.usable(otm); c != nil {
			if v, ok := ImpliedTotalVolatility(otm, c.Mid()/s.discount, s.forward, row.k, c.IV*math.Sqrt(s.years)); ok {
				row.v, row.step = v, volImplied
			}
		}
	}
	s.findWrong()
	s.findUsual()
	for _, otm := range [...]Right{Put, Call} {
		ceiling, nearest := math.Inf(1), 0.0 // the lowest ask and the last v of a quote so far
		for row := range s.outward(otm) {
			if c := row.contracts[otm]; c != nil && !row.contradicts && c.Ask > 0 && c.Ask >= c.Bid {
				ceiling = min(ceiling, c.Ask)
			}
			if row.step == volImplied {
				nearest = row.v
			} else if iv := s.published(row, otm, ceiling, nearest); iv > 0 {
				row.v, row.step = iv*math.Sqrt(max(s.years, floorYears)), volPublished
				if s.years < floorYears {
					s.floored++
				}
			}
		}
	}
	s.interpolateVolatilities()
}

// findUsual gives every strike the median of the published volatilities around it, where more than half of these are near it.
func (s *series) findUsual() {
	var ivs []float64 // of the strikes that have one, rising
	var rows []*strike
	for i := range s.strikes {
		row, otm := &s.strikes[i], s.outOf(s.strikes[i].k)
		for _, right := range [...]Right{otm, Call + Put - otm} {
			if c := row.contracts[right]; c != nil && c.IV >= leastPublished {
				ivs, rows = append(ivs, c.IV), append(rows, row)
				break
			}
		}
	}
	var around [2 * usualReach]float64
	for i, row := range rows {
		n := min(usualReach, i, len(ivs)-1-i)
		if row.step == volImplied || n < leastUsual {
			continue
		}
		near := append(append(around[:0], ivs[i-n:i]...), ivs[i+1:i+1+n]...)
		usual, agree := median(near), 0
		for _, iv := range near {
			if isUsual(iv, usual) {
				agree++
			}
		}
		if agree > n {
			row.usual = usual
		}
	}
}

func isUsual(iv, usual float64) bool { return iv <= usual*usualFactor && usual <= iv*usualFactor }

// published returns the published volatility of a strike, of the out-of-the-money side if both have one; 0 where none can be true.
func (s *series) published(row *strike, otm Right, ceiling, nearest float64) float64 {
	bid := 0.0
	if c := row.contracts[otm]; c != nil && !row.contradicts && c.Ask >= c.Bid {
		bid = c.Bid
	}
	for _, right := range [...]Right{otm, Call + Put - otm} {
		c := row.contracts[right]
		if c == nil || !(c.IV >= leastPublished) || row.usual > 0 && !isUsual(c.IV, row.usual) || c.IV*math.Sqrt(max(s.years, floorYears))*mostValue < nearest {
			continue
		}
		value := 0.0
		if row.k > 0 {
			value = s.discount * BlackValue(otm, s.forward, row.k, c.IV*math.Sqrt(s.years))
		}
		if row.k == 0 || value <= mostValue*ceiling && value*mostValue >= bid {
			return c.IV
		}
	}
	return 0
}

// interpolateVolatilities fills the strikes that steps 1 and 2 left out. Interpolated strikes do not count as neighbours.
func (s *series) interpolateVolatilities() {
	priced := slices.DeleteFunc(slices.Clone(s.strikes), func(r strike) bool { return r.step == volNone })
	for i := range s.strikes {
		if row := &s.strikes[i]; row.step == volNone && len(priced) > 0 {
			row.v, row.step = volatilityAt(priced, row.k), volInterpolated
		}
	}
}

// volatilityAt returns v at a strike, of strikes that have one: v² linear in ln(K/F), which is linear in ln K, between the neighbours, flat
// outside them.
func volatilityAt(priced []strike, k float64) float64 {
	i, _ := find(priced, k)
	switch {
	case i == 0:
		return priced[0].v
	case i == len(priced):
		return priced[i-1].v
	case priced[i-1].k == 0: // ln 0 is -∞, so the other is infinitely closer
		return priced[i].v
	}
	a, b := &priced[i-1], &priced[i]
	w := math.Log(k/a.k) / math.Log(b.k/a.k)
	return math.Sqrt(a.v*a.v + w*(b.v*b.v-a.v*a.v))
}

func (s *series) byDistance(a, b strike) int {
	return cmp.Compare(math.Abs(a.k-s.forward), math.Abs(b.k-s.forward))
}

// find returns the index of the first strike at or above k, and whether it is k.
func find(rows []strike, k float64) (int, bool) {
	return slices.BinarySearchFunc(rows, k, func(r strike, k float64) int { return cmp.Compare(r.k, k) })
}
