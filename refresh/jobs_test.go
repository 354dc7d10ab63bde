package refresh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robfig/cron/v3"

	"strikecache/refresh/feed"
	"strikecache/refresh/product"
	"strikecache/refresh/upstream"
)

func TestBackoffGrowsIsBoundedAndJitters(t *testing.T) {
	for _, c := range []struct {
		every    time.Duration
		failures int
		most     time.Duration
	}{
		{time.Minute, 1, time.Minute}, {time.Minute, 2, 2 * time.Minute}, {time.Minute, 3, 4 * time.Minute},
		{time.Minute, 4, maxBackoff}, {time.Minute, 1 << 30, maxBackoff},
		{5 * time.Second, 1, 5 * time.Second}, {5 * time.Second, 6, 160 * time.Second}, {5 * time.Second, 7, maxBackoff},
		{5 * time.Minute, 1, time.Minute}, {24 * time.Hour, 2, 2 * time.Minute},
	} {
		least, most := time.Duration(1<<62), time.Duration(0)
		for range 1000 {
			d := backoff(c.every, c.failures)
			least, most = min(least, d), max(most, d)
		}
		if least < c.most/2 || most >= c.most || most-least < c.most*4/10 {
			t.Errorf("every %v, %d failures: %v to %v, want from %v to %v", c.every, c.failures, least, most, c.most/2, c.most)
		}
	}
}

// A failing job runs at growing intervals and skips the scheduled runs between them. After a success, it follows the
// schedule again.
func TestFailedJobsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		var mu sync.Mutex
		failing := true
		var at []time.Duration
		from := func(fails bool) (before []time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			before, at, failing = at, nil, fails
			return before
		}
		b := &retry{schedule: schedule{feed.MachineClock(), cal, time.Minute, 0}}
		b.run = cron.NewChain(cron.SkipIfStillRunning(cron.DiscardLogger)).Then(cron.FuncJob(func() {
			mu.Lock()
			at = append(at, time.Since(start))
			ok := !failing
			mu.Unlock()
			b.finished(ctx, ok, &group)
		}))
		tick := func(minutes int) {
			for range minutes {
				b.tick()
				time.Sleep(time.Minute)
			}
		}
		tick(30)
		runs := from(false)
		for i := 1; i < len(runs); i++ {
			most := min(time.Minute<<(i-1), maxBackoff)
			if gap := runs[i] - runs[i-1]; gap < most/2 || gap >= most {
				t.Errorf("run %d came %v after the one before, want %v to %v", i, gap, most/2, most)
			}
		}
		if len(runs) < 7 || len(runs) > 14 {
			t.Errorf("%d runs in 30 minutes: %v", len(runs), runs)
		}
		tick(5) // the retry comes within these
		from(false)
		tick(5)
		if n := len(from(true)); n != 5 {
			t.Errorf("after the recovery: %d runs in 5 minutes", n)
		}
		tick(1)
		cancel()
		group.Wait() // a retry that is due does not outlive the context
	})
}

func TestNoRetryWhenTheClockStandsStill(t *testing.T) {
	var group sync.WaitGroup
	b := &retry{schedule: schedule{feed.NewClock(time.Now(), 0), cal, time.Minute, 0}}
	b.finished(t.Context(), false, &group)
	group.Wait()
	if b.pause.Load() != nil {
		t.Error("runs again")
	}
}

// A probe does not wait while answers are computed and sealed.
func TestAProbeDoesNotWait(t *testing.T) {
	r := New(Config{Source: Raw(noSource{}), Calendar: cal, Store: newStore(t, "cboe"), Underlyings: []string{"SPX"}, Log: slog.New(slog.DiscardHandler)})
	_ = r.own(func() error { // the probes below would hang if they took the lock
		_ = r.board.fail("SPX", product.ErrNoInput, r.cfg.products)
		if reason := r.LastFailure(product.GammaResource); reason != string(upstream.Empty) || len(r.Offers()) != 0 || r.ClockError() != nil || r.Store().DiskError() != nil || Member(r).Failing() != nil || len(Member(r).Serving()) != 0 {
			t.Errorf("the last failure is %q", reason)
		}
		freshness := job{name: "freshness", stateless: true, run: func(context.Context) error { return nil }}
		if !r.runJob(t.Context(), freshness) { // nor does a dead disk, on which the owner waits, keep an answer fresh
			t.Error("freshness is not updated")
		}
		return nil
	})
	r.board.mu.Lock() // as while answers are sealed again
	defer r.board.mu.Unlock()
	if r.LastFailure(product.GammaResource) == "" {
		t.Error("the failure is forgotten")
	}
}

