package simulated

import "strikecache/compute"

// bytesPerRow is the room made for a row of a chain.
const bytesPerRow = 425

// chain writes a chain document.
func (m *Market) chain(in *instrument, f *frame) []byte {
	t := m.table(in, f)
	w := chainWriter{
		table: t, frame: f, surface: in.surface(t.at(f.progress())), dates: map[compute.Date]string{},
		beat: uint64(f.generated.Unix()), live: f.trading(in), body: make([]byte, 0, len(t.contracts)*bytesPerRow+2048),
	}
	if f.overnight > 0 { // a price that only the options show
		w.surface = in.surface(m.factors.overnight(in, m.factors.index(m.calendar.Next(f.date)), f.overnight))
	}
	w.body = appendHead(w.body, f)
	w.body = append(w.body, `"options":[`...)
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
	dates   map[compute.Date]string // as they are spelled
	beat    uint64
	live    bool // the options trade
	body    []byte
}

// row is one contract as published.
type row struct {
	bid, ask, last, open, high, low float64
	bidSize, askSize, volume        uint32
	iv, theo                        float64
	right                           int
	lastTrade                       tradeTime
	tick                            int
}

// series writes the rows of a root and expiration.
func (w *chainWriter) series(s *series) {
	left := s.settles.Sub(w.frame.asOf)
	var m smile
	if left > 0 {
		m = w.surface.smile(left)
	}
	prefix := append([]byte(`{"option":"`), s.root...)
	year, month, date := s.date.Midnight().Date()
	prefix = appendDigits(appendDigits(appendDigits(prefix, year%100, 2), int(month), 2), date, 2)
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
			r := row{theo: v.price[right], right: right, tick: 1}
			w.quote(&r, &m, &v, s, key)
			w.traded(&r, s, c, key, strike)
			w.body = append(w.body, prefix...)
			w.body = append(w.body, "CP"[right])
			w.body = appendDigits(w.body, int(thousandths), 8)
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
		v.sigma = 0.4 + 8*n.unit()
		g.gamma, g.vega = 0.07*n.child(0).unit(), 0.002*n.child(1).unit()
		g.theta = [2]float64{-n.unit(), -n.unit()}
	}
	return v, g
}

// quote sets bid, ask, sizes and the published implied volatility.
func (w *chainWriter) quote(r *row, m *smile, v *value, s *series, key noise) {
	bid, ask := w.spec.maker.quote(m, v, r.right, key, s.am)
	r.bid, r.ask = float64(bid)/100, float64(ask)/100
	if w.live {
		n := key.child(11).child(w.beat)
		r.askSize = size(n.child(0))
		if bid > 0 {
			r.bidSize = size(n.child(1))
		}
	}
	r.iv = v.sigma
	// The vendor inverts the middle of the quote. In the money that lies below the intrinsic value as soon as the
	// quote is wide against the time value: then it publishes 0, or now and then a very large number.
	n := key.child(12)
	hidden := 0.35 * n.child(1).unit()
	if r.right == 1 {
		hidden *= 0.05
	}
	if r.theo > v.timeValue && v.timeValue < hidden*(r.ask-r.bid) {
		r.iv = 0
		if n.unit() < 0.1 {
			r.iv = v.sigma * (1.2 + 2*n.child(0).unit())
		}
	}
}

func size(n noise) uint32 {
	u := n.unit()
	return 1 + uint32(250*u*u*u)
}

// traded sets what the session's trades so far say, or the last trade before it.
func (w *chainWriter) traded(r *row, s *series, c *contract, key noise, strike float64) {
	trades := w.tradeKey(key)
	r.last, r.lastTrade = float64(c.last), c.lastTrade
	if c.lastTrade.date != 0 {
		r.tick = trades.below(len(ticks))
	}
	if c.trades == 0 {
		return
	}
	passed := w.frame.asOf.Sub(w.open)
	n := w.tradesBy(s, c, key, passed)
	if n == 0 {
		return
	}
	after, price := w.trade(s, c, key, n, strike, r.right)
	hour, minute, second := w.open.Add(min(after, passed)).In(compute.NewYork).Clock()
	r.lastTrade = tradeTime{w.frame.date, int32(hour*3600 + minute*60 + second)}
	r.volume = uint32(uint64(c.volume) * uint64(n) / uint64(c.trades))
	r.last, r.open = price, float64(c.open)
	r.low, r.high = min(r.open, r.last), max(r.open, r.last)
	r.tick = trades.child(uint64(n)).child(0).below(len(ticks))
}

// append appends a row from the closing quote of its symbol on.
func (w *chainWriter) append(r *row, c *contract, g *greeks) {
	change, percent := 0.0, 0.0
	if r.volume > 0 {
		change = r.last - c.prevClose
		if c.prevClose > 0 {
			percent = change / c.prevClose * 100
		}
	}
	b := w.body
	b = appendFixed(append(b, `","bid":`...), r.bid, 2)
	b = appendCount(append(b, `,"bid_size":`...), r.bidSize)
	b = appendFixed(append(b, `,"ask":`...), r.ask, 2)
	b = appendCount(append(b, `,"ask_size":`...), r.askSize)
	b = appendFixed(append(b, `,"iv":`...), r.iv, 4)
	b = appendCount(append(b, `,"open_interest":`...), c.openInterest)
	b = appendCount(append(b, `,"volume":`...), r.volume)
	b = appendFixed(append(b, `,"delta":`...), g.delta[r.right], 4)
	b = appendFixed(append(b, `,"gamma":`...), g.gamma, 4)
	b = appendFixed(append(b, `,"vega":`...), g.vega, 4)
	b = appendFixed(append(b, `,"theta":`...), g.theta[r.right], 4)
	b = appendFixed(append(b, `,"rho":`...), g.rho[r.right], 4)
	b = appendFixed(append(b, `,"theo":`...), r.theo, 4)
	b = appendFixed(append(b, `,"change":`...), change, 4)
	b = appendFixed(append(b, `,"open":`...), r.open, 2)
	b = appendFixed(append(b, `,"high":`...), r.high, 2)
	b = appendFixed(append(b, `,"low":`...), r.low, 2)
	b = append(append(append(b, `,"tick":"`...), ticks[r.tick]...), `","last_trade_price":`...)
	b = appendFixed(b, r.last, 2)
	b = appendTrade(append(b, `,"last_trade_time":`...), r.lastTrade, w.dates)
	b = appendSignificant(append(b, `,"percent_change":`...), percent, 6)
	b = appendSignificant(append(b, `,"prev_day_close":`...), c.prevClose, 15)
	w.body = append(b, `},`...)
}

// tradeTime is a last_trade_time: a date and a second of its day, New York. The zero value is null.
type tradeTime struct {
	date   compute.Date
	second int32
}

// appendTrade appends a last trade time, or null. text caches the spelling of dates.
func appendTrade(b []byte, t tradeTime, text map[compute.Date]string) []byte {
	if t.date == 0 {
		return append(b, "null"...)
	}
	date, ok := text[t.date]
	if !ok {
		date = `"` + t.date.String() + `T`
		text[t.date] = date
	}
	b = append(b, date...)
	b = appendTime(b, int(t.second)/3600, int(t.second)/60%60, int(t.second)%60)
	return append(b, '"')
}
