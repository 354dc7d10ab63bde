package compute

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Changes are the changes since the reference: the last snapshot of the previous session.
type Changes struct {
	ReferenceAsOf time.Time  `json:"reference_as_of"` // `meta.as_of` of the reference.
	Net           NetChange  `json:"net_gex_dollars"`
	Flip          FlipChange `json:"flip"`
}

// NetChange is the change of net gamma exposure in parts. Each part reprices one thing, from the state that the part before
// left. The parts add up to `to` minus `from`.
type NetChange struct {
	From Dollars `json:"from" unit:"USD per 1 % move of the underlying"` // Net exposure of the reference.
	To   Dollars `json:"to" unit:"USD per 1 % move of the underlying"`   // Net exposure now.
	// First part: contracts that have settled since then are taken out.
	Expired Dollars `json:"expired" unit:"USD per 1 % move of the underlying"`
	// Second part: the effective spot becomes that of now, and the forwards move in proportion.
	Spot Dollars `json:"spot" unit:"USD per 1 % move of the underlying"`
	// Third part: time passes. Volatility and forwards stay.
	Time Dollars `json:"time" unit:"USD per 1 % move of the underlying"`
	// Fourth part: volatilities and forwards become those of now.
	Volatility Dollars `json:"volatility" unit:"USD per 1 % move of the underlying"`
	// Fifth part: open interest becomes that of now.
	OpenInterest Dollars `json:"open_interest" unit:"USD per 1 % move of the underlying"`
	// Last part: contracts that only one of the two snapshots has come in or leave.
	Listed Dollars `json:"listed" unit:"USD per 1 % move of the underlying"`
}

// FlipChange is the zero-gamma flip of both snapshots.
type FlipChange struct {
	From *Level `json:"from" unit:"USD or index points"` // Flip of the reference. `null` without a flip.
	To   *Level `json:"to" unit:"USD or index points"`   // Flip now. `null` without a flip.
}

// OpenInterestChange is the change of the open interest of a contract since the reference.
type OpenInterestChange struct {
	// Contract in OSI form: root, date, call or put, and 1,000 times the strike.
	Contract   string `json:"contract" jsonschema:"pattern=^[A-Z]+[0-9]{6}[CP][0-9]{8}$"`
	Strike     Level  `json:"strike" jsonschema:"exclusiveMinimum=0" unit:"USD or index points"` // Strike.
	Expiration Date   `json:"expiration"`                                                        // Expiration date.
	Right      Right  `json:"option_type"`                                                       // Right of the contract.
	// Open interest of the reference. 0 when the contract was not listed.
	From Count `json:"from" jsonschema:"minimum=0" unit:"contracts"`
	// Open interest now. 0 when the contract is not listed.
	To Count `json:"to" jsonschema:"minimum=0" unit:"contracts"`
}

// The reasons of quality.changes_reason that more than one place reads.
const (
	noReference = "no_reference"
	split       = "split"
)

// changes compares today's net and flip, as served, with the reference. The reason is set when the result is nil.
func (e *exposure) changes(net *Dollars, flip *Level) (c *Changes, reason *string) {
	ref := e.Reference
	switch {
	case ref == nil:
		return nil, new(noReference)
	case e.Chain.splitSince(ref.chain, e.level/ref.Spot, e.Calendar):
		return nil, new(split)
	case net == nil:
		return nil, new("net_unknown")
	case ref.net == nil:
		return nil, new("reference_net_unknown")
	}
	n := e.reprice()
	from, to := *ref.net, *net
	return &Changes{
		ReferenceAsOf: ref.chain.AsOf,
		Net: NetChange{
			From: from, To: to,
			Expired: n[0] - from, Spot: n[1] - n[0], Time: n[2] - n[1], Volatility: n[3] - n[2], OpenInterest: n[4] - n[3], Listed: to - n[4],
		},
		Flip: FlipChange{ref.flip, flip},
	}, nil
}

// movedShare is the share of open interest beyond which the changes that no trade explains show that contracts of the same symbols are
// others. On recorded chains of sessions that follow each other it is 0.002 to 0.03, with strikes that are shifted 0.51 to 0.77.
const movedShare = 0.25

// endOfSession is how long before the close of its session a document may be whose volume counts as that of the session.
const endOfSession = 5 * time.Minute

