package cboe

import (
	"context"
	"slices"
	"sync"
	"time"
)

// gate spaces the requests to one host: it lets one through every interval, of those that wait the one with the
// lowest priority number, then the one that waited longest. It is safe for concurrent use.
type gate struct {
	interval time.Duration

	mu      sync.Mutex
	free    time.Time // when the next one may pass
	waiting []*ticket // in the order of arrival
	timer   bool      // a call of open is due
}

type ticket struct {
	priority int
	pass     chan struct{}
}

// wait returns when the caller may send one request, or with the context's error.
func (g *gate) wait(ctx context.Context, priority int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t := &ticket{priority, make(chan struct{})}
	g.mu.Lock()
	g.waiting = append(g.waiting, t)
	g.schedule()
	g.mu.Unlock()
	select {
	case <-t.pass:
		return nil
	case <-ctx.Done():
		g.mu.Lock()
		defer g.mu.Unlock()
		if i := slices.Index(g.waiting, t); i >= 0 {
			g.waiting = slices.Delete(g.waiting, i, i+1)
			return ctx.Err()
		}
		return nil // it passed at the same moment; the turn is taken
	}
}

// pause lets nobody through for a while.
func (g *gate) pause(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if until := time.Now().Add(d); until.After(g.free) {
		g.free = until
	}
}

// schedule arranges for the next call of open. g.mu is held.
func (g *gate) schedule() {
	if g.timer || len(g.waiting) == 0 {
		return
	}
	g.timer = true
	time.AfterFunc(time.Until(g.free), g.open)
}

// open lets the best waiting one through.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.timer = false
	if now := time.Now(); now.Before(g.free) || len(g.waiting) == 0 {
		g.schedule() // paused meanwhile, or all went away
		return
	}
	best := 0
	for i, t := range g.waiting {
		if t.priority < g.waiting[best].priority {
			best = i
		}
	}
	close(g.waiting[best].pass)
	g.waiting = slices.Delete(g.waiting, best, best+1)
	g.free = time.Now().Add(g.interval)
	g.schedule()
}
