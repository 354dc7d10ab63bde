package cboe

import (
	"context"
	"slices"
	"sync"
	"time"

	"strikecache/refresh/upstream"
)

// gate spaces the requests to one host: it lets one through every interval, of those that wait the one with the
// lowest priority number, then the one that waited longest. While others wait, a document does not get two turns in a
// row, so that its redirects and repetitions delay them by one request at a time. It is safe for concurrent use.
type gate struct {
	interval time.Duration

	mu      sync.Mutex
	free    time.Time // when the next one may pass
	waiting []*ticket // in the order of arrival
	timer   bool      // a call of open is due
	last    upstream.Name
}

type ticket struct {
	name     upstream.Name
	priority int
	pass     chan struct{}
}

// wait returns when the caller may send one request for a document, or with the context's error.
func (g *gate) wait(ctx context.Context, name upstream.Name, priority int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t := &ticket{name, priority, make(chan struct{})}
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
	rank := func(i int) int { // the document that had the last turn comes behind all others
		if g.waiting[i].name == g.last {
			return g.waiting[i].priority + priorities
		}
		return g.waiting[i].priority
	}
	for i := range g.waiting {
		if rank(i) < rank(best) {
			best = i
		}
	}
	g.last = g.waiting[best].name
	close(g.waiting[best].pass)
	g.waiting = slices.Delete(g.waiting, best, best+1)
	g.free = time.Now().Add(g.interval)
	g.schedule()
}
