package cboe

import (
	"context"
	"slices"
	"sync"
	"time"
)

// spacing lets one request to a host through every interval: of those that wait the one with the lowest priority number,
// then the one that waited longest. It is safe for concurrent use.
type spacing struct {
	interval time.Duration

	mu      sync.Mutex
	free    time.Time // when the next request may go
	waiting []*ticket // the next to go first
	timer   bool      // a call of next is due
}

type ticket struct {
	priority int
	turn     chan struct{}
}

// wait returns when the caller may send one request, or with the context's error.
func (s *spacing) wait(ctx context.Context, priority int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t := &ticket{priority, make(chan struct{})}
	s.mu.Lock()
	// A search for the next priority finds the place behind all that wait with this one.
	at, _ := slices.BinarySearchFunc(s.waiting, priority+1, func(t *ticket, p int) int { return t.priority - p })
	s.waiting = slices.Insert(s.waiting, at, t)
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
		return nil // its turn came at the same moment and is taken
	}
}

// pause lets no request through for a while.
func (s *spacing) pause(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if until := time.Now().Add(d); until.After(s.free) {
		s.free = until
	}
}

// schedule arranges for the call of next. s.mu is held.
func (s *spacing) schedule() {
	if !s.timer && len(s.waiting) > 0 {
		s.timer = true
		time.AfterFunc(time.Until(s.free), s.next)
	}
}

// next gives the turn to the first request that waits.
func (s *spacing) next() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = false
	if len(s.waiting) > 0 && !time.Now().Before(s.free) { // else it was paused meanwhile, or all gave up
		close(s.waiting[0].turn)
		s.waiting = slices.Delete(s.waiting, 0, 1)
		s.free = time.Now().Add(s.interval)
	}
	s.schedule()
}
