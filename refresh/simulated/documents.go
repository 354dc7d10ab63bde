package simulated

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"strikecache/compute"
)

// tradeForm is the form of the time of a trade, New York.
const tradeForm = `"2006-01-02T15:04:05"`

// document writes a quote, or with options a chain.
func (f *frame) document(w io.Writer, options bool) {
	f.path = f.factors.path(f.in, f.session)
	p := f.path.at(f.progress(f.asOf))
	fmt.Fprintf(w, `{"timestamp":"%s","data":{`, f.generated.Format(time.DateTime))
	if options {
		f.options(w, p)
	}
	f.underlying(w, p)
}

// options writes the options of a chain, a series at a time. p is of the underlying.
func (f *frame) options(w io.Writer, p point) {
	now := f.quoted()
	if night := now.sessions - float64(f.session+1); night > 0 {
		p = p.toward(f.openOf(f.in, f.index(f.calendar.Next(f.date))), night/nightShare)
	}
	b := []byte(`"options":[`)
	for _, s := range f.listing(f.in, f.listed) {
		smile := f.in.smile(p, now, s.settles)
		for _, strike := range s.strikes {
			for right := range 2 {
				c := f.contract(&s, strike, right)
				b = f.appendRow(b, &c, &smile)
			}
		}
		last := len(b) - 1 // the comma after the last row
		_, _ = w.Write(b[:last])
		b = append(b[:0], b[last:]...)
	}
	fmt.Fprintf(w, "],")
}

// appendRow appends a row and a comma. Members that no decoder reads are constant. Some of them have odd spellings of the recorded chain.
func (f *frame) appendRow(b []byte, c *contract, now *smile) []byte {
	v, bid, ask := f.quote(now, c)
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
	for _, member := range [...]struct {
		before string
		value  float64
	}{
		{`","bid":`, float64(bid) / 100}, {`,"bid_size":12.0,"ask":`, float64(ask) / 100}, {`,"ask_size":20.0,"iv":`, iv},
		{`,"open_interest":`, float64(c.openInterest)}, {`,"volume":`, float64(c.volume)},
		{`,"delta":`, greeks.Delta[c.right]}, {`,"gamma":`, gamma}, {`,"vega":0.0,"theta":-0.0067,"rho":0.0,"theo":`, v.price[c.right]},
		{`,"change":-24.9,"open":0.0,"high":0.0,"low":0.0,"tick":"no_change","last_trade_price":`, c.last},
	} {
		b = appendFixed(append(b, member.before...), member.value)
	}
	b = append(b, `,"last_trade_time":`...)
	if c.lastTrade.IsZero() {
		b = append(b, "null"...)
	} else {
		b = c.lastTrade.In(compute.NewYork).AppendFormat(b, tradeForm)
	}
	return append(b, `,"percent_change":-1.49012e-06,"prev_day_close":0.025},`...)
}

func (m *Market) price(in *instrument, p point, at moment) float64 {
	if in.symbol == vix {
		return m.vixLevel(p, at)
	}
	return in.price(p)
}

// closingPrice returns the price of an instrument at the end of session i.
func (m *Market) closingPrice(in *instrument, i int) float64 {
	last := m.closing(i)
	last.time = last.time.Add(indexTail)
	return m.price(in, m.closeOf(in, i), last)
}

// underlying writes the 22 keys of an underlying and the end of the document.
func (f *frame) underlying(w io.Writer, p point) {
	price, before, last := f.price(f.in, p, f.moment(f.asOf)), f.closingPrice(f.in, f.session-1), f.asOf
	symbol, kind, exchange := "^"+f.in.symbol[1:], "index", 5
	if !f.in.index() {
		symbol, kind, exchange, last = f.in.symbol, "stock", 3, compute.Earlier(last, f.close)
	}
	fmt.Fprintf(w, `"symbol":%q,"security_type":%q,"exchange_id":%d,"current_price":%s,"price_change":%s,"price_change_percent":%s`,
		symbol, kind, exchange, fixed(price), fixed(price-before), fixed((price/before-1)*100))
	fmt.Fprintf(w, `,"bid":%[1]s,"ask":%[1]s,"bid_size":1,"ask_size":1,"open":%[1]s,"high":%[1]s,"low":%[1]s,"close":%[1]s`, fixed(price))
	fmt.Fprintf(w, `,"prev_day_close":%s,"volume":0,"iv30":0.0,"iv30_change":0.0,"iv30_change_percent":null`, fixed(before))
	fmt.Fprintf(w, `,"seqno":%d,"last_trade_time":%s,"tick":"no_change"},"symbol":%q}`,
		10*f.generated.Unix(), last.In(compute.NewYork).Format(tradeForm), f.in.symbol)
}

// history writes the daily history of an instrument up to session last. The values of indices are strings.
func (m *Market) history(w io.Writer, in *instrument, last int) {
	comma, quote := "", ""
	if in.index() {
		quote = `"`
	}
	fmt.Fprintf(w, `{"symbol":%q,"data":[`, in.symbol)
	for i := range last + 1 {
		price := quote + fixed(m.closingPrice(in, i)) + quote
		fmt.Fprintf(w, `%s{"date":"%s","open":%[3]s,"high":%[3]s,"low":%[3]s,"close":%[3]s,"volume":%[4]s0%[4]s}`, comma, m.dates[i], price, quote)
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

func settlementTime(d compute.Date) time.Time { return d.At(18, 30, 0, compute.NewYork) }

// settlementDate returns the date of the settlement file that is served for the date asked: once that is published its own, before that
// the newest one.
func (m *Market) settlementDate(asked string, at time.Time) compute.Date {
	date, _ := compute.ParseDate(asked) // Offers has parsed it
	newest := m.calendar.SessionDate(at)
	if at.Before(settlementTime(newest)) {
		newest = m.calendar.Previous(newest)
	}
	if m.calendar.IsSession(date) {
		return min(date, newest)
	}
	return date
}

// settlement writes the settlement file of a date: the monthly VIX futures in the order in which they expire. The file of a day
// without a session has a header alone.
func (m *Market) settlement(w io.Writer, date compute.Date) {
	fmt.Fprintf(w, "Product,Symbol,Expiration Date,Price\r\n")
	rows := 0
	for month := date - compute.Date(date.Day()) + 1; rows < 9 && m.calendar.IsSession(date); month = month.AddMonths(1) {
		if expires := m.calendar.VIXExpiration(month.Year(), month.Month()); expires >= date {
			rows++
			letter := "FGHJKMNQUVXZ"[month.Month()-1]
			fmt.Fprintf(w, "VX,VX/%c%d,%s,%v\r\n", letter, month.Year()%10, expires, m.futurePrice(date, expires))
		}
	}
}

// futurePrice returns the settlement of a VIX future: the VIX, pulled to its mean with the time to expiration. On the day of expiration
// it is the final settlement, a VIX value at the open.
func (m *Market) futurePrice(date, expires compute.Date) float64 {
	session := m.index(date)
	noise := m.key.named("VX").child(uint64(expires)).child(uint64(date)).normal()
	if expires == date {
		return cents(m.vixLevel(m.openOf(m.instruments[vix], session), m.opening(session)) + 0.05*noise)
	}
	const pull = 6.5 // per year
	years, p := float64(expires-date)/365, m.closes[session]
	level := termLevel*math.Exp(p.term) - 1.3*math.Expm1(-2*years)
	price := level - (level-math.Exp(p.vol))*math.Exp(-pull*years) + 0.012*noise
	return math.Round(price*1e4) / 1e4
}
