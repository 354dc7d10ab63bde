package refresh

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/robfig/cron/v3"

	"strikecache/refresh/feed"
)

// stepped returns a reading of a clock that is set ahead. Its monotonic part stays. Package time keeps the seconds of a reading in the
// upper 34 bits of its first word, below a mark, and the nanoseconds in the lower 30.
func stepped(at time.Time, by time.Duration) time.Time {
	ahead := at.Round(0).Add(by)
	*(*uint64)(unsafe.Pointer(&at)) += uint64(ahead.Unix()-at.Unix())<<30 + uint64(ahead.Nanosecond()-at.Nanosecond())
	return at
}

// plan is a schedule that says when it was asked for the next run.
type plan struct {
	asked atomic.Int64
	next  atomic.Int64 // time until the next run
}

// Next implements [cron.Schedule].
func (p *plan) Next(at time.Time) time.Time {
	p.asked.Add(1)
	return at.Add(time.Duration(p.next.Load()))
}

// clockRig runs keepTime with one entry in a bubble, half a second after each full second. The test sets the machine's clock.
type clockRig struct {
	*Refresher
	log  *bytes.Buffer
	runs atomic.Int64 // of the entry
	step atomic.Int64 // of the clock, in nanoseconds
	one  retry        // of a job
	stop func()
}

// monotonic is a reading with a monotonic part, which those of a bubble lack.
var monotonic = time.Now()

func newClockRig(t *testing.T, entry cron.Schedule) *clockRig {
	r := &clockRig{log: &bytes.Buffer{}}
	r.Refresher = New(Config{
		Source: Raw(noSource{}), Clock: feed.MachineClock(), Calendar: cal, ChainEvery: 25 * time.Second, TurnEvery: 10 * time.Second,
		Underlyings: []string{"SPX"}, Log: slog.New(slog.NewTextHandler(r.log, nil)),
	})
	runner := cron.New(cron.WithLogger(cron.DiscardLogger))
	runner.Schedule(entry, cron.FuncJob(func() { r.runs.Add(1) }))
	r.one.schedule = schedule{feed.MachineClock(), cal, time.Minute, 0}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	r.stop = func() {
		cancel()
		running.Wait()
	}
	time.Sleep(time.Second / 2)
	began := time.Now()
	running.Go(func() {
		r.keepTime(ctx, runner, []*retry{&r.one}, &running, func() time.Time { return stepped(monotonic.Add(time.Since(began)), time.Duration(r.step.Load())) })
	})
	synctest.Wait()
	return r
}

// set sets the clock ahead of what it shows, and waits until keepTime has looked at it.
func (r *clockRig) set(by time.Duration) {
	r.step.Add(int64(by))
	time.Sleep(time.Second)
	synctest.Wait()
}

// After a step of the machine's clock, everything is scheduled anew within a second, and one line of the log names the step.
func TestTheClockIsSet(t *testing.T) {
	for by, said := range map[time.Duration]string{
		time.Minute: "1m0s", -time.Minute: "-1m0s", time.Hour: "1h0m0s", -time.Hour: "-1h0m0s", 24 * time.Hour: "24h0m0s", time.Second: "1s",
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &plan{}
			p.next.Store(int64(time.Hour)) // as planned while the clock was an hour ahead
			r := newClockRig(t, p)
			defer r.stop()
			pause := time.NewTimer(time.Hour) // a job has failed
			r.one.pause.Store(pause)
			time.Sleep(time.Minute)
			if p.asked.Load() != 1 || r.log.Len() > 0 {
				t.Fatalf("without a step, the next run was asked for %d times; log %q", p.asked.Load(), r.log)
			}
			p.next.Store(int64(25 * time.Second))
			r.set(by)
			if p.asked.Load() != 2 || !strings.HasSuffix(r.log.String(), "by="+said+"\n") {
				t.Errorf("after a step of %v, the next run was asked for %d times; log %q", by, p.asked.Load(), r.log)
			}
			select {
			case <-pause.C:
			default:
				t.Errorf("after a step of %v, the pause of a job that failed goes on", by)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if r.runs.Load() != 2 || strings.Count(r.log.String(), "\n") != 1 {
				t.Errorf("after a step of %v, %d runs in a minute; log %q", by, r.runs.Load(), r.log)
			}
		})
	}
}

