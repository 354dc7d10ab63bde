package refresh

import (
	"math"
	"sync/atomic"
	"time"
)

// nextChange is when the answers of a job may change next.
type nextChange struct {
	schedule
	began time.Time    // the run under way, which alone uses it
	took  atomic.Int64 // nanoseconds from the beginning of the last run to its answers
	// at is the end of took in the next run, in Unix nanoseconds of the machine's clock; before the first run 0. It stays in the past
	// while a run takes longer.
	at    atomic.Int64
	pause atomic.Pointer[time.Timer] // ends the pause after a failure; nil: no pause
}

// longestTook bounds the time after the beginning of a run at which its answers are expected.
const longestTook = 10 * time.Second

// published is called when a run has made its answers current.
func (n *nextChange) published() {
	if n.at.Load() == 0 { // the first run fetches more than the others
		n.expect(n.Next(time.Now()))
		return
	}
	n.took.Store(int64(min(time.Since(n.began), longestTook)))
	n.expect(n.Next(time.Now()))
}

// expect sets the beginning of the next run. The zero time means never.
func (n *nextChange) expect(begins time.Time) {
	at := never
	if !begins.IsZero() {
		at = begins.Add(time.Duration(n.took.Load()))
	}
	n.at.Store(at.UnixNano())
}

var never = time.Unix(0, math.MaxInt64)

// lookAgain is the time until the next look when nobody knows when an answer changes: when it is long overdue, because the upstream
// does not answer or the clock was set forward, and when another program writes the documents.
const lookAgain = 5 * time.Second

// NextChange returns the machine time at which the answer of a resource may change next: when the next run of a job that refreshes
// it has taken as long as the last one. It is before now for 10 seconds while a run takes longer, and in the year 2262 when there will
// be none. To a member of a fleet that does not refresh, it is the beginning of a run: of the last one while its answer is not there and may
// still come (see late), else of the next. It is safe for concurrent use, and allocates nothing.
func (r *Refresher) NextChange(resource string, now time.Time) time.Time {
	next, follows := never, r.cfg.Lease != nil && !r.cfg.Lease()
	for _, change := range r.refreshing[resource] {
		at := time.Unix(0, change.at.Load())
		if follows {
			if at = change.Next(now.Add(-r.late(change, now))); !at.After(now) && r.computedSince(resource, at) {
				at = change.Next(now)
			}
			if at.IsZero() {
				at = never
			}
		}
		next = earlier(next, at)
	}
	if soon := now.Add(lookAgain); now.Sub(next) > longestTook || r.cfg.Version != nil && soon.Before(next) {
		return soon
	}
	return next
}

// late returns how long after the beginning of a run elsewhere its answer may reach this member of the fleet: half of the interval, at
// least 3 seconds. Outside the refresh window, when many runs change nothing, it is at most 10 seconds.
func (r *Refresher) late(change *nextChange, now time.Time) time.Duration {
	late := change.every / 2
	if !inWindow(r.cfg.Clock.At(now), r.cfg.Calendar) {
		late = min(late, longestTook)
	}
	return max(late, 3*time.Second)
}

// computedSince says whether the current answer of a resource was computed at an instant of the machine's clock, or later.
func (r *Refresher) computedSince(resource string, at time.Time) bool {
	e := r.cfg.Store.Current(resource)
	return e != nil && !e.Default.Meta.ComputedAt.Before(r.cfg.Clock.At(at).Truncate(time.Second)) // computed_at has whole seconds
}
