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
)

// frame is one instant as the upstream sees it: when the files were generated and what they may say.
type frame struct {
	generated time.Time // UTC
	asOf      time.Time // the delayed instant, not past the end of the index's session
	session   int       // of asOf
	date      compute.Date
	open      time.Time
	close     time.Time
	live      bool // asOf lies within the session of index options
	listed    int  // session that the listing of options is of
	published int  // session on whose morning the open interest was published
	rolled    bool // prev_day_close is already the close of the session
	// overnight is how far the hours between 20:15 and 09:15 before the next session have passed, 0 to 1.
	overnight float64
}

// frame returns what the upstream says at an instant; false before the second session of the market.
func (m *Market) frame(at time.Time) (frame, bool) {
	f := frame{generated: generation(at)}
	clock := f.generated.In(compute.NewYork)
	today := compute.DateOf(clock)
	if today <= epoch+7 {
		return f, false
	}
	delayed := f.generated.Add(-lag)
	f.session = m.factors.index(compute.DateOf(delayed.In(compute.NewYork)))
	if delayed.Before(m.calendar.Open(m.factors.dates[f.session])) {
		f.session--
	}
	f.date = m.factors.dates[f.session]
	f.open, f.close = m.calendar.Open(f.date), m.calendar.Close(f.date)
	end := f.close.Add(indexTail - time.Second)
	f.live = !delayed.After(end)
	f.asOf = earlier(delayed, end)
	f.rolled = !f.generated.Before(f.date.At(21, 0, 0, compute.NewYork))
	f.listed = m.morning(today, f.generated, 3)
	f.published = m.morning(today, f.generated, 7)
	if next := m.calendar.Next(f.date); !f.live {
		start := (next - 1).At(20, 15, 0, compute.NewYork)
		night := next.At(9, 15, 0, compute.NewYork).Sub(start)
		f.overnight = min(max(float64(f.generated.Sub(start))/float64(night), 0), 1)
	}
	return f, true
}

// generation returns when the file that is served at an instant was generated: on a steady beat, but not on a
// weekend after Saturday 12:06:13 UTC.
func generation(at time.Time) time.Time {
	generated := at.UTC().Add(-beatPhase).Truncate(beat).Add(beatPhase)
	today := compute.DateOf(generated.In(compute.NewYork))
	if !today.Weekend() {
		return generated
	}
	saturday := today
	if today.Weekday() == time.Sunday {
		saturday--
	}
	return earlier(generated, saturday.At(12, 6, 13, time.UTC))
}

// morning returns today's session when the clock is past an hour of its morning, else the session before.
func (m *Market) morning(today compute.Date, now time.Time, hour int) int {
	i := m.factors.index(today)
	if m.factors.dates[i] == today && now.Before(today.At(hour, 0, 0, compute.NewYork)) {
		i--
	}
	return i
}

// progress returns the share of the session that has passed at the delayed instant, 0 to 1.
func (f *frame) progress() float64 {
	return min(float64(f.asOf.Sub(f.open))/float64(f.close.Sub(f.open)), 1)
}

// trading says whether an instrument and its options trade: those of an index for a while after the close.
func (f *frame) trading(in *instrument) bool {
	return f.live && (in.symbol == spx || f.asOf.Before(f.close))
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
