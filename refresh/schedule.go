package refresh

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

	"strikecache/compute"
)

// The schedule window of a session runs from 15 minutes after the open, when the first delayed quotes of the day
// appear, to 32 minutes after the close, when the last do.
const (
	windowAfterOpen  = 15 * time.Minute
	windowAfterClose = 32 * time.Minute
	// outsideEvery is the interval outside the window.
	outsideEvery = 5 * time.Minute
)

// window returns the schedule window of a session.
func window(session compute.Date, cal *compute.Calendar) (start, end time.Time) {
	return cal.Open(session).Add(windowAfterOpen), cal.Close(session).Add(windowAfterClose)
}

// inWindow says whether t lies in the schedule window of a session.
func inWindow(t time.Time, cal *compute.Calendar) bool {
	session := compute.DateOf(t.In(compute.NewYork))
	if !cal.IsSession(session) {
		return false
	}
	start, end := window(session, cal)
	return !t.Before(start) && t.Before(end)
}

// schedule fires every so often in the schedule window, counted from its start, and at the window's end; every 5
// minutes, on the clock, outside. It implements [github.com/robfig/cron/v3.Schedule] on the machine's clock.
type schedule struct {
	clock Clock
	cal   *compute.Calendar
	every time.Duration
}

// Next implements cron.Schedule. It returns the zero time, never, when the market's clock stands still.
func (s schedule) Next(wall time.Time) time.Time { return s.clock.Wall(s.next(s.clock.At(wall))) }

// next returns the first firing after t, on the market's clock.
func (s schedule) next(t time.Time) time.Time {
	session := compute.DateOf(t.In(compute.NewYork))
	if !s.cal.IsSession(session) {
		session = s.cal.Next(session)
	}
	start, end := window(session, s.cal)
	if !t.Before(end) {
		start, _ = window(s.cal.Next(session), s.cal)
	} else if !t.Before(start) {
		n := t.Sub(start)/s.every + 1
		return earlier(start.Add(n*s.every), end)
	}
	return earlier(t.Truncate(outsideEvery).Add(outsideEvery), start)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// retry runs a job again after it failed: the first time within its interval, or a minute if that is less, then at twice
// the distance each time, at most 5 minutes apart, at random in the later half of each distance, so that many machines that failed together
// do not ask together. Runs that the schedule has for the time until then are left out.
type retry struct {
	clock Clock
	every time.Duration
	run   cron.Job

	mu       sync.Mutex
	failures int       // in a row
	next     time.Time // when it runs again, by the machine's clock; zero for: by the schedule
}

// The bounds of the first and of every later distance of two tries.
const (
	maxFirst   = time.Minute
	maxBackoff = 5 * time.Minute
)

// tick is a run that is due by the schedule.
func (b *retry) tick() {
	b.mu.Lock()
	waits := time.Now().Before(b.next)
	b.mu.Unlock()
	if !waits {
		b.run.Run()
	}
}

// after is told how a run went. The goroutine of the next one, if it failed, belongs to group and ends with ctx.
func (b *retry) finished(ctx context.Context, ok bool, group *sync.WaitGroup) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next = time.Time{}
	if ok || ctx.Err() != nil {
		b.failures = 0
		return
	}
	b.failures++
	next := b.clock.Wall(b.clock.Now().Add(backoff(b.every, b.failures)))
	if next.IsZero() {
		return // the market's clock stands still
	}
	b.next = next
	group.Go(func() {
		timer := time.NewTimer(time.Until(next))
		defer timer.Stop()
		select {
		case <-timer.C:
			b.run.Run()
		case <-ctx.Done():
		}
	})
}

// backoff returns the pause after so many failures in a row of a job with an interval.
func backoff(every time.Duration, failures int) time.Duration {
	pause := min(every, maxFirst)
	for range failures - 1 {
		if pause = 2 * pause; pause >= maxBackoff {
			pause = maxBackoff
			break
		}
	}
	return pause/2 + rand.N(pause-pause/2)
}

// inBackground runs f on a thread of its own, of low priority where the system has such, and returns when it has
// ended: what answers requests goes first. A machine with one core lends f a second scheduler context meanwhile,
// since within one, a long computation keeps the others from seeing the network.
func inBackground(f func()) {
	background.begin()
	defer background.end()
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread() // never unlocked: the thread, with its low priority, ends with this goroutine
		defer close(done)
		lowerPriority()
		f()
	}()
	<-done
}

// background counts the background work of the process.
var background backgroundWork

type backgroundWork struct {
	mu     sync.Mutex
	n      int
	raised bool // whether there is a second context that has to go again
}

func (l *backgroundWork) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n++; l.n == 1 && runtime.GOMAXPROCS(0) == 1 {
		runtime.GOMAXPROCS(2)
		l.raised = true
	}
}

func (l *backgroundWork) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n--; l.n == 0 && l.raised {
		runtime.GOMAXPROCS(1)
		l.raised = false
	}
}
