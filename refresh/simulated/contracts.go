package simulated

import (
	"math"
	"time"
)

// contract is one side of a strike, and what is known of it at an instant.
type contract struct {
	*series
	key          noise
	thousandths  int32
	strike       float64
	roundness    float64 // how much more it is used than one that is a multiple of five units only
	right        int     // 0 is a call, 1 a put
	first        int     // the session that it can trade on first
	openInterest int
	volume       int
	last         float64   // USD
	lastTrade    time.Time // zero for never
}

// trading is what the contracts of a chain share at an instant.
type trading struct {
	*Market
	in    *instrument
	frame *frame
	path  *path
	// Of the session of the frame, of the one before it, and so on, as far back as needed.
	days   []day
	smiles []smile // of one series, at the open
}

// day is what the contracts of a chain share on a session.
type day struct {
	opening surface
	center  float64 // the price that open interest has gathered around by the close
}

// day returns the day of session i, which is not after that of the frame.
func (t *trading) day(i int) *day {
	for k := t.frame.session - len(t.days); k >= i; k-- {
		const back, every = 20, 5 // a month of sessions
		d := day{opening: t.in.surface(t.factors.openOf(t.in, k))}
		for age := 0; age <= back; age += every {
			d.center += t.in.price(t.factors.closeOf(t.in, max(k-age, 0))) / (back/every + 1)
		}
		t.days = append(t.days, d)
	}
	return &t.days[t.frame.session-i]
}

// smile returns the smile of a series at the open of session i.
func (t *trading) smile(s *series, i int) *smile {
	for k := t.frame.session - len(t.smiles); k >= i; k-- {
		t.smiles = append(t.smiles, t.day(k).opening.smile(t.factors.opening(k), s.settles))
	}
	return &t.smiles[t.frame.session-i]
}

// contract returns a contract. Its open interest changes on the sessions on which it trades alone, and by no more than its volume of them.
func (t *trading) contract(s *series, k strike, right int) contract {
	c := contract{
		series: s, key: s.key.child(uint64(k.thousandths)*2 + uint64(right)), thousandths: k.thousandths,
		strike: float64(k.thousandths) / 1000, roundness: t.roundness(k.thousandths), right: right,
		first: max(t.factors.index(k.since), 1),
	}
	if c.key.child(0).unit() < 0.27*min(1.35, 1.25/c.roundness) {
		return c // never trades
	}
	session := t.frame.session
	before := session - 1
	for before >= c.first && !t.trades(&c, before) {
		before--
	}
	c.openInterest = t.openInterest(&c, before)
	if session >= c.first && t.trades(&c, session) {
		held := c.openInterest
		after := t.openInterest(&c, session)
		t.trade(&c, held, after)
		if t.frame.listed > t.frame.date {
			c.openInterest = after
		}
	}
	if c.volume == 0 && before >= c.first {
		c.lastTrade = t.calendar.Open(t.factors.dates[before]).Add(time.Duration(c.key.child(6).below(3*3600)) * time.Second)
		c.last = t.price(&c, t.smile(s, before), c.key.child(8).unit())
	}
	return c
}

// today returns the numbers of a contract on session i.
func (t *trading) today(c *contract, i int) noise {
	return c.key.child(5).child(uint64(t.factors.dates[i]))
}

// trades says whether a contract trades on session i.
func (t *trading) trades(c *contract, i int) bool {
	if c.settles.sessions <= float64(i)+nightShare {
		return false // it has settled at the open
	}
	z, days := t.outside(c, i), float64(c.days(t.factors.dates[i]))
	chance := min(0.75*math.Exp(-z*z/12)+0.55*math.Exp(-math.Abs(z)/16), 0.97) * (0.45 + 0.55*math.Exp(-days/60))
	if z < 0 {
		chance *= 0.45
	}
	return t.today(c, i).child(0).unit() < chance
}

// outside returns how many standard deviations out of the money a contract is at the open of session i.
func (t *trading) outside(c *contract, i int) float64 {
	z := t.smile(c.series, i).deviations(c.strike)
	if c.right == 1 {
		return -z
	}
	return z
}

// roundness returns how much more a strike is used than one that is a multiple of five units only.
func (t *trading) roundness(thousandths int32) float64 {
	for _, r := range [...]struct {
		units int32
		times float64
	}{{200, 8}, {100, 5}, {20, 3}, {10, 1.7}, {5, 1}, {2, 0.6}} {
		if thousandths%(r.units*t.in.unit) == 0 {
			return r.times
		}
	}
	return 0.4
}

