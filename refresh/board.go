package refresh

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"strikecache/snapshots"
)

// board holds the answers that are served now, and judges their freshness. All methods are safe for concurrent use. A new
// freshness changes what is served, not the files: a start judges anew.
type board struct {
	cfg *Config

	// lastAnswer is when the last answer that is stored or served was computed, in Unix seconds of market time. Probes read it.
	lastAnswer atomic.Int64

	// mu is held while answers are sealed again. No request for a resource and no probe waits for it.
	mu      sync.Mutex
	current map[string]*currentAnswer

	reasons sync.Map // by product: the reason of the last failure while its refreshes fail, else "". Probes read it.
}

// currentAnswer is the answer that a product serves now, and the failures of its refreshes.
type currentAnswer struct {
	edition *snapshots.Edition      // nil before the first answer
	restsOn []string                // [answer.restsOn] of the answer
	inputs  []snapshots.StoredInput // of the answer
	digest  string                  // of its file
	health  healths
}

func newBoard(cfg *Config) *board {
	b := &board{cfg: cfg, current: map[string]*currentAnswer{}}
	for _, p := range cfg.products {
		b.current[p.name] = &currentAnswer{health: healths{}}
	}
	return b
}

// now returns what a product serves now.
func (b *board) now(product string) currentAnswer {
	b.mu.Lock()
	defer b.mu.Unlock()
	return *b.current[product]
}

// show makes sealed answers current, all at the same instant, and ends the failures of the documents that succeeded for all
// products, also those without a new answer.
func (b *board) show(answers []*answer, products products, succeeded []string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := map[string]*currentAnswer{}
	for _, a := range answers {
		name := a.product.name
		next[name] = &currentAnswer{a.edition, a.restsOn, a.storedInputs(), b.cfg.Store.Digest(snapshots.CurrentPath(name)), b.current[name].health}
	}
	if err := b.publish(next); err != nil {
		return err
	}
	for _, p := range products {
		b.current[p.name].health.end(succeeded)
		b.tell(p.name)
	}
	return nil
}

// put makes stored answers current, by product, all at the same instant.
func (b *board) put(stored map[string]*currentAnswer) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.publish(stored)
}

// publish makes answers current, by product. b.mu is held.
func (b *board) publish(next map[string]*currentAnswer) error {
	if len(next) == 0 {
		return nil
	}
	editions := map[string]*snapshots.Edition{}
	for name, h := range next {
		editions[name] = h.edition
	}
	if err := b.cfg.Store.Publish(editions); err != nil {
		return err
	}
	for name, h := range next {
		b.current[name] = h
		b.tell(name)
		b.lastAnswer.Store(max(b.lastAnswer.Load(), changedAt(h.edition).Unix()))
	}
	return nil
}

// stored returns the answer in a file.
func (b *board) stored(f snapshots.File) (*currentAnswer, error) {
	h := &currentAnswer{edition: f.Edition, inputs: f.Inputs, digest: b.cfg.Store.Digest(snapshots.CurrentPath(f.Product)), health: healths{}}
	if p := productOf(f.Product); p != nil && p.reopen != nil {
		var err error
		if h.edition, h.restsOn, err = p.reopen(p, f.Edition.Default); err != nil {
			return nil, fmt.Errorf("open stored answer of %s: %w", f.Product, err)
		}
	}
	return h, nil
}

// changedAt returns the market's time at which an answer was computed or changed its freshness.
func changedAt(e *snapshots.Edition) time.Time {
	return later(e.Default.Meta.ComputedAt, e.Default.Meta.Freshness.Since)
}

// fail counts a failed refresh of the products that a document caused, and returns err. The current answers stay.
func (b *board) fail(document string, err error, products products) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	reason, now := reasonOf(err), b.cfg.Clock.Now()
	for _, p := range products {
		b.current[p.name].health.fail(document, reason, now)
		b.tell(p.name)
	}
	return err
}

