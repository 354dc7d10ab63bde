// Package limits decides whether a request may be served, and says so in headers.
//
// A key has a [Bucket], requests a minute, and a [Day], requests a UTC day. A client without a key has a bucket in
// [Addresses], found by the address that [ClientAddr] returns. [Admit] asks a bucket and a day together and returns a
// [Verdict], from which every rate-limit header of the answer is made. Nothing on that path allocates, reads a clock
// or does I/O. The caller passes the time: Unix nanoseconds of the machine's clock, never of a simulated market's.
package limits

import "time"

// Outcome says whether a request is served.
type Outcome uint8

// The outcomes. The refusals are the codes of the two answers with status 429.
const (
	Allowed Outcome = iota
	RateLimited
	QuotaExceeded
)

// String returns the outcome as the interface names it: allowed, rate_limited or quota_exceeded.
func (o Outcome) String() string {
	return [...]string{"allowed", "rate_limited", "quota_exceeded"}[o]
}

// Verdict is a decision about one request, and the limits behind it.
type Verdict struct {
	Outcome   Outcome
	PerMinute int      // requests a minute; 0: no rate applies and Minute is empty
	Minute    Decision // of the bucket
	PerDay    int64    // requests a UTC day; 0: no quota applies
	Today     int64    // requests counted this UTC day, this one included if it is allowed; with a key only
	DayLeft   int64    // seconds until the next 00:00 UTC, 1 to 86,400
	DayEnd    int64    // that instant, Unix seconds
}

// Admit decides about a request of a client with a bucket and a day at a Unix time in nanoseconds. A limit of 0 is
// no limit. It never allocates, and may be called at the same time for the same client.
//
// A request over the quota takes no token. A request that the bucket refuses does not count against the quota. If
// both would refuse, the quota is reported: waiting for the bucket would not help.
func Admit(b *Bucket, d *Day, perMinute int, perDay, nowNanos int64) Verdict {
	v := Verdict{PerMinute: perMinute, PerDay: perDay, DayEnd: DayEnd(nowNanos), Today: d.Count(nowNanos)}
	v.DayLeft = seconds(v.DayEnd*int64(time.Second) - nowNanos)
	if perDay > 0 && v.Today >= perDay {
		v.Outcome = QuotaExceeded
		if perMinute > 0 {
			v.Minute = b.Peek(nowNanos, perMinute)
		}
		return v
	}
	if perMinute > 0 {
		if v.Minute = b.Take(nowNanos, perMinute); !v.Minute.OK {
			v.Outcome = RateLimited
			return v
		}
	}
	var ok bool
	if v.Today, ok = d.Take(nowNanos, perDay); !ok {
		v.Outcome = QuotaExceeded // another request took the last of the day in between
	}
	return v
}

// Limited says whether any limit applies, and so whether the answer has rate-limit headers.
func (v Verdict) Limited() bool { return v.PerMinute > 0 || v.PerDay > 0 }

// RemainingToday returns what is left of the day's quota, at least 0. Without a quota it means nothing.
func (v Verdict) RemainingToday() int64 { return max(v.PerDay-v.Today, 0) }

// RetryAfter returns the seconds, at least 1, after which a refused request may be sent again; 0 when it was allowed.
func (v Verdict) RetryAfter() int64 {
	switch v.Outcome {
	case RateLimited:
		return max(v.Minute.NextSeconds, 1)
	case QuotaExceeded:
		return v.DayLeft
	}
	return 0
}

// Binding returns the values of X-RateLimit-Limit, -Remaining and -Reset. They describe one limit: the one that
// refused, otherwise the one with less remaining, and the day's if both are equal. All are 0 when no limit applies.
// The reset is in seconds from now: until the whole minute's allowance is back, or until 00:00 UTC.
func (v Verdict) Binding() (limit, remaining, resetSeconds int64) {
	left := v.RemainingToday()
	if v.Outcome == QuotaExceeded || v.PerMinute == 0 || v.PerDay > 0 && left <= v.Minute.Remaining {
		if v.PerDay == 0 {
			return 0, 0, 0
		}
		return v.PerDay, left, v.DayLeft
	}
	return int64(v.PerMinute), v.Minute.Remaining, v.Minute.ResetSeconds
}
