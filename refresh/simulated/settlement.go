package simulated

import (
	"fmt"
	"math"
	"strconv"
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
	w := settlementWriter{Market: m, date: date, session: m.factors.index(date), body: []byte(settlementHeader)}
	w.volatility()
	w.others()
	return w.body
}

// settlementWriter writes one settlement file.
type settlementWriter struct {
	*Market
	date    compute.Date
	session int
	body    []byte
}

const (
	monthsListed   = 9
	weeksListed    = 6
	monthLetters   = "FGHJKMNQUVXZ"
	shortestDigits = -1
)

// add appends a row; decimals is shortestDigits for as many as the price has.
func (w *settlementWriter) add(product, symbol string, expires compute.Date, price float64, decimals int) {
	w.body = append(append(append(w.body, product...), ','), symbol...)
	w.body = append(append(append(w.body, ','), expires.String()...), ',')
	w.body = append(strconv.AppendFloat(w.body, price, 'f', decimals, 64), "\r\n"...)
}

// symbol returns the name of a contract: VX/V6, with a week number VX40/V6.
func futureSymbol(product, week string, year int, month time.Month) string {
	return product + week + "/" + monthLetters[month-1:month] + strconv.Itoa(year%10)
}

// future is one monthly VIX future.
type future struct {
	year    int
	month   time.Month
	expires compute.Date
	price   float64
}

// volatility writes VIX futures, weeklies among them, and their small twins.
func (w *settlementWriter) volatility() {
	var months []future
	for n := 0; len(months) < monthsListed; n++ {
		first := compute.NewDate(w.date.Year(), w.date.Month()+time.Month(n), 1)
		f := future{year: first.Year(), month: first.Month()}
		f.expires = w.calendar.VIXExpiration(f.year, f.month)
		if f.expires >= w.date {
			f.price = w.futurePrice(f.expires)
			months = append(months, f)
		}
	}
	// Weeklies hardly trade: they carry the price of the first month after this session.
	front := months[0].price
	if months[0].expires == w.date {
		front = months[1].price
	}
	next := 0
	wednesday := w.date + compute.Date((time.Wednesday-w.date.Weekday()+7)%7)
	for range weeksListed {
		for next < len(months) && months[next].expires < wednesday-1 {
			w.addMonth(&months[next])
			next++
		}
		if next < len(months) && months[next].expires <= wednesday+1 {
			w.addMonth(&months[next])
			next++
		} else {
			week := (wednesday-compute.NewDate(wednesday.Year(), time.January, 1))/7 + 1
			expires := w.calendar.OnOrBefore(wednesday)
			if expires >= w.date {
				symbol := futureSymbol("VX", fmt.Sprintf("%02d", week), wednesday.Year(), wednesday.Month())
				w.add("VX", symbol, expires, front, shortestDigits)
			}
		}
		wednesday += 7
	}
	for ; next < len(months); next++ {
		w.addMonth(&months[next])
	}
	for _, f := range months[:6] {
		w.add("VXM", futureSymbol("VXM", "", f.year, f.month), f.expires, f.price, shortestDigits)
	}
}

func (w *settlementWriter) addMonth(f *future) {
	w.add("VX", futureSymbol("VX", "", f.year, f.month), f.expires, f.price, shortestDigits)
}

// futurePrice returns the settlement of a VIX future: the VIX, pulled to its mean with time to expiration; on the
// day it expires the final settlement, a VIX value at the open.
func (w *settlementWriter) futurePrice(expires compute.Date) float64 {
	f := w.factors
	noise := w.key.named("VX").child(uint64(expires)).child(uint64(w.date)).normal()
	if expires == w.date {
		atOpen := f.openOf(w.bySymbol[vix], w.session).vol
		return math.Round(100*(math.Exp(atOpen)+0.05*noise)) / 100
	}
	const pull = 6.5 // per year
	years := float64(expires-w.date) / 365
	level := termLevel*math.Exp(f.closes[w.session].term) - 1.3*math.Expm1(-2*years)
	price := level - (level-math.Exp(f.closes[w.session].vol))*math.Exp(-pull*years) + 0.012*noise
	return math.Round(price*1e4) / 1e4
}

// others writes the other products of the exchange, which readers must leave out.
func (w *settlementWriter) others() {
	index := math.Exp(w.factors.closes[w.session].market)
	risk := index / 7350 // what the other prices follow
	quarterly := func(product string, price float64, decimals int) {
		for n, q := 0, w.date.AddMonths(1); n < 3; q = q.AddMonths(1) {
			if q.Month()%3 == 0 {
				first := w.calendar.Next(compute.NewDate(q.Year(), q.Month(), 1) - 1)
				w.add(product, futureSymbol(product, "", q.Year(), q.Month()), first, price*(1+0.008*float64(n)), decimals)
				n++
			}
		}
	}
	monthly := func(product string, count int, price, slope float64, decimals int, on func(year int, month time.Month) compute.Date) {
		for n, d := 0, w.date; n < count; d = d.AddMonths(1) {
			if expires := on(d.Year(), d.Month()); expires > w.date {
				w.add(product, futureSymbol(product, "", d.Year(), d.Month()), expires, price*(1+slope*float64(n)), decimals)
				n++
			}
		}
	}
	third := func(year int, month time.Month) compute.Date { return monthlyDate(w.calendar, year, month) }
	last := func(year int, month time.Month) compute.Date {
		return w.calendar.OnOrBefore(compute.NewDate(year, month+1, 0))
	}
	monthly("VA", 8, math.Round(150*risk), 0.25, 2, third)
	quarterly("IBHY", 180*risk, 2)
	quarterly("IBIG", 140*risk, 2)
	quarterly("IEMD", 155*risk, 2)
	coin, ether := 86_000*risk, 2700*risk
	monthly("XBTF", 4, coin/10, 0, 2, last)
	monthly("FBT", 4, coin, 0.006, 2, last)
	monthly("FET", 4, ether, 0.006, 2, last)
	w.add("PBT", "PBT/Z35", compute.NewDate(2035, time.December, 28), coin, 2)
	w.add("PET", "PET/Z35", compute.NewDate(2035, time.December, 28), ether, 2)
	monthly("MGTN", 4, index*0.0727, 0.003, 2, third)
}