// Steps of less than a second count together.
func TestSmallStepsOfTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newClockRig(t, schedule{feed.MachineClock(), cal, time.Minute, 0})
		defer r.stop()
		for range 2 {
			r.set(400 * time.Millisecond)
		}
		if r.log.Len() > 0 {
			t.Errorf("after 0.8 seconds: %s", r.log)
		}
		r.set(400 * time.Millisecond)
		if !strings.HasSuffix(r.log.String(), "by=1.2s\n") {
			t.Errorf("after 1.2 seconds: %q", r.log)
		}
	})
}

// A clock that steps every second neither stops a job nor lets it run more often.
func TestAClockThatStepsEverySecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(ny(t, "2026-11-20 11:00:00")))
		r := newClockRig(t, schedule{feed.MachineClock(), cal, 25 * time.Second, 0})
		defer r.stop()
		for i := range 600 {
			r.set(time.Duration(1-2*(i%2)) * time.Hour)
		}
		if r.runs.Load() != 24 || strings.Count(r.log.String(), "\n") != 600 {
			t.Errorf("%d runs in ten minutes, %d lines", r.runs.Load(), strings.Count(r.log.String(), "\n"))
		}
	})
}

// A market that is not live goes on by the monotonic clock, and its jobs are scheduled by what the machine's clock shows now.
func TestASimulatedClockWhenTheMachinesIsSet(t *testing.T) {
	start, now := ny(t, "2026-11-20 11:00:00"), time.Now()
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		c := feed.NewClock(start, 2)
		c.Set(feed.Hands{Market: start, Wall: stepped(now, -by), Speed: 2}) // the machine's clock was set after that
		shown := now.Round(0)
		if market := c.At(shown); market.Sub(start).Abs() > time.Second {
			t.Errorf("set by %v: the market is at %v", by, market)
		}
		if wall := c.Wall(start.Add(time.Minute)).Round(0); wall.Sub(shown.Add(30*time.Second)).Abs() > time.Second {
			t.Errorf("set by %v: a minute of the market later, the machine's clock shows %v, not half a minute after %v", by, wall, shown)
		}
	}
}

// Refreshes stand still when a job is overdue and none has made progress for 45 seconds of the monotonic clock, however the machine's clock was set.
func TestStuck(t *testing.T) {
	for _, c := range []struct {
		due, progress time.Duration // before now
		stuck         bool
	}{
		{45 * time.Second, 45 * time.Second, true}, {time.Hour, 46 * time.Second, true},
		{45 * time.Second, 30 * time.Second, false}, // another job goes on, or waits for its turn
		{30 * time.Second, time.Minute, false}, {-time.Minute, time.Hour, false},
	} {
		for _, set := range []time.Duration{0, 5 * time.Second, -5 * time.Second, 24 * time.Hour, -24 * time.Hour} {
			j, one := &jobs{}, &retry{name: "spx"}
			j.scheduled.Store(&[]*retry{{name: "never due"}, one})
			j.progress.Store(new(stepped(time.Now().Add(-c.progress), set)))
			now := stepped(time.Now().Add(-time.Hour), set)
			one.expect(now, now.Round(0).Add(time.Hour-c.due))
			if err := j.Stuck(); (err != nil) != c.stuck || c.stuck && !strings.Contains(err.Error(), "job spx is overdue by "+c.due.String()) {
				t.Errorf("due %v ago, progress %v ago, clock set by %v: %v", c.due, c.progress, set, err)
			}
		}
	}
}
