package compute

import (
	"math"
	"slices"
	"time"
)

// listedSeries is one root and expiration with T > 0, as a chain lists it.
type listedSeries struct {
	Series
	settlement Settlement
	left       time.Duration // T, from the quote instant to settlement
	contracts  []Contract    // a part of [Chain.Contracts]; empty if none can be read
	// unknown has the contracts whose open interest is not known: that cannot be read, or that have no row although the exchange lists a
	// put with every call. The latter are those of a right without any row in the series, at the strikes of the other right.
	unknown []Contract
}

// listed returns the series with T > 0, by root and expiration.
func (c *Chain) listed(cal *Calendar) []listedSeries {
	var all []listedSeries
	for left, contracts := range c.unsettled(cal) {
		first := &contracts[0]
		all = append(all, listedSeries{Series{first.Root, first.Expiration}, first.Settlement, left, contracts, nil})
	}
	q := c.QuoteInstant(cal)
	for _, u := range c.Unread {
		left := u.Settlement.Instant(u.Expiration, cal).Sub(q)
		if left <= 0 {
			continue
		}
		at, found := slices.BinarySearchFunc(all, Series{u.Root, u.Expiration}, func(s listedSeries, k Series) int { return s.compare(k) })
		if !found {
			all = slices.Insert(all, at, listedSeries{Series{u.Root, u.Expiration}, u.Settlement, left, nil, nil})
		}
		all[at].unknown = append(all[at].unknown, u)
	}
	for i := range all {
		all[i].addCounterparts()
	}
	return all
}

// addCounterparts adds the contracts of a right without any row.
func (s *listedSeries) addCounterparts() {
	var n [2]int
	for _, rows := range [...][]Contract{s.contracts, s.unknown} {
		for i := range rows {
			n[rows[i].Right]++
		}
	}
	if n[Call] > 0 && n[Put] > 0 {
		return
	}
	for _, c := range slices.Concat(s.contracts, s.unknown) {
		c.Right, c.Quote = Call+Put-c.Right, Quote{OpenInterest: math.NaN(), Volume: math.NaN()}
		s.unknown = append(s.unknown, c)
	}
	slices.SortFunc(s.unknown, func(a, b Contract) int { return compareListing(&a, &b) })
}

// coverage counts the contracts that a sum is over, by right, and those of them that lack the number that it adds up.
type coverage struct{ rows, lacking [2]int }

func (c *coverage) count(right Right, lacks bool) {
	c.rows[right]++
	if lacks {
		c.lacking[right]++
	}
}

// known says whether the sum over a right is known: at most 1 in 100 of its contracts lack the number.
func (c *coverage) known(right Right) bool { return 100*c.lacking[right] <= c.rows[right] }

// served returns the sums over calls and over puts, each nil unless it is known.
func (c *coverage) served(sums [2]float64) (calls, puts *Count) {
	return ifKnown(c, Call, Count(sums[Call])), ifKnown(c, Put, Count(sums[Put]))
}

// ifKnown returns the sum over a right, nil unless it is known.
func ifKnown[T any](c *coverage, right Right, sum T) *T {
	if !c.known(right) {
		return nil
	}
	return &sum
}

func (c *coverage) complete() bool { return c.known(Call) && c.known(Put) }

// positions are sums over contracts, by right, and how many contracts lack the number.
type positions struct {
	openInterest, volume [2]float64
	interest, traded     coverage
}

func (p *positions) add(c *Contract) {
	p.openInterest[c.Right] += positive(c.OpenInterest)
	p.volume[c.Right] += positive(c.Volume)
	p.interest.count(c.Right, !finite(c.OpenInterest))
	p.traded.count(c.Right, !finite(c.Volume))
}

func positionsOf(some ...*series) (p positions) {
	for _, s := range some {
		for _, c := range s.all() {
			p.add(c)
		}
	}
	return p
}

// InterestUnknown counts the contracts with T > 0 whose open interest is not known, by right: that cannot be read, or that have no row,
// where an expiration has rows of the other right alone.
type InterestUnknown struct {
	Calls int `json:"calls" jsonschema:"minimum=0" unit:"contracts"` // Calls.
	Puts  int `json:"puts" jsonschema:"minimum=0" unit:"contracts"`  // Puts.
}

// UnknownInterest counts the contracts of a chain whose open interest is not known.
func UnknownInterest(c *Chain, cal *Calendar) InterestUnknown {
	var n [2]int
	for _, s := range c.listed(cal) {
		for i := range s.unknown {
			n[s.unknown[i].Right]++
		}
	}
	return InterestUnknown{n[Call], n[Put]}
}

// daily has the day from which on an underlying surely lists an expiration on every session: of SPX the first such day, of the others a
// later one.
//
// Source: Cboe, notices of Tuesday and Thursday expirations of SPX (from 2022-04-18 and 2022-05-11), XSP (2022) and RUT (from 2024-01-08);
// Federal Register 87 FR 58399 (SPY, QQQ) and 89 FR 30404 (IWM); brokers' lists (NDX).
var daily = map[string]Date{
	"SPX": NewDate(2022, 5, 11), "XSP": NewDate(2023, 1, 1), "SPY": NewDate(2023, 1, 1), "QQQ": NewDate(2023, 1, 1),
	"NDX": NewDate(2024, 1, 1), "IWM": NewDate(2024, 7, 1), "RUT": NewDate(2024, 2, 1),
}

// expiresOn says whether the underlying of a chain must list an expiration at the close of a session: if it lists one on every session, on
// the third Friday of a month, and where the chain has expirations one week later and two weeks later.
func (e *exposure) expiresOn(d Date) bool {
	if from, ok := daily[e.underlying.Symbol]; ok && d >= from {
		return true
	}
	if e.Calendar.IsMonthly(d) {
		return !slices.ContainsFunc(e.underlying.roots, func(r optionRoot) bool { return r.settlement == AM })
	}
	listed := func(d Date) bool {
		return slices.ContainsFunc(e.series, func(s *series) bool { return s.Expiration == d && s.settlement == PM })
	}
	return listed(d+7) && listed(d+14)
}
