package simulated

import (
	"time"

	"strikecache/compute"
)

const (
	beat      = 15 * time.Second // between two generations of a file
	beatPhase = 11 * time.Second // past the minute

	// lag is how late the quotes of a file are.
	lag = 15*time.Minute + 4*time.Second

	// indexTail is how long after the close an index is still published, and its options trade.
	indexTail = 15 * time.Minute

	// The hours, New York, at which a chain gets the listing and the open interest of the day, and a history its row.
	chainHour   = 7
	historyHour = 18
)

// frame is one instant as the upstream sees it: when the files were generated and what they may say.
type frame struct {
	generated time.Time // UTC
	asOf      time.Time // the delayed instant, not past the end of the index's session
	session   int       // of asOf
	date      compute.Date
	open      time.Time
	close     time.Time
	listed    compute.Date // session of the listing and of the open interest
	// overnight is how far the hours between 20:15 and 09:15 before the next session have passed, 0 to 1.
	overnight float64
}

// frame returns what the upstream says at an instant.
func (m *Market) frame(at time.Time) frame {
	f := frame{generated: generation(at)}
	delayed := f.generated.Add(-lag)
	f.session = m.factors.index(compute.DateOf(delayed.In(compute.NewYork)))
	if delayed.Before(m.calendar.Open(m.factors.dates[f.session])) {
		f.session--
	}
	f.date = m.factors.dates[f.session]
	f.open, f.close = m.calendar.Open(f.date), m.calendar.Close(f.date)
	f.asOf = earlier(delayed, f.close.Add(indexTail-time.Second))
	f.listed = m.factors.dates[m.morning(f.generated, chainHour)]
	if next := m.calendar.Next(f.date); delayed.After(f.asOf) {
		start := (next - 1).At(20, 15, 0, compute.NewYork)
		night := next.At(9, 15, 0, compute.NewYork).Sub(start)
		f.overnight = min(max(float64(f.generated.Sub(start))/float64(night), 0), 1)
	}
	return f
}

// morning returns the session of today when the clock is past an hour of it, else the session before.
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

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// generation returns when the file that is served at an instant was generated: every 15 seconds, but not from Saturday
// 12:06:13 UTC to the end of the weekend in New York, as recorded.
func generation(at time.Time) time.Time {
	generated := at.UTC().Add(-beatPhase).Truncate(beat).Add(beatPhase)
	today := compute.DateOf(generated.In(compute.NewYork))
	switch today.Weekday() {
	case time.Saturday:
		return earlier(generated, today.At(12, 6, 13, time.UTC))
	case time.Sunday:
		return (today - 1).At(12, 6, 13, time.UTC)
	}
	return generated
}
