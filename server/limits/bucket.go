package limits

import "time"

// MaxPerMinute is the highest rate, in requests a minute.
const MaxPerMinute = 1_000_000

// bucket is the token bucket of one client. It holds the tokens of one minute, is full at first and refills evenly: a client may send
// all requests of a minute at once, then one request every 60 s / rate. In any 60 seconds, at most twice the rate is allowed.
//
// A bucket implements the generic cell rate algorithm. Its value is the instant at which it is full again, in Unix nanoseconds. The zero
// value is full. When the rate of a client changes, the bucket stays as full as before.
type bucket int64

// Decision is what a bucket decides about one request.
type Decision struct {
	OK           bool
	Remaining    int64 // requests that would be allowed now
	NextSeconds  int64 // seconds, rounded up, until one request more than Remaining is allowed; 0 when the bucket is full
	ResetSeconds int64 // seconds, rounded up, until the bucket is full
}

// skew is the largest difference between the times that concurrent callers pass. A larger step back is a clock that was set back.
const skew = int64(time.Second)

// interval returns the nanoseconds between two tokens, rounded up so that the rate is never exceeded.
func interval(perMinute int) int64 {
	n := int64(perMinute)
	return (int64(time.Minute) + n - 1) / n
}

// take takes tokens if the bucket has them. now is a Unix time in nanoseconds, perMinute a rate from 1 to [MaxPerMinute]. If the clock
// is set back, a client waits at most one second and the time of one token longer.
func (b *bucket) take(now int64, perMinute int, tokens int64) Decision {
	full, interval := int64(*b), interval(perMinute)
	depth := interval * int64(perMinute)
	if full > now+depth+skew {
		full = now + depth // the clock was set back; otherwise the client would wait until the clock has caught up
	}
	next := max(full, now) + tokens*interval
	ok := next <= now+depth
	if ok {
		full = next
	}
	*b = bucket(full)
	used := min(max(full-now, 0), depth) // the tokens that are missing, in nanoseconds
	d := Decision{OK: ok, Remaining: (depth - used) / interval, ResetSeconds: seconds(used)}
	if used > 0 {
		d.NextSeconds = seconds(interval - (depth-used)%interval)
	}
	return d
}

// seconds rounds nanoseconds up.
func seconds(nanos int64) int64 { return (nanos + int64(time.Second) - 1) / int64(time.Second) }
