package compute_test

import (
	"cmp"
	"math"
	"slices"
	"time"

	"strikecache/compute"
)

var newYork = func() *time.Location {
	loc, err := time.LoadLocation("America/New_York")
	if err != nil {
		panic(err)
	}
	return loc
}()

// plainClock knows the sessions of the exchange.
type plainClock struct{ closed, early map[compute.Date]bool }

func newYorkDate(t time.Time) compute.Date {
	y, m, d := t.In(newYork).Date()
	return compute.NewDate(y, m, d)
}

// wall returns the instant of a New York wall clock time.
func wall(d compute.Date, hour, minute int) time.Time {
	y, m, day := d.Midnight().Date()
	return time.Date(y, m, day, hour, minute, 0, 0, newYork)
}

func weekday(d compute.Date) bool {
	return d.Weekday() != time.Saturday && d.Weekday() != time.Sunday
}

func (c plainClock) session(d compute.Date) bool { return weekday(d) && !c.closed[d] }

// lastSession is the last session on or before d.
func (c plainClock) lastSession(d compute.Date) compute.Date {
	for !c.session(d) {
		d--
	}
	return d
}

func (c plainClock) open(d compute.Date) time.Time { return wall(d, 9, 30) }

func (c plainClock) close(d compute.Date) time.Time {
	if c.early[d] {
		return wall(d, 13, 0)
	}
	return wall(d, 16, 0)
}

// settlement is the instant at which an expiration settles.
func (c plainClock) settlement(d compute.Date, s compute.Settlement) time.Time {
	if s == compute.AM {
		return c.open(d)
	}
	return c.close(d)
}

// openInterestDate returns the session whose open interest a document holds, and the state of the count.
func (c plainClock) openInterestDate(captured time.Time) (compute.Date, string) {
	today := newYorkDate(captured)
	if !c.session(today) { // the same as on the last session day
		return c.lastSession(c.lastSession(today) - 1), "settled"
	}
	before := c.lastSession(today - 1)
	if captured.Before(wall(today, 7, 15)) {
		return c.lastSession(before - 1), "updating"
	}
	return before, "settled"
}

// sessionsAfter counts the sessions in (from, to].
func (c plainClock) sessionsAfter(from, to compute.Date) int {
	n := 0
	for d := from + 1; d <= to; d++ {
		if c.session(d) {
			n++
		}
	}
	return n
}

// unexpired returns the part of session d that lies after t, 0 to 1.
func (c plainClock) unexpired(d compute.Date, t time.Time) float64 {
	left := c.close(d).Sub(t).Seconds() / c.close(d).Sub(c.open(d)).Seconds()
	return math.Max(0, math.Min(1, left))
}

// weekdaysBetween counts the weekdays in [from, to); holidays count.
func weekdaysBetween(from, to compute.Date) int {
	n := 0
	for d := from; d < to; d++ {
		if weekday(d) {
			n++
		}
	}
	return n
}

// expectedMove returns S*v/sqrt(n) of the nearest expiration with a full session after the session date.
func expectedMove(groups []*plainSeries, clock plainClock, q time.Time, today compute.Date, spot float64) *float64 {
	var nearest *plainSeries
	for _, g := range groups {
		if clock.sessionsAfter(today, g.lastDay()) >= 1 && (nearest == nil || g.seconds < nearest.seconds) {
			nearest = g
		}
	}
	if nearest == nil {
		return nil
	}
	sessions := 0.0 // from the quote instant to settlement
	for d := newYorkDate(q); d <= nearest.lastDay(); d++ {
		if clock.session(d) {
			sessions += clock.unexpired(d, q)
		}
	}
	atm := nearest.smiles[0]
	for _, s := range nearest.smiles {
		if math.Abs(s.strike-nearest.forward) < math.Abs(atm.strike-nearest.forward) {
			atm = s
		}
	}
	if atm.step == stepNone {
		return nil
	}
	return known(spot * atm.v / math.Sqrt(sessions))
}

// lastDay is the last day on which the contracts of a group trade.
func (g *plainSeries) lastDay() compute.Date {
	if g.settlement == compute.AM {
		return g.expiration - 1
	}
	return g.expiration
}

