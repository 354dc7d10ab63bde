package simulated

import (
	"math"
	"strconv"
	"time"

	"strikecache/compute"
)

// quote writes a quote document.
func (m *Market) quote(in *instrument, f *frame) []byte {
	b := appendHead(make([]byte, 0, 640), f)
	return m.appendUnderlying(b, m.day(in, f.session), f)
}

// appendHead appends the beginning of a chain or quote document.
func appendHead(b []byte, f *frame) []byte {
	b = append(b, `{"timestamp":`...)
	b = appendClock(b, f.generated, ' ')
	return append(b, `,"data":{`...)
}

// seqnoEpoch is an instant before the market begins, Unix seconds.
const seqnoEpoch = 1_600_000_000

// appendUnderlying appends the 22 keys of an underlying and the end of the document.
func (m *Market) appendUnderlying(b []byte, d *day, f *frame) []byte {
	in, u := d.in, f.progress()
	price := d.price(u)
	low, high := d.extremes(u)
	before := d.before
	if f.rolled {
		before = d.price(1)
	}
	symbol, kind, exchange := in.symbol, "stock", 3
	if in.index() {
		symbol, kind, exchange = "^"+in.symbol[1:], "index", 5
	}
	b = append(append(b, `"symbol":"`...), symbol...)
	b = append(append(b, `","security_type":"`...), kind...)
	b = strconv.AppendInt(append(b, `","exchange_id":`...), int64(exchange), 10)
	b = appendFixed(append(b, `,"current_price":`...), price, 4)
	b = appendFixed(append(b, `,"price_change":`...), price-d.before, 4)
	b = appendFixed(append(b, `,"price_change_percent":`...), (price/d.before-1)*100, 4)
	b = m.appendBook(b, in, price, f)
	b = appendFixed(append(b, `,"open":`...), d.price(0), 4)
	b = appendFixed(append(b, `,"high":`...), high, 4)
	b = appendFixed(append(b, `,"low":`...), low, 4)
	b = appendFixed(append(b, `,"close":`...), price, 4)
	b = appendFixed(append(b, `,"prev_day_close":`...), before, 4)
	b = strconv.AppendInt(append(b, `,"volume":`...), d.shares(u), 10)
	b = m.appendIV30(b, d, u)
	seqno := 4_000_000_000 + 60*(f.generated.Unix()-seqnoEpoch) + int64(m.key.named("seqno").child(uint64(f.generated.Unix())).below(800))
	b = strconv.AppendInt(append(b, `,"seqno":`...), seqno, 10)
	last := f.asOf
	if !in.index() {
		last = earlier(f.asOf, f.close)
	}
	b = appendClock(append(b, `,"last_trade_time":`...), last.In(compute.NewYork), 'T')
	tick := "no_change"
	switch past := d.price(max(u-0.0002, 0)); {
	case price > past:
		tick = "up"
	case price < past:
		tick = "down"
	}
	b = append(append(b, `,"tick":"`...), tick...)
	b = append(append(b, `"},"symbol":"`...), in.symbol...)
	return append(b, `"}`...)
}

// appendBook appends the quote of the underlying itself: none for the volatility indices, a wide one for the SPX
// after the close.
func (m *Market) appendBook(b []byte, in *instrument, price float64, f *frame) []byte {
	key := m.key.named(in.symbol).named("book")
	minute := key.child(uint64(f.asOf.Unix()))
	bid, ask, bidSize, askSize := 0.0, 0.0, 0, 0
	switch {
	case in.symbol == spx && f.trading(in):
		bid, ask, bidSize, askSize = price-1-2*minute.unit(), price+1+2*minute.child(0).unit(), 1, 1
	case in.symbol == spx:
		bid, ask, bidSize, askSize = price*0.9949, price*1.0049, 1, 1
	case !in.index():
		wide := 0.0
		if !f.trading(in) {
			wide = 0.05
		}
		bid, ask = price-0.01*float64(minute.below(2))-wide, price+0.01+wide
		bidSize, askSize = 100*(1+minute.child(1).below(12)), 100*(1+minute.child(2).below(12))
	}
	b = appendFixed(append(b, `,"bid":`...), in.quoted(bid), 4)
	b = appendFixed(append(b, `,"ask":`...), in.quoted(ask), 4)
	b = strconv.AppendInt(append(b, `,"bid_size":`...), int64(bidSize), 10)
	return strconv.AppendInt(append(b, `,"ask_size":`...), int64(askSize), 10)
}

// appendIV30 appends the 30-day implied volatility, in percent, and its change since the close before.
func (m *Market) appendIV30(b []byte, d *day, u float64) []byte {
	now, before := d.in.iv30(d.at(u)), d.in.iv30(m.factors.closeOf(d.in, d.session-1))
	b = appendFixed(append(b, `,"iv30":`...), now, 3)
	b = appendFixed(append(b, `,"iv30_change":`...), now-before, 3)
	b = append(b, `,"iv30_change_percent":`...)
	if now == 0 {
		return append(b, "null"...)
	}
	return appendFixed(b, (now/before-1)*100, 4)
}

func (in *instrument) iv30(p point) float64 {
	percent := 0.0
	switch {
	case in.symbol == vix: // options on the VIX have no surface here
		percent = 60 * math.Exp(0.5*(p.vol-volMean))
	case in.iv > 0:
		percent = 100 * in.surface(p).at(30.0/365)
	}
	return math.Round(1e3*percent) / 1e3
}

// historyHour is the hour of the day, New York, at which a history gets the row of the day.
const historyHour = 18

// lastBar returns the last session whose row the histories have.
func (m *Market) lastBar(at time.Time) int {
	today := compute.DateOf(at.In(compute.NewYork))
	return m.morning(today, at, historyHour)
}

// historyBody writes the daily history of an instrument up to session last. The values of indices are strings.
func (m *Market) historyBody(in *instrument, last int) []byte {
	b := make([]byte, 0, 110*(last+1)+64)
	b = append(append(b, `{"symbol":"`...), in.symbol...)
	b = append(b, `","data":[`...)
	for i, row := range m.bars(in, last) {
		if i < in.unlisted {
			row = bar{}
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, `{"date":"`...), m.factors.dates[i].String()...)
		b = append(b, '"')
		b = appendBar(b, row, in.index())
		b = append(b, '}')
	}
	return append(b, `]}`...)
}

func appendBar(b []byte, r bar, quoted bool) []byte {
	for i, key := range [...]string{`,"open":`, `,"high":`, `,"low":`, `,"close":`} {
		b = append(b, key...)
		x := [...]float64{r.open, r.high, r.low, r.close}[i]
		if quoted {
			b = strconv.AppendFloat(append(b, '"'), x, 'f', 4, 64)
			b = append(b, '"')
		} else {
			b = appendFixed(b, x, 2)
		}
	}
	b = append(b, `,"volume":`...)
	if quoted {
		return append(b, `"0"`...)
	}
	return strconv.AppendInt(b, r.shares, 10)
}
