package refresh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// Restore makes the stored answers current, as they were sealed, and judges their freshness. Call it before [Refresher.Run]. A
// file that cannot be read is logged and skipped.
func (r *Refresher) Restore() error {
	restored := map[string]*currentAnswer{}
	for _, p := range r.cfg.products {
		f, err := r.store.LoadCurrent(p.name)
		if errors.Is(err, snapshots.ErrNoSnapshot) {
			continue
		}
		var h *currentAnswer
		if err == nil {
			h, err = r.board.stored(f)
		}
		if err != nil {
			r.log.Error("stored answer not readable", "resource", p.name, "err", err)
			continue
		}
		restored[p.name] = h
		r.log.Info("restored", "resource", p.name, "as_of", h.edition.Default.Meta.AsOf)
	}
	if err := r.board.put(restored); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if err := r.ClockError(); err != nil {
		r.log.Error("clock is behind the stored answers", "err", err)
	}
	return r.board.reseal()
}

// resumeJob is the job of the batches of [Refresher.Resume].
const resumeJob = "resume"

// Resume computes the current answers, and those that are not stored, again from the documents that the stored ones name, with the
// methods and the configuration of this process, and replaces the answers that differ. The documents become the accepted ones.
// [Refresher.Run] calls Resume first. Restore must have returned. The error joins the failures of all feeds. When ctx ends, Resume
// leaves the rest as it is, and returns nil.
func (r *Refresher) Resume(ctx context.Context) error {
	var errs []error
	for _, group := range r.cfg.products.groups() {
		b, everyChain := r.newBatch(resumeJob), false
		for _, p := range group {
			everyChain = everyChain || p.everyChain()
			if !p.accumulates && ctx.Err() == nil {
				errs = append(errs, r.takeDocuments(b, p))
			}
		}
		for _, p := range group {
			if p.accumulates && ctx.Err() == nil && r.board.now(p.name).edition != nil {
				errs = append(errs, r.resumeRows(b, p))
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		if len(b.documents) == 0 && !everyChain {
			continue
		}
		if err := r.accept(b, group); err != nil && !errors.Is(err, errNoInput) { // after a clock was set back, documents are left out
			errs = append(errs, fmt.Errorf("resume %s: %w", group[0].name, err))
		}
	}
	return errors.Join(errs...)
}

// takeDocuments puts the documents that the current answer of a product names into the batch: of two of one name the later one. A
// document that is not stored any more, or that has a timestamp after the market's time, is left out.
func (r *Refresher) takeDocuments(b *batch, p *product) error {
	var errs []error
	for _, in := range r.board.now(p.name).inputs {
		name := upstream.Name(in.Name)
		kind, _ := name.Split()
		if kind == upstream.SettlementKind {
			name = latestSettlement
		} else if p.feed == vixFeed {
			name = rung(name)
		}
		other := b.documents[name]
		if p.everyChain() && other == nil { // the chains were taken before
			other = b.document(name)
		}
		if !isNewest(in.Name) || other != nil && !other.Received.Before(in.Received) {
			continue
		}
		d := storedDocument(in, r.store.Object)
		if err := d.open(); err != nil {
			errs = append(errs, fmt.Errorf("document %s of %s: %w", in.Name, p.name, err))
			continue
		}
		d.Body = nil // it can be read again
		r.intake.measure(d)
		if d.mark.captured.After(b.at) {
			continue // the clock was set back
		}
		if p.feed == vixFeed && kind != upstream.SettlementKind {
			if settled := compute.DateOf(r.board.now(p.name).edition.Default.Meta.AsOf.In(compute.NewYork)); d.closeOn(settled, r.cal) != nil {
				r.memory.keepClose(d, settled)
			}
			if d.quote == nil {
				continue
			}
		}
		b.documents[name] = d
	}
	return errors.Join(errs...)
}

// resumeRows makes the newest row of an answer that accumulates be computed again: with the batch, if it has the chain that the answer
// names, as in session; else at once, with that chain.
func (r *Refresher) resumeRows(b *batch, p *product) error {
	d := b.documents[chainOf(p.underlying)]
	named := func(in snapshots.StoredInput) bool { return d != nil && in.Name == d.Name && in.SHA256 == d.SHA256 }
	if !slices.ContainsFunc(r.board.now(p.name).inputs, named) {
		return r.computeAgain(p, nil)
	}
	rows, err := r.rowsBefore(p)
	b.trackRows = rows
	return err
}

// rowsBefore returns the rows of the current answer of a product that accumulates, without the newest; nil if there is none.
func (r *Refresher) rowsBefore(p *product) ([]json.RawMessage, error) {
	rows, err := trackRows(r.board.now(p.name).edition.Default)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return rows[:len(rows)-1], nil
}

// computeAgain computes the newest row of an answer that accumulates again, from the document that the answer names, behind
// the rows in front and the rows that the answer has before.
func (r *Refresher) computeAgain(p *product, front []json.RawMessage) error {
	rows, err := r.rowsBefore(p)
	if err != nil || rows == nil {
		return err
	}
	b := r.newBatch(resumeJob)
	b.trackRows = append(append([]json.RawMessage{}, front...), rows...)
	if err := r.takeDocuments(b, p); err != nil || len(b.documents) == 0 {
		return err
	}
	return r.accept(b, []*product{p})
}

// LeftOff returns the market's time at which the last of the current answers of the resources was computed or changed its freshness. It returns
// the zero time for an empty store. A simulated market that starts there gives no answer that is older than a stored one.
func LeftOff(store *snapshots.Store, resources []string) (left time.Time) {
	for _, name := range resources {
		if f, err := store.LoadCurrent(name); err == nil {
			left = later(left, changedAt(f.Edition))
		}
	}
	return left
}
