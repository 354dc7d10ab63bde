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

// Day counts the requests of one UTC day. At 00:00 UTC it starts from 0. The zero value has counted nothing. All
// methods take a Unix time in nanoseconds, which must not be negative, and may be called at the same time.
type Day struct{ packed atomic.Uint64 } // the day's number since 1970 above countBits, and the count

// dayNumber returns the number of the UTC day, 0 for 1970-01-01.
func dayNumber(now int64) int64 { return now / dayNanos }

// Take counts a request unless limit requests of the day are counted already. A limit of 0 is no limit. It returns the
// count, and whether the request was counted.
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

// Count returns how many requests of the day are counted.
func (d *Day) Count(nowNanos int64) int64 {
	_, count := on(d.packed.Load(), nowNanos)
	return count
}

// Restore sets the count of the day.
func (d *Day) Restore(nowNanos, count int64) {
	d.packed.Store(pack(dayNumber(nowNanos), min(max(count, 0), MaxCount)))
}

// on returns the day for which to count a request, and the count of that day. If one caller's time is just before
// midnight and a concurrent caller's is just after it, both count for the new day. Otherwise a clock that is set back to
// another day starts that day from 0, so that no client is refused because of the clock.
func on(packed uint64, now int64) (day, count int64) {
	day, count = int64(packed>>countBits), int64(packed&MaxCount)
	today := dayNumber(now)
	if day == today || day == today+1 && dayNumber(now+int64(time.Minute)) == day {
		return day, count
	}
	return today, 0
}

func pack(day, count int64) uint64 { return uint64(day)<<countBits | uint64(count) }
