package compute

import (
	"iter"
	"math"
	"slices"
	"time"
)

// GammaState is the state of a gamma exposure that [Changes] of the next session compare with. It holds every contract with
// T > 0, with or without open interest.
type GammaState struct {
	AsOf   time.Time
	Spot   float64  // effective
	Rate   float64  // per year, continuously compounded
	Net    *Dollars // as served; nil: unknown
	Flip   *Level   // as served; nil: none
	Series []SeriesState
	// Unknown has the contracts whose open interest is not known, see [listedSeries].
	Unknown []Contract
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
	Volatility   float64    // total volatility v of both rights, 0 for none
	OpenInterest [2]float64 // by right; NaN where not listed
}

// state returns the reference of the next session. net and flip are the figures as served.
func (e *exposure) state(net *Dollars, flip *Level) *GammaState {
	out := &GammaState{AsOf: e.Chain.AsOf, Spot: e.level, Rate: e.RiskFreeRate, Net: net, Flip: flip, Unknown: e.unknown()}
	for _, s := range e.series {
		held := make([]StrikeState, 0, len(s.strikes))
		for i := range s.strikes {
			row := &s.strikes[i]
			was := StrikeState{row.k, row.v, [2]float64{math.NaN(), math.NaN()}}
			for right, c := range row.contracts {
				if c != nil {
					was.OpenInterest[right] = c.OpenInterest
				}
			}
			held = append(held, was)
		}
		out.Series = append(out.Series, SeriesState{s.Series, s.left.Seconds(), s.forward, held})
	}
	return out
}

// listed yields the contracts of a state and their open interest.
func (g *GammaState) listed() iter.Seq2[contractKey, float64] {
	return func(yield func(contractKey, float64) bool) {
		for _, s := range g.Series {
			for _, row := range s.Strikes {
				for right, held := range row.OpenInterest {
					if !math.IsNaN(held) && !yield(contractKey{s.Series, row.Strike, Right(right)}, held) {
						return
					}
				}
			}
		}
	}
}

// unknown returns the contracts of all series whose open interest is not known.
func (e *exposure) unknown() (all []Contract) {
	for _, s := range e.series {
		all = append(all, s.unknown...)
	}
	return all
}

// compared returns the series of the reference that have not settled.
func (e *exposure) compared() []SeriesState {
	return slices.DeleteFunc(slices.Clone(e.Reference.Series), func(s SeriesState) bool {
		settlement, _ := e.underlying.settlement(s.Root)
		return !settlement.Instant(s.Expiration, e.Calendar).After(e.quoted)
	})
}

// today returns the series of today, nil if today does not hold it.
func (e *exposure) today(s Series) *series {
	i, found := slices.BinarySearchFunc(e.series, s, func(now *series, s Series) int { return now.compare(s) })
	if !found {
		return nil
	}
	return e.series[i]
}

// priced returns the strike of a series, nil if the series is nil or does not hold the strike with a volatility.
func (s *series) priced(k float64) *strike {
	if s == nil {
		return nil
	}
	if i, found := find(s.strikes, k); found && s.strikes[i].step != volNone {
		return &s.strikes[i]
	}
	return nil
}
