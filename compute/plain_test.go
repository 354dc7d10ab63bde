package compute_test

import (
	"math"

	"strikecache/compute"
)

// The files plain_*_test.go are a second, deliberately plain implementation of METHODS.md §1, the gamma exposure. It
// was written from the text alone, so that an error in the production code is not repeated in it: contract by
// contract, no sharing between strikes, no recurrences, its own Black formula, its own bisections and its own clock
// arithmetic. It rounds nothing and is slow. TestPlainIsIndependent holds what it may use.

// plainInput is everything that the numbers depend on.
type plainInput struct {
	Chain         *compute.Chain
	Closed        map[compute.Date]bool // full exchange holidays that are weekdays
	Early         map[compute.Date]bool // sessions that close at 13:00
	Rate          float64
	PreviousCarry map[compute.Series]float64 // b of the previous snapshot, may be nil
}

// plainResult holds every number of METHODS.md §1, unrounded, under the names that package compute gives them. A nil pointer
// is null. All shares are percentages.
type plainResult struct {
	Spot         float64
	SessionDate  compute.Date
	OISettleDate compute.Date
	OIState      string // settled or updating

	Net, Call, Put, Gross, Tilt *float64

	Flip         *float64
	FlipStatus   string
	Flips        []plainCrossing
	FlipDistance *float64
	FlipBand     *plainBand
	Scenarios    []plainRepriced
	Regime       *string

	CallWall, PutWall, VolTrigger, AbsGammaStrike *float64
	Walls                                         plainWalls

	ZeroDTE      plainZeroDTE
	ExpectedMove *float64

	ContractsAnalyzed int
	Conventions       []plainRepriced
	ByExpiration      []plainExpiration
	Profile           []plainPoint
	ByStrike          []plainStrike

	quality plainQuality
}

// plainBand is the lowest and the highest flip.
type plainBand struct{ Low, High float64 }

// plainRepriced is the net and the flip of one scenario or convention, both nil for no contracts.
type plainRepriced struct {
	Name      string
	Net, Flip *float64
}

// plainWall is one call wall and one put wall.
type plainWall struct{ Call, Put *float64 }

// plainWalls are the walls without a side limit.
type plainWalls struct{ Gross, Net, OpenInterest plainWall }

// plainZeroDTE is the part of the used contracts that settles on the session date.
type plainZeroDTE struct {
	Net       float64
	Share     *float64 // of gross; nil only when the gross itself is 0 although such contracts exist
	Flip      *float64
	Contracts int
}

// plainExpiration is one date and settlement.
type plainExpiration struct {
	Expiration    compute.Date
	Settlement    compute.Settlement
	Net, Gross    float64
	Share         *float64 // of gross; nil only when the gross of the whole chain is 0 but the row has used contracts
	Forward       float64
	ForwardSource string // parity, other_settlement, interpolated, extrapolated, previous or none
}

// plainPoint is G at one hypothetical spot.
type plainPoint struct {
	Spot float64
	Net  *float64 // nil with nothing used
}

// plainStrike is one strike over both roots and all expirations.
type plainStrike struct {
	Strike, Call, Put, Net                                   float64
	CallOpenInterest, PutOpenInterest, CallVolume, PutVolume float64
}

// plainQuality is METHODS.md §1.7.
type plainQuality struct {
	Contracts       plainContracts
	Volatility      []plainShare
	FlooredStrikes  int
	TwoSidedShare   *float64
	Forwards        map[string]int // expirations by source
	GammaDifference plainDifference
	QuoteAgeSeconds float64 // captured_at - as_of
}

// plainContracts counts what is used, and what is not, by the first reason that applies.
type plainContracts struct {
	Listed, Used int
	Skipped      struct {
		compute.Skipped
		Settled, NoOpenInterest, NoVolatility int
	}
}

// plainShare is the part of one step of the volatility rule; nil when there is nothing to share.
type plainShare struct {
	Step                                   string
	OpenInterest, GrossAtSpot, GrossAtFlip *float64
}

// plainDifference is |published - recomputed| gamma.
type plainDifference struct {
	Contracts            int
	Median, Percentile95 *float64
}

// plainSeries is the contracts of one root and expiration with T > 0.
type plainSeries struct {
	root       string
	expiration compute.Date
	settlement compute.Settlement
	contracts  []*compute.Contract
	seconds    float64 // from as_of to settlement
	years      float64 // T
	logCarry   float64 // ln(F/S)
	forward    float64
	source     string
	smiles     []smile // by strike, ascending
}

// leg is one used contract with the constants of its formula.
type leg struct {
	contract *compute.Contract
	group    *plainSeries
	sign     float64 // +1 call, -1 put
	weight   float64 // open interest, or volume
	logFK    float64 // ln(F/K) at the spot
	discount float64 // exp((b-r)T) = F/S * exp(-rT)
	v        float64 // total volatility
	step     string
}

