package refresh

import (
	"time"

	"strikecache/compute"
)

// The schedule window of a session runs from 15 minutes after the open, when the first delayed quotes of the day
// appear, to 32 minutes after the close, when the last do.
const (
	windowAfterOpen  = 15 * time.Minute
	windowAfterClose = 32 * time.Minute
	// outsideEvery is the interval outside the window.
	outsideEvery = 5 * time.Minute
)

// window returns the schedule window of a session.
func window(session compute.Date, cal *compute.Calendar) (start, end time.Time) {
	return cal.Open(session).Add(windowAfterOpen), cal.Close(session).Add(windowAfterClose)
}

// inWindow says whether t lies in the schedule window of a session.
func inWindow(t time.Time, cal *compute.Calendar) bool {
	session := compute.DateOf(t.In(compute.NewYork))
	if !cal.IsSession(session) {
		return false
	}
	start, end := window(session, cal)
	return !t.Before(start) && t.Before(end)
}

// schedule fires every so often in the schedule window, counted from its start, and at the window's end; every 5
// minutes, on the clock, outside. It implements [github.com/robfig/cron/v3.Schedule] on the machine's clock.
type schedule struct {
	clock Clock
	cal   *compute.Calendar
	every time.Duration
}

// Next implements cron.Schedule. It returns the zero time, never, when the market's clock stands still.
func (s schedule) Next(wall time.Time) time.Time { return s.clock.Wall(s.next(s.clock.At(wall))) }

// next returns the first firing after t, on the market's clock.
func (s schedule) next(t time.Time) time.Time {
	session := compute.DateOf(t.In(compute.NewYork))
	if !s.cal.IsSession(session) {
		session = s.cal.Next(session)
	}
	start, end := window(session, s.cal)
	if !t.Before(end) {
		start, _ = window(s.cal.Next(session), s.cal)
	} else if !t.Before(start) {
		n := t.Sub(start)/s.every + 1
		return earlier(start.Add(n*s.every), end)
	}
	return earlier(t.Truncate(outsideEvery).Add(outsideEvery), start)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
