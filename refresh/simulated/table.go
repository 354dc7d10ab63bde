package simulated

import (
	"math"

	"strikecache/compute"
)

// contract is what does not change of a listed option while a table is current.
type contract struct {
	openInterest uint32
	volume       uint32    // contracts traded by the end of the session
	trades       uint32    // in how many trades
	burst        uint8     // 1 + index of its burst in the table, 0 for none
	delta        float32   // at the session's open, of one that trades
	prevClose    float64   // the middle of the closing quote
	open         float32   // price of the session's first trade
	last         float32   // price of the last trade before the session
	lastTrade    tradeTime // of that trade
}

// tableKey is what a table depends on, as sessions of the market.
type tableKey struct{ session, listed, published int }

// table is a chain's listing with what is known of each contract for a session.
type table struct {
	key       tableKey
	series    []series
	contracts []contract // by series, strike, right
	bursts    []burst
	day       *day
}

// tablesKept bounds the tables kept of each chain: the listing changes at 03:00 and the open interest at 07:00.
const tablesKept = 2

// table returns the table that a frame needs.
func (m *Market) table(in *instrument, f *frame) *table {
	key := tableKey{f.session, f.listed, f.published}
	kept := m.tables[in]
	for _, t := range kept {
		if t.key == key {
			return t
		}
	}
	if len(kept) == tablesKept {
		kept = kept[1:]
	}
	t := m.newTable(in, key)
	m.tables[in] = append(kept, t)
	return t
}

func (m *Market) newTable(in *instrument, key tableKey) *table {
	t := &table{key: key, day: m.day(in, key.session), series: m.expirations(in, m.factors.dates[key.listed])}
	n := 0
	for i := range t.series {
		s := &t.series[i]
		s.strikes = m.ladder(in, s, key.listed)
		s.key = m.key.named("options").named(s.root).child(uint64(s.date))
		s.first = n
		n += 2 * len(s.strikes)
	}
	t.contracts = make([]contract, n)
	b := newTableBuilder(m, in, t)
	for i := range t.series {
		b.fill(&t.series[i])
	}
	b.addBursts()
	for i := range t.series {
		b.price(&t.series[i])
	}
	return t
}

// contractKey returns the noise of a contract; strike is an index.
func (s *series) contractKey(strike int, right int) noise {
	return s.key.child(uint64(s.strikes[strike])*2 + uint64(right))
}

// tableBuilder fills a table.
type tableBuilder struct {
	*Market
	in        *instrument
	t         *table
	session   compute.Date
	published compute.Date
	center    float64 // spot that open interest has gathered around
	open      surface // at the session's open
	before    surface // at the close of the session before
}

func newTableBuilder(m *Market, in *instrument, t *table) *tableBuilder {
	k := t.key
	b := &tableBuilder{
		Market: m, in: in, t: t, session: m.factors.dates[k.session], published: m.factors.dates[k.published],
		open: t.day.surface(0), before: m.closingSurface(in, k.session-1),
	}
	const back, every = 20, 5 // a month of sessions
	for age := 0; age <= back; age += every {
		b.center += m.closing(in, max(k.published-1-age, 0)) / (back/every + 1)
	}
	return b
}

// appeal is what makes a contract trade in a session.
type appeal struct {
	deviations float64 // of the strike from the forward, see smile
	inMoney    bool
	roundness  float64 // of the strike
	days       int     // to expiration
}

