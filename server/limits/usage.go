package limits

import (
	"sync"
	"time"
)

// MaxPerDay is the highest quota, in requests a UTC day.
const MaxPerDay = 1_000_000_000

const (
	daySeconds = 86_400
	dayNanos   = daySeconds * int64(time.Second)
)

// Usage is what a key has used of its minute and of its UTC day. The zero value has used nothing. Times are Unix times in
// nanoseconds. All methods may be called at the same time and never allocate.
type Usage struct {
	mu     sync.Mutex
	bucket bucket

	day, count             int64 // a day is a number since 1970
	dayBefore, countBefore int64 // those before the clock came to the day
}

// Admit decides about a request, and counts it if it is allowed. A limit of 0 is no limit.
//
// A request over the quota takes no token. A request that the bucket refuses does not count against the quota. If both would
// refuse, the quota is reported: waiting for the bucket would not help.
func (u *Usage) Admit(perMinute int, perDay, nowNanos int64) Verdict {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.turn(nowNanos)
	v := Verdict{PerMinute: perMinute, PerDay: perDay, DayEnd: (u.day + 1) * daySeconds}
	v.DayLeft = seconds(v.DayEnd*int64(time.Second) - nowNanos)
	tokens := int64(1)
	if perDay > 0 && u.count >= perDay {
		v.Outcome, tokens = QuotaExceeded, 0
	}
	if perMinute > 0 {
		if v.Minute = u.bucket.take(nowNanos, perMinute, tokens); !v.Minute.OK && v.Outcome == Allowed {
			v.Outcome = RateLimited
		}
	}
	if v.Outcome == Allowed {
		u.count++
	}
	v.Today = u.count
	return v
}

// turn starts from 0 when the day is another one. When a clock that was ahead comes back, the count of its day before goes on.
func (u *Usage) turn(now int64) {
	day := now / dayNanos
	if day == u.day {
		return
	}
	if day != u.dayBefore {
		u.dayBefore, u.countBefore = day, 0
	}
	u.day, u.count, u.dayBefore, u.countBefore = u.dayBefore, u.countBefore, u.day, u.count
}

// Today returns how many requests of the day are counted.
func (u *Usage) Today(nowNanos int64) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.turn(nowNanos)
	return u.count
}

// maxRestored is the highest count that [Usage.Restore] sets.
const maxRestored = 1 << 53

// Restore sets the count of the day, 0 to 2^53. Other counts become the nearest of these.
func (u *Usage) Restore(nowNanos, count int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.turn(nowNanos)
	u.count = min(max(count, 0), maxRestored)
}
