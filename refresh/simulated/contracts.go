package simulated

import (
	"math"
	"time"

	"strikecache/compute"
)

// contract is what does not change of a listed option while its table is current. Its trades of a session are not
// stored: they are of one size, and evenly spread over the pace of the session (see [contract.pace]).
type contract struct {
	openInterest uint32
	volume       uint32  // contracts traded by the end of the session
	trades       uint32  // in how many trades
	burst        float64 // share of the session from which on it trades unusually much, 0 for ordinary trading
	prevClose    float64 // the middle of the closing quote
	last         float32 // price of the last trade before the session
	lastTrade    int64   // of that trade, Unix seconds; 0 for never
}

// pace returns the share of the contract's trades that is done when u of its session has passed.
func (c *contract) pace(u float64) float64 {
	if c.burst > 0 {
		return max(u-c.burst, 0) / (1 - c.burst)
	}
	return activity(u)
}

// reaches returns the u at which a share of the contract's trades is done, the inverse of pace.
func (c *contract) reaches(share float64) float64 {
	if c.burst > 0 {
		return c.burst + (1-c.burst)*share
	}
	return activityReaches(share)
}

// tableKey is what a table depends on, as sessions of the market.
type tableKey struct{ session, listed, published int }

// table is a chain's listing with what is known of each contract for a session.
type table struct {
	*day
	key       tableKey
	spec      *chainSpec
	date      compute.Date // of the session
	open      time.Time
	close     time.Time
	series    []series
	contracts []contract // by series, strike, right
}

// table returns the table that a frame needs.
func (m *Market) table(in *instrument, f *frame) *table {
	key := tableKey{f.session, f.listed, f.published}
	if t := m.tables[in]; t != nil && t.key == key {
		return t
	}
	t := &table{
		day: m.day(in, key.session), key: key, spec: in.chain, date: f.date, open: f.open, close: f.close,
		series: m.listing(in, m.factors.dates[key.listed]),
	}
	n := 0
	for i := range t.series {
		s := &t.series[i]
		s.key = m.key.named("options").named(s.root).child(uint64(s.date))
		s.first = n
		n += 2 * len(s.strikes)
	}
	t.contracts = make([]contract, n)
	b := newTableBuilder(m, t)
	for i := range t.series {
		b.fill(&t.series[i])
	}
	b.addBursts()
	m.tables[in] = t
	return t
}

// contractKey returns the noise of a contract; strike is an index.
func (s *series) contractKey(strike int, right int) noise {
	return s.key.child(uint64(s.strikes[strike])*2 + uint64(right))
}

// tradingTime returns how long a series trades in the session: options on the index go on after the close, but for
// those that settle then.
func (t *table) tradingTime(s *series) time.Duration {
	end := t.close
	if t.in.symbol == spx {
		end = end.Add(indexTail - time.Second)
	}
	return earlier(end, s.settles).Sub(t.open)
}

// tradeKey returns the noise of a contract's trades in the session.
func (t *table) tradeKey(key noise) noise { return key.child(7).child(uint64(t.date)) }

// tradesBy returns how many of a contract's trades are done when a time has passed since the open.
func (t *table) tradesBy(s *series, c *contract, key noise, passed time.Duration) uint32 {
	pace := c.pace(min(float64(passed)/float64(t.tradingTime(s)), 1))
	return uint32(pace*float64(c.trades) + t.tradeKey(key).unit())
}

// trade returns the n-th trade of a contract in the session, n from 1: how long after the open, and its price.
func (t *table) trade(s *series, c *contract, key noise, n uint32, strike float64, right int) (after time.Duration, price float64) {
	trades := t.tradeKey(key)
	share := (float64(n) - trades.unit()) / float64(c.trades)
	after = time.Duration(c.reaches(share) * float64(t.tradingTime(s))).Truncate(time.Second)
	at := trades.child(uint64(n)).unit()
	if c.burst > 0 {
		at = min(math.Floor(2.5*trades.child(0).unit()), 1) // at the ask, or less often at the bid
	}
	surface := t.in.surface(t.at(float64(after) / float64(t.close.Sub(t.open))))
	return after, surface.tradePrice(t.spec, s, s.settles.Sub(t.open)-after, key, strike, right, at)
}

// tradePrice returns the price of a trade some time before the settlement: at is 0 to 1, and a third of it is the bid
// and the ask. No trade has the price 0.
func (sf surface) tradePrice(spec *chainSpec, s *series, left time.Duration, key noise, strike float64, right int, at float64) float64 {
	m := sf.smile(left)
	v := m.value(strike)
	bid, ask := spec.maker.quote(&m, &v, right, key, s.am)
	cents := float64(bid) + float64(ask-bid)*min(max((at-1.0/6)*1.5, 0), 1)
	return max(math.Round(cents), 1) / 100
}

