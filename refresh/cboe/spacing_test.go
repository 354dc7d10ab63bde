package cboe

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestSpacingPrefers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpacing(3 * time.Second)
		start := time.Now()
		var mu sync.Mutex
		var order []int
		var at []time.Duration
		pass := func(priority int) {
			if err := s.wait(t.Context(), strconv.Itoa(priority), priority); err != nil { // all hosts share the turns
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			order, at = append(order, priority), append(at, time.Since(start))
		}
		pass(4) // the first passes at once, whatever its priority
		var wg sync.WaitGroup
		for _, p := range []int{4, 3, 2, 2} {
			wg.Go(func() { pass(p) })
			synctest.Wait()
		}
		time.Sleep(4 * time.Second) // a request of priority 2 has passed; now one of priority 0 comes
		wg.Go(func() { pass(0) })
		wg.Wait()
		if want := []int{4, 2, 0, 2, 3, 4}; !slices.Equal(order, want) {
			t.Errorf("order %v, want %v: priority 0 waits for at most one request", order, want)
		}
		for i, d := range at {
			if want := time.Duration(i) * 3 * time.Second; d != want {
				t.Errorf("request %d passed after %v, want %v", i, d, want)
			}
		}
	})
}

func TestSpacingPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpacing(time.Second)
		start := time.Now()
		if err := s.wait(t.Context(), "a", 0); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() { // it waits already when the pause comes
			if err := s.wait(t.Context(), "a", 0); err != nil {
				t.Error(err)
			}
			if d := time.Since(start); d != time.Minute {
				t.Errorf("passed after %v, want 1m", d)
			}
		})
		synctest.Wait()
		s.pause("a", time.Minute)
		s.pause("a", time.Second) // does not shorten the longer pause
		if err := s.wait(t.Context(), "b", 5); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("another host passed after %v, want 1s", d)
		}
		wg.Wait()
		if s.pause("b", time.Second); len(s.paused) != 1 {
			t.Errorf("pauses that have ended are kept: %v", s.paused)
		}
	})
}

func TestSpacingForgetsRequestsThatGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpacing(10 * time.Second)
		if err := s.wait(t.Context(), "a", 0); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := s.wait(ctx, "a", 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("gave up with %v", err)
		}
		start := time.Now()
		if err := s.wait(t.Context(), "a", 5); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != 8*time.Second {
			t.Errorf("the next waited %v, want 8s: the turn of the request that gave up is free", d)
		}
		if err := s.wait(ctx, "a", 0); err == nil {
			t.Error("an ended context passes")
		}
	})
}
