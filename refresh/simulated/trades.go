package simulated

import (
	"math"
	"time"

	"strikecache/compute"
)

// A contract's trades of a session are not stored: the n-th of them is drawn from the contract's noise, so that
// the volume at any instant, and the last trade before it, take a few operations. Trades are spread evenly over
// the pace of the session, which is the share of trading that is done.

// paces converts between time and the pace of ordinary trading.
type paces struct{ times [paceSteps + 1]float64 }

const paceSteps = 1024

func newPaces() *paces {
	p := &paces{}
	for i := 1; i < paceSteps; i++ {
		lo, hi := 0.0, 1.0
		for range 40 {
			if mid := 0.5 * (lo + hi); activity(mid) < float64(i)/paceSteps {
				lo = mid
			} else {
				hi = mid
			}
		}
		p.times[i] = lo
	}
	p.times[paceSteps] = 1
	return p
}

// when returns the share of the session at which a share of trading is done, the inverse of activity.
func (p *paces) when(share float64) float64 { return interpolate(p.times[:], share) }

// burst is a contract that trades many times its open interest, most of it within a tenth of the session.
type burst struct {
	start float64 // share of the session
	atAsk bool    // else at the bid
}

const (
	burstLength = 0.1
	burstBefore = 0.03 // share of the trading before it
	burstWithin = 0.85
)

// pace returns the share of trading that is done at u.
func (b burst) pace(u float64) float64 {
	end := b.start + burstLength
	switch {
	case u < b.start:
		return burstBefore * u / b.start
	case u < end:
		return burstBefore + burstWithin*(u-b.start)/burstLength
	}
	return 1 - (1-burstBefore-burstWithin)*(1-u)/(1-end)
}

// when is the inverse of pace.
func (b burst) when(share float64) float64 {
	end := b.start + burstLength
	switch {
	case share < burstBefore:
		return b.start * share / burstBefore
	case share < burstBefore+burstWithin:
		return b.start + burstLength*(share-burstBefore)/burstWithin
	}
	return 1 - (1-share)*(1-end)/(1-burstBefore-burstWithin)
}

// tradesBy returns how many of a contract's trades are done at a pace.
func (c *contract) tradesBy(key noise, pace float64) uint32 {
	n := uint32(pace * float64(c.trades))
	if n < c.trades && c.paceOf(key, n+1) <= pace {
		n++
	}
	return n
}

// paceOf returns the pace at which the n-th trade happens, n from 1: in the n-th of equal parts.
func (c *contract) paceOf(key noise, n uint32) float64 {
	return (float64(n) - key.child(uint64(n)).unit()) / float64(c.trades)
}

// tradeKey returns the noise of a contract's trades in a session.
func tradeKey(key noise, session compute.Date) noise { return key.child(7).child(uint64(session)) }

// addBursts picks the session's bursts, out of the money and up to six weeks from expiration, and spreads them over
// the session.
func (b *tableBuilder) addBursts() {
	key := b.key.named("bursts").named(b.in.symbol).child(uint64(b.session))
	var near []*series
	for i := range b.t.series {
		s := &b.t.series[i]
		if days := s.days(b.session); days >= 3 && days <= 45 && s.root == b.in.root(s.am) && s.since < b.session {
			near = append(near, s)
		}
	}
	n := b.in.chain.bursts
	for j := range n {
		if len(near) == 0 {
			return
		}
		key := key.child(uint64(j))
		s := near[key.child(0).below(len(near))]
		right := key.child(1).below(2)
		z := 0.3 + 1.2*key.child(2).unit()
		if right == 1 {
			z = -z
		}
		c := b.candidate(s, z, right)
		if c == nil {
			continue
		}
		times := 6 + 16*key.child(3).unit()
		floor := float64(b.in.chain.burstFloor) * (1 + key.child(4).unit())
		c.volume = uint32(max(times*float64(c.openInterest), floor))
		c.trades = 400
		b.t.bursts = append(b.t.bursts, burst{
			start: 0.01 + 0.86*(float64(j)+key.child(5).unit())/float64(n), atAsk: key.child(6).unit() < 0.7,
		})
		c.burst = uint8(len(b.t.bursts))
	}
}

