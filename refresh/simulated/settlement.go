package simulated

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"strikecache/compute"
	"strikecache/refresh/upstream"
)

const settlementHeader = "Product,Symbol,Expiration Date,Price\r\n"

// settlement returns the settlement file that is served for a date: its own from 18:30 New York on, before that
// the newest one, and a header alone on a day without a session.
func (m *Market) settlement(name upstream.Name, key string, at time.Time) (*upstream.Document, error) {
	asked, err := compute.ParseDate(key)
	if err != nil || asked <= epoch {
		return nil, &upstream.Error{Name: name, Reason: upstream.Missing, Err: fmt.Errorf("no file of %.10s", key)}
	}
	published := func(d compute.Date) time.Time { return d.At(18, 30, 0, compute.NewYork) }
	date, body := asked, []byte(settlementHeader)
	if m.calendar.IsSession(asked) {
		newest := m.calendar.SessionDate(at)
		if at.Before(published(newest)) {
			newest = m.calendar.Previous(newest)
		}
		date = min(asked, newest)
		body = m.settlementBody(date)
	}
	doc := document(name, body, earlier(published(date), at))
	doc.Received, doc.FileDate = at.UTC(), date.String()
	return doc, nil
}

// settlementBody writes the settlement file of a session.
func (m *Market) settlementBody(date compute.Date) []byte {
	w := settlementWriter{Market: m, date: date, close: m.factors.closes[m.factors.index(date)], body: []byte(settlementHeader)}
	w.volatility()
	w.others()
	return w.body
}

// settlementWriter writes one settlement file.
type settlementWriter struct {
	*Market
	date  compute.Date
	close point // the factors at the session's close
	body  []byte
}

const (
	monthsListed = 9
	weeksListed  = 6
	monthLetters = "FGHJKMNQUVXZ"
)

// future is a contract with its price.
type future struct {
	week    string       // "40" of a weekly one, else ""
	month   compute.Date // any date of the month of its name
	expires compute.Date
	price   float64
}

// add appends a row. A contract is named VX/V6, with a week number VX40/V6.
func (w *settlementWriter) add(product string, f future) {
	w.body = fmt.Appendf(w.body, "%s,%s%s/%c%d,%s,%v\r\n", product, product, f.week, monthLetters[f.month.Month()-1],
		f.month.Year()%10, f.expires, f.price)
}

// volatility writes VIX futures in the order in which they expire, weeklies among them, and their small twins.
func (w *settlementWriter) volatility() {
	var months []future
	for first := w.date - compute.Date(w.date.Day()) + 1; len(months) < monthsListed; first = first.AddMonths(1) {
		if expires := w.calendar.VIXExpiration(first.Year(), first.Month()); expires >= w.date {
			months = append(months, future{month: first, expires: expires, price: w.futurePrice(expires)})
		}
	}
	// Weeklies hardly trade: they carry the price of the first month after this session.
	front := months[0].price
	if months[0].expires == w.date {
		front = months[1].price
	}
	all := slices.Clone(months)
	wednesday := w.date + compute.Date((time.Wednesday-w.date.Weekday()+7)%7)
	for end := wednesday + 7*weeksListed; wednesday < end; wednesday += 7 {
		expires := w.calendar.OnOrBefore(wednesday)
		inMonth := func(f future) bool { return f.expires >= wednesday-1 && f.expires <= wednesday+1 }
		if expires >= w.date && !slices.ContainsFunc(months, inMonth) {
			week := (wednesday-compute.NewDate(wednesday.Year(), time.January, 1))/7 + 1
			all = append(all, future{week: fmt.Sprintf("%02d", week), month: wednesday, expires: expires, price: front})
		}
	}
	slices.SortFunc(all, func(a, b future) int { return cmp.Compare(a.expires, b.expires) })
	for _, f := range all {
		w.add("VX", f)
	}
	for _, f := range months[:6] {
		w.add("VXM", f)
	}
}

// futurePrice returns the settlement of a VIX future: the VIX, pulled to its mean with time to expiration; on the
// day it expires the final settlement, a VIX value at the open.
func (w *settlementWriter) futurePrice(expires compute.Date) float64 {
	noise := w.key.named("VX").child(uint64(expires)).child(uint64(w.date)).normal()
	if expires == w.date {
		atOpen := w.factors.openOf(w.bySymbol[vix], w.factors.index(w.date)).vol
		return math.Round(100*(math.Exp(atOpen)+0.05*noise)) / 100
	}
	const pull = 6.5 // per year
	years := float64(expires-w.date) / 365
	level := termLevel*math.Exp(w.close.term) - 1.3*math.Expm1(-2*years)
	price := level - (level-math.Exp(w.close.vol))*math.Exp(-pull*years) + 0.012*noise
	return math.Round(price*1e4) / 1e4
}

// others writes the other products of the exchange, which readers must leave out. Their months are all on the dates of
// monthly options.
func (w *settlementWriter) others() {
	index := math.Exp(w.close.market)
	risk := index / 7350 // what the other prices follow
	for _, p := range []struct {
		product string
		months  int // 0 for a perpetual one
		price   float64
	}{
		{"VA", 8, 150 * risk}, {"IBHY", 3, 180 * risk}, {"IBIG", 3, 140 * risk}, {"IEMD", 3, 155 * risk},
		{"XBTF", 4, 8600 * risk}, {"FBT", 4, 86_000 * risk}, {"FET", 4, 2700 * risk},
		{"PBT", 0, 86_000 * risk}, {"PET", 0, 2700 * risk}, {"MGTN", 4, index * 0.0727},
	} {
		price := math.Round(100*p.price) / 100
		if p.months == 0 { // with a year of two digits
			w.body = fmt.Appendf(w.body, "%s,%s/Z35,2035-12-28,%v\r\n", p.product, p.product, price)
		}
		for n, d := 0, w.date; n < p.months; d = d.AddMonths(1) {
			if expires := monthlyDate(w.calendar, d.Year(), d.Month()); expires > w.date {
				w.add(p.product, future{month: d, expires: expires, price: price})
				n++
			}
		}
	}
}
