package compute_test

import (
	"math"

	"strikecache/compute"
)

// The files plain_*_test.go are a second, deliberately plain implementation of METHODS.md §§0 and 1, of the scores and sides of
// §5 and of the shape of §6. It was written from the text alone, so that it does not repeat an error of the production
// code. It goes contract by contract, shares nothing between strikes, uses no recurrences, and has its own Black formula,
// bisections and clock arithmetic. It rounds nothing and is slow. TestPlainIsIndependent says what it may use.

// plainInput is everything that the numbers depend on.
type plainInput struct {
	Underlying string
	Chain      *compute.Chain
	Closed     map[compute.Date]bool // full exchange holidays that are weekdays
	Early      map[compute.Date]bool // sessions that close at 13:00
	Rate       float64
	Reference  *plainState // of the last snapshot of the previous session, may be nil
}

// plainResult holds every number of METHODS.md §1, unrounded, under its JSON name. A nil pointer is null. All shares are
// percentages.
type plainResult struct {
	Underlying    string   `json:"symbol"`
	Spot          float64  `json:"spot"`
	EffectiveSpot float64  `json:"effective_spot"`
	SpotSource    string   `json:"spot_source"` // index, implied, index_stale or last
	SpotChange    *float64 `json:"spot_change_pct"`

	SessionDate  compute.Date `json:"session_date"`
	OISettleDate compute.Date `json:"oi_settle_date"`
	OIState      string       `json:"oi_state"` // settled or updating

	Net   *float64 `json:"net_gex_dollars"`
	Call  *float64 `json:"call_gex_dollars"`
	Put   *float64 `json:"put_gex_dollars"`
	Gross *float64 `json:"gross_gex_dollars"`
	Tilt  *float64 `json:"gamma_tilt"`

	Flip         *float64        `json:"zero_gamma_flip"`
	FlipStatus   string          `json:"flip_status"`
	Flips        []plainCrossing `json:"flips"`
	FlipDistance *float64        `json:"flip_distance_pct"`
	FlipBand     *plainBand      `json:"flip_band"`
	Scenarios    []plainRepriced `json:"scenarios"`
	Regime       *string         `json:"gamma_regime"`

	CallWall       *float64   `json:"call_wall"`
	PutWall        *float64   `json:"put_wall"`
	VolTrigger     *float64   `json:"vol_trigger"`
	AbsGammaStrike *float64   `json:"abs_gamma_strike"`
	Walls          plainWalls `json:"walls"`

	ZeroDTE      plainZeroDTE `json:"zero_dte"`
	ExpectedMove *float64     `json:"expected_move_1d"`

	ContractsAnalyzed int               `json:"contracts_analyzed"`
	Conventions       []plainRepriced   `json:"conventions"`
	Exposures         plainExposures    `json:"exposures"`
	Changes           *plainChanges     `json:"changes"`
	OIChanges         *[]plainInterest  `json:"open_interest_changes"`
	ByExpiration      []plainExpiration `json:"by_expiration"`
	Profile           []plainPoint      `json:"profile"`
	ByStrike          []plainStrike     `json:"by_strike"`

	exDate      compute.Date // before which the forwards fall
	exDateAhead bool

	quality plainQuality
	grid    plainMatrix
	state   *plainState
}

// plainBand is the lowest and the highest flip.
type plainBand struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// plainRepriced is the net and the flip of one scenario or convention, both nil for no contracts.
type plainRepriced struct {
	Name string   `json:"name"`
	Net  *float64 `json:"net_gex_dollars"`
	Flip *float64 `json:"zero_gamma_flip"`
}

type plainWall struct {
	Call *float64 `json:"call"`
	Put  *float64 `json:"put"`
}

// plainWalls are the walls without a side limit.
type plainWalls struct {
	Gross        plainWall `json:"gross"`
	Net          plainWall `json:"net"`
	OpenInterest plainWall `json:"open_interest"`
}

// plainZeroDTE is the part of the used contracts that settles on the session date.
type plainZeroDTE struct {
	Net       *float64 `json:"net_gex_dollars"`
	Share     *float64 `json:"gross_share_pct"`
	Flip      *float64 `json:"zero_gamma_flip"`
	Contracts int      `json:"contracts"`
	Settled   bool     `json:"settled"`
}

// plainExpiration is one date and settlement.
type plainExpiration struct {
	Expiration    compute.Date       `json:"expiration"`
	Settlement    compute.Settlement `json:"settlement"`
	Net           *float64           `json:"net_gex_dollars"`
	Gross         *float64           `json:"gross_gex_dollars"`
	Share         *float64           `json:"gross_share_pct"`
	Forward       float64            `json:"forward"`
	ForwardSource string             `json:"forward_source"` // parity, other_settlement, interpolated, extrapolated or none
	plainExposures
}

// plainPoint is G at one hypothetical spot.
type plainPoint struct {
	Spot float64  `json:"spot"`
	Net  *float64 `json:"net_gex_dollars"`
}

// plainStrike is one strike over both roots and all expirations.
type plainStrike struct {
	Strike           float64  `json:"strike"`
	Call             *float64 `json:"call_gex_dollars"`
	Put              *float64 `json:"put_gex_dollars"`
	Net              *float64 `json:"net_gex_dollars"`
	CallOpenInterest float64  `json:"call_open_interest"`
	PutOpenInterest  float64  `json:"put_open_interest"`
	CallVolume       float64  `json:"call_volume"`
	PutVolume        float64  `json:"put_volume"`
}

