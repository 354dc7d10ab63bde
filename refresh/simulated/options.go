package simulated

import (
	"math"
	"time"

	"strikecache/compute"
)

const (
	// The carry of the simulated market: F = S·e^((rate-yield)T).
	rate  = 0.04
	yield = 0.005

	secondsPerYear, sessionsPerYear = 365 * 24 * 3600, 252
	// vixOverMoney is the ratio of the VIX to the volatility at the money at 30 days, or 21 sessions.
	vixOverMoney = 1.22
)

// smile is the implied volatility of one underlying at one instant and expiration, per year of trading time. At the money it goes from a
// short to a long level with time to expiration. In units of standard deviations, the wings have one shape. (On the SPX chain of
// 2026-08-11, from a week to a year, the ratio to the volatility at the money is 1.25 one deviation below, 1.85 three below and 2.7 six
// below, with its minimum one deviation above. On the last days, the minimum is at the money: the skew fades.)
type smile struct {
	spot, forward float64
	discount      float64 // e^(-rT)
	years         float64 // of the calendar
	money         float64 // total volatility at the money: σ√T
	// The smile is a hyperbola in the deviations z from the forward: 1 + bend·(tilt·z + √((z-shift)² + 1) - norm). It is 1 at z = 0.
	bend, tilt, shift, norm float64
}

// smile returns an instrument's smile for given factors at a moment. An expiration that settles within a minute, or has settled, is treated
// as if it had a minute left: the upstream, too, still computes the numbers of expired rows.
func (in *instrument) smile(p point, now, settles moment) smile {
	years := max(settles.time.Sub(now.time).Seconds(), 60) / secondsPerYear
	traded := max(settles.sessions-now.sessions, 1.0/390) / sessionsPerYear
	var short, long float64 // volatility at the money, decimals
	steepness := 1.0        // that of the SPX
	if in.iv == 0 {
		month := math.Exp(p.vol) / 100 / vixOverMoney
		long = 0.195 * math.Exp(0.5*p.term)
		short = long - (long-month)/shortShare(21.0/sessionsPerYear)
	} else {
		long = in.iv * 1.08 * math.Exp(0.4*p.term-p.own)
		short = in.iv * math.Pow(math.Exp(p.vol-volMean), 0.8) * math.Exp(-2*p.own)
		steepness = min(1, 0.25+0.1/in.iv)
	}
	spot, shift := in.price(p), 1.65*years/(years+0.08)
	return smile{
		spot: spot, forward: spot * math.Exp((rate-yield)*years), discount: math.Exp(-rate * years), years: years,
		money: (long - (long-short)*shortShare(traded)) * math.Sqrt(traded),
		bend:  0.28 * steepness, tilt: -0.08 - 0.12*min(years, 1), shift: shift, norm: math.Sqrt(shift*shift + 1),
	}
}

// shortShare returns the position of the volatility at the money between the long level, 0, and the short level, 1, for years of trading
// time.
func shortShare(years float64) float64 {
	decay := func(x float64) float64 { return -math.Expm1(-x) / x }
	return 0.7*decay(8*years) + 0.3*decay(0.8*years)
}

// deviations returns how many standard deviations a strike lies from the forward.
func (m *smile) deviations(strike float64) float64 { return math.Log(strike/m.forward) / m.money }

// variance returns the total variance that the VIX formula finds in the prices of the strikes of SPXW that are listed and have a bid.
func (m *smile) variance() (w float64) {
	const step = 0.125 // standard deviations
	for z := -25.0; z < 15; z += step {
		strike := m.forward * math.Exp(z*m.money)
		if v := m.value(strike); v.timeValue > 0.1 && strike > 0.38*m.spot && strike < 1.35*m.spot {
			w += 2 * step * m.money * v.timeValue / strike
		}
	}
	return w / m.discount
}

// vixLevel returns the VIX of an instant: the VIX formula for 30 days, from the third Fridays of SPX and the other Fridays of SPXW.
func (m *Market) vixLevel(p point, now moment) float64 {
	const month = 30.0 / 365
	friday := compute.DateOf(now.time.In(compute.NewYork)) + 23
	friday += compute.Date((time.Friday - friday.Weekday() + 7) % 7)
	for years, variance := 0.0, 0.0; ; friday += 7 {
		date := m.calendar.OnOrBefore(friday)
		s := m.instruments[spx].smile(p, now, m.settles(date, monthly(m.calendar, date)))
		w := s.variance()
		if s.years > month {
			w = variance + (w-variance)*(month-years)/(s.years-years)
			return math.Round(1e4*math.Sqrt(w/month)) / 100
		}
		years, variance = s.years, w
	}
}