// Only a document that a merged answer rests on makes the answer stale.
func TestWorstHealth(t *testing.T) {
	now := time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC)
	h := healths{}
	fail := func(document string, reason upstream.Reason, times int) {
		for range times {
			h.fail(document, reason, now)
		}
		now = now.Add(time.Minute)
	}
	fail("SPX", upstream.Refused, 2)
	fail("XLF", upstream.HTML, 3)
	fail("XLK", upstream.TimedOut, 7)
	for _, c := range []struct {
		restsOn, good []string
		failures      int
		reason        upstream.Reason
	}{
		{nil, nil, 3, upstream.HTML}, // stale first, though the other failed more often
		{nil, []string{"XLF"}, 7, upstream.TimedOut},
		{[]string{"SPX", "SPY"}, nil, 2, upstream.Refused},
		{[]string{"SPY"}, nil, 0, ""},
		{[]string{}, nil, 0, ""},
		{[]string{"SPX"}, []string{"SPX"}, 0, ""},
	} {
		if w := h.worst(c.restsOn, c.good); w.failures != c.failures || w.reason != c.reason {
			t.Errorf("resting on %v, %v good: %+v, want %d %s", c.restsOn, c.good, w, c.failures, c.reason)
		}
	}
	h.end([]string{"XLF", "SPX"})
	if len(h) != 1 {
		t.Errorf("after two ended: %v", h)
	}
}

// A panic on a thread of low priority is one of the caller.
func TestPanicOnAnotherThread(t *testing.T) {
	defer func() {
		if p := recover(); p != "lost" {
			t.Errorf("panic %v", p)
		}
	}()
	inBackground(func() { panic("lost") })
}

// The observer is told of every run but one that the end of the process cut short.
func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		r := New(Config{Source: Raw(noSource{}), Underlyings: []string{"SPX"}, Calendar: cal, Clock: feed.MachineClock(), Log: slog.New(slog.DiscardHandler), Observe: func(job, code string, refused []string, took time.Duration) {
			told = append(told, fmt.Sprint(job, " ", code, " ", refused, " ", took))
		}})
		ctx, cancel := context.WithCancel(t.Context())
		for _, j := range []job{
			{name: "spx", run: func(context.Context) error { time.Sleep(time.Second); return nil }},
			{name: "vix", run: func(context.Context) error {
				return &upstream.Error{Reason: upstream.TimedOut, Err: context.DeadlineExceeded}
			}},
			{name: "xlf", run: func(context.Context) error { return errors.Join(&upstream.Error{Reason: upstream.Older, Err: io.EOF}) }},
			{name: "sectors", run: func(context.Context) error { panic("a fault") }},
			{name: "ndx", run: func(context.Context) error {
				return &partialFailure{fmt.Errorf("compute: %w: a fault", product.ErrPanic)}
			}},
			{name: "spx", run: func(ctx context.Context) error { cancel(); return ctx.Err() }},
		} {
			r.runJob(ctx, j)
		}
		want := []string{"spx ok [] 1s", "vix upstream_timeout [] 0s", "xlf upstream_older [upstream_older] 0s", "sectors panic [] 0s", "ndx panic [] 0s"}
		if !slices.Equal(told, want) {
			t.Errorf("%q, want %q", told, want)
		}
		r.cfg.Observe = nil
		r.runJob(t.Context(), job{name: "vix", run: func(context.Context) error { return nil }})
	})
}