// candidate returns the contract near z deviations with the least open interest, nil when none trades.
func (b *tableBuilder) candidate(s *series, z float64, right int) (best *contract) {
	m := b.open.smile(s.settles.Sub(b.calendar.Open(b.session)))
	for i, thousandths := range s.strikes {
		c := &b.t.contracts[s.first+2*i+right]
		if math.Abs(m.deviations(float64(thousandths)/1000)-z) > 0.35 || c.volume == 0 || c.burst > 0 {
			continue
		}
		if best == nil || c.openInterest < best.openInterest {
			best = c
		}
	}
	return best
}

// trading is the session of one series.
type trading struct {
	day    *day
	spec   *chainSpec
	series *series
	bursts []burst
	open   time.Time
	length float64 // seconds in which the series trades
}

// trading returns a series' session; index options trade on after the close, but for those that settle then.
func (t *table) trading(s *series, open time.Time) trading {
	end := open.Add(time.Duration(t.day.length) * time.Second)
	if t.day.in.symbol == spx {
		end = end.Add(indexTail - time.Second)
	}
	return trading{
		day: t.day, spec: t.day.in.chain, series: s, bursts: t.bursts, open: open,
		length: earlier(end, s.settles).Sub(open).Seconds(),
	}
}

// paceAt returns which share of a contract's trading is done when u of its session has passed.
func (t *trading) paceAt(c *contract, u float64) float64 {
	if c.burst > 0 {
		return t.bursts[c.burst-1].pace(u)
	}
	return activity(u)
}

// trade returns the n-th trade of a contract: how many seconds after the open, and its price.
func (t *trading) trade(p *paces, c *contract, key noise, n uint32, strike float64, right int) (after int, price float64) {
	trades := tradeKey(key, t.day.factors.dates[t.day.session])
	pace := c.paceOf(trades, n)
	when := p.when(pace)
	at := trades.child(uint64(n)).child(0).unit()
	if c.burst > 0 {
		b := t.bursts[c.burst-1]
		when = b.when(pace)
		at = 0
		if b.atAsk {
			at = 1
		}
	}
	after = int(when * t.length)
	left := t.series.settles.Sub(t.open) - time.Duration(after)*time.Second
	m := t.day.surface(min(float64(after)/t.day.length, 1)).smile(left)
	v := m.value(strike)
	bid, ask := t.spec.quote(&m, &v, right, key, t.series.am)
	return after, float64(between(bid, ask, at)) / 100
}

// between returns a price inside a quote, in cents: at is 0 to 1, and a third of it is the bid and the ask. No
// trade has the price 0.
func between(bid, ask int, at float64) int {
	x := float64(bid) + float64(ask-bid)*min(max((at-1.0/6)*1.5, 0), 1)
	return max(int(math.Round(x)), 1)
}

// price sets the prices of a series that are the same all session.
func (b *tableBuilder) price(s *series) {
	closed := b.calendar.Close(b.factors.dates[b.t.key.session-1])
	quotedBefore := s.since < b.session
	var before smile
	if quotedBefore {
		before = b.before.smile(s.settles.Sub(closed))
	}
	session := b.t.trading(s, b.calendar.Open(b.session))
	for i, thousandths := range s.strikes {
		strike := float64(thousandths) / 1000
		var v value
		if quotedBefore {
			v = before.value(strike)
		}
		for right := range 2 {
			c := &b.t.contracts[s.first+2*i+right]
			key := s.contractKey(i, right)
			if quotedBefore {
				bid, ask := b.in.chain.quote(&before, &v, right, key, s.am)
				c.prevClose = middle(bid, ask)
			}
			if c.trades > 0 {
				_, price := session.trade(b.paces, c, key, 1, strike, right)
				c.open = float32(price)
			}
			if c.lastTrade.date != 0 {
				c.last = b.pastPrice(s, c.lastTrade.date, strike, right, key)
			}
		}
	}
}

// middle returns the middle of a quote in cents, as the upstream computes it: from prices of 32 bits, with 64.
func middle(bid, ask int) float64 {
	return 0.5 * (float64(float32(float64(bid)/100)) + float64(float32(float64(ask)/100)))
}

// pastPrice returns the price of a trade on a past session, from the surface at its close.
func (b *tableBuilder) pastPrice(s *series, d compute.Date, strike float64, right int, key noise) float32 {
	past := b.closingSurface(b.in, b.factors.index(d))
	m := past.smile(s.settles.Sub(b.calendar.Close(d)))
	v := m.value(strike)
	bid, ask := b.in.chain.quote(&m, &v, right, key, s.am)
	return float32(between(bid, ask, key.child(8).unit())) / 100
}
