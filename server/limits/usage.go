package limits

import (
	"sync"
	"sync/atomic"
	"time"
)

// MaxPerDay is the highest quota, in requests a UTC day.
const MaxPerDay = 1_000_000_000

const (
	daySeconds = 86_400
	dayNanos   = daySeconds * int64(time.Second)
)

// Usage has the token bucket of a key and the count of the key's requests of the UTC day. The zero value is a key without requests.
// Times are Unix times in nanoseconds. Usage is safe for concurrent use, and its methods never allocate.
type Usage struct {
	mu     sync.Mutex
	bucket bucket

	day, count             int64 // a day is a number of days since 1970-01-01
	dayBefore, countBefore int64 // the day that was counted before, and its count

	last    int64         // Unix seconds of the last allowed request, 0: none
	Refused atomic.Uint64 // requests since the start that Admit or its caller has refused
}

// Admit decides about a request, and counts it if it is allowed. A limit of 0 is no limit.
//
// A request over the quota takes no token. A request that the bucket refuses does not count against the quota. If both refuse, the
// outcome is QuotaExceeded: waiting for the bucket would not help.
func (u *Usage) Admit(perMinute int, perDay, nowNanos int64) Verdict {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.changeDay(nowNanos)
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
		u.last = nowNanos / int64(time.Second)
	} else {
		u.Refused.Add(1)
	}
	v.Today = u.count
	return v
}

// changeDay starts a count at 0 when the day has changed. If the clock was ahead and is set back to the day before, the count of that day
// goes on.
func (u *Usage) changeDay(now int64) {
	day := now / dayNanos
	if day == u.day {
		return
	}
	if day != u.dayBefore {
		u.dayBefore, u.countBefore = day, 0
	}
	u.day, u.count, u.dayBefore, u.countBefore = u.dayBefore, u.countBefore, u.day, u.count
}

// Today returns the count of the day, and the Unix seconds of the last allowed request (0: none).
func (u *Usage) Today(nowNanos int64) (count, last int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.changeDay(nowNanos)
	return u.count, u.last
}

// maxRestored is the highest count that [Usage.Restore] sets.
const maxRestored = 1 << 53

// Restore sets the count of the day, and the Unix seconds of the last request. It limits both to the range from 0 to 2^53.
func (u *Usage) Restore(nowNanos, count, last int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.changeDay(nowNanos)
	u.count, u.last = min(max(count, 0), maxRestored), min(max(last, 0), maxRestored)
}
