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
	side         float64 // 1 is a call, -1 a put
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
		closed := func(k int) float64 { return t.in.price(t.factors.closeOf(t.in, max(k, 0))) }
		center := (closed(k) + closed(k-5) + closed(k-10) + closed(k-15) + closed(k-20)) / 5
		t.days = append(t.days, day{t.in.surface(t.factors.openOf(t.in, k)), center})
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
		strike: float64(k.thousandths) / 1000, roundness: t.roundness(k.thousandths), right: right, side: float64(1 - 2*right),
		first: max(t.factors.index(k.since), 1),
	}
	if c.key.child(0).unit() < 0.27*min(1.35, 1.25/c.roundness) {
		return c // never trades
	}
	session, before := t.frame.session, t.frame.session-1
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
		c.lastTrade = t.calendar.Open(t.factors.dates[before]).Add(time.Duration(c.key.child(6).unit() * 3 * float64(time.Hour)).Truncate(time.Second))
		c.last = t.price(&c, t.smile(s, before), c.key.child(8).unit())
	}
	return c
}

func (t *trading) today(c *contract, i int) noise {
	return c.key.child(5).child(uint64(t.factors.dates[i]))
}

// trades says whether a contract trades on session i.
func (t *trading) trades(c *contract, i int) bool {
	if c.settles.sessions <= float64(i)+nightShare {
		return false // it has settled at the open
	}
	z, days := c.side*t.smile(c.series, i).deviations(c.strike), float64(c.days(t.factors.dates[i]))
	chance := min(0.75*math.Exp(-z*z/12)+0.55*math.Exp(-math.Abs(z)/16), 0.97) * (0.45 + 0.55*math.Exp(-days/60))
	if z < 0 {
		chance *= 0.45
	}
	return t.today(c, i).child(0).unit() < chance
}

// roundness returns how much more a strike is used than one that is a multiple of five units only.
func (t *trading) roundness(thousandths int32) float64 {
	times := [...]float64{8, 5, 3, 1.7, 1, 0.6}
	for i, units := range [...]int32{200, 100, 20, 10, 5, 2} {
		if thousandths%(units*t.in.unit) == 0 {
			return times[i]
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
	away := c.side * math.Log(c.strike/t.day(i).center)
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

// trade sets what a contract, whose open interest goes from held to after in the session, has traded so far, and its last trade. It
// trades in lots of one size that are evenly spread. A few contracts out of the money begin late, and then trade many times their open
// interest, all at the bid or all at the ask.
func (t *trading) trade(c *contract, held, after int) {
	session := t.frame.session
	open, today := t.smile(c.series, session), t.today(c, session)
	z := c.side * open.deviations(c.strike) // above 0 out of the money
	days := float64(c.days(t.frame.date))
	level := t.in.scale * (60 + 520/open.money*math.Exp(-3.4*days) + 1200*math.Exp(-days/5)) * math.Exp(-z*z/6.5) * math.Sqrt(c.roundness)
	if z < 0 {
		level *= 0.4
	}
	popular := 0.7*c.key.child(2).normal() + 0.8*today.child(1).normal() // one that is open more trades more
	volume := math.Abs(float64(after-held)) + level*math.Exp(popular-0.5) + math.Exp(3.2*today.child(2).unit())
	lots, begins := 1+math.Floor(math.Pow(volume, 0.7)*(0.4+today.child(3).unit())), 0.0
	burst := days > 2 && days < 46 && z > 0.3 && z < 1.5 && today.child(4).unit() < t.in.chain.bursts
	if burst {
		volume, lots, begins = volume+8*float64(held)+2500*(1+today.child(5).unit()), 20_000, 0.4*today.child(6).unit()
	}
	end := t.frame.close
	if t.in.index() { // options on an index go on after the close, but for those that settle then
		end = end.Add(indexTail - time.Second)
	}
	length := float64(earlier(end, c.settles.time).Sub(t.frame.open))
	passed := min(float64(t.frame.asOf.Sub(t.frame.open))/length, 1)
	phase := today.child(8).unit() // of the first lot in its share of the session
	n := math.Floor(lots*max(passed-begins, 0)/(1-begins) + phase)
	c.volume = int(volume * n / lots)
	if c.volume == 0 {
		return
	}
	share := begins + (1-begins)*(n-phase)/lots
	c.lastTrade = t.frame.open.Add(time.Duration(share * length)).Truncate(time.Second)
	// Buyers of calls and sellers of puts have their hours, whatever the index does.
	mood := t.key.named("mood").child(uint64(t.frame.date)).child(uint64(16 * t.frame.progress(c.lastTrade))).normal()
	side := min(max(0.5+1.5*(today.child(uint64(9+n)).unit()-0.5)+1.6*mood*c.side, 0), 1)
	if burst {
		side = math.Round(today.child(7).unit())
	}
	then := t.in.surface(t.path.at(t.frame.progress(c.lastTrade))).smile(t.frame.moment(c.lastTrade), c.settles)
	c.last = t.price(c, &then, side)
}

// price returns the price of a trade, from the bid at side 0 to the ask at side 1. No trade has the price 0.
func (t *trading) price(c *contract, m *smile, side float64) float64 {
	v := m.value(c.strike)
	bid, ask := t.in.chain.quote(m, &v, c)
	return max(math.Round(float64(bid)+float64(ask-bid)*side), 1) / 100
}