// tableBuilder fills a table.
type tableBuilder struct {
	*Market
	t         *table
	published compute.Date
	center    float64                  // spot that open interest has gathered around
	opening   surface                  // at the session's open
	closing   map[compute.Date]surface // at the close of sessions before
	before    compute.Date             // the session before
}

func newTableBuilder(m *Market, t *table) *tableBuilder {
	b := &tableBuilder{
		Market: m, t: t, published: m.factors.dates[t.key.published], before: m.factors.dates[t.key.session-1],
		opening: t.in.surface(t.at(0)), closing: map[compute.Date]surface{},
	}
	const back, every = 20, 5 // a month of sessions
	for age := 0; age <= back; age += every {
		b.center += t.in.price(m.factors.closeOf(t.in, max(t.key.published-1-age, 0))) / (back/every + 1)
	}
	return b
}

// closingSurface returns the surface at the close of a session.
func (b *tableBuilder) closingSurface(d compute.Date) surface {
	s, ok := b.closing[d]
	if !ok {
		s = b.t.in.surface(b.factors.closeOf(b.t.in, b.factors.index(d)))
		b.closing[d] = s
	}
	return s
}

// appeal is what makes a contract trade in a session.
type appeal struct {
	deviations float64 // of the strike from the forward, see smile
	inMoney    bool
	roundness  float64 // of the strike
	days       int     // to expiration
}

// fill sets what is known of a series' contracts.
func (b *tableBuilder) fill(s *series) {
	before := b.closingSurface(b.before).smile(s.settles.Sub(b.calendar.Close(b.before)))
	m := before // also of a series that settled at the open
	if s.settles.After(b.t.open) {
		m = b.opening.smile(s.settles.Sub(b.t.open))
	}
	trades := s.since <= b.t.date && s.settles.After(b.t.open)
	for i, thousandths := range s.strikes {
		strike := float64(thousandths) / 1000
		v := before.value(strike)
		a := appeal{deviations: m.deviations(strike), roundness: b.roundness(thousandths), days: s.days(b.t.date)}
		untouched := (0.16 + 0.24*float64(s.days(b.published))/float64(s.life)) * min(1.35, 1.25/a.roundness)
		for right := range 2 {
			c, key := &b.t.contracts[s.first+2*i+right], s.contractKey(i, right)
			if s.since < b.t.date {
				c.prevClose = middle(b.t.spec.maker.quote(&before, &v, right, key, s.am))
			}
			if key.child(0).unit() < untouched {
				continue // never traded
			}
			if s.since < b.published {
				c.openInterest = b.openInterest(s, key, strike, a.roundness, right)
			}
			a.inMoney = (a.deviations < 0) == (right == 0)
			chance := a.chance()
			if trades && key.child(1).child(uint64(b.t.date)).unit() < chance {
				c.volume, c.trades = b.trading(s, key, a)
			}
			if d, ok := b.lastTraded(s, key, chance); ok {
				c.lastTrade = b.tradeOn(d, key)
				left := s.settles.Sub(b.calendar.Close(d))
				c.last = float32(b.closingSurface(d).tradePrice(b.t.spec, s, left, key, strike, right, key.child(8).unit()))
			}
		}
	}
}

// roundness returns how much more a strike is used than one that is a multiple of five units only.
func (b *tableBuilder) roundness(thousandths int32) float64 {
	for _, r := range [...]struct {
		units int32
		times float64
	}{{200, 8}, {100, 5}, {20, 3}, {10, 1.7}, {5, 1}, {2, 0.6}} {
		if thousandths%(r.units*b.t.in.unit) == 0 {
			return r.times
		}
	}
	return 0.4
}

// openInterest returns the contracts open after the session before the published one: puts gather below the
// spot, calls above.
func (b *tableBuilder) openInterest(s *series, key noise, strike, roundness float64, right int) uint32 {
	away := math.Log(strike / b.center)
	if right == 1 {
		away = -away
	}
	reach := min(max(math.Sqrt(float64(s.days(b.published)+1)/37), 0.25), 1.6) // 1 at five weeks
	shape := 0.0
	switch {
	case away <= 0:
		shape = 0.05 + 0.5*math.Exp(away/(0.04*reach))
	case right == 0:
		shape = 1.1*math.Exp(-away/(0.05*reach)) + 0.12*math.Exp(-away/(0.2*reach))
	default: // most puts lie some percent away
		shape = (0.55+0.6*min(1, away/(0.04*reach)))*math.Exp(-away/(0.08*reach)) + 0.12*math.Exp(-away/(0.35*reach))
	}
	level := s.interest(b.published) * b.t.spec.scale * shape * roundness
	x := level * math.Exp(1.1*key.child(2).normal()-0.6+0.05*key.child(3).child(uint64(b.published)).normal())
	if x < 1 && key.child(4).unit() < 0.5 {
		return 1
	}
	return uint32(math.Round(x))
}