// value is what one strike is worth.
type value struct {
	total     float64    // implied volatility until the expiration: σ√T
	price     [2]float64 // of the call and the put, USD
	timeValue float64    // of both: the lower of the two prices
}

// value returns the theoretical value of a strike.
func (m *smile) value(strike float64) value {
	z := m.deviations(strike)
	if z < 0 {
		z /= 1 - 0.012*z // far below, the smile is less steep
	}
	v := value{total: m.money * (1 + m.bend*(m.tilt*z+math.Sqrt((z-m.shift)*(z-m.shift)+1)-m.norm))}
	right, other := compute.Call, compute.Put
	if strike < m.forward {
		right, other = compute.Put, compute.Call
	}
	v.timeValue = m.discount * compute.BlackValue(right, m.forward, strike, v.total)
	v.price[right] = v.timeValue
	v.price[other] = v.timeValue + m.discount*math.Abs(m.forward-strike)
	return v
}

// quote returns the value of a contract, and bid and ask in cents. Contracts in the money are quoted wide. The bid of a contract that is
// worth less than a tick is 0; the ask is always above the bid. The middle of a bid and an ask is within a quarter of a tick of the value,
// so that no strategy of two or three contracts gains more than half a tick.
func (f *frame) quote(m *smile, c *contract) (v value, bid, ask int) {
	v = m.value(c.strike)
	spec, price := f.in.chain, v.price[c.right]
	width := spec.least + spec.slope*v.timeValue
	if c.am {
		width *= 1.9 // index series that settle at the open are quoted wider
	}
	if intrinsic := price - v.timeValue; intrinsic > 0 {
		width += spec.deep * (0.2 + 0.8*c.key.child(9).unit()) * min(1, intrinsic/(spec.deepAt*m.spot))
	}
	half := min(0.5*min(width, 0.04*m.spot), 0.03+0.5*price)
	tick := float64(spec.tick)
	bid = max(int((price-half)*100), 0)
	if bid -= bid % spec.tick; bid == 0 {
		return v, 0, int(max(math.Ceil((price+half)*100/tick), 1) * tick)
	}
	ask = int(math.Round((200*price-float64(bid))/tick)) * spec.tick
	return v, bid, max(ask, bid+spec.tick)
}

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

// day is what the contracts of a chain share on a session.
type day struct {
	opening point
	center  float64 // the price that open interest has gathered around by the close
	series  *series // of the smile
	smile   smile   // at the open
}

// day returns the day of session i, which is not after that of the frame.
func (f *frame) day(i int) *day {
	for k := f.session - len(f.days); k >= i; k-- {
		d := day{opening: f.openOf(f.in, k)}
		for back := 0; back <= 20; back += 5 {
			d.center += f.in.price(f.closeOf(f.in, max(k-back, 0)))
		}
		d.center /= 5
		f.days = append(f.days, d)
	}
	return &f.days[f.session-i]
}

func (f *frame) smile(s *series, i int) *smile {
	d := f.day(i)
	if d.series != s {
		d.series, d.smile = s, f.in.smile(d.opening, f.opening(i), s.settles)
	}
	return &d.smile
}

// contract returns a contract. Its open interest changes on the sessions on which it trades alone, and by no more than its volume of them.
func (f *frame) contract(s *series, k strike, right int) contract {
	c := contract{
		series: s, key: s.key.child(uint64(k.thousandths)*2 + uint64(right)), thousandths: k.thousandths,
		strike: float64(k.thousandths) / 1000, roundness: f.in.roundness(k.thousandths), right: right, side: float64(1 - 2*right),
		first: max(f.index(k.since), 1),
	}
	if c.key.child(0).unit() < 0.27*min(1.35, 1.25/c.roundness) {
		return c // never trades
	}
	before := f.session - 1
	for before >= c.first && !f.trades(&c, before) {
		before--
	}
	c.openInterest = f.openInterest(&c, before)
	if f.session >= c.first && f.trades(&c, f.session) {
		after := f.openInterest(&c, f.session)
		f.trade(&c, after)
		if f.listed > f.date {
			c.openInterest = after
		}
	}
	if c.volume == 0 && before >= c.first {
		c.lastTrade = f.calendar.Open(f.dates[before]).Add(time.Duration(c.key.child(6).unit() * 3 * float64(time.Hour)).Truncate(time.Second))
		c.last = f.tradePrice(&c, f.smile(s, before), c.key.child(8).unit())
	}
	return c
}

func (f *frame) today(c *contract, i int) noise {
	return c.key.child(5).child(uint64(f.dates[i]))
}

