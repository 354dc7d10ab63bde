package refresh

import (
	"errors"
	"fmt"

	"strikecache/compute"
	"strikecache/refresh/product"
	"strikecache/snapshots"
)

// Restore makes the stored answers current, as they were sealed, and updates their freshness. The documents that they name become the
// accepted ones. A file that cannot be read is logged and skipped. Call it before [Refresher.Run].
func (p *publisher) Restore() error {
	p.state.Lock()
	defer p.state.Unlock()
	restored := map[string]*currentAnswer{}
	for _, one := range p.cfg.products {
		f, err := p.store.LoadCurrent(one.Name)
		if errors.Is(err, snapshots.ErrNoSnapshot) {
			continue
		}
		if err == nil {
			restored[one.Name], err = p.board.stored(one, f)
		}
		if err != nil {
			delete(restored, one.Name)
			p.log.Error("stored answer not readable", "resource", one.Name, "err", err)
			continue
		}
		p.adopt(one, &f)
		p.log.Info("restored", "resource", one.Name, "as_of", f.Edition.Default.Meta.AsOf)
	}
	if err := p.board.setStored(restored); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if err := p.board.clockError(); err != nil {
		p.log.Error("clock is behind the stored answers", "err", err)
	}
	return p.board.reseal()
}

// adopt makes the documents that a stored answer names the accepted ones. It skips documents that the store lacks, and those that arrived after
// now: the clock was set back. An answer to all chains adds none: the answers to each name them.
func (p *publisher) adopt(one *product.Product, f *snapshots.File) {
	if one.EveryChain() {
		return
	}
	meta, now := &f.Edition.Default.Meta, p.cfg.Clock.Now()
	about := compute.UnderlyingQuote{Symbol: one.Underlying, AsOf: meta.AsOf}
	if meta.CapturedAt != nil {
		about.CapturedAt = *meta.CapturedAt
	}
	for _, in := range f.Inputs {
		if p.store.Has(in.SHA256) && !in.Received.After(now) {
			p.intake.Adopt(in, about, p.store.Object)
		}
	}
}