// chance returns how likely a contract trades in a session.
func (a appeal) chance() float64 {
	p := 0.75*math.Exp(-a.deviations*a.deviations/12) + 0.55*math.Exp(-math.Abs(a.deviations)/16)
	if a.inMoney {
		p *= 0.45
	}
	return min(p, 0.97) * (0.45 + 0.55*math.Exp(-float64(a.days)/60))
}

// trading returns how many contracts are traded in the session, and in how many trades.
func (b *tableBuilder) trading(s *series, key noise, a appeal) (volume, trades uint32) {
	days := float64(a.days)
	level := 50 + 2600*math.Exp(-days/2.5) + 400*math.Exp(-days/8)
	switch {
	case a.days == 0:
		level = 75_000
	case a.days == 1:
		level = 8500
	case s.am:
		level += 700 * math.Exp(-days/60)
	}
	if a.inMoney {
		level *= 0.4
	}
	level *= b.t.spec.scale * math.Exp(-a.deviations*a.deviations/6.5) * math.Sqrt(a.roundness)
	today := key.child(5).child(uint64(b.t.date))
	few := math.Exp(3.2 * today.child(0).unit())
	popular := 0.7*key.child(2).normal() + 0.8*today.child(1).normal() // one that is open more trades more
	volume = uint32(level*math.Exp(popular-0.5) + few)
	return volume, min(volume, 1+uint32(math.Pow(float64(volume), 0.7)*(0.4+today.child(2).unit())))
}

// lastTraded returns on which session a contract last traded before this one. It goes back through the sessions of a month
// with the contract's present chance. What did not trade then traded in the month after it was listed, or never.
func (b *tableBuilder) lastTraded(s *series, key noise, chance float64) (compute.Date, bool) {
	const month = 21
	first := max(b.t.key.session-month, 1)
	for k := b.t.key.session - 1; k >= first; k-- {
		d := b.factors.dates[k]
		if d < s.since {
			return 0, false
		}
		if key.child(1).child(uint64(d)).unit() < chance {
			return d, true
		}
	}
	since := max(s.since, b.factors.dates[1])
	d := b.calendar.Next(since - 1 + compute.Date(key.child(6).below(30)))
	return d, d < b.factors.dates[first]
}

// tradeOn returns a time of the session d, in Unix seconds.
func (b *tableBuilder) tradeOn(d compute.Date, key noise) int64 {
	open := b.calendar.Open(d)
	share := activityReaches(key.child(6).child(uint64(d)).unit())
	return open.Unix() + int64(share*b.calendar.Close(d).Sub(open).Seconds())
}

// addBursts makes a few contracts trade many times their open interest, out of the money and up to six weeks from
// expiration. Their beginnings are spread over the session.
func (b *tableBuilder) addBursts() {
	n, floor := b.t.spec.bursts, b.t.spec.burstFloor
	key := b.key.named("bursts").named(b.t.in.symbol).child(uint64(b.t.date))
	picked := 0
	for try := 0; picked < n && try < 10_000; try++ {
		key := key.child(uint64(try))
		s := &b.t.series[key.child(0).below(len(b.t.series))]
		days := s.days(b.t.date)
		if days < 3 || days > 45 || s.root != b.t.in.root(s.am) || s.since >= b.t.date {
			continue
		}
		m := b.opening.smile(s.settles.Sub(b.t.open))
		i, right := key.child(1).below(len(s.strikes)), key.child(2).below(2)
		c := &b.t.contracts[s.first+2*i+right]
		z := m.deviations(float64(s.strikes[i])/1000) * float64(1-2*right) // above 0 out of the money
		if z < 0.3 || z > 1.5 || c.volume == 0 || c.burst > 0 || int(c.openInterest) > floor/8 {
			continue
		}
		c.volume, c.trades = uint32(float64(floor)*(1+key.child(3).unit())), 400
		c.burst = 0.01 + 0.86*(float64(picked)+key.child(4).unit())/float64(n)
		picked++
	}
}

// middle returns the middle of a quote in cents, as the upstream computes it: from prices of 32 bits, with 64.
func middle(bid, ask int) float64 {
	return 0.5 * (float64(float32(float64(bid)/100)) + float64(float32(float64(ask)/100)))
}
