package limits

import (
	"strconv"
	"time"
)

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

// Verdict is a decision about one request and the limits that it was made by.
type Verdict struct {
	Outcome   Outcome
	PerMinute int      // requests a minute; 0: no rate applies and Minute is empty
	Minute    Decision // of the bucket
	PerDay    int64    // requests a UTC day; 0: no quota applies
	Today     int64    // requests counted this UTC day, this one among them if it is allowed; keyed only
	DayLeft   int64    // seconds until the next 00:00 UTC, 1 to 86,400
	DayEnd    int64    // that instant, Unix seconds
}

// Admit decides about a request of a client with a bucket and a day at a Unix time in nanoseconds; a limit of 0 is
// none. It never allocates, and may be called at the same time for the same client.
//
// A request that is over the quota takes no token, and one that the bucket refuses does not count against the quota;
// of both, the quota is what is reported, as waiting for the bucket would not help.
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

// RemainingToday returns what is left of the day's quota, at least 0; it means nothing without a quota.
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

// Binding returns the limit that X-RateLimit-Limit, -Remaining and -Reset speak of: the one that refused, otherwise
// the one with less remaining, of equals the day's. All are 0 when no limit applies. The reset is in seconds from
// now, not an instant: until the whole minute's allowance is back, or until 00:00 UTC.
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

// AppendRateLimit appends the value of RateLimit, a structured field as in draft-ietf-httpapi-ratelimit-headers-10
// and -11, such as
//
//	"minute";r=599;t=1, "day";r=99999;t=34567
//
// r is what remains and t the seconds within which no more than that is available: for the minute until the next
// token, which is also when Retry-After ends, for the day until 00:00 UTC. It appends nothing when no limit applies.
func (v Verdict) AppendRateLimit(dst []byte) []byte {
	if v.PerMinute > 0 {
		dst = append(dst, `"minute";r=`...)
		dst = strconv.AppendInt(dst, v.Minute.Remaining, 10)
		dst = append(dst, ";t="...)
		dst = strconv.AppendInt(dst, v.Minute.NextSeconds, 10)
	}
	if v.PerDay > 0 {
		if v.PerMinute > 0 {
			dst = append(dst, ", "...)
		}
		dst = append(dst, `"day";r=`...)
		dst = strconv.AppendInt(dst, v.RemainingToday(), 10)
		dst = append(dst, ";t="...)
		dst = strconv.AppendInt(dst, v.DayLeft, 10)
	}
	return dst
}

// AppendPolicy appends the value of RateLimit-Policy for limits of which 0 is none, such as
//
//	"minute";q=600;w=60, "day";q=100000;w=86400
//
// It never changes for a key, so render it once.
func AppendPolicy(dst []byte, perMinute int, perDay int64) []byte {
	if perMinute > 0 {
		dst = append(dst, `"minute";q=`...)
		dst = strconv.AppendInt(dst, int64(perMinute), 10)
		dst = append(dst, ";w=60"...)
	}
	if perDay > 0 {
		if perMinute > 0 {
			dst = append(dst, ", "...)
		}
		dst = append(dst, `"day";q=`...)
		dst = strconv.AppendInt(dst, perDay, 10)
		dst = append(dst, ";w=86400"...)
	}
	return dst
}
