package refresh

import (
	"math"
	"time"
)

// Clock tells the market's time, which is the machine's, or that of a simulated or recorded market. It is
// immutable and safe for concurrent use.
type Clock struct {
	market, wall time.Time // the same instant on both clocks; zero for the machine's own
	speed        float64
}

// MachineClock returns the machine's own clock.
func MachineClock() Clock { return Clock{speed: 1} }

// NewClock returns a clock that shows market now and advances by speed market seconds a second. At speed 0 it
// stands still.
func NewClock(market time.Time, speed float64) Clock {
	return Clock{market: market.UTC(), wall: time.Now(), speed: speed}
}

// Now returns the market's time in UTC.
func (c Clock) Now() time.Time { return c.At(time.Now()) }

// stands says whether the clock stands still.
func (c Clock) stands() bool { return !c.market.IsZero() && c.speed == 0 }

// At returns the market's time at an instant of the machine's clock.
func (c Clock) At(wall time.Time) time.Time {
	if c.market.IsZero() {
		return wall.UTC()
	}
	return c.market.Add(time.Duration(float64(wall.Sub(c.wall)) * c.speed))
}

// Wall returns when the machine's clock will show what the market's shows at t: never, the zero time, for a
// clock that stands still, or when it is further off than can be said.
func (c Clock) Wall(t time.Time) time.Time {
	if c.market.IsZero() {
		return t
	}
	d := float64(t.Sub(c.market)) / c.speed
	if c.speed == 0 || math.Abs(d) > math.MaxInt64/2 {
		return time.Time{}
	}
	return c.wall.Add(time.Duration(d))
}
