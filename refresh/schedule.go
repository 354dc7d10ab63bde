package refresh

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robfig/cron/v3"

	"strikecache/compute"
	"strikecache/refresh/feed"
)

const (
	quotesEvery  = time.Minute     // the interval of the sector quotes in the refresh window
	outsideEvery = 5 * time.Minute // that of all outside of it, and that of the settlements
)

// schedule is the times at which a job runs. Inside the refresh window, the job runs at every multiple of the interval after the
// start of the window and the offset, and at the start and the end of the window. Outside the window, it runs at every full 5
// minutes. schedule implements [github.com/robfig/cron/v3.Schedule] in machine time.
type schedule struct {
	clock feed.Clock
	cal   *compute.Calendar
	every time.Duration
	// offset is from the start of the window to the first multiple, less than every.
	offset time.Duration
}

// Next implements cron.Schedule. It returns the zero time, which means never, when the market's clock stands still.
func (s schedule) Next(wall time.Time) time.Time {
	return s.clock.Wall(s.next(s.clock.At(wall)))
}

// next returns the first run after t. Both are market time.
func (s schedule) next(t time.Time) time.Time {
	session := compute.DateOf(t.In(compute.NewYork))
	if !s.cal.IsSession(session) {
		session = s.cal.Next(session)
	}
	start, end := feed.Window(session, s.cal)
	if !t.Before(end) {
		start, _ = feed.Window(s.cal.Next(session), s.cal)
	} else if !t.Before(start) {
		if first := start.Add(s.offset); t.Before(first) {
			return compute.Earlier(first, end)
		}
		n := (t.Sub(start)-s.offset)/s.every + 1
		return compute.Earlier(start.Add(s.offset+n*s.every), end)
	}
	return compute.Earlier(t.Truncate(outsideEvery).Add(outsideEvery), start)
}

// retry runs a job again after a failure. The pause after the first failure is the interval of the job, at most a minute. Each
// further failure doubles it, up to 5 minutes. The actual pause is random, from half of that to the whole, so that many machines do
// not ask at the same time. Runs that the schedule has in the pause are skipped. A step of the machine's clock ends the pause.
type retry struct {
	schedule
	name     string
	due      atomic.Pointer[time.Time]  // when the next run is due, by the monotonic clock; nil or the zero time: not known, or never
	pause    atomic.Pointer[time.Timer] // ends the pause after a failure; nil: no pause
	run      cron.Job                   // one at a time
	failures int                        // in a row; of run alone
}

const (
	maxFirst   = time.Minute     // the longest pause after a first failure
	maxBackoff = 5 * time.Minute // the longest pause after any failure
)

// tick runs the job when the schedule says so, unless the job is in a pause.
func (b *retry) tick() {
	if b.pause.Load() == nil {
		b.run.Run()
	}
}

// expect notes when the next run is due. The zero time means never.
func (b *retry) expect(now, next time.Time) {
	if !next.IsZero() {
		next = now.Add(next.Sub(now)) // by the monotonic clock
	}
	b.due.Store(&next)
}

// finished is called at the end of each run. If the run failed, it starts a goroutine that runs the job after the pause. The goroutine is
// counted by group and ends when ctx ends.
func (b *retry) finished(ctx context.Context, ok bool, group *sync.WaitGroup) {
	b.pause.Store(nil)
	if ok || ctx.Err() != nil {
		b.failures = 0
		b.expect(time.Now(), b.Next(time.Now()))
		return
	}
	b.failures++
	next := b.clock.Wall(b.clock.Now().Add(backoff(b.every, b.failures)))
	b.expect(time.Now(), next)
	if next.IsZero() {
		return // the market's clock stands still
	}
	pause := time.NewTimer(time.Until(next))
	b.pause.Store(pause)
	group.Go(func() {
		defer pause.Stop()
		select {
		case <-pause.C:
			b.run.Run()
		case <-ctx.Done():
			b.pause.Store(nil)
		}
	})
}

// backoff returns the random pause after a number of failures in a row, at least 1, of a job with the interval every.
func backoff(every time.Duration, failures int) time.Duration {
	pause := min(min(every, maxFirst)<<min(failures-1, 20), maxBackoff)
	return pause/2 + rand.N(pause-pause/2)
}
