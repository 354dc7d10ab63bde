package compute

import (
	"cmp"
	"iter"
	"math"
	"time"
)

// GammaState is the state of a gamma exposure that [Changes] of the next session compare with. It holds every contract with
// T > 0 and a volatility, with or without open interest.
type GammaState struct {
	AsOf      time.Time
	Spot      float64  // effective
	Rate      float64  // per year, continuously compounded
	Net, Flip *float64 // as served, unrounded; nil: unknown, or no flip
	Series    []SeriesState
}

// SeriesState is one series of a [GammaState]. The series are in the order of sums.
type SeriesState struct {
	Series
	Seconds float64       // T, > 0
	Forward float64       // F, > 0
	Strikes []StrikeState // rising
}

// StrikeState is one strike of a [SeriesState].
type StrikeState struct {
	Strike       float64
	Volatility   float64    // total volatility v of both rights, > 0
	OpenInterest [2]float64 // by right; NaN where not listed
}

// state returns the reference of the next session. net and flip are the figures as served.
func (e *exposure) state(net *Dollars, flip *Level) *GammaState {
	out := &GammaState{AsOf: e.Chain.AsOf, Spot: e.level, Rate: e.RiskFreeRate}
	if net != nil {
		out.Net = new(float64(*net))
	}
	if flip != nil {
		out.Flip = new(float64(*flip))
	}
	for _, s := range e.series {
		held := make([]StrikeState, 0, len(s.strikes))
		for i := range s.strikes {
			if row := &s.strikes[i]; row.step != volNone {
				held = append(held, StrikeState{row.k, row.v, [2]float64{openInterest(row.contracts[Call]), openInterest(row.contracts[Put])}})
			}
		}
		if len(held) > 0 {
			out.Series = append(out.Series, SeriesState{s.Series, s.left.Seconds(), s.forward, held})
		}
	}
	return out
}

// openInterest returns the open interest of a contract, NaN where c is nil.
func openInterest(c *Contract) float64 {
	if c == nil {
		return math.NaN()
	}
	return c.OpenInterest
}

// compared yields each series of the reference with the same series of today, in the order of sums. One of the two is nil
// where only the other side has the series. Series of the reference that have settled are left out.
func (e *exposure) compared() iter.Seq2[*SeriesState, *series] {
	before, now := e.Reference.Series, e.series
	return func(yield func(*SeriesState, *series) bool) {
		for i, j := range merged(len(before), len(now), func(i, j int) int { return compareSeries(before[i].Series, now[j].Series) }) {
			var was *SeriesState
			var is *series
			if i >= 0 {
				was = &before[i]
			}
			if j >= 0 {
				is = now[j]
			} else if e.settled(was.Series) {
				continue
			}
			if !yield(was, is) {
				return
			}
		}
	}
}

// comparedStrikes yields the strikes of a series that the reference or today holds, rising: nil where one side does not hold
// the strike. before or now may be nil.
func comparedStrikes(before *SeriesState, now *series) iter.Seq2[*StrikeState, *strike] {
	var was []StrikeState
	var is []strike
	if before != nil {
		was = before.Strikes
	}
	if now != nil {
		is = now.strikes
	}
	return func(yield func(*StrikeState, *strike) bool) {
		for i, j := range merged(len(was), len(is), func(i, j int) int { return cmp.Compare(was[i].Strike, is[j].k) }) {
			var a *StrikeState
			var b *strike
			if i >= 0 {
				a = &was[i]
			}
			if j >= 0 && is[j].step != volNone {
				b = &is[j]
			}
			if (a != nil || b != nil) && !yield(a, b) {
				return
			}
		}
	}
}

// merged yields the indices of two sorted lists of n and m items, in their common order: equal items as one pair, any other
// item with -1.
func merged(n, m int, compare func(i, j int) int) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for i, j := 0, 0; i < n || j < m; {
			order := 0
			switch {
			case i == n:
				order = 1
			case j == m:
				order = -1
			default:
				order = compare(i, j)
			}
			a, b := -1, -1
			if order <= 0 {
				a, i = i, i+1
			}
			if order >= 0 {
				b, j = j, j+1
			}
			if !yield(a, b) {
				return
			}
		}
	}
}

func compareSeries(a, b Series) int {
	return cmp.Or(cmp.Compare(a.Root, b.Root), cmp.Compare(a.Expiration, b.Expiration))
}

// settled says whether a series has settled at the quote instant.
func (e *exposure) settled(s Series) bool {
	settlement, _ := settlementOf(e.Chain.Symbol, s.Root)
	return !settlement.Instant(s.Expiration, e.Calendar).After(e.quoted)
}
