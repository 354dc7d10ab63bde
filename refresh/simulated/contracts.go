package simulated

import (
	"math"
	"time"

	"strikecache/compute"
)

// contract is one side of a strike, and what is known of it at an instant.
type contract struct {
	*series
	key          noise
	thousandths  int32
	strike       float64
	right        int // 0 is a call, 1 a put
	openInterest int
	volume       int
	last         float64   // USD
	lastTrade    time.Time // zero for never
}

// trading is what the contracts of a chain share at an instant.
type trading struct {
	*Market
	in      *instrument
	frame   *frame
	path    *path
	opening surface // at the open
	center  float64 // the price that open interest has gathered around
}

func (m *Market) trading(in *instrument, f *frame) trading {
	t := trading{Market: m, in: in, frame: f, path: m.factors.path(in, f.session)}
	t.opening = in.surface(t.path.at(0))
	const back, every = 20, 5 // a month of sessions
	listed := m.factors.index(f.listed)
	for age := 0; age <= back; age += every {
		t.center += in.price(m.factors.closeOf(in, max(listed-1-age, 0))) / (back/every + 1)
	}
	return t
}

// contract returns a contract. The smile is that at the open.
func (t *trading) contract(s *series, opening *smile, thousandths int32, right int) contract {
	c := contract{
		series: s, key: s.key.child(uint64(thousandths)*2 + uint64(right)),
		thousandths: thousandths, strike: float64(thousandths) / 1000, right: right,
	}
	roundness := t.roundness(thousandths)
	untouched := (0.16 + 0.24*float64(s.days(t.frame.listed))/float64(s.life)) * min(1.35, 1.25/roundness)
	if c.key.child(0).unit() < untouched {
		return c // never traded
	}
	if s.since < t.frame.listed {
		c.openInterest = t.openInterest(&c, roundness)
	}
	if s.since < t.frame.date && s.settles.After(t.frame.open) {
		t.trade(&c, opening, roundness)
	}
	if age := int(t.frame.date - s.since); c.volume == 0 && age > 0 { // some day of the last weeks
		n := c.key.child(6)
		day := t.calendar.OnOrBefore(t.frame.date - 1 - compute.Date(n.below(min(age, 60))))
		c.lastTrade = t.calendar.Open(day).Add(time.Duration(n.child(0).below(3*3600)) * time.Second)
		c.last = t.price(&c, opening, c.key.child(8).unit())
	}
	return c
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

// openInterest returns the contracts open after the session before the listed one: puts gather below the
// spot, calls above.
func (t *trading) openInterest(c *contract, roundness float64) int {
	away := math.Log(c.strike / t.center)
	if c.right == 1 {
		away = -away
	}
	reach := min(max(math.Sqrt(float64(c.days(t.frame.listed)+1)/37), 0.25), 1.6) // 1 at five weeks
	shape := 0.0
	switch {
	case away <= 0:
		shape = 0.05 + 0.5*math.Exp(away/(0.04*reach))
	case c.right == 0:
		shape = 1.1*math.Exp(-away/(0.05*reach)) + 0.12*math.Exp(-away/(0.2*reach))
	default: // most puts lie some percent away
		shape = (0.55+0.6*min(1, away/(0.04*reach)))*math.Exp(-away/(0.08*reach)) + 0.12*math.Exp(-away/(0.35*reach))
	}
	luck := 1.1*c.key.child(2).normal() - 0.6 + 0.05*c.key.child(3).child(uint64(t.frame.listed)).normal()
	x := c.interest * t.in.scale * shape * roundness * math.Exp(luck)
	if x < 1 && c.key.child(4).unit() < 0.5 {
		return 1
	}
	return int(math.Round(x))
}

// activity is what a contract trades by the end of the session, in trades of one size that are evenly spread.
type activity struct {
	volume, trades float64 // trades are 0 for none
	begins         float64 // share of the session that passes before
	side           float64 // of every trade: 0 at the bid, 1 at the ask, below 0 anywhere
}

// activity returns what a contract trades in the session. A few contracts out of the money begin late, and then trade many
// times their open interest, all at the bid or all at the ask.
func (t *trading) activity(c *contract, today noise, opening *smile, roundness float64) activity {
	days, z := float64(c.days(t.frame.date)), opening.deviations(c.strike)
	if c.right == 1 {
		z = -z // above 0 out of the money
	}
	chance := min(0.75*math.Exp(-z*z/12)+0.55*math.Exp(-math.Abs(z)/16), 0.97) * (0.45 + 0.55*math.Exp(-days/60))
	level := 60 + 75_000*math.Exp(-2.2*days) + 1200*math.Exp(-days/5)
	if c.am {
		level += 700 * math.Exp(-days/60)
	}
	if z < 0 {
		chance, level = 0.45*chance, 0.4*level
	}
	if today.child(0).unit() >= chance {
		return activity{}
	}
	if near := days > 2 && days < 46 && z > 0.3 && z < 1.5; near && today.child(4).unit() < t.in.chain.bursts {
		return activity{
			volume: 8*float64(c.openInterest) + 2500*(1+today.child(5).unit()), trades: 400,
			begins: 0.85 * today.child(6).unit(), side: float64(today.child(7).below(2)),
		}
	}
	level *= t.in.scale * math.Exp(-z*z/6.5) * math.Sqrt(roundness)
	popular := 0.7*c.key.child(2).normal() + 0.8*today.child(1).normal() // one that is open more trades more
	volume := level*math.Exp(popular-0.5) + math.Exp(3.2*today.child(2).unit())
	return activity{volume: volume, trades: 1 + math.Floor(math.Pow(volume, 0.7)*(0.4+today.child(3).unit())), side: -1}
}

// trade sets what a contract has traded in the session so far, and its last trade.
func (t *trading) trade(c *contract, opening *smile, roundness float64) {
	today := c.key.child(5).child(uint64(t.frame.date))
	a := t.activity(c, today, opening, roundness)
	if a.trades == 0 {
		return
	}
	end := t.frame.close
	if t.in.symbol == spx { // options on the index go on after the close, but for those that settle then
		end = end.Add(indexTail - time.Second)
	}
	length := float64(earlier(end, c.settles).Sub(t.frame.open))
	passed := min(float64(t.frame.asOf.Sub(t.frame.open))/length, 1)
	phase := today.child(8).unit() // of the first trade in its share of the session
	n := math.Floor(a.trades*max(passed-a.begins, 0)/(1-a.begins) + phase)
	c.volume = int(a.volume * n / a.trades)
	if c.volume == 0 {
		return
	}
	share := a.begins + (1-a.begins)*(n-phase)/a.trades
	c.lastTrade = t.frame.open.Add(time.Duration(share * length)).Truncate(time.Second)
	if a.side < 0 { // a third of the prices are bids and asks
		a.side = min(max((today.child(uint64(9+n)).unit()-1.0/6)*1.5, 0), 1)
	}
	then := t.in.surface(t.path.at(t.frame.progress(c.lastTrade))).smile(c.settles.Sub(c.lastTrade))
	c.last = t.price(c, &then, a.side)
}

// price returns the price of a trade, from the bid at side 0 to the ask at side 1. No trade has the price 0.
func (t *trading) price(c *contract, m *smile, side float64) float64 {
	v := m.value(c.strike)
	bid, ask := t.in.chain.quote(m, &v, c)
	return max(math.Round(float64(bid)+float64(ask-bid)*side), 1) / 100
}
