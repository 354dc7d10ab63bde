package keys

import (
	"math"

	"strikecache/server/limits"
)

// Entry is a key in force. Its fields never change; a key that is changed in the file gets a new entry with the same
// bucket and counter. All methods may be called at the same time and never allocate.
type Entry struct {
	Key
	policy  string
	revoked bool
	expires int64 // Unix nanoseconds
	bucket  *limits.Bucket
	day     *limits.Day
}

func newEntry(k Key, bucket *limits.Bucket, day *limits.Day) *Entry {
	e := &Entry{Key: k, bucket: bucket, day: day, revoked: !k.Revoked.IsZero(), expires: math.MaxInt64}
	e.policy = string(limits.AppendPolicy(nil, k.PerMinute, k.PerDay))
	if !k.Expires.IsZero() {
		e.expires = k.Expires.UnixNano()
	}
	return e
}

// Admit decides about a request at a Unix time in nanoseconds and counts it if it is allowed; see [limits.Admit].
func (e *Entry) Admit(nowNanos int64) limits.Verdict {
	return limits.Admit(e.bucket, e.day, e.PerMinute, e.PerDay, nowNanos)
}

// Policy returns the value of RateLimit-Policy, "" for a key without limits.
func (e *Entry) Policy() string { return e.policy }

// AppendUsage appends the usage member of an answer after a verdict; see [limits.AppendUsage].
func (e *Entry) AppendUsage(dst []byte, v limits.Verdict) []byte {
	return limits.AppendUsage(dst, e.ID, v.Today, v.PerDay, v.DayEnd)
}
