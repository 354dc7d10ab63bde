package simulated

import (
	"cmp"
	"fmt"
	"math"
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
	return append(appendClock(append(b, `{"timestamp":`...), f.generated, ' '), `,"data":{`...)
}

// fixed is a number that fmt spells with at most 4 decimals.
type fixed float64

// String implements [fmt.Stringer].
func (x fixed) String() string { return string(appendFixed(nil, float64(x), 4)) }

// appendUnderlying appends the 22 keys of an underlying and the end of the document.
func (m *Market) appendUnderlying(b []byte, d *day, f *frame) []byte {
	in, u := d.in, f.progress()
	price, past := d.price(u), d.price(u-0.0002)
	low, high := d.extremes(u)
	before, last := d.before, f.asOf
	if f.rolled {
		before = d.price(1)
	}
	symbol, kind, exchange := "^"+in.symbol[1:], "index", 5
	if !in.index() {
		symbol, kind, exchange = in.symbol, "stock", 3
		last = earlier(last, f.close)
	}
	b = fmt.Appendf(b, `"symbol":%q,"security_type":%q,"exchange_id":%d,"current_price":%s,"price_change":%s,"price_change_percent":%s`,
		symbol, kind, exchange, fixed(price), fixed(price-d.before), fixed((price/d.before-1)*100))
	b = m.appendBook(b, in, price, f)
	b = fmt.Appendf(b, `,"open":%s,"high":%s,"low":%s,"close":%s,"prev_day_close":%s,"volume":%d`,
		fixed(d.price(0)), fixed(high), fixed(low), fixed(price), fixed(before), d.shares(u))
	b = appendIV30(b, in.iv30(d.at(u)), in.iv30(m.factors.closeOf(in, d.session-1)))
	b = fmt.Appendf(b, `,"seqno":%d,"last_trade_time":`, 10*f.generated.Unix())
	b = appendClock(b, last.In(compute.NewYork), 'T')
	return fmt.Appendf(b, `,"tick":%q},"symbol":%q}`, ticks[1+cmp.Compare(price, past)], in.symbol)
}

// ticks are how a price may differ from the one before.
var ticks = [...]string{"down", "no_change", "up"}

// appendBook appends the quote of the underlying itself: none for the volatility indices, a wide one for the SPX
// after the close.
func (m *Market) appendBook(b []byte, in *instrument, price float64, f *frame) []byte {
	n := m.key.named(in.symbol).named("book").child(uint64(f.asOf.Unix()))
	half, size := 0.01, 100
	switch {
	case in.symbol == spx:
		half, size = 1+2*n.unit(), 1
		if !f.trading(in) {
			half = 0.005 * price
		}
	case in.index():
		price, half, size = 0, 0, 0
	}
	return fmt.Appendf(b, `,"bid":%s,"ask":%s,"bid_size":%d,"ask_size":%d`, fixed(in.quoted(price-half)), fixed(in.quoted(price+half)),
		size*(1+n.child(1).below(12)), size*(1+n.child(2).below(12)))
}

// appendIV30 appends the 30-day implied volatility, in percent, and its change since the close before.
func appendIV30(b []byte, now, before float64) []byte {
	percent := "null"
	if now != 0 {
		percent = fixed((now/before - 1) * 100).String()
	}
	return fmt.Appendf(b, `,"iv30":%s,"iv30_change":%s,"iv30_change_percent":%s`, fixed(now), fixed(math.Round((now-before)*1e3)/1e3), percent)
}

// iv30 returns the 30-day implied volatility, in percent.
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
	b := fmt.Appendf(make([]byte, 0, 110*(last+1)+64), `{"symbol":%q,"data":[`, in.symbol)
	for i, row := range m.bars(in, last) {
		if i < in.unlisted {
			row = bar{}
		}
		if i > 0 {
			b = append(b, ',')
		}
		form := `{"date":"%s","open":%s,"high":%s,"low":%s,"close":%s,"volume":%d}`
		if in.index() {
			form = `{"date":"%s","open":"%s","high":"%s","low":"%s","close":"%s","volume":"%d"}`
		}
		b = fmt.Appendf(b, form, m.factors.dates[i], fixed(row.open), fixed(row.high), fixed(row.low), fixed(row.close), row.shares)
	}
	return append(b, `]}`...)
}
