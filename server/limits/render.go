package limits

import (
	"strconv"
	"time"
)

// AppendRateLimit appends the value of RateLimit, a structured field as in draft-ietf-httpapi-ratelimit-headers-10
// and -11, such as
//
//	"minute";r=599;t=1, "day";r=99999;t=34567
//
// r is what remains. t is the time in seconds until more is available: for the minute until the next token, which is
// also when Retry-After ends; for the day until 00:00 UTC. Nothing is appended when no limit applies.
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

// AppendPolicy appends the value of RateLimit-Policy, such as
//
//	"minute";q=600;w=60, "day";q=100000;w=86400
//
// A limit of 0 is no limit. The value never changes for a key, so render it once.
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

// AppendUsage appends the usage member of an answer to a key: its public id, which needs no escaping, the requests
// of the UTC day, the quota (0: none, rendered as null) and the day's end in Unix seconds, as
//
//	{"tier":"keyed","key":"k_…","requests_today":3,"limit_per_day":10,"remaining_today":7,"resets_at":"2026-11-22T00:00:00Z"}
func AppendUsage(dst []byte, id string, today, perDay, dayEnd int64) []byte {
	dst = append(dst, `{"tier":"keyed","key":"`...)
	dst = append(dst, id...)
	dst = append(dst, `","requests_today":`...)
	dst = strconv.AppendInt(dst, today, 10)
	if perDay > 0 {
		dst = append(dst, `,"limit_per_day":`...)
		dst = strconv.AppendInt(dst, perDay, 10)
		dst = append(dst, `,"remaining_today":`...)
		dst = strconv.AppendInt(dst, max(perDay-today, 0), 10)
	} else {
		dst = append(dst, `,"limit_per_day":null,"remaining_today":null`...)
	}
	dst = append(dst, `,"resets_at":"`...)
	dst = time.Unix(dayEnd, 0).UTC().AppendFormat(dst, time.RFC3339)
	return append(dst, `"}`...)
}
