// Package limits decides whether a request may be served, and makes the rate-limit headers of the answer.
//
// A key has a [Usage]: a bucket of requests a minute, and the count of requests of the UTC day. A client without a key has a bucket in
// [Addresses], by the address that [ClientAddr] returns. Both return a [Verdict], which has the header fields. None of this allocates,
// reads a clock or does I/O. The caller passes the time: Unix nanoseconds of the machine's clock, never of a simulated market's.
package limits

import (
	"strconv"
	"time"
)

// Outcome says whether a request is served.
type Outcome uint8

// The outcomes. RateLimited and QuotaExceeded are the two refusals, both with status 429.
const (
	Allowed Outcome = iota
	RateLimited
	QuotaExceeded
)

// Verdict is a decision about one request, and the limits behind it.
type Verdict struct {
	Outcome   Outcome
	PerMinute int      // requests a minute; 0: no rate applies and Minute is empty
	Minute    Decision // of the bucket
	PerDay    int64    // requests a UTC day; 0: no quota applies
	Today     int64    // requests counted this UTC day, including this request if it is allowed; with a key only
	DayLeft   int64    // seconds until the next 00:00 UTC, 1 to 86,400
	DayEnd    int64    // the next 00:00 UTC, Unix seconds
}

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

// AppendFields appends the header fields of the limits, none when no limit applies. RateLimit-Policy and RateLimit are
// structured fields, as in draft-ietf-httpapi-ratelimit-headers-10 and -11:
//
//	RateLimit-Policy: "minute";q=600;w=60, "day";q=100000;w=86400
//	RateLimit: "minute";r=599;t=1, "day";r=99999;t=34567
//
// r is how many requests remain. t is the time in seconds until more are available: for the minute, until the next token, as in
// Retry-After; for the day, until 00:00 UTC. X-RateLimit-Limit, -Remaining and -Reset describe only one of the two limits: the limit
// that refused the request, otherwise the limit with fewer requests remaining, and the day's if both have as many. The reset is in
// seconds from now: until the bucket of the minute is full, or until 00:00 UTC.
func (v Verdict) AppendFields(dst []byte) []byte {
	if v.PerMinute == 0 && v.PerDay == 0 {
		return dst
	}
	left := v.remainingToday()
	dst = v.appendItems(append(dst, "RateLimit-Policy: "...), ";q=", ";w=", int64(v.PerMinute), 60, v.PerDay, 86_400)
	dst = v.appendItems(append(dst, "\r\nRateLimit: "...), ";r=", ";t=", v.Minute.Remaining, v.Minute.NextSeconds, left, v.DayLeft)
	limit, remaining, reset := int64(v.PerMinute), v.Minute.Remaining, v.Minute.ResetSeconds
	if v.PerDay > 0 && (v.Outcome == QuotaExceeded || v.PerMinute == 0 || left <= remaining) {
		limit, remaining, reset = v.PerDay, left, v.DayLeft
	}
	dst = appendPair(dst, "\r\nX-RateLimit-Limit: ", limit, "\r\nX-RateLimit-Remaining: ", remaining)
	return append(strconv.AppendInt(append(dst, "\r\nX-RateLimit-Reset: "...), reset, 10), "\r\n"...)
}

// appendItems appends an item with two parameters for each limit that applies.
func (v Verdict) appendItems(dst []byte, first, second string, minute1, minute2, day1, day2 int64) []byte {
	if v.PerMinute > 0 {
		dst = appendPair(append(dst, `"minute"`...), first, minute1, second, minute2)
	}
	if v.PerMinute > 0 && v.PerDay > 0 {
		dst = append(dst, ", "...)
	}
	if v.PerDay > 0 {
		dst = appendPair(append(dst, `"day"`...), first, day1, second, day2)
	}
	return dst
}

func appendPair(dst []byte, first string, n int64, second string, m int64) []byte {
	dst = strconv.AppendInt(append(dst, first...), n, 10)
	return strconv.AppendInt(append(dst, second...), m, 10)
}

// remainingToday returns the requests that are left of the day's quota. Without a quota the result has no meaning.
func (v Verdict) remainingToday() int64 { return max(v.PerDay-v.Today, 0) }

// AppendUsage appends the value of the member usage of an answer to a key: the key's public id, which needs no escaping, the requests
// of the UTC day, the quota (null without a quota) and the day's end, as
//
//	{"tier":"keyed","key":"k_…","requests_today":3,"limit_per_day":10,"remaining_today":7,"resets_at":"2026-11-22T00:00:00Z"}
func (v Verdict) AppendUsage(dst []byte, id string) []byte {
	dst = append(append(dst, `{"tier":"keyed","key":"`...), id...)
	dst = strconv.AppendInt(append(dst, `","requests_today":`...), v.Today, 10)
	if v.PerDay > 0 {
		dst = appendPair(dst, `,"limit_per_day":`, v.PerDay, `,"remaining_today":`, v.remainingToday())
	} else {
		dst = append(dst, `,"limit_per_day":null,"remaining_today":null`...)
	}
	dst = append(dst, `,"resets_at":"`...)
	dst = time.Unix(v.DayEnd, 0).UTC().AppendFormat(dst, time.RFC3339)
	return append(dst, `"}`...)
}