// splitSince says whether the shares of a fund or stock were split between an earlier chain and c, or the strikes adjusted: most of the
// contracts of the earlier one that have not settled are then no longer listed. After a price change of over 20 %, as from a split in half or
// more, it is enough that a tenth is gone, because some new strikes are equal to old ones. Options of a stock that only fell stay listed.
// ratio is that of the prices. It is a split, too, when open interest at symbols of both has changed by more than the volume in between: that
// of a whole session, so the earlier chain must be of its end.
func (c *Chain) splitSince(earlier *Chain, ratio float64, cal *Calendar) bool {
	if UnderlyingOf(c.Symbol).Kind == KindIndex {
		return false
	}
	listed, gone := 0, 0
	traded, open, moved := 0.0, 0.0, 0.0 // of contracts that both list
	for _, contracts := range earlier.settlingAfter(c.QuoteInstant(cal), cal) {
		for i := range contracts {
			was, now := &contracts[i], c.find(&contracts[i])
			if now == nil {
				gone++
				continue
			}
			listed++
			if was.Volume >= 0 {
				traded += was.Volume
				open += max(now.OpenInterest, was.OpenInterest)
				moved += max(math.Abs(now.OpenInterest-was.OpenInterest)-was.Volume, 0)
			}
		}
	}
	if math.Abs(ratio-1) > 0.2 && 10*gone > gone+listed {
		return true
	}
	whole := !earlier.AsOf.Before(cal.Close(earlier.Session(cal)).Add(-endOfSession))
	return gone > listed || whole && traded > 0 && moved > movedShare*open
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
// contract that only today holds adds nothing.
func (e *exposure) reprice() (net [repriceSteps]Dollars) {
	for _, before := range e.compared() {
		now := e.today(before.Series)
		for i := range before.strikes {
			was := &before.strikes[i]
			if was.step == volNone {
				continue
			}
			is := now.priced(was.k)
			unit := e.repriceStrike(before, now, was, is)
			for step := range net {
				for right, c := range was.contracts {
					if c == nil {
						continue
					}
					gex, held := unit[step], c.OpenInterest
					switch {
					case is == nil || is.contracts[right] == nil:
						gex = unit[afterExpired]
					case step == afterOpenInterest:
						held = is.contracts[right].OpenInterest
					}
					net[step] += Dollars(sign(Right(right)) * gex * held)
				}
			}
		}
	}
	return net
}

// repriceStrike returns the unsigned GEX of one contract of a strike after each step. is is nil when today does not hold the
// strike: then only the first step counts.
func (e *exposure) repriceStrike(before, now *series, was, is *strike) (unit [repriceSteps]float64) {
	unit[afterExpired] = was.gex
	if is == nil {
		return unit
	}
	f := before.forward * (e.level / e.Reference.Spot)
	at := func(v, discount float64) float64 {
		return BlackGamma(e.level, e.level, f, was.k, v, discount) * dollarsPerGamma(e.level)
	}
	unit[afterSpot] = at(was.v, before.discount)
	unit[afterTime] = at(was.v*math.Sqrt(now.years/before.years), now.discount)
	unit[afterVolatility] = is.gex
	unit[afterOpenInterest] = is.gex
	return unit
}

// OpenInterestChanges is the contracts of an underlying with the largest changes of open interest since the previous session, the `data`
// of gex/{u}/open-interest. Those of gex/{u} are its first 10.
type OpenInterestChanges struct {
	Symbol       string `json:"symbol" jsonschema:"pattern=^[A-Z.]+$"`            // The underlying.
	SessionDate  Date   `json:"session_date"`                                     // Session of `meta.as_of`.
	OISettleDate Date   `json:"oi_settle_date"`                                   // As in gex/{u}.
	OIState      string `json:"oi_state" jsonschema:"enum=settled,enum=updating"` // As in gex/{u}.
	// `meta.as_of` of the reference: the last snapshot of the previous session that was computed from a chain. `null` when `contracts` is.
	ReferenceAsOf *time.Time `json:"reference_as_of" jsonschema:"example=2026-11-19T21:14:59Z"`
	// Contracts that have not settled with the largest changes of open interest since the reference, largest first. `null` when
	// `meta.quality.changes_reason` says why.
	Contracts *[]OpenInterestChange `json:"contracts" jsonschema:"maxItems=50"`
}

// How many contracts gex/{u}/open-interest and gex/{u} name.
const maxOpenInterestChanges, maxGammaChanges = 50, 10

// openInterestChanges returns the largest changes of open interest since the reference among the unsettled contracts, largest
// first, of equal ones by symbol. A contract that one side does not list has no open interest there. unread is the number of
// contracts that are left out, because their open interest cannot be read on one side. The results are nil without a reference.
func (e *exposure) openInterestChanges() (largest *[]OpenInterestChange, unread *int) {
	if e.Reference == nil {
		return nil, nil
	}
	leftOut := map[string]bool{} // by symbol
	for _, c := range slices.Concat(unknownOf(e.Reference.series), unknownOf(e.series)) {
		if c.Settlement.Instant(c.Expiration, e.Calendar).After(e.quoted) {
			leftOut[c.Symbol()] = true
		}
	}
	out := []OpenInterestChange{}
	add := func(c *Contract, from, to float64) {
		if from == to {
			return
		}
		if symbol := c.Symbol(); !leftOut[symbol] {
			out = append(out, OpenInterestChange{symbol, Level(c.Strike), c.Expiration, c.Right, Count(from), Count(to)})
		}
	}
	for _, s := range e.series {
		for _, c := range s.all() {
			was := e.Reference.chain.find(c)
			if was == nil {
				was = &Contract{}
			}
			add(c, was.OpenInterest, c.OpenInterest)
		}
	}
	for _, s := range e.compared() {
		for row, c := range s.all() {
			if row != nil && e.Chain.find(c) == nil {
				add(c, c.OpenInterest, 0)
			}
		}
	}
	slices.SortFunc(out, func(a, b OpenInterestChange) int {
		return cmp.Or(cmp.Compare(math.Abs(float64(b.To-b.From)), math.Abs(float64(a.To-a.From))), cmp.Compare(a.Contract, b.Contract))
	})
	out = slices.Clone(out[:min(len(out), maxOpenInterestChanges)])
	return &out, new(len(leftOut))
}

// GammaState is what [Changes] of the next session compare with: a gamma exposure, and the chain behind it. It is immutable.
type GammaState struct {
	Rate float64 // per year, continuously compounded
	Spot float64 // effective

	chain  *Chain
	series []*series
	net    *Dollars // as served; nil: unknown
	flip   *Level   // as served; nil: none
}

// unknownOf returns the contracts of some series whose open interest is not known.
func unknownOf(some []*series) (all []Contract) {
	for _, s := range some {
		all = append(all, s.unknown...)
	}
	return all
}

// compared returns the series of the reference that have not settled.
func (e *exposure) compared() []*series {
	return slices.DeleteFunc(slices.Clone(e.Reference.series), func(s *series) bool {
		return !s.settlement.Instant(s.Expiration, e.Calendar).After(e.quoted)
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
