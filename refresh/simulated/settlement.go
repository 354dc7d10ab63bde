package simulated

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"strikecache/compute"
	"strikecache/refresh/upstream"
)

const settlementHeader = "Product,Symbol,Expiration Date,Price\r\n"

// settlement returns the settlement file that is served for a date. From 18:30 New York on it is the date's own, before that the newest
// one. The file of a day without a session has a header alone.
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
	doc := m.document(name, earlier(published(date), at), func(w io.Writer) { put(w, body) })
	doc.Received, doc.FileDate = at.UTC(), date.String()
	return doc, nil
}

const monthLetters = "FGHJKMNQUVXZ"

// future is a contract with its price.
type future struct {
	week    string       // number of a weekly contract, such as "40"; "" for a monthly one
	month   compute.Date // any date of the month of its name
	expires compute.Date
	price   float64
}

// appendFuture appends a row. A contract is named VX/V6, with a week number VX40/V6.
func appendFuture(b []byte, product string, f future) []byte {
	return fmt.Appendf(b, "%s,%s%s/%c%d,%s,%v\r\n", product, product, f.week, monthLetters[f.month.Month()-1],
		f.month.Year()%10, f.expires, f.price)
}

// settlementBody writes the settlement file of a session: monthly and weekly VIX futures in the order in which they expire, Mini VIX
// futures, and other products of the exchange, which readers must leave out.
func (m *Market) settlementBody(date compute.Date) []byte {
	b, months := []byte(settlementHeader), m.monthlies(date)
	all := append(m.weeklies(date, months), months...)
	slices.SortFunc(all, func(a, b future) int { return cmp.Compare(a.expires, b.expires) })
	for _, f := range all {
		b = appendFuture(b, "VX", f)
	}
	for _, f := range months[:6] {
		b = appendFuture(b, "VXM", f)
	}
	for _, product := range []string{"VA", "IBHY", "IBIG", "IEMD", "XBTF", "FBT", "FET", "PBT", "PET", "MGTN"} {
		b = fmt.Appendf(b, strings.Repeat("%[1]s,%[1]s/Z35,2035-12-28,2700\r\n", 3), product)
	}
	return b
}

// monthlies returns the monthly VIX futures of a session.
func (m *Market) monthlies(date compute.Date) (months []future) {
	for first := date - compute.Date(date.Day()) + 1; len(months) < 9; first = first.AddMonths(1) {
		if expires := m.calendar.VIXExpiration(first.Year(), first.Month()); expires >= date {
			months = append(months, future{month: first, expires: expires, price: m.futurePrice(date, expires)})
		}
	}
	return months
}

// weeklies returns the weekly VIX futures of a session. They hardly trade: they carry the price of the first month that expires after the
// session.
func (m *Market) weeklies(date compute.Date, months []future) (weeks []future) {
	front := months[0].price
	if months[0].expires == date {
		front = months[1].price
	}
	wednesday := date + compute.Date((time.Wednesday-date.Weekday()+7)%7)
	for end := wednesday + 7*6; wednesday < end; wednesday += 7 {
		expires := m.calendar.OnOrBefore(wednesday)
		inMonth := func(f future) bool { return f.expires >= wednesday-1 && f.expires <= wednesday+1 }
		if expires >= date && !slices.ContainsFunc(months, inMonth) {
			week := (wednesday-compute.NewDate(wednesday.Year(), time.January, 1))/7 + 1
			weeks = append(weeks, future{week: fmt.Sprintf("%02d", week), month: wednesday, expires: expires, price: front})
		}
	}
	return weeks
}

// futurePrice returns the settlement of a VIX future: the VIX, pulled to its mean with the time to expiration. On the day of expiration
// it is the final settlement, a VIX value at the open.
func (m *Market) futurePrice(date, expires compute.Date) float64 {
	session := m.factors.index(date)
	noise := m.key.named("VX").child(uint64(expires)).child(uint64(date)).normal()
	if expires == date {
		atOpen := m.factors.openOf(m.instruments[vix], session).vol
		return math.Round(100*(math.Exp(atOpen)+0.05*noise)) / 100
	}
	const pull = 6.5 // per year
	years, p := float64(expires-date)/365, m.factors.closes[session]
	level := termLevel*math.Exp(p.term) - 1.3*math.Expm1(-2*years)
	price := level - (level-math.Exp(p.vol))*math.Exp(-pull*years) + 0.012*noise
	return math.Round(price*1e4) / 1e4
}
