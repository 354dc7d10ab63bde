package simulated

import (
	"fmt"
	"time"

	"strikecache/compute"
)

// bytesPerRow is the room made for a row of a chain.
const bytesPerRow = 425

// chain writes a chain document.
func (m *Market) chain(in *instrument, f *frame) []byte {
	t := m.table(in, f)
	w := chainWriter{
		table: t, frame: f, surface: in.surface(t.at(f.progress())), beat: uint64(f.generated.Unix()), live: f.trading(in),
		body: make([]byte, 0, len(t.contracts)*bytesPerRow+2048),
	}
	if f.overnight > 0 { // a price on its way to the next open, which only the options show
		open := m.factors.openOf(in, m.factors.index(m.calendar.Next(f.date)))
		w.surface = in.surface(m.factors.closeOf(in, f.session).toward(open, f.overnight))
	}
	w.body = append(appendHead(w.body, f), `"options":[`...)
	for i := range t.series {
		w.series(&t.series[i])
	}
	w.body = append(w.body[:len(w.body)-1], `],`...) // without the comma after the last row
	return m.appendUnderlying(w.body, t.day, f)
}

// chainWriter writes the rows of a chain.
type chainWriter struct {
	*table
	frame   *frame
	surface surface
	beat    uint64
	live    bool // the options trade
	body    []byte
}

// row is one contract as published.
type row struct {
	bid, ask, last, iv, theo float64
	bidSize, askSize, volume uint32
	right                    int
	lastTrade                int64 // Unix seconds, 0 for never
}

// series writes the rows of a root and expiration.
func (w *chainWriter) series(s *series) {
	left := s.settles.Sub(w.frame.asOf)
	var m smile
	if left > 0 {
		m = w.surface.smile(left)
	}
	prefix := s.date.Midnight().AppendFormat([]byte(`{"option":"`+s.root), "060102")
	for i, thousandths := range s.strikes {
		strike := float64(thousandths) / 1000
		var v value
		var g greeks
		if left > 0 {
			v = m.value(strike)
			g = m.greeks(strike, &v)
		} else {
			v, g = w.settled(s, &m, strike)
		}
		for right := range 2 {
			c := &w.contracts[s.first+2*i+right]
			key := s.contractKey(i, right)
			r := row{theo: v.price[right], right: right}
			w.quote(&r, &m, &v, s, key)
			w.traded(&r, s, c, key, strike)
			w.body = fmt.Appendf(append(w.body, prefix...), "%c%08d", "CP"[right], thousandths)
			w.append(&r, c, &g)
		}
	}
}

// settled returns the value of a strike after settlement, the intrinsic one. The upstream goes on inverting
// prices that have no time value: next to the settlement its numbers are absurd.
func (w *chainWriter) settled(s *series, m *smile, strike float64) (v value, g greeks) {
	m.spot = w.price(1)
	if s.am {
		m.spot = w.price(0)
	}
	v.price[0], v.price[1] = max(m.spot-strike, 0), max(strike-m.spot, 0)
	if strike < m.spot {
		g.delta[0] = 1
	} else {
		g.delta[1] = -1
	}
	if off := (strike - m.spot) / m.spot; off < 0.002 && off > -0.002 {
		n := s.key.child(1 << 40).child(uint64(strike * 1000))
		v.sigma, g.gamma = 0.4+8*n.unit(), 0.07*n.child(0).unit()
	}
	return v, g
}

// quote sets bid, ask, sizes and the published implied volatility.
func (w *chainWriter) quote(r *row, m *smile, v *value, s *series, key noise) {
	bid, ask := w.spec.maker.quote(m, v, r.right, key, s.am)
	r.bid, r.ask = float64(bid)/100, float64(ask)/100
	if w.live {
		n := key.child(11).child(w.beat)
		r.askSize = uint32(1 + n.child(0).below(100))
		if bid > 0 {
			r.bidSize = uint32(1 + n.child(1).below(100))
		}
	}
	r.iv = v.sigma
	// The vendor inverts the middle of the quote. In the money that lies below the intrinsic value as soon as the
	// quote is wide against the time value: then it publishes 0.
	hidden := 0.35 * key.child(12).unit()
	if r.right == 1 {
		hidden *= 0.05
	}
	if r.theo > v.timeValue && v.timeValue < hidden*(r.ask-r.bid) {
		r.iv = 0
	}
}

// traded sets what the session's trades so far say, or the last trade before it.
func (w *chainWriter) traded(r *row, s *series, c *contract, key noise, strike float64) {
	r.last, r.lastTrade = float64(c.last), c.lastTrade
	if c.trades == 0 {
		return
	}
	passed := w.frame.asOf.Sub(w.open)
	n := w.tradesBy(s, c, key, passed)
	if n == 0 {
		return
	}
	after, price := w.trade(s, c, key, n, strike, r.right)
	r.last, r.lastTrade = price, w.open.Add(min(after, passed)).Unix()
	r.volume = uint32(uint64(c.volume) * uint64(n) / uint64(c.trades))
}

// append appends a row from the closing quote of its symbol on. Nobody reads some of its numbers, which are therefore
// simple: the prices of the session's trades are all the last one.
func (w *chainWriter) append(r *row, c *contract, g *greeks) {
	price, change, percent := 0.0, 0.0, 0.0
	if r.volume > 0 {
		price, change = r.last, r.last-c.prevClose
		if c.prevClose > 0 {
			percent = change / c.prevClose * 100
		}
	}
	b := w.body
	b = appendFixed(append(b, `","bid":`...), r.bid, 2)
	b = appendFixed(append(b, `,"bid_size":`...), float64(r.bidSize), 1)
	b = appendFixed(append(b, `,"ask":`...), r.ask, 2)
	b = appendFixed(append(b, `,"ask_size":`...), float64(r.askSize), 1)
	b = appendFixed(append(b, `,"iv":`...), r.iv, 4)
	b = appendFixed(append(b, `,"open_interest":`...), float64(c.openInterest), 1)
	b = appendFixed(append(b, `,"volume":`...), float64(r.volume), 1)
	b = appendFixed(append(b, `,"delta":`...), g.delta[r.right], 4)
	b = appendFixed(append(b, `,"gamma":`...), g.gamma, 4)
	b = appendFixed(append(b, `,"vega":`...), g.vega, 4)
	b = appendFixed(append(b, `,"theta":`...), g.theta[r.right], 4)
	b = appendFixed(append(b, `,"rho":`...), g.rho[r.right], 4)
	b = appendFixed(append(b, `,"theo":`...), r.theo, 4)
	b = appendFixed(append(b, `,"change":`...), change, 4)
	b = appendFixed(append(b, `,"open":`...), price, 2)
	b = appendFixed(append(b, `,"high":`...), price, 2)
	b = appendFixed(append(b, `,"low":`...), price, 2)
	b = appendFixed(append(b, `,"tick":"no_change","last_trade_price":`...), r.last, 2)
	b = append(b, `,"last_trade_time":`...)
	if r.lastTrade == 0 {
		b = append(b, "null"...)
	} else {
		b = time.Unix(r.lastTrade, 0).In(compute.NewYork).AppendFormat(b, tradeForm)
	}
	b = appendSignificant(append(b, `,"percent_change":`...), percent, 6)
	b = appendSignificant(append(b, `,"prev_day_close":`...), c.prevClose, 15)
	w.body = append(b, `},`...)
}
