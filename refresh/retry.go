package refresh

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/robfig/cron/v3"
)

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
func (b *retry) after(ctx context.Context, ok bool, group *sync.WaitGroup) {
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