// succeed ends the failures of the documents for the products, when the upstream said that the documents are unchanged.
func (b *board) succeed(products products, documents ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range products {
		b.current[p.name].health.end(documents)
		b.tell(p.name)
	}
}

// tell keeps the reason of a product's last failure for probes, which do not wait for b.mu. b.mu is held.
func (b *board) tell(product string) {
	b.reasons.Store(product, string(b.current[product].health.worst(nil, nil).reason))
}

// lastFailure returns the reason of the last failure of a resource whose refreshes fail, and "" for other resources. Probes call it.
func (b *board) lastFailure(name string) string {
	reason, _ := b.reasons.Load(name)
	text, _ := reason.(string)
	return text
}

// failing returns why the answer of a resource is stale although it is refreshed, nil if it is not.
func (b *board) failing(name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h := b.current[name].health.worst(nil, nil); h.failures >= failuresToStale {
		return fmt.Errorf("%d refreshes of %s in a row have failed, the last with %s", h.failures, name, h.reason)
	}
	return nil
}

// clockError returns an error while the clock is more than 10 minutes behind the last answer that is stored or served: the
// clock was set back. If the upstream's clock was not set back, its documents are then refused as clock_ahead.
func (b *board) clockError() error {
	last := time.Unix(b.lastAnswer.Load(), 0).UTC()
	if now := b.cfg.Clock.Now(); last.After(now.Add(maxAhead)) {
		return fmt.Errorf("clock shows %s, behind the last answer of %s", now.Format(time.RFC3339), last.Format(time.RFC3339))
	}
	return nil
}

// freshnessOf returns the freshness of a computed answer at this instant, once the failures of the documents that succeeded
// have ended.
func (b *board) freshnessOf(a *answer, succeeded []string) snapshots.Freshness {
	b.mu.Lock()
	defer b.mu.Unlock()
	h, night := b.current[a.product.name], a.product.night(a.asOf, a.captured, a.restsOn, b.cfg.Calendar)
	return b.freshness(a.product, h.health.worst(a.restsOn, succeeded), b.cfg.Clock.Now(), a.asOf, night)
}

// freshness returns meta.freshness at now for an answer of p whose as_of is asOf. night is [product.night]. b.mu is held.
func (b *board) freshness(p *product, h health, now, asOf, night time.Time) snapshots.Freshness {
	var before *snapshots.Freshness
	if e := b.current[p.name].edition; e != nil {
		before = &e.Default.Meta.Freshness
	}
	return h.freshness(now, asOf, p.due(now, b.cfg.Calendar), night, b.cfg.Calendar, before)
}

// reseal seals again every current answer whose freshness has changed.
func (b *board) reseal() error {
	now := b.cfg.Clock.Now()
	return b.resealAs(func(p *product, h *currentAnswer) snapshots.Freshness {
		meta := &h.edition.Default.Meta
		night := p.night(meta.AsOf, meta.CapturedAt, h.restsOn, b.cfg.Calendar)
		return b.freshness(p, h.health.worst(h.restsOn, nil), now, meta.AsOf, night)
	})
}

// resealAs seals again every current answer whose freshness is not the given one.
func (b *board) resealAs(of func(p *product, h *currentAnswer) snapshots.Freshness) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	changed := map[string]*snapshots.Edition{}
	for _, p := range b.cfg.products {
		name, h := p.name, b.current[p.name]
		if h.edition == nil {
			continue
		}
		fresh := of(p, h)
		if fresh.Equal(h.edition.Default.Meta.Freshness) {
			continue
		}
		e, err := withFreshness(h.edition, fresh)
		if err != nil {
			return fmt.Errorf("seal %s again: %w", name, err)
		}
		b.cfg.Log.Info("freshness changed", "resource", name, "state", fresh.State, "reason", textOf(fresh.Reason))
		changed[name] = e
	}
	if len(changed) == 0 {
		return nil
	}
	if err := b.cfg.Store.Publish(changed); err != nil {
		return err
	}
	for name, e := range changed {
		b.current[name].edition = e
	}
	b.cfg.published()
	return nil
}