// The sources of a forward.
const (
	sourceParity       = "parity"
	sourceOther        = "other_settlement"
	sourceInterpolated = "interpolated"
	sourceExtrapolated = "extrapolated"
	sourceNone         = "none"
)

// parityForwards fills forward and source of the groups that have a parity forward, and returns these groups, sorted by T.
func parityForwards(groups []*plainSeries, rate float64) []*plainSeries {
	var parity []*plainSeries
	for _, g := range groups {
		if f, ok := parityForward(g, rate); ok {
			g.forward, g.source = f, sourceParity
			parity = append(parity, g)
		}
	}
	slices.SortStableFunc(parity, func(a, b *plainSeries) int { return cmp.Compare(a.seconds, b.seconds) })
	return parity
}

// setForwards fills logCarry of every group, and forward and source of the groups without a parity forward.
func setForwards(groups, parity []*plainSeries, spot, rate float64) {
	for _, g := range parity {
		g.logCarry = math.Log(g.forward / spot)
	}
	for _, g := range groups {
		if g.source != sourceParity {
			g.logCarry, g.source = otherForward(g, parity, rate)
			g.forward = spot * math.Exp(g.logCarry)
		}
	}
}

// otherForward returns ln(F/S) of a group without a parity forward of its own.
func otherForward(g *plainSeries, parity []*plainSeries, rate float64) (float64, string) {
	if len(parity) == 0 {
		return 0, sourceNone
	}
	for _, p := range parity {
		if p.expiration == g.expiration && p.settlement != g.settlement {
			return p.logCarry, sourceOther
		}
	}
	lastT, lastCarry := 0.0, 0.0 // ln(F/S) is 0 at T = 0
	for _, p := range parity {
		if g.years <= p.years {
			w := (g.years - lastT) / (p.years - lastT)
			return lastCarry + w*(p.logCarry-lastCarry), sourceInterpolated
		}
		lastT, lastCarry = p.years, p.logCarry
	}
	if parity[len(parity)-1].seconds-parity[0].seconds >= 30*86400 {
		_, _, slope := fitted(parity)
		rate = math.Min(math.Max(slope, -1), 1)
	}
	return lastCarry + rate*(g.years-lastT), sourceExtrapolated
}

// parityForward is the median of K + e^{rT}(C-P) over the strikes nearest the money.
func parityForward(g *plainSeries, rate float64) (float64, bool) {
	type pair struct{ strike, difference float64 }
	var pairs []pair
	for _, call := range g.contracts {
		if call.Right != compute.Call || !twoSided(call) {
			continue
		}
		for _, put := range g.contracts {
			if put.Right == compute.Put && put.Strike == call.Strike && twoSided(put) {
				pairs = append(pairs, pair{call.Strike, mid(call) - mid(put)})
			}
		}
	}
	if len(pairs) < 3 {
		return 0, false
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { // already sorted by strike, so the lower strike of a tie stays first
		return cmp.Compare(tieUnits(a.difference), tieUnits(b.difference))
	})
	pairs = pairs[:min(7, len(pairs))]
	var forwards []float64
	for _, p := range pairs {
		forwards = append(forwards, p.strike+math.Exp(rate*g.years)*p.difference)
	}
	f := percentile(forwards, 0.5)
	return f, isFinite(f) && f > 0
}

// tieUnits returns |x| in units of 1e-7. Quotes are decimals: two differences that are equal as decimals become equal,
// whatever their last bits.
func tieUnits(x float64) float64 { return math.Round(math.Abs(x) * 1e7) }

func twoSided(c *compute.Contract) bool { return c.Bid > 0 && c.Ask >= c.Bid && isFinite(c.Ask) }

func mid(c *compute.Contract) float64 { return (c.Bid + c.Ask) / 2 }

// percentile is the linear percentile of x, which must not be empty: p = 0.5 is the median.
func percentile(x []float64, p float64) float64 {
	sorted := slices.Clone(x)
	slices.Sort(sorted)
	position := float64(len(sorted)-1) * p
	below := int(math.Floor(position))
	if below == len(sorted)-1 {
		return sorted[below]
	}
	return sorted[below] + (position-float64(below))*(sorted[below+1]-sorted[below])
}

// The steps of the volatility rule.
const (
	stepImplied      = "implied"
	stepPublished    = "published"
	stepInterpolated = "interpolated"
	stepNone         = "none"
)