func (f *frame) trades(c *contract, i int) bool {
	if c.settles.sessions <= float64(i)+nightShare {
		return false // it has settled at the open
	}
	z, days := c.side*f.smile(c.series, i).deviations(c.strike), float64(c.days(f.dates[i]))
	chance := min(0.75*math.Exp(-z*z/12)+0.55*math.Exp(-math.Abs(z)/16), 0.97) * (0.45 + 0.55*math.Exp(-days/60))
	if z < 0 {
		chance *= 0.45
	}
	return f.today(c, i).child(0).unit() < chance
}

// roundness returns how much more a strike is used than one that is a multiple of five units only.
func (in *instrument) roundness(thousandths int32) float64 {
	for _, multiple := range [...]struct {
		units int32
		more  float64
	}{{200, 8}, {100, 5}, {20, 3}, {10, 1.7}, {5, 1}, {2, 0.6}} {
		if thousandths%(multiple.units*in.unit) == 0 {
			return multiple.more
		}
	}
	return 0.4
}

// openInterest returns the contracts open after session i, on which the contract has traded: puts gather below the spot, calls above.
func (f *frame) openInterest(c *contract, i int) int {
	if i < c.first {
		return 0
	}
	date := f.dates[i]
	away := c.side * math.Log(c.strike/f.day(i).center)
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
	x := c.interest(date) * f.in.scale * shape * c.roundness * math.Exp(luck)
	if x < 1 && c.key.child(4).unit() < 0.5 {
		return 1
	}
	return int(math.Round(x))
}

// trade sets what a contract, whose open interest goes to after in the session, has traded so far, and its last trade. It
// trades in lots of one size that are evenly spread. A few contracts out of the money begin late, and then trade many times their open
// interest, all at the bid or all at the ask.
func (f *frame) trade(c *contract, after int) {
	held, open, today := c.openInterest, f.smile(c.series, f.session), f.today(c, f.session)
	z := c.side * open.deviations(c.strike) // above 0 out of the money
	days := float64(c.days(f.date))
	level := f.in.scale * (60 + 520/open.money*math.Exp(-3.4*days) + 1200*math.Exp(-days/5)) * math.Exp(-z*z/6.5) * math.Sqrt(c.roundness)
	if z < 0 {
		level *= 0.4
	}
	popular := 0.7*c.key.child(2).normal() + 0.8*today.child(1).normal() // one that is open more trades more
	volume := math.Abs(float64(after-held)) + level*math.Exp(popular-0.5) + math.Exp(3.2*today.child(2).unit())
	lots, begins := 1+math.Floor(math.Pow(volume, 0.7)*(0.4+today.child(3).unit())), 0.0
	burst := days > 2 && days < 46 && z > 0.3 && z < 1.5 && today.child(4).unit() < f.in.chain.bursts
	if burst {
		volume, lots, begins = volume+8*float64(held)+2500*(1+today.child(5).unit()), 20_000, 0.4*today.child(6).unit()
	}
	end := f.close
	if f.in.index() { // options on an index go on after the close, but for those that settle then
		end = end.Add(indexTail)
	}
	length := float64(compute.Earlier(end, c.settles.time).Sub(f.open))
	passed := min(float64(f.asOf.Sub(f.open))/length, 1)
	phase := today.child(8).unit() // of the first lot in its share of the session
	n := math.Floor(lots*max(passed-begins, 0)/(1-begins) + phase)
	c.volume = int(volume * n / lots)
	if c.volume == 0 {
		return
	}
	share := begins + (1-begins)*(n-phase)/lots
	c.lastTrade = f.open.Add(time.Duration(share * length)).Truncate(time.Second)
	// Buyers of calls and sellers of puts have their hours, whatever the index does.
	mood := f.key.named("mood").child(uint64(f.date)).child(uint64(16 * f.progress(c.lastTrade))).normal()
	side := min(max(0.5+1.5*(today.child(uint64(9+n)).unit()-0.5)+1.6*mood*c.side, 0), 1)
	if burst {
		side = math.Round(today.child(7).unit())
	}
	then := f.in.smile(f.path.at(f.progress(c.lastTrade)), f.moment(c.lastTrade), c.settles)
	c.last = f.tradePrice(c, &then, side)
}

// tradePrice returns the price of a trade, from the bid at side 0 to the ask at side 1. No trade has the price 0.
func (f *frame) tradePrice(c *contract, m *smile, side float64) float64 {
	_, bid, ask := f.quote(m, c)
	return max(math.Round(float64(bid)+float64(ask-bid)*side), 1) / 100
}
