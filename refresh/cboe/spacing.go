package cboe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// spacing lets one request through per interval. Of the waiting requests whose hosts do not pause, it takes those with the lowest
// priority number, and of these the one that has waited longest. It is safe for concurrent use.
type spacing struct {
	interval time.Duration

	mu      sync.Mutex
	free    time.Time            // when the next request may go
	paused  map[string]time.Time // until when a host gets no request
	waiting []*ticket            // in the order of arrival
	timer   *time.Timer          // calls next
}

func newSpacing(interval time.Duration) *spacing {
	s := &spacing{interval: interval, paused: map[string]time.Time{}}
	s.timer = time.AfterFunc(0, s.next)
	return s
}

type ticket struct {
	host     string
	priority int
	turn     chan struct{}
}

// longestPause is the longest pause of a host in which a request waits for its turn.
const longestPause = 2 * time.Minute

var errPaused = errors.New("the host has asked for a pause")

// wait returns when the caller may send one request to a host, or with the context's error or errPaused.
func (s *spacing) wait(ctx context.Context, host string, priority int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t := &ticket{host, priority, make(chan struct{})}
	s.mu.Lock()
	if until := s.paused[host]; time.Until(until) > longestPause {
		defer s.mu.Unlock()
		return fmt.Errorf("%w until %s", errPaused, until.UTC().Format(time.RFC3339))
	}
	s.waiting = append(s.waiting, t)
	s.mu.Unlock()
	s.next()
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

// pause lets no request to a host through for d. It forgets the pauses that have ended, because redirects lead to many hosts.
func (s *spacing) pause(host string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.paused, func(_ string, until time.Time) bool { return time.Until(until) <= 0 })
	if until := time.Now().Add(d); until.After(s.paused[host]) {
		s.paused[host] = until
	}
}

// next gives the turn to the best waiting request. It runs again when the next turn comes, and each second while all hosts pause.
func (s *spacing) next() {
	s.mu.Lock()
	defer s.mu.Unlock()
	best, now := -1, time.Now()
	for i, t := range s.waiting {
		goes := !now.Before(s.free) && !now.Before(s.paused[t.host])
		if goes && (best < 0 || t.priority < s.waiting[best].priority) {
			best = i
		}
	}
	if best >= 0 {
		close(s.waiting[best].turn)
		s.waiting = slices.Delete(s.waiting, best, best+1)
		s.free = now.Add(s.interval)
	}
	if len(s.waiting) > 0 {
		s.timer.Reset(cmp.Or(max(s.free.Sub(now), 0), time.Second))
	}
}