// plainGamma computes everything of METHODS.md §1.
func plainGamma(in plainInput) plainResult {
	clock := plainClock{closed: in.Closed, early: in.Early}
	chain, spot := in.Chain, in.Chain.Spot
	r := plainResult{Spot: spot}
	r.SessionDate = clock.lastSession(newYorkDate(chain.AsOf))
	r.OISettleDate, r.OIState = clock.openInterestDate(chain.CapturedAt)
	count := &r.quality.Contracts
	count.Listed, count.Skipped.Skipped = chain.Listed, chain.Skipped

	groups, settled := groupContracts(chain, clock)
	count.Skipped.Settled = settled
	setForwards(groups, spot, in.Rate, in.PreviousCarry)
	for _, g := range groups {
		g.smiles = volatilities(g, in.Rate)
	}
	legs := r.usedLegs(groups, spot, in.Rate)
	count.Used, r.ContractsAnalyzed = len(legs), len(legs)

	r.totals(legs, spot)
	r.flip(legs, spot)
	r.scenarios(legs, spot, in.Rate)
	rows := strikeRows(groups, legs, spot)
	r.levels(rows, spot)
	r.regime(spot)
	r.zeroDTE(legs, spot)
	if len(legs) > 0 {
		r.ExpectedMove = expectedMove(groups, clock, chain.AsOf, r.SessionDate, spot)
	}
	r.conventions(legs, spot)
	r.byExpiration(groups, legs, spot)
	for j := -60; j <= 60; j++ {
		p := plainPoint{Spot: spot * (1 + float64(j)/1000)}
		if len(legs) > 0 {
			p.Net = known(netExposure(legs, spot, p.Spot))
		}
		r.Profile = append(r.Profile, p)
	}
	for _, row := range rows {
		if row.CallOpenInterest+row.PutOpenInterest > 0 && 100*math.Abs(row.Strike-spot) <= 15*spot {
			r.ByStrike = append(r.ByStrike, row)
		}
	}
	r.quality.measure(groups, legs, chain, r.Flip)
	return r
}

// groupContracts collects the contracts with T > 0 and counts the others.
func groupContracts(chain *compute.Chain, clock plainClock) (groups []*plainSeries, settled int) {
	for i := range chain.Contracts {
		c := &chain.Contracts[i]
		seconds := clock.settlement(c.Expiration, c.Settlement).Sub(chain.AsOf).Seconds()
		if !(seconds > 0) {
			settled++
			continue
		}
		n := len(groups)
		if n == 0 || groups[n-1].root != c.Root || groups[n-1].expiration != c.Expiration {
			groups = append(groups, &plainSeries{root: c.Root, expiration: c.Expiration, settlement: c.Settlement,
				seconds: seconds, years: seconds / (365 * 86400)})
			n++
		}
		groups[n-1].contracts = append(groups[n-1].contracts, c)
	}
	return groups, settled
}

// usedLegs returns the used contracts and counts the skipped ones.
func (r *plainResult) usedLegs(groups []*plainSeries, spot, rate float64) []leg {
	var legs []leg
	for _, g := range groups {
		for _, c := range g.contracts {
			s := g.smileAt(c.Strike)
			if !(c.OpenInterest > 0) {
				r.quality.Contracts.Skipped.NoOpenInterest++
				continue
			}
			if s.step == stepNone {
				r.quality.Contracts.Skipped.NoVolatility++
				continue
			}
			sign := 1.0
			if c.Right == compute.Put {
				sign = -1
			}
			legs = append(legs, leg{contract: c, group: g, sign: sign, weight: c.OpenInterest,
				logFK: math.Log(g.forward / c.Strike), discount: g.forward / spot * math.Exp(-rate*g.years),
				v: s.v, step: s.step})
		}
	}
	return legs
}

// gamma is the gamma of a leg at a hypothetical spot S', with F(S') = F*S'/S and v held. shift is ln(S'/S).
func (l *leg) gamma(shift, at float64) float64 {
	d1 := (l.logFK+shift)/l.v + l.v/2
	return l.discount * math.Exp(-d1*d1/2) / math.Sqrt(2*math.Pi) / (at * l.v)
}

// gex is the dollars of hedge delta per 1 % move of a leg at a hypothetical spot.
func (l *leg) gex(shift, at float64) float64 {
	return l.sign * l.gamma(shift, at) * l.weight * 100 * at * at * 0.01
}

// netExposure is G at a hypothetical spot: the sum over the legs in their order.
func netExposure(legs []leg, spot, at float64) float64 {
	sum, shift := 0.0, math.Log(at/spot)
	for i := range legs {
		sum += legs[i].gex(shift, at)
	}
	return sum
}

// grossExposure is the sum of the absolute exposures.
func grossExposure(legs []leg, spot, at float64) float64 {
	sum, shift := 0.0, math.Log(at/spot)
	for i := range legs {
		sum += math.Abs(legs[i].gex(shift, at))
	}
	return sum
}

// totals fills net, call, put, gross and tilt.
func (r *plainResult) totals(legs []leg, spot float64) {
	if len(legs) == 0 {
		return
	}
	var call, put float64
	for i := range legs {
		if legs[i].sign > 0 {
			call += legs[i].gex(0, spot)
		} else {
			put += legs[i].gex(0, spot)
		}
	}
	r.Net = known(netExposure(legs, spot, spot))
	r.Call, r.Put, r.Gross = known(call), known(put), known(call-put)
	r.Tilt = ratio(call, -put)
}

// known returns a pointer to a finite number, else nil.
func known(x float64) *float64 {
	if !isFinite(x) {
		return nil
	}
	return &x
}

// ratio returns a/b, nil when b is 0.
func ratio(a, b float64) *float64 {
	if b == 0 {
		return nil
	}
	return known(a / b)
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
