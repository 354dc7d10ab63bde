package plain

import (
	"math"
	"time"
	_ "time/tzdata" // New York on a machine without a time zone database

	"strikecache/compute"
)

var newYork = func() *time.Location {
	loc, err := time.LoadLocation("America/New_York")
	if err != nil {
		panic(err)
	}
	return loc
}()

// clock knows the sessions of the exchange.
type clock struct{ closed, early map[compute.Date]bool }

func newYorkDate(t time.Time) compute.Date {
	y, m, d := t.In(newYork).Date()
	return compute.NewDate(y, m, d)
}

// wall returns the instant of a New York wall clock time.
func wall(d compute.Date, hour, minute int) time.Time {
	y, m, day := d.Midnight().Date()
	return time.Date(y, m, day, hour, minute, 0, 0, newYork)
}

func weekday(d compute.Date) bool {
	return d.Weekday() != time.Saturday && d.Weekday() != time.Sunday
}

func (c clock) session(d compute.Date) bool { return weekday(d) && !c.closed[d] }

// lastSession is the last session on or before d.
func (c clock) lastSession(d compute.Date) compute.Date {
	for !c.session(d) {
		d--
	}
	return d
}

func (c clock) open(d compute.Date) time.Time { return wall(d, 9, 30) }

func (c clock) close(d compute.Date) time.Time {
	if c.early[d] {
		return wall(d, 13, 0)
	}
	return wall(d, 16, 0)
}

// settlement is the instant at which an expiration settles.
func (c clock) settlement(d compute.Date, s compute.Settlement) time.Time {
	if s == compute.AM {
		return c.open(d)
	}
	return c.close(d)
}

// openInterestDate says which session's open interest a document holds, and whether it is being replaced.
func (c clock) openInterestDate(captured time.Time) (compute.Date, string) {
	today := newYorkDate(captured)
	if !c.session(today) { // what the last session day had
		return c.lastSession(c.lastSession(today) - 1), "settled"
	}
	before := c.lastSession(today - 1)
	if captured.Before(wall(today, 7, 15)) {
		return c.lastSession(before - 1), "updating"
	}
	return before, "settled"
}

// sessionsAfter counts the sessions in (from, to].
func (c clock) sessionsAfter(from, to compute.Date) int {
	n := 0
	for d := from + 1; d <= to; d++ {
		if c.session(d) {
			n++
		}
	}
	return n
}

// unexpired is the part of session d that lies after t, 0 to 1.
func (c clock) unexpired(d compute.Date, t time.Time) float64 {
	left := c.close(d).Sub(t).Seconds() / c.close(d).Sub(c.open(d)).Seconds()
	return math.Max(0, math.Min(1, left))
}

// weekdaysBetween counts the weekdays in [from, to); holidays count.
func weekdaysBetween(from, to compute.Date) int {
	n := 0
	for d := from; d < to; d++ {
		if weekday(d) {
			n++
		}
	}
	return n
}

// expectedMove is S*v/sqrt(n) of the nearest expiration with a full session after the session date.
func expectedMove(groups []*group, clock clock, asOf time.Time, today compute.Date, spot float64) *float64 {
	var nearest *group
	var sessions float64
	for _, g := range groups {
		lastDay := g.expiration
		if g.settlement == compute.AM {
			lastDay--
		}
		full := clock.sessionsAfter(today, lastDay)
		if full >= 1 && (nearest == nil || g.seconds < nearest.seconds) {
			nearest, sessions = g, float64(full)+clock.unexpired(today, asOf)
		}
	}
	if nearest == nil {
		return nil
	}
	atm := nearest.smiles[0]
	for _, s := range nearest.smiles {
		if math.Abs(s.strike-nearest.forward) < math.Abs(atm.strike-nearest.forward) {
			atm = s
		}
	}
	if atm.step == stepNone {
		return nil
	}
	return number(spot * atm.v / math.Sqrt(sessions))
}