// plainQuality is METHODS.md §1.7.
type plainQuality struct {
	Contracts       plainContracts  `json:"contracts"`
	Volatility      []plainShare    `json:"volatility"`
	FlooredStrikes  int             `json:"volatility_floored_strikes"`
	TwoSidedShare   *float64        `json:"two_sided_quote_pct"`
	Forwards        map[string]int  `json:"forwards"` // series by source
	GammaDifference plainDifference `json:"published_gamma_difference"`
	QuoteAgeSeconds float64         `json:"quote_age_seconds"` // captured_at - as_of
	SpotGap         *float64        `json:"spot_gap_pct"`
	ChangesReason   *string         `json:"changes_reason"`
	Unread          *int            `json:"open_interest_unread"`
	BadNumbers      int             `json:"bad_numbers,omitempty"` // counted where the document is decoded

	GrossBeyond60Days *float64 `json:"gross_beyond_60_days_pct,omitempty"`
}

// plainContracts counts the used contracts, and the others by the first reason that applies.
type plainContracts struct {
	Listed  int `json:"listed"`
	Used    int `json:"used"`
	Skipped struct {
		compute.Skipped
		Settled        int `json:"settled"`
		NoOpenInterest int `json:"no_open_interest"`
		NoVolatility   int `json:"no_volatility"`
	} `json:"skipped"`
}

// plainShare is the share of one step of the volatility rule; nil when the total is 0.
type plainShare struct {
	Step         string   `json:"step"`
	OpenInterest *float64 `json:"open_interest_pct"`
	GrossAtSpot  *float64 `json:"gross_at_spot_pct"`
	GrossAtFlip  *float64 `json:"gross_at_flip_pct"`
}

// plainDifference is |published - recomputed| gamma.
type plainDifference struct {
	Contracts    int      `json:"contracts"`
	Median       *float64 `json:"median"`
	Percentile95 *float64 `json:"percentile_95"`
}

// plainSeries is the contracts of one root and expiration with T > 0.
type plainSeries struct {
	root       string
	expiration compute.Date
	settlement compute.Settlement
	contracts  []*compute.Contract
	seconds    float64 // from the quote instant to settlement
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
	chain := in.Chain
	r := plainResult{Underlying: in.Underlying, Spot: chain.Spot, SpotChange: known(chain.PriceChangePercent)}
	r.SessionDate = clock.lastSession(newYorkDate(chain.AsOf))
	r.OISettleDate, r.OIState = clock.openInterestDate(chain.CapturedAt)
	count := &r.quality.Contracts
	count.Listed, count.Skipped.Skipped = chain.Listed, chain.Skipped

	american, q := plainAmerican(in.Underlying), clock.quoteInstant(chain.AsOf, chain.CapturedAt, in.Underlying)
	groups, settled := groupContracts(chain, clock)
	count.Skipped.Settled = settled
	parity := parityForwards(groups, in.Rate)
	r.effectiveSpot(parity, q.Sub(chain.AsOf), american)
	spot := r.EffectiveSpot
	setForwards(groups, parity, spot, in.Rate)
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
		r.ExpectedMove = expectedMove(groups, clock, q, r.SessionDate, spot)
		r.Exposures = exposuresOf(legs, spot, in.Rate, r.SessionDate)
	}
	r.conventions(legs, spot)
	r.byExpiration(groups, legs, spot, in.Rate)
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
	mismatch := r.quality.SpotGap != nil && math.Abs(*r.quality.SpotGap) > 10
	r.matrix(groups, legs, spot, mismatch)
	if mismatch {
		r.contradict()
	}
	if !q.Before(clock.settlement(r.SessionDate, compute.PM)) {
		r.ZeroDTE = plainZeroDTE{Settled: true}
	}
	r.quality.measure(groups, legs, chain, spot, r.Flip)
	r.state = r.stateOf(in, groups)
	gone := func(h plainHeld) bool { return !clock.settlement(h.expiration, h.settlement).After(q) }
	if american && in.Reference != nil && wasSplit(in.Reference, spot, groups, gone) {
		r.quality.ChangesReason = new("split")
	} else {
		r.compareStates(in.Reference, r.state, gone)
	}
	if american && !mismatch {
		r.quality.GrossBeyond60Days = beyond60Days(legs, spot)
		r.exDate, r.exDateAhead = exDate(parity, spot, q.Sub(chain.AsOf).Seconds(), r.SessionDate)
	}
	return r
}

// groupContracts collects the contracts with T > 0 and counts the others.
func groupContracts(chain *compute.Chain, clock plainClock) (groups []*plainSeries, settled int) {
	for i := range chain.Contracts {
		c := &chain.Contracts[i]
		q := clock.quoteInstant(chain.AsOf, chain.CapturedAt, plainUnderlying(c.Root))
		seconds := clock.settlement(c.Expiration, c.Settlement).Sub(q).Seconds()
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
	density := math.Exp(-d1*d1/2) / math.Sqrt(2*math.Pi)
	if density == 0 { // even where the forward is out of the range of float64
		return 0
	}
	return l.discount * density / (at * l.v)
}

// gex returns the GEX of a leg at a hypothetical spot: dollars of hedge delta per 1 % move.
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
