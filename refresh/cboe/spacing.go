package cboe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// spacing lets one request to a host through per interval. Of the waiting requests it takes those with the lowest priority
// number, and of these the one that has waited longest. It is safe for concurrent use.
type spacing struct {
	interval time.Duration

	mu      sync.Mutex
	free    time.Time // when the next request may go
	waiting []*ticket // in the order of arrival
	timer   bool      // a call of next is scheduled
}

type ticket struct {
	priority int
	turn     chan struct{}
}

// longestPause is the longest pause of a host in which a request waits for its turn.
const longestPause = 2 * time.Minute

// errPaused says that the host has asked for a longer pause.
var errPaused = errors.New("the host has asked for a pause")

// wait returns when the caller may send one request, or with the context's error or errPaused.
func (s *spacing) wait(ctx context.Context, priority int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t := &ticket{priority, make(chan struct{})}
	s.mu.Lock()
	if time.Until(s.free) > longestPause {
		defer s.mu.Unlock()
		return fmt.Errorf("%w until %s", errPaused, s.free.UTC().Format(time.RFC3339))
	}
	s.waiting = append(s.waiting, t)
	s.schedule()
	s.mu.Unlock()
	select {
	case <-t.turn:
		return nil
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		if i := slices.Index(s.waiting, t); i >= 0 {
			s.waiting = slices.Delete(s.waiting, i, i+1)
			return ctx.Err()
		}
		return nil // the turn came at the same moment
	}
}

// pause lets no request through for d.
func (s *spacing) pause(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if until := time.Now().Add(d); until.After(s.free) {
		s.free = until
	}
}

// schedule schedules a call of next if a request waits. The caller holds s.mu.
func (s *spacing) schedule() {
	if s.timer || len(s.waiting) == 0 {
		return
	}
	s.timer = true
	time.AfterFunc(time.Until(s.free), s.next)
}

// next gives the turn to the best waiting request.
func (s *spacing) next() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = false
	if now := time.Now(); now.Before(s.free) || len(s.waiting) == 0 {
		s.schedule() // paused meanwhile, or every request gave up
		return
	}
	best := 0
	for i, t := range s.waiting {
		if t.priority < s.waiting[best].priority {
			best = i
		}
	}
	close(s.waiting[best].turn)
	s.waiting = slices.Delete(s.waiting, best, best+1)
	s.free = time.Now().Add(s.interval)
	s.schedule()
}
