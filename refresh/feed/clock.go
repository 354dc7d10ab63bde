package feed

import (
	"math"
	"sync/atomic"
	"time"

	"strikecache/compute"
)

// Clock tells the market's time: the machine's time for a live market, another time for a simulated or a recorded market.
// Copies of a Clock show the same time. A Clock is safe for concurrent use.
type Clock struct {
	hands *atomic.Pointer[Hands] // nil: market time is machine time
}

// Hands say what a clock shows.
type Hands struct {
	Market, Wall time.Time // the same instant in market time and in machine time
	Speed        float64   // market seconds per machine second
}

// MachineClock returns a clock whose market time is the machine's time.
func MachineClock() Clock { return Clock{} }

// NewClock returns a clock whose market time is now the given instant and advances by speed market seconds per second.
// speed must be finite and at least 0. At speed 0 the clock stands still.
func NewClock(market time.Time, speed float64) Clock {
	c := Clock{new(atomic.Pointer[Hands])}
	c.Set(Hands{market.UTC(), time.Now(), speed})
	return c
}

// Set makes the clock and its copies show another time. The clock must be one of [NewClock].
func (c Clock) Set(h Hands) { c.hands.Store(&h) }

// Hands returns what a clock of [NewClock] shows, nil for the machine's.
func (c Clock) Hands() *Hands {
	if c.hands == nil {
		return nil
	}
	return c.hands.Load()
}

// Now returns the market's time in UTC.
func (c Clock) Now() time.Time { return c.At(time.Now()) }

// StandsStill says whether the clock stands still.
func (c Clock) StandsStill() bool { return c.hands != nil && c.hands.Load().Speed == 0 }

// At returns the market's time, in UTC, when the machine's clock, as it is set now, shows wall. A market that is not live goes on
// by the monotonic clock when the machine's clock is set.
func (c Clock) At(wall time.Time) time.Time {
	if c.hands == nil {
		return wall.UTC()
	}
	h, now := c.hands.Load(), time.Now()
	return h.Market.Add(time.Duration(float64(wall.Sub(now)+now.Sub(h.Wall)) * h.Speed))
}

// Wall is the inverse of [Clock.At]: it returns the machine's time at which the market's time is t. It returns the zero
// time, which means never, when the clock stands still or when the result is over 146 years away.
func (c Clock) Wall(t time.Time) time.Time {
	if c.hands == nil {
		return t
	}
	h := c.hands.Load()
	d := float64(t.Sub(h.Market)) / h.Speed
	if h.Speed == 0 || math.Abs(d) > math.MaxInt64/2 {
		return time.Time{}
	}
	now := time.Now()
	return now.Add(h.Wall.Add(time.Duration(d)).Sub(now))
}

// The refresh window of a session runs from 15 minutes after the open, when the first delayed quotes of the day
// appear, to 32 minutes after the close, when the last do.
const (
	WindowAfterOpen  = 15 * time.Minute
	WindowAfterClose = 32 * time.Minute
)

// Window returns the refresh window of a session.
func Window(session compute.Date, cal *compute.Calendar) (start, end time.Time) {
	return cal.Open(session).Add(WindowAfterOpen), cal.Close(session).Add(WindowAfterClose)
}

// InWindow says whether t lies in the refresh window of a session.
func InWindow(t time.Time, cal *compute.Calendar) bool {
	session := compute.DateOf(t.In(compute.NewYork))
	if !cal.IsSession(session) {
		return false
	}
	start, end := Window(session, cal)
	return !t.Before(start) && t.Before(end)
}

// LastWindowEnd returns the end of the last refresh window before an instant outside the windows.
func LastWindowEnd(now time.Time, cal *compute.Calendar) time.Time {
	session := cal.SessionDate(now)
	start, end := Window(session, cal)
	if now.Before(start) {
		_, end = Window(cal.Previous(session), cal)
	}
	return end
}
