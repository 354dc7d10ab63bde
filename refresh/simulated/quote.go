package simulated

import (
	"fmt"
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
	return append(f.generated.AppendFormat(append(b, `{"timestamp":`...), timestampForm), `,"data":{`...)
}

// fixed is a number that fmt spells with at most 4 decimals.
type fixed float64

// String implements [fmt.Stringer].
func (x fixed) String() string { return string(appendFixed(nil, float64(x), 4)) }

// appendUnderlying appends the 22 keys of an underlying and the end of the document. Nobody reads some of them, which are
// therefore simple: the extremes are those of the first and the last price, and iv30 is that of an index without options.
func (m *Market) appendUnderlying(b []byte, d *day, f *frame) []byte {
	in, u := d.in, f.progress()
	price, open, before, last := d.price(u), d.price(0), d.before, f.asOf
	if f.rolled {
		before = d.price(1)
	}
	symbol, kind, exchange, half := in.symbol, "stock", 3, 0.01
	if in.index() {
		symbol, kind, exchange, half = "^"+in.symbol[1:], "index", 5, 1
	} else {
		last = earlier(last, f.close)
	}
	bid, ask := price-half, price+half
	if in.chain == nil { // an index that nobody quotes
		bid, ask = 0, 0
	}
	b = fmt.Appendf(b, `"symbol":%q,"security_type":%q,"exchange_id":%d,"current_price":%s,"price_change":%s,"price_change_percent":%s`,
		symbol, kind, exchange, fixed(price), fixed(price-d.before), fixed((price/d.before-1)*100))
	b = fmt.Appendf(b, `,"bid":%s,"ask":%s,"bid_size":1,"ask_size":1`, fixed(in.quoted(bid)), fixed(in.quoted(ask)))
	b = fmt.Appendf(b, `,"open":%s,"high":%s,"low":%s,"close":%s,"prev_day_close":%s,"volume":%d`,
		fixed(open), fixed(max(open, price)), fixed(min(open, price)), fixed(price), fixed(before), m.factors.shares(in, d.session, u))
	b = fmt.Appendf(b, `,"iv30":0.0,"iv30_change":0.0,"iv30_change_percent":null,"seqno":%d,"last_trade_time":`, 10*f.generated.Unix())
	b = last.In(compute.NewYork).AppendFormat(b, tradeForm)
	return fmt.Appendf(b, `,"tick":"no_change"},"symbol":%q}`, in.symbol)
}

// historyHour is the hour of the day, New York, at which a history gets the row of the day.
const historyHour = 18

// lastBar returns the last session whose row the histories have.
func (m *Market) lastBar(at time.Time) int {
	today := compute.DateOf(at.In(compute.NewYork))
	return m.morning(today, at, historyHour)
}

// historyBody writes the daily history of an instrument up to session last. The values of indices are strings. On the
// first session of the market, a day without a past, the price stands still.
func (m *Market) historyBody(in *instrument, last int) []byte {
	b := fmt.Appendf(make([]byte, 0, 110*(last+1)+64), `{"symbol":%q,"data":[`, in.symbol)
	form := `{"date":"%s","open":%s,"high":%s,"low":%s,"close":%s,"volume":%d},`
	if in.index() {
		form = `{"date":"%s","open":"%s","high":"%s","low":"%s","close":"%s","volume":"%d"},`
	}
	for i := range last + 1 {
		closed, shares := in.price(m.factors.closeOf(in, i)), m.factors.shares(in, i, 1)
		open := closed
		if i > 0 {
			open = in.price(m.factors.openOf(in, i))
		}
		if i < in.unlisted {
			open, closed, shares = 0, 0, 0
		}
		b = fmt.Appendf(b, form, m.factors.dates[i], fixed(open), fixed(max(open, closed)), fixed(min(open, closed)), fixed(closed), shares)
	}
	return append(b[:len(b)-1], `]}`...) // without the comma after the last row
}
