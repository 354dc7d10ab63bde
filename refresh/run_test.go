package refresh_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/refresh"
	"strikecache/refresh/feed"
	"strikecache/refresh/product"
	"strikecache/refresh/upstream"
)

// While the schedule stands still, the freshness of the answers is judged all the same.
func TestFreshnessWithoutTheSchedule(t *testing.T) {
	play(t, "2026-11-20 11:00", func(t *testing.T, r *rig) {
		stop := func(at string) { r.clock.Set(feed.Hands{Market: ny(t, "2026-11-20 "+at), Wall: time.Now()}) }
		stop("11:00")
		defer r.begin()()
		for _, c := range []struct{ at, state string }{{"11:00", "fresh"}, {"17:00", "closed"}} {
			stop(c.at)
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			if state := r.meta(product.GammaResource).Freshness.State; state != c.state {
				t.Errorf("at %s: %s, want %s", c.at, state, c.state)
			}
		}
	})
}

// hungSource is a source that does not answer until it is told to, whatever the context says.
type hungSource struct {
	upstream.Source
	answer atomic.Pointer[chan struct{}]
}

func (s *hungSource) Fetch(ctx context.Context, name upstream.Name, since *upstream.Document) (*upstream.Document, error) {
	if answer := s.answer.Load(); answer != nil {
		<-*answer
	}
	return s.Source.Fetch(ctx, name, since)
}

// A standstill of the refreshes is seen within a minute, and its end at once. Refreshes that fail, or that are not due, do not stand still.
func TestFaultStandstill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := &hungSource{}
		r := newRig(t, t.TempDir(), "2026-11-20 15:45", func(c *refresh.Config) {
			hung.Source = c.Source.Source
			c.Source.Source = hung
		})
		goesOn := func(what string, d time.Duration) {
			t.Helper()
			for range d / (10 * time.Second) {
				time.Sleep(10 * time.Second)
				if err := r.Stuck(); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
			}
		}
		defer r.begin()()
		goesOn("in a session", 10*time.Minute)
		for range 2 {
			answer := make(chan struct{})
			hung.answer.Store(&answer)
			time.Sleep(time.Minute + 15*time.Second) // a job is due every 25 s
			if err := r.Stuck(); err == nil || !strings.Contains(err.Error(), "overdue by") {
				t.Errorf("a source that does not answer: %v", err)
			}
			hung.answer.Store(nil)
			close(answer)
			synctest.Wait()
			goesOn("the source answers again", 10*time.Minute)
		}
		for _, name := range []upstream.Name{spxDocument, upstream.Options("XLF")} {
			r.market.Fail(name, "html")
		}
		goesOn("all chains fail", 30*time.Minute)
		goesOn("after the session", 2*time.Hour)
	})
}

// A use of the disk that never ends, such as a read of the keys, does not keep the process from ending.
func TestADeadDiskDoesNotStopTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		end()
		answer, closed := make(chan struct{}), false
		stop := newRig(t, t.TempDir(), "2026-11-20 11:00").Start(ctx, func() { <-answer }, func() { closed = true })
		began := time.Now()
		if err := stop(); err == nil || closed || time.Since(began) != 30*time.Second {
			t.Errorf("%v after %s, closed: %v", err, time.Since(began), closed)
		}
		close(answer)
		if synctest.Wait(); !closed {
			t.Error("the second function is not called")
		}
	})
}

// silentMarket is a market that does not answer for VIX1D.
type silentMarket struct{ *faultyMarket }

func (m silentMarket) Fetch(ctx context.Context, name upstream.Name, since *upstream.Document) (*upstream.Document, error) {
	if name != upstream.Quotes("_VIX1D") {
		return m.faultyMarket.Fetch(ctx, name, since)
	}
	<-ctx.Done()
	return nil, &upstream.Error{Name: name, Reason: upstream.TimedOut, Err: ctx.Err()}
}

// The settlements are served before the other volatility indices are asked for, and the job waits for it only so long that its next run is not late.
func TestFaultSilentIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.TempDir(), "2026-11-20 18:45", func(c *refresh.Config) { c.Source.Source = silentMarket{c.Source.Source.(*faultyMarket)} })
		refresh.RunJob(r.Refresher, t.Context(), "vix")
		m, data := r.meta(product.VIXResource), string(r.store.Current(product.VIXResource).Default.Data())
		if took := r.clock.Now().Sub(m.ComputedAt); !m.AsOf.Equal(ny(t, "2026-11-20 16:00")) || strings.Contains(data, `"spot_basis_pct":null`) || took < time.Minute || took > 4*time.Minute {
			t.Errorf("published %s before the end of the job: %s", took, data)
		}
	})
}
