package limits

import (
	"strconv"
	"time"
)

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
	year, month, day := time.Unix(dayEnd, 0).UTC().Date()
	dst = appendPadded(dst, year, 4)
	dst = append(dst, '-')
	dst = appendPadded(dst, int(month), 2)
	dst = append(dst, '-')
	dst = appendPadded(dst, day, 2)
	return append(dst, `T00:00:00Z"}`...)
}

// appendPadded appends the last digits of a number that is not negative.
func appendPadded(dst []byte, n, digits int) []byte {
	for range digits {
		dst = append(dst, '0')
	}
	for i := len(dst) - 1; digits > 0; i, digits, n = i-1, digits-1, n/10 {
		dst[i] = byte('0' + n%10)
	}
	return dst
}
