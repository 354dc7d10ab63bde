package refresh

import (
	"math"
	"time"
)

// Clock tells the market's time: the machine's time for a live market, another time for a simulated or a recorded market.
// A Clock is immutable and safe for concurrent use.
type Clock struct {
	market, wall time.Time // the same instant in market time and in machine time; zero: market time is machine time
	speed        float64   // market seconds per machine second
}

// MachineClock returns a clock whose market time is the machine's time.
func MachineClock() Clock { return Clock{speed: 1} }

// NewClock returns a clock whose market time is now the given instant and advances by speed market seconds per second.
// speed must be finite and at least 0. At speed 0 the clock stands still.
func NewClock(market time.Time, speed float64) Clock {
	return Clock{market: market.UTC(), wall: time.Now(), speed: speed}
}

// Now returns the market's time in UTC.
func (c Clock) Now() time.Time { return c.At(time.Now()) }

// standsStill says whether the clock stands still.
func (c Clock) standsStill() bool { return !c.market.IsZero() && c.speed == 0 }

// At returns the market's time, in UTC, when the machine's clock shows wall.
func (c Clock) At(wall time.Time) time.Time {
	if c.market.IsZero() {
		return wall.UTC()
	}
	return c.market.Add(time.Duration(float64(wall.Sub(c.wall)) * c.speed))
}

// Wall is the inverse of [Clock.At]: it returns the machine's time at which the market's time is t. It returns the zero
// time, which means never, when the clock stands still or when the result is over 146 years away.
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
