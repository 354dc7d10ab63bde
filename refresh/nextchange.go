package refresh

import (
	"math"
	"sync/atomic"
	"time"
)

// nextRun is the machine time at which the next run of a job begins, in Unix nanoseconds. During a run, it is the beginning of
// that run, and before the first one it is 0.
type nextRun struct{ atomic.Int64 }

// begins sets the time. The zero time means never.
func (n *nextRun) begins(at time.Time) {
	if at.IsZero() {
		at = never
	}
	n.Store(at.UnixNano())
}

var never = time.Unix(0, math.MaxInt64)

// followTime is how long after the beginning of a refresh elsewhere its answer may take to reach this member of the fleet.
const followTime = 3 * time.Second

// NextChange returns the machine time at which the next refresh of a resource begins. It is before now while a refresh is under
// way, and in the year 2262 when there will be none. A member of a fleet that does not refresh knows the schedule only: for it, a
// refresh takes 3 seconds.
func (r *Refresher) NextChange(resource string, now time.Time) time.Time {
	p, next, follows := productOf(resource), never, r.cfg.Lease != nil && !r.cfg.Lease()
	for _, j := range r.list() {
		if !j.refreshes(p) {
			continue
		}
		at := time.Unix(0, r.changes[j.name].Load())
		if follows {
			if at = (schedule{r.cfg.Clock, r.cal, j.every}).Next(now.Add(-followTime)); at.IsZero() {
				at = never
			}
		}
		next = earlier(next, at)
	}
	return next
}
