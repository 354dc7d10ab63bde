package simulated

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"

	"strikecache/compute"
)

// tradeForm is the form of the time of a trade, New York.
const tradeForm = `"2006-01-02T15:04:05"`

// chain writes the options of a chain document, a series at a time. price is the price of the underlying.
func (m *Market) chain(w io.Writer, in *instrument, f *frame, path *path, price point) {
	t, when, quoted := trading{Market: m, in: in, frame: f, path: path}, m.quoted(in, f), price
	if night := when.sessions - float64(f.session+1); night > 0 {
		quoted = price.toward(m.factors.openOf(in, m.factors.index(m.calendar.Next(f.date))), night/nightShare)
	}
	surface, all := in.surface(quoted), m.listing(in, f.listed)
	b := []byte(`"options":[`)
	for i := range all {
		s := &all[i]
		t.smiles = t.smiles[:0]
		now := surface.smile(when, s.settles)
		for _, strike := range s.strikes {
			for right := range 2 {
				c := t.contract(s, strike, right)
				b = t.appendRow(b, &c, &now)
			}
		}
		last := len(b) - 1 // the comma after the last row
		_, _ = w.Write(b[:last])
		b = append(b[:0], b[last:]...)
	}
	fmt.Fprintf(w, "],")
}

// appendRow appends a row and a comma. Members that no decoder reads are constant. Some of them have odd spellings of the recorded chain.
func (t *trading) appendRow(b []byte, c *contract, now *smile) []byte {
	v := now.value(c.strike)
	bid, ask := t.in.chain.quote(now, &v, c)
	greeks := compute.BlackGreeks(now.spot, now.forward, c.strike, v.total, now.years, rate)
	gamma := compute.BlackGamma(now.spot, now.spot, now.forward, c.strike, v.total, now.discount)
	// The upstream computes iv from the middle of the quote. In the money, when the quote is wide against the time value, the middle lies
	// below the intrinsic value, and the upstream publishes 0. It has published no iv over 8.3 (2026-08-11).
	iv := v.total / math.Sqrt(now.years)
	hidden := [2]float64{0.0035, 0.0002}[c.right] * c.key.child(12).unit() * float64(ask-bid)
	if v.price[c.right] > v.timeValue && v.timeValue < hidden || iv > 8.3 {
		iv = 0
	}
	b = c.date.Midnight().AppendFormat(append(append(b, `{"option":"`...), c.root...), "060102")
	b = fmt.Appendf(b, "%c%08d", "CP"[c.right], c.thousandths)
	b = appendFixed(append(b, `","bid":`...), float64(bid)/100)
	b = appendFixed(append(b, `,"bid_size":12.0,"ask":`...), float64(ask)/100)
	b = appendFixed(append(b, `,"ask_size":20.0,"iv":`...), iv)
	b = appendFixed(append(b, `,"open_interest":`...), float64(c.openInterest))
	b = appendFixed(append(b, `,"volume":`...), float64(c.volume))
	b = appendFixed(append(b, `,"delta":`...), greeks.Delta[c.right])
	b = appendFixed(append(b, `,"gamma":`...), gamma)
	b = appendFixed(append(b, `,"vega":0.0,"theta":-0.0067,"rho":0.0,"theo":`...), v.price[c.right])
	b = append(b, `,"change":-24.9,"open":0.0,"high":0.0,"low":0.0,"tick":"no_change","last_trade_price":`...)
	b = append(appendFixed(b, c.last), `,"last_trade_time":`...)
	if c.lastTrade.IsZero() {
		b = append(b, "null"...)
	} else {
		b = c.lastTrade.In(compute.NewYork).AppendFormat(b, tradeForm)
	}
	return append(b, `,"percent_change":-1.49012e-06,"prev_day_close":0.025},`...)
}

// price returns the price of an instrument at an instant.
func (m *Market) price(in *instrument, p point, at moment) float64 {
	if in.symbol == vix {
		return m.vixLevel(p, at)
	}
	return in.price(p)
}

// writeUnderlying writes the 22 keys of an underlying and the end of the document.
func (m *Market) writeUnderlying(w io.Writer, in *instrument, f *frame, p point) {
	price, last := m.price(in, p, f.moment(f.asOf)), f.asOf
	before := m.price(in, m.factors.closeOf(in, f.session-1), m.lastQuote(m.calendar.Previous(f.date)))
	symbol, kind, exchange := in.symbol, "stock", 3
	if in.index() {
		symbol, kind, exchange = "^"+in.symbol[1:], "index", 5
	} else {
		last = earlier(last, f.close)
	}
	fmt.Fprintf(w, `"symbol":%q,"security_type":%q,"exchange_id":%d,"current_price":%s,"price_change":%s,"price_change_percent":%s`,
		symbol, kind, exchange, fixed(price), fixed(price-before), fixed((price/before-1)*100))
	fmt.Fprintf(w, `,"bid":%[1]s,"ask":%[1]s,"bid_size":1,"ask_size":1,"open":%[1]s,"high":%[1]s,"low":%[1]s,"close":%[1]s`, fixed(price))
	fmt.Fprintf(w, `,"prev_day_close":%s,"volume":0,"iv30":0.0,"iv30_change":0.0,"iv30_change_percent":null`, fixed(before))
	fmt.Fprintf(w, `,"seqno":%d,"last_trade_time":%s,"tick":"no_change"},"symbol":%q}`,
		10*f.generated.Unix(), last.In(compute.NewYork).Format(tradeForm), in.symbol)
}

// history writes the daily history of an instrument up to session last. The values of indices are strings.
func (m *Market) history(w io.Writer, in *instrument, last int) {
	form := `%[1]s{"date":"%[2]s","open":%[3]s,"high":%[3]s,"low":%[3]s,"close":%[3]s,"volume":0}`
	if in.index() {
		form = `%[1]s{"date":"%[2]s","open":"%[3]s","high":"%[3]s","low":"%[3]s","close":"%[3]s","volume":"0"}`
	}
	comma := ""
	fmt.Fprintf(w, `{"symbol":%q,"data":[`, in.symbol)
	for i := range last + 1 {
		fmt.Fprintf(w, form, comma, m.factors.dates[i], fixed(m.price(in, m.factors.closeOf(in, i), m.lastQuote(m.factors.dates[i]))))
		comma = ","
	}
	fmt.Fprintf(w, `]}`)
}

func fixed(x float64) string { return string(appendFixed(nil, x)) }

// appendFixed appends x, rounded to 4 decimals, as Python does: the shortest digits, and always a point.
func appendFixed(b []byte, x float64) []byte {
	start := len(b)
	b = strconv.AppendFloat(b, math.Round(x*1e4)/1e4+0, 'f', -1, 64) // -0 + 0 is 0
	if bytes.IndexByte(b[start:], '.') < 0 {
		b = append(b, ".0"...)
	}
	return b
}
