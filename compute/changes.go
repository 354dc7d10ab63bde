package compute

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Changes says what moved the net exposure and the flip since the reference: the last snapshot of the previous session.
type Changes struct {
	ReferenceAsOf time.Time  `json:"reference_as_of"`
	Net           NetChange  `json:"net_gex_dollars"`
	Flip          FlipChange `json:"flip"`
}

// NetChange splits the change of the net exposure into parts, in the order of the repricing. They add up to To - From.
type NetChange struct {
	From         Dollars `json:"from"`
	To           Dollars `json:"to"`
	Expired      Dollars `json:"expired"`       // contracts that have settled
	Spot         Dollars `json:"spot"`          // the spot moved, and the forwards in proportion
	Time         Dollars `json:"time"`          // T passed
	Volatility   Dollars `json:"volatility"`    // volatilities and forwards moved
	OpenInterest Dollars `json:"open_interest"` // positions changed
	Listed       Dollars `json:"listed"`        // contracts came or went
}

// FlipChange is the flip of the reference and that of today. Nil means that there is none.
type FlipChange struct {
	From *Level `json:"from"`
	To   *Level `json:"to"`
}

// OpenInterestChange is the change of the open interest of one contract since the reference.
type OpenInterestChange struct {
	Contract   string `json:"contract"`
	Strike     Level  `json:"strike"`
	Expiration Date   `json:"expiration"`
	Right      Right  `json:"option_type"`
	From       Count  `json:"from"`
	To         Count  `json:"to"`
}

// The reasons of quality.changes_reason.
const (
	noReference         = "no_reference"
	netUnknown          = "net_unknown"
	referenceNetUnknown = "reference_net_unknown"
)

// changes compares today's net and flip, as served, with the reference. The reason is set when the result is nil.
func (e *exposure) changes(net *Dollars, flip *Level) (c *Changes, reason *string) {
	ref := e.Reference
	switch {
	case ref == nil:
		return nil, new(noReference)
	case net == nil:
		return nil, new(netUnknown)
	case ref.Net == nil:
		return nil, new(referenceNetUnknown)
	}
	n := e.reprice()
	from, to := Dollars(*ref.Net), *net
	return &Changes{
		ReferenceAsOf: ref.AsOf,
		Net: NetChange{
			From: from, To: to,
			Expired: n[0] - from, Spot: n[1] - n[0], Time: n[2] - n[1], Volatility: n[3] - n[2], OpenInterest: n[4] - n[3], Listed: to - n[4],
		},
		Flip: FlipChange{levelOf(ref.Flip), flip},
	}, nil
}

// The steps of the repricing between the reference and today. The net after each step begins from the state that the step
// before left. The last step, which takes contracts in and out, ends at today's net.
const (
	afterExpired = iota
	afterSpot
	afterTime
	afterVolatility
	afterOpenInterest
	repriceSteps
)

// reprice returns the net after each step. A contract that only the reference holds keeps its exposure throughout. A
// contract that only today holds adds nothing. The sums have the order of [exposure.sum], so that a step without a change
// changes no bit.
func (e *exposure) reprice() (net [repriceSteps]Dollars) {
	var call, put [repriceSteps]float64
	for before, now := range e.compared() {
		if before == nil {
			continue
		}
		var seriesCall, seriesPut [repriceSteps]float64
		for was, is := range comparedStrikes(before, now) {
			if was == nil {
				continue
			}
			unit := e.repriceStrike(before, now, was, is)
			for step := range repriceSteps {
				for right, sum := range [...]*float64{&seriesCall[step], &seriesPut[step]} {
					held, gex := was.OpenInterest[right], unit[step]
					switch {
					case math.IsNaN(held):
						continue
					case is == nil || is.contracts[right] == nil:
						gex = unit[afterExpired]
					case step == afterOpenInterest:
						held = is.contracts[right].OpenInterest
					}
					*sum += sign(Right(right)) * (gex * held)
				}
			}
		}
		for step := range repriceSteps {
			call[step] += seriesCall[step]
			put[step] += seriesPut[step]
		}
	}
	for step := range net {
		net[step] = Dollars(call[step] + put[step])
	}
	return net
}

// repriceStrike returns the unsigned GEX of one contract of a strike after each step. is is nil when today does not hold the
// strike: then only the first step counts.
func (e *exposure) repriceStrike(before *SeriesState, now *series, was *StrikeState, is *strike) (unit [repriceSteps]float64) {
	ref := e.Reference
	at := func(spot, f, v, discount float64) float64 {
		return BlackGamma(spot, spot, f, was.Strike, v, discount) * dollarsPerGamma(spot)
	}
	yearsBefore := before.Seconds / secondsPerYear
	discount := math.Exp(-ref.Rate * yearsBefore)
	unit[afterExpired] = at(ref.Spot, before.Forward, was.Volatility, discount)
	if is == nil {
		return unit
	}
	f := before.Forward * (e.level / ref.Spot)
	unit[afterSpot] = at(e.level, f, was.Volatility, discount)
	unit[afterTime] = at(e.level, f, was.Volatility*math.Sqrt(now.years/yearsBefore), now.discount)
	unit[afterVolatility] = is.gex
	unit[afterOpenInterest] = is.gex
	return unit
}

// maxOpenInterestChanges is how many contracts open_interest_changes names.
const maxOpenInterestChanges = 10

// openInterestChanges returns the largest changes of open interest since the reference among the unsettled contracts, largest
// first, of equal ones by symbol. A contract that one side does not hold has no open interest there. The result is nil
// without a reference.
func (e *exposure) openInterestChanges() *[]OpenInterestChange {
	if e.Reference == nil {
		return nil
	}
	largest := []OpenInterestChange{}
	compare := func(a, b OpenInterestChange) int {
		return cmp.Or(cmp.Compare(math.Abs(float64(b.To-b.From)), math.Abs(float64(a.To-a.From))), cmp.Compare(a.Contract, b.Contract))
	}
	for before, now := range e.compared() {
		for was, is := range comparedStrikes(before, now) {
			for _, right := range [...]Right{Call, Put} {
				c := Contract{Right: right}
				var from, to float64
				if was != nil {
					from, c.Strike = positive(was.OpenInterest[right]), was.Strike
					c.Root, c.Expiration = before.Root, before.Expiration
				}
				if is != nil && is.contracts[right] != nil {
					c = *is.contracts[right]
					to = c.OpenInterest
				}
				smallest := len(largest) - 1
				if from == to || len(largest) == maxOpenInterestChanges && math.Abs(to-from) < math.Abs(float64(largest[smallest].To-largest[smallest].From)) {
					continue
				}
				change := OpenInterestChange{c.Symbol(), Level(c.Strike), c.Expiration, right, Count(from), Count(to)}
				i, _ := slices.BinarySearchFunc(largest, change, compare)
				largest = slices.Insert(largest, i, change)
				largest = largest[:min(len(largest), maxOpenInterestChanges)]
			}
		}
	}
	return &largest
}

func levelOf(x *float64) *Level {
	if x == nil {
		return nil
	}
	return new(Level(*x))
}
