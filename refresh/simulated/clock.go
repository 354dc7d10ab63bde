package simulated

import (
	"strings"
	"time"

	"strikecache/compute"
)

const (
	beat      = 15 * time.Second // between two generations of a file
	beatPhase = 11 * time.Second // from the full minute to the first generation

	lag       = 15*time.Minute + 4*time.Second // from the instant of the quotes to the generation
	indexTail = 15 * time.Minute               // after the close, when an index is still published and its options trade

	// At chainHour, New York, a chain gets the listing and the open interest of the day; at historyHour a history gets its row.
	chainHour   = 7
	historyHour = 18
)

// nightShare is the part of a session's variance that accrues between the close before and the open. It is the same after a weekend,
// because variance accrues in trading time.
const nightShare = 0.2

// moment is an instant in the calendar and in trading time.
type moment struct {
	time     time.Time
	sessions float64 // trading time since the epoch: session i ends at i + 1
}

// opening returns the open of session i.
func (f *factors) opening(i int) moment {
	return moment{f.calendar.Open(f.dates[i]), float64(i) + nightShare}
}

// frame is one instant as the upstream shows it: when the files were generated, and of which instant and session their data is.
type frame struct {
	generated time.Time // UTC
	asOf      time.Time // the delayed instant, not past the end of the index's session
	session   int       // of asOf
	date      compute.Date
	open      time.Time
	close     time.Time
	listed    compute.Date // the session whose listing and open interest the files have
}

// frame returns what the upstream says at an instant.
func (m *Market) frame(at time.Time) frame {
	f := frame{generated: at.UTC().Add(-beatPhase).Truncate(beat).Add(beatPhase)}
	delayed := f.generated.Add(-lag)
	f.session = m.factors.index(compute.DateOf(delayed.In(compute.NewYork)))
	if delayed.Before(m.calendar.Open(m.factors.dates[f.session])) {
		f.session--
	}
	f.date = m.factors.dates[f.session]
	f.open, f.close = m.calendar.Open(f.date), m.calendar.Close(f.date)
	f.asOf = earlier(delayed, f.close.Add(indexTail-time.Second))
	f.listed = m.factors.dates[m.morning(f.generated, chainHour)]
	return f
}

// quoted returns the moment of the quotes of an instrument's options. They stand still outside the hours of [compute.Chain.QuoteInstant]. At
// night, trading time goes on evenly from the first hours after the session to the last before the next.
func (m *Market) quoted(in *instrument, f *frame) moment {
	u := compute.UnderlyingOf(strings.TrimPrefix(in.symbol, "_"))
	head := compute.Chain{UnderlyingQuote: compute.UnderlyingQuote{Symbol: u.Symbol, AsOf: earlier(f.asOf, f.close), CapturedAt: f.generated}}
	q := head.QuoteInstant(m.calendar)
	if !q.After(f.close.Add(indexTail)) {
		return f.moment(earlier(q, f.asOf))
	}
	d := f.date + 1
	start, _, night := u.Night(d, m.calendar)
	for ; !night; start, _, night = u.Night(d, m.calendar) {
		d++
	}
	_, end, _ := u.Night(m.calendar.Next(f.date), m.calendar)
	return moment{q, float64(f.session+1) + nightShare*float64(q.Sub(start))/float64(end.Sub(start))}
}

// morning returns today's session if the hour in New York has come, otherwise the session before.
func (m *Market) morning(now time.Time, hour int) int {
	today := compute.DateOf(now.In(compute.NewYork))
	i := m.factors.index(today)
	if m.factors.dates[i] == today && now.Before(today.At(hour, 0, 0, compute.NewYork)) {
		i--
	}
	return i
}

// progress returns the share of the session that has passed at an instant of it, 0 to 1.
func (f *frame) progress(at time.Time) float64 {
	return min(float64(at.Sub(f.open))/float64(f.close.Sub(f.open)), 1)
}

// moment returns the moment of an instant in the session or after it.
func (f *frame) moment(at time.Time) moment {
	return moment{at, float64(f.session) + nightShare + (1-nightShare)*f.progress(at)}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