// openInterest returns the contracts open after session i, on which the contract has traded: puts gather below the spot, calls above.
func (t *trading) openInterest(c *contract, i int) int {
	if i < c.first {
		return 0
	}
	date := t.factors.dates[i]
	away := math.Log(c.strike / t.day(i).center)
	if c.right == 1 {
		away = -away
	}
	reach := min(max(math.Sqrt(float64(c.days(date))/37), 0.25), 1.6) // 1 at five weeks
	shape := 0.0
	switch {
	case away <= 0:
		shape = 0.05 + 0.5*math.Exp(away/(0.04*reach))
	case c.right == 0:
		shape = 1.1*math.Exp(-away/(0.05*reach)) + 0.12*math.Exp(-away/(0.2*reach))
	default: // most puts lie some percent away
		shape = (0.55+0.6*min(1, away/(0.04*reach)))*math.Exp(-away/(0.08*reach)) + 0.12*math.Exp(-away/(0.35*reach))
	}
	luck := 1.1*c.key.child(2).normal() - 0.6 + 0.05*c.key.child(3).child(uint64(date)).normal()
	x := c.interest(date) * t.in.scale * shape * c.roundness * math.Exp(luck)
	if x < 1 && c.key.child(4).unit() < 0.5 {
		return 1
	}
	return int(math.Round(x))
}

// activity is what a contract trades by the end of the session, in trades of one size that are evenly spread.
type activity struct {
	volume, trades float64
	begins         float64 // share of the session that passes before
	side           float64 // of every trade: 0 at the bid, 1 at the ask, below 0 anywhere
}

// activity returns what a contract trades in the session when its open interest goes from held to after. A few contracts out of the money
// begin late, and then trade many times their open interest, all at the bid or all at the ask.
func (t *trading) activity(c *contract, today noise, held, after int) activity {
	days, z := float64(c.days(t.frame.date)), t.outside(c, t.frame.session)
	if near := days > 2 && days < 46 && z > 0.3 && z < 1.5; near && today.child(4).unit() < t.in.chain.bursts {
		return activity{
			volume: math.Abs(float64(after-held)) + 8*float64(held) + 2500*(1+today.child(5).unit()), trades: 400,
			begins: 0.4 * today.child(6).unit(), side: float64(today.child(7).below(2)),
		}
	}
	level := 60 + 7_000*math.Exp(-1.5*days) + 1200*math.Exp(-days/5)
	if c.am {
		level += 700 * math.Exp(-days/60)
	}
	if z < 0 {
		level *= 0.4
	}
	level *= t.in.scale * math.Exp(-z*z/6.5) * math.Sqrt(c.roundness)
	popular := 0.7*c.key.child(2).normal() + 0.8*today.child(1).normal() // one that is open more trades more
	volume := math.Abs(float64(after-held)) + level*math.Exp(popular-0.5) + math.Exp(3.2*today.child(2).unit())
	return activity{volume: volume, trades: 1 + math.Floor(math.Pow(volume, 0.7)*(0.4+today.child(3).unit())), side: -1}
}

// trade sets what a contract has traded in the session so far, and its last trade.
func (t *trading) trade(c *contract, held, after int) {
	today := t.today(c, t.frame.session)
	a := t.activity(c, today, held, after)
	end := t.frame.close
	if t.in.symbol == spx { // options on the index go on after the close, but for those that settle then
		end = end.Add(indexTail - time.Second)
	}
	length := float64(earlier(end, c.settles.time).Sub(t.frame.open))
	passed := min(float64(t.frame.asOf.Sub(t.frame.open))/length, 1)
	phase := today.child(8).unit() // of the first trade in its share of the session
	n := math.Floor(a.trades*max(passed-a.begins, 0)/(1-a.begins) + phase)
	c.volume = int(a.volume * n / a.trades)
	if c.volume == 0 {
		return
	}
	share := a.begins + (1-a.begins)*(n-phase)/a.trades
	c.lastTrade = t.frame.open.Add(time.Duration(share * length)).Truncate(time.Second)
	if a.side < 0 { // buyers of calls and sellers of puts have their hours, whatever the index does
		mood := t.key.named("mood").child(uint64(t.frame.date)).child(uint64(16 * t.frame.progress(c.lastTrade))).normal()
		a.side = min(max(0.5+1.5*(today.child(uint64(9+n)).unit()-0.5)+mood*float64(1-2*c.right), 0), 1)
	}
	then := t.in.surface(t.path.at(t.frame.progress(c.lastTrade))).smile(t.frame.moment(c.lastTrade), c.settles)
	c.last = t.price(c, &then, a.side)
}

// price returns the price of a trade, from the bid at side 0 to the ask at side 1. No trade has the price 0.
func (t *trading) price(c *contract, m *smile, side float64) float64 {
	v := m.value(c.strike)
	bid, ask := t.in.chain.quote(m, &v, c)
	return max(math.Round(float64(bid)+float64(ask-bid)*side), 1) / 100
}