// smile is the total volatility of one strike of a group.
type smile struct {
	strike  float64
	v       float64
	step    string
	floored bool
}

// smileAt returns the volatility of a listed strike.
func (g *plainSeries) smileAt(strike float64) smile {
	for _, s := range g.smiles {
		if s.strike == strike {
			return s
		}
	}
	panic("plain: strike is not listed")
}

// volatilities finds one v per strike of a group.
func volatilities(g *plainSeries, rate float64) []smile {
	var smiles []smile
	for i, c := range g.contracts {
		if i > 0 && g.contracts[i-1].Strike == c.Strike {
			continue
		}
		var call, put *compute.Contract
		for _, x := range g.contracts {
			if x.Strike == c.Strike && x.Right == compute.Call {
				call = x
			}
			if x.Strike == c.Strike && x.Right == compute.Put {
				put = x
			}
		}
		smiles = append(smiles, quotedVolatility(g, c.Strike, call, put, rate))
	}
	quoted := make([]smile, 0, len(smiles))
	for _, s := range smiles {
		if s.step != stepNone {
			quoted = append(quoted, s)
		}
	}
	for i := range smiles {
		if smiles[i].step == stepNone && len(quoted) > 0 {
			smiles[i].v = interpolate(quoted, smiles[i].strike, g.forward)
			smiles[i].step = stepInterpolated
		}
	}
	return smiles
}

// quotedVolatility does steps 1 and 2: from the out-of-the-money mid, else from the published iv.
func quotedVolatility(g *plainSeries, strike float64, call, put *compute.Contract, rate float64) smile {
	outside, other := put, call
	if strike >= g.forward {
		outside, other = call, put
	}
	if outside != nil && twoSided(outside) {
		price := mid(outside) * math.Exp(rate*g.years)
		if v, ok := implied(price, g.forward, strike, strike >= g.forward); ok {
			return smile{strike: strike, v: v, step: stepImplied}
		}
	}
	const floor = 15 * 60.0 // seconds
	years := math.Max(g.seconds, floor) / (365 * 86400)
	for _, c := range []*compute.Contract{outside, other} {
		if c != nil && c.IV > 0 && isFinite(c.IV) {
			return smile{strike: strike, v: c.IV * math.Sqrt(years), step: stepPublished, floored: g.seconds < floor}
		}
	}
	return smile{strike: strike, step: stepNone}
}

// interpolate does step 3: v^2 linear in ln(K/F) between quoted neighbours, flat outside.
func interpolate(quoted []smile, strike, forward float64) float64 {
	first, last := quoted[0], quoted[len(quoted)-1]
	if strike <= first.strike {
		return first.v
	}
	if strike >= last.strike {
		return last.v
	}
	i := 1
	for quoted[i].strike < strike {
		i++
	}
	low, high := quoted[i-1], quoted[i]
	if low.strike == 0 { // ln(K/F) is -Inf: the limit
		return high.v
	}
	x, x0, x1 := math.Log(strike/forward), math.Log(low.strike/forward), math.Log(high.strike/forward)
	return math.Sqrt(low.v*low.v + (high.v*high.v-low.v*low.v)*(x-x0)/(x1-x0))
}

func normal(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }

// black is the undiscounted Black price for total volatility v.
func black(forward, strike, v float64, call bool) float64 {
	d1 := math.Log(forward/strike)/v + v/2
	d2 := d1 - v
	if call {
		return forward*normal(d1) - strike*normal(d2)
	}
	return strike*normal(-d2) - forward*normal(-d1)
}

// implied solves black(v) = price by bisection until no float64 lies between the ends.
func implied(price, forward, strike float64, call bool) (float64, bool) {
	intrinsic, upper := math.Max(0, strike-forward), strike
	if call {
		intrinsic, upper = math.Max(0, forward-strike), forward
	}
	if !(price > intrinsic) || !(price < upper) {
		return 0, false
	}
	low, high := 0.0, 1.0
	for black(forward, strike, high, call) < price {
		high *= 2
		if high > 1000 {
			return 0, false
		}
	}
	for {
		v := low + (high-low)/2
		if v == low || v == high {
			break
		}
		if black(forward, strike, v, call) < price {
			low = v
		} else {
			high = v
		}
	}
	return high, true
}
