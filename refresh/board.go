package refresh

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/refresh/product"
	"strikecache/snapshots"
)

// board holds the answers that are served now, and their freshness. A new freshness changes what is served, not the files: a start
// computes it anew. All methods are safe for concurrent use.
type board struct {
	cfg *Config

	mu sync.Mutex // held while current is replaced, and never while a file is read or written: a dead disk keeps no answer fresh

	current    atomic.Pointer[map[string]*currentAnswer] // by product; the map is never changed
	lastAnswer atomic.Int64                              // when the last answer that is stored or served was computed, in Unix seconds of market time
}

// currentAnswer is the answer that a product serves now, and the failures of its refreshes. It is immutable.
type currentAnswer struct {
	edition *snapshots.Edition // nil before the first answer
	restsOn []string           // [product.Answer.RestsOn] of the answer
	digest  string             // of its file
	health  healths
}

func newBoard(cfg *Config) *board {
	b, none := &board{cfg: cfg}, map[string]*currentAnswer{}
	for _, p := range cfg.products {
		none[p.Name] = &currentAnswer{health: healths{}}
	}
	b.current.Store(&none)
	return b
}

// now returns what a product serves now. It does not wait while answers are sealed again.
func (b *board) now(name string) *currentAnswer { return (*b.current.Load())[name] }

func (b *board) edition(name string) *snapshots.Edition { return b.now(name).edition }

// put replaces what products serve, all at the same instant. b.mu is held.
func (b *board) put(changed map[string]*currentAnswer) {
	next := maps.Clone(*b.current.Load())
	maps.Copy(next, changed)
	b.current.Store(&next)
}

// setComputed makes sealed answers current, all at the same instant, and ends the failures of the documents that succeeded for all
// products, also those without a new answer.
func (b *board) setComputed(answers []*product.Answer, products product.List, succeeded []string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := map[string]*currentAnswer{}
	for _, a := range answers {
		name := a.Product.Name
		next[name] = &currentAnswer{a.Edition, a.RestsOn, b.cfg.Store.Digest(snapshots.CurrentPath(name)), b.now(name).health}
	}
	if err := b.publish(next); err != nil {
		return err
	}
	b.judge(products, func(h healths) { h.end(succeeded) })
	return nil
}

// setStored makes stored answers current, by product, all at the same instant.
func (b *board) setStored(stored map[string]*currentAnswer) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.publish(stored)
}

// publish makes new answers current, by product. b.mu is held.
func (b *board) publish(next map[string]*currentAnswer) error {
	err := b.serve(next)
	for _, h := range next {
		b.lastAnswer.Store(max(b.lastAnswer.Load(), changedAt(h.edition).Unix()))
	}
	return err
}

// serve replaces what products serve, but for answers that are older than the current ones, which it deletes from next, as all if it fails. b.mu
// is held.
func (b *board) serve(next map[string]*currentAnswer) error {
	if len(next) == 0 {
		return nil
	}
	editions := map[string]*snapshots.Edition{}
	for name, h := range next {
		editions[name] = h.edition
	}
	err := b.cfg.Store.Publish(editions)
	maps.DeleteFunc(next, func(name string, _ *currentAnswer) bool { return err != nil || editions[name] == nil })
	b.put(next)
	return err
}

// stored returns the stored answer of a product, and its file.
func (b *board) stored(p *product.Product) (h *currentAnswer, f snapshots.File, err error) {
	if f, err = b.cfg.Store.LoadCurrent(p.Name); err != nil {
		return nil, f, err
	}
	h = &currentAnswer{digest: b.cfg.Store.Digest(snapshots.CurrentPath(p.Name)), health: healths{}}
	if h.edition, h.restsOn, err = p.Reopen(f.Edition); err != nil {
		return nil, f, fmt.Errorf("open stored answer of %s: %w", p.Name, err)
	}
	return h, f, nil
}

// changedAt returns the market's time at which an answer was computed or changed its freshness.
func changedAt(e *snapshots.Edition) time.Time {
	return compute.Later(e.Default.Meta.ComputedAt, e.Default.Meta.Freshness.Since)
}

// fail counts one failure of a document for each of the products, and returns err. The current answers stay.
func (b *board) fail(document string, err error, products product.List) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.judge(products, func(h healths) { h.fail(document, reasonOf(err), b.cfg.Clock.Now()) })
	return err
}

// succeed ends the failures of the documents for the products.
func (b *board) succeed(products product.List, documents ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.judge(products, func(h healths) { h.end(documents) })
}

// judge changes the healths of products. b.mu is held.
func (b *board) judge(products product.List, change func(healths)) {
	changed := map[string]*currentAnswer{}
	for _, p := range products {
		h := *b.now(p.Name)
		h.health = maps.Clone(h.health)
		change(h.health)
		changed[p.Name] = &h
	}
	b.put(changed)
}

// ClockError returns an error while the clock is more than 10 minutes behind the last answer that is stored or served: the
// clock was set back. If the upstream's clock was not set back, its documents are then refused as clock_ahead.
func (p *publisher) ClockError() error {
	last := time.Unix(p.board.lastAnswer.Load(), 0).UTC()
	if now := p.cfg.Clock.Now(); last.After(now.Add(feed.MaxAhead)) {
		return fmt.Errorf("clock shows %s, behind the last answer of %s", now.Format(time.RFC3339), last.Format(time.RFC3339))
	}
	return nil
}

// freshnessOf returns the freshness of an answer at now, once the failures of the documents that succeeded have ended.
func (b *board) freshnessOf(a *product.Answer, now time.Time, succeeded []string) snapshots.Freshness {
	return b.freshness(a, now, b.now(a.Product.Name).health.worst(a.RestsOn, succeeded))
}

// freshness returns the freshness at now of an answer whose refreshes have this health.
func (b *board) freshness(a *product.Answer, now time.Time, h health) snapshots.Freshness {
	var before *snapshots.Freshness
	if e := b.edition(a.Product.Name); e != nil {
		before = &e.Default.Meta.Freshness
	}
	return h.freshness(a, now, b.cfg.Calendar, before)
}

// reseal seals again every current answer whose freshness has changed.
func (b *board) reseal() error {
	now := b.cfg.Clock.Now()
	return b.resealAs(func(a *product.Answer, _ snapshots.Freshness) snapshots.Freshness { return b.freshnessOf(a, now, nil) })
}

// resealAs seals again every current answer whose freshness is not that of the function, which gets of the answer what its freshness depends on,
// and its freshness.
func (b *board) resealAs(of func(*product.Answer, snapshots.Freshness) snapshots.Freshness) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	changed := map[string]*currentAnswer{}
	for _, p := range b.cfg.products {
		h := *b.now(p.Name)
		if h.edition == nil {
			continue
		}
		meta := &h.edition.Default.Meta
		fresh := of(&product.Answer{Product: p, AsOf: meta.AsOf, Captured: meta.CapturedAt, RestsOn: h.restsOn}, meta.Freshness)
		if fresh.Equal(meta.Freshness) {
			continue
		}
		var err error
		if h.edition, err = withFreshness(h.edition, fresh); err != nil {
			return fmt.Errorf("seal %s again: %w", p.Name, err)
		}
		b.cfg.Log.Info("freshness changed", "resource", p.Name, "state", fresh.State, "reason", textOf(fresh.Reason))
		changed[p.Name] = &h
	}
	return b.serve(changed)
}
