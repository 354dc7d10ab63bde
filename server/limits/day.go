package limits

import (
	"sync/atomic"
	"time"
)

const (
	// MaxPerDay is the highest quota, in requests a UTC day.
	MaxPerDay = 1_000_000_000
	// MaxCount is the highest count of a day; a counter that reaches it stays there.
	MaxCount = 1<<countBits - 1

	countBits = 40
	dayNanos  = int64(24 * time.Hour)
)

// Day counts the requests of one UTC day; at 00:00 UTC it starts again from 0. The zero value has counted nothing.
// All methods may be called at the same time.
type Day struct{ packed atomic.Uint64 } // the day's number since 1970 above countBits, and the count

// DayNumber returns the number of the UTC day, 0 for 1970-01-01, at a Unix time in nanoseconds, which must not be
// negative.
func DayNumber(nowNanos int64) int64 { return nowNanos / dayNanos }

// DayEnd returns the Unix time in seconds of the next 00:00 UTC.
func DayEnd(nowNanos int64) int64 { return (DayNumber(nowNanos) + 1) * 86_400 }

// Take counts a request unless limit requests of the day are counted already; a limit of 0 is none. It returns the
// count after it, and whether the request was counted.
func (d *Day) Take(nowNanos, limit int64) (count int64, ok bool) {
	for {
		old := d.packed.Load()
		day, count := on(old, nowNanos)
		if limit > 0 && count >= limit {
			return count, false
		}
		count = min(count+1, MaxCount)
		if d.packed.CompareAndSwap(old, pack(day, count)) {
			return count, true
		}
	}
}

// Count returns the requests that are counted of the day.
func (d *Day) Count(nowNanos int64) int64 {
	_, count := on(d.packed.Load(), nowNanos)
	return count
}

// Restore sets what is counted of a day, by its number.
func (d *Day) Restore(day, count int64) {
	d.packed.Store(pack(day, min(max(count, 0), MaxCount)))
}

// on returns the day to count a request for, and what is counted of it. A caller whose time is still just before
// midnight, while another's is past it, counts for the new day. Otherwise a clock that goes back to another day
// starts that day from 0: it never keeps a client out.
func on(packed uint64, now int64) (day, count int64) {
	day, count = int64(packed>>countBits), int64(packed&MaxCount)
	today := DayNumber(now)
	if day == today || day == today+1 && DayNumber(now+int64(time.Minute)) == day {
		return day, count
	}
	return today, 0
}

func pack(day, count int64) uint64 { return uint64(day)<<countBits | uint64(count) }
