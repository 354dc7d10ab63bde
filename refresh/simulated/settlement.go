package simulated

import (
	"fmt"
	"io"
	"math"
	"time"

	"strikecache/compute"
)

// settlementTime returns when the settlement file of a date is published.
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

const monthLetters = "FGHJKMNQUVXZ"

// settlement writes the settlement file of a date: the monthly VIX futures in the order in which they expire. The file of a day
// without a session has a header alone.
func (m *Market) settlement(w io.Writer, date compute.Date) {
	fmt.Fprintf(w, "Product,Symbol,Expiration Date,Price\r\n")
	rows := 0
	for month := date - compute.Date(date.Day()) + 1; rows < 9 && m.calendar.IsSession(date); month = month.AddMonths(1) {
		if expires := m.calendar.VIXExpiration(month.Year(), month.Month()); expires >= date {
			rows++
			fmt.Fprintf(w, "VX,VX/%c%d,%s,%v\r\n", monthLetters[month.Month()-1], month.Year()%10, expires, m.futurePrice(date, expires))
		}
	}
}

// futurePrice returns the settlement of a VIX future: the VIX, pulled to its mean with the time to expiration. On the day of expiration
// it is the final settlement, a VIX value at the open.
func (m *Market) futurePrice(date, expires compute.Date) float64 {
	session := m.factors.index(date)
	noise := m.key.named("VX").child(uint64(expires)).child(uint64(date)).normal()
	if expires == date {
		atOpen := m.vixLevel(m.factors.openOf(m.instruments[vix], session), m.factors.opening(session))
		return cents(atOpen + 0.05*noise)
	}
	const pull = 6.5 // per year
	years, p := float64(expires-date)/365, m.factors.closes[session]
	level := termLevel*math.Exp(p.term) - 1.3*math.Expm1(-2*years)
	price := level - (level-math.Exp(p.vol))*math.Exp(-pull*years) + 0.012*noise
	return math.Round(price*1e4) / 1e4
}