// fill sets open interest and volume of a series.
func (b *tableBuilder) fill(s *series) {
	opens, closed := b.calendar.Open(b.session), b.calendar.Close(b.factors.dates[b.t.key.session-1])
	trading := s.since <= b.session && s.settles.After(opens)
	m := b.before.smile(s.settles.Sub(closed)) // also of one that settled at the open
	if s.settles.After(opens) {
		m = b.open.smile(s.settles.Sub(opens))
	}
	life := 1.0
	for _, r := range s.roles {
		life = max(life, float64(r.life))
	}
	for i, thousandths := range s.strikes {
		strike := float64(thousandths) / 1000
		a := appeal{deviations: m.deviations(strike), roundness: b.roundness(thousandths), days: s.days(b.session)}
		untouched := (0.16 + 0.24*float64(s.days(b.published))/life) * min(1.35, 1.25/a.roundness)
		for right := range 2 {
			key := s.contractKey(i, right)
			if key.child(0).unit() < untouched {
				continue // never traded
			}
			c := &b.t.contracts[s.first+2*i+right]
			if s.since < b.published {
				c.openInterest = b.openInterest(s, key, strike, a.roundness, right)
			}
			a.inMoney = (a.deviations < 0) == (right == 0)
			chance := a.chance()
			if trading && key.child(1).child(uint64(b.session)).unit() < chance {
				b.trade(s, c, key, a)
				c.delta = float32(m.delta(strike, right))
			}
			c.lastTrade = b.lastTrade(s, key, chance)
		}
	}
}

// roundness returns how much more a strike is used than one that is a multiple of five units only.
func (b *tableBuilder) roundness(thousandths int32) float64 {
	for _, r := range [...]struct {
		units int32
		times float64
	}{{200, 8}, {100, 5}, {20, 3}, {10, 1.7}, {5, 1}, {2, 0.6}} {
		if thousandths%(r.units*b.in.unit) == 0 {
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
	level := s.interest(b.published) * b.in.chain.scale * shape * roundness
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

// trade gives a contract its trading of the session.
func (b *tableBuilder) trade(s *series, c *contract, key noise, a appeal) {
	days := float64(a.days)
	level := 50 + 2600*math.Exp(-days/2.5) + 400*math.Exp(-days/8)
	switch {
	case a.days == 0:
		level = 75_000
	case a.days == 1:
		level = 8500
	case s.am:
		level += 700 * math.Exp(-days/60)
	case weekEnd(b.calendar, s.date):
		level += 250 * math.Exp(-days/20)
	}
	if a.inMoney {
		level *= 0.4
	}
	level *= b.in.chain.scale * math.Exp(-a.deviations*a.deviations/6.5) * math.Sqrt(a.roundness)
	today := key.child(5).child(uint64(b.session))
	few := math.Exp(3.2 * today.child(0).unit())
	popular := 0.7*key.child(2).normal() + 0.8*today.child(1).normal() // one that is open more trades more
	c.volume = uint32(level*math.Exp(popular-0.5) + few)
	c.trades = min(c.volume, 1+uint32(math.Pow(float64(c.volume), 0.7)*(0.4+today.child(2).unit())))
}

const secondsPerHour = 3600

// lastTrade returns when a contract last traded before the session: found by going back through the sessions of
// a month with its present chance, else at a date of its own, months back.
func (b *tableBuilder) lastTrade(s *series, key noise, chance float64) tradeTime {
	const month = 21
	i := b.t.key.session
	for k := i - 1; k >= max(i-month, 1); k-- {
		d := b.factors.dates[k]
		if d < s.since {
			return tradeTime{}
		}
		if n := key.child(1).child(uint64(d)); n.unit() < chance {
			return b.tradeAt(d, n)
		}
	}
	// The date moves on by a period at a time, so it stays for months.
	own := key.child(6)
	period := 90 + own.below(400)
	d := int(b.factors.dates[max(i-month-1, 1)])
	d -= (d + own.child(0).below(period)) % period
	since := max(s.since, b.factors.dates[1])
	date := b.calendar.OnOrBefore(compute.Date(d))
	if date < since { // then in its first weeks
		date = b.calendar.Next(since - 1 + compute.Date(own.child(1).below(month)))
	}
	if date >= b.session {
		return tradeTime{}
	}
	return b.tradeAt(date, own.child(uint64(date)))
}

// tradeAt returns a time of the session d.
func (b *tableBuilder) tradeAt(d compute.Date, key noise) tradeTime {
	hours := 6.5
	if b.calendar.IsEarlyClose(d) {
		hours = 3.5
	}
	open := 9.5 * secondsPerHour
	return tradeTime{d, int32(open + b.paces.when(key.child(1).unit())*hours*secondsPerHour)}
}
