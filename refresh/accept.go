package refresh

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/refresh/product"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// publisher takes documents to answers. Its state is the documents that were accepted, and what earlier answers left. One goroutine at a time
// owns the state: the one that holds the lock. A job gives it back while it waits for the upstream.
type publisher struct {
	cfg   *Config
	store *snapshots.Store
	log   *slog.Logger

	state    sync.Mutex
	intake   *feed.Intake
	memory   *product.Memory
	reported map[string]bool // jobs whose first refresh was logged

	board *board
}

// forget forgets what earlier refreshes left, but not the answers that are served.
func (p *publisher) forget() {
	p.intake = feed.NewIntake(p.cfg.Clock, p.cfg.Calendar, p.log)
	p.memory = product.NewMemory(p.store, p.cfg.Calendar, p.log)
}

// newBatch returns an empty batch. It may be given documents before [publisher.accept].
func (p *publisher) newBatch() *product.Batch {
	c := p.cfg
	return &product.Batch{
		Settings: product.Settings{
			Calendar: c.Calendar, RiskFreeRate: c.RiskFreeRate, Source: c.SourceName, Underlyings: c.Underlyings, Recorded: c.Recorded, History: c.hasPast, Offers: c.Source.Offers,
		},
		At: c.Clock.Now(), Documents: map[upstream.Name]*feed.Document{}, Accepted: p.intake.Document, Memory: p.memory,
		Answers: map[string]*product.Answer{},
	}
}

// accept publishes the answers that the documents of a batch give. In order, it
//
//  1. computes each product,
//  2. drops the answers that match the current ones: the current answer stays as it is, with its receipt,
//  3. seals the others,
//  4. gives their inputs and files to the fleet, if there is one, and stores them,
//  5. makes them current, all at the same instant,
//  6. remembers the documents as accepted.
//
// If a product fails in step 1, or its current answer is newer, that answer stays, the others are published, the error is a
// [*partialFailure], and the next request asks for the documents again. If all products fail, or step 3 or 4, nothing changes. If step 5
// fails, what is served stays, but the fleet and the files have the new answers. A disk that refuses a file fails no step: the file is
// written later. Step 5 resets the failure counts of the documents in succeeded, which are named as in
// [board.fail], except for products that failed. job names what made the batch.
//
// The answers of a past session are only stored, one by one, under its date.
func (p *publisher) accept(job string, b *product.Batch, products product.List, succeeded ...string) error {
	began, past := time.Now(), b.Accepted == nil
	if !past {
		b.At = p.cfg.Clock.Now()
	}
	defer p.release(b)
	changed, failed, failure := p.compute(b, products)
	if len(failed) == len(products) {
		return failure
	}
	for _, a := range changed {
		fresh := p.board.freshnessOf(a, p.cfg.Clock.Now(), succeeded)
		if past {
			fresh = health{}.freshness(a, b.At, b.Calendar, nil)
		}
		if err := a.Seal(p.cfg.every(a.Product), fresh); err != nil {
			return fmt.Errorf("seal %s: %w", a.Product.Name, err)
		}
		if past { // one by one: all that is sealed of a session of SPX takes 10 MB
			if err := p.save(b, []*product.Answer{a}); err != nil {
				return err
			}
			b.Memory.KeepReference(a)
			a.Edition = nil
		}
	}
	if past {
		return failure
	}
	if err := p.save(b, changed); err != nil {
		return err
	}
	good := products.Where(func(x *product.Product) bool { return !slices.Contains(failed, x) })
	if err := p.board.setComputed(changed, good, succeeded); err != nil {
		return err
	}
	p.intake.Accept(b.Documents)
	p.report(job, b, changed, time.Since(began))
	if failed == nil {
		return nil
	}
	for _, d := range b.Documents {
		d.Failed = true
	}
	for _, document := range succeeded {
		_ = p.board.fail(document, failure, failed)
	}
	return &partialFailure{failure}
}

// compute returns the answers of the products that differ from the current ones, in order, without the products that have no inputs or
// nothing to add, and the products that failed, with their errors joined.
func (p *publisher) compute(b *product.Batch, products product.List) (changed []*product.Answer, failed product.List, failure error) {
	var errs []error
	for _, one := range products {
		current := p.board.edition(one.Name)
		a, err := one.Next(b)
		switch {
		case err != nil || a == nil:
		case b.Accepted == nil:
			err = a.Usable()
		case p.store.Older(one.Name, a.AsOf, a.Captured, b.At):
			err = upstream.Refuse(upstream.Older, "the answer of %s is newer than these documents", one.Name)
		case current == nil || p.cfg.Clock.StandsStill():
			err = a.Usable()
		}
		switch {
		case err != nil:
			failed, errs = append(failed, one), append(errs, err)
		case a != nil:
			b.Answers[one.Name] = a
			if a.Served = b.Accepted != nil && a.Matches(current, p.cfg.every(one)); !a.Served {
				changed = append(changed, a)
			}
		}
	}
	return changed, failed, errors.Join(errs...)
}

func (p *publisher) save(b *product.Batch, answers []*product.Answer) error {
	var files []snapshots.File
	var objects []snapshots.Object
	for _, a := range answers {
		f, inputs := a.File(b.Dated(a))
		if f.Current = b.Accepted != nil; !f.Current {
			f.Served = nil // hundreds of dates would take much memory
		}
		files = append(files, f)
		objects = append(objects, inputs...)
	}
	return p.store.Save(files, objects)
}

// release frees the memory of the documents that can be read again. A document that no answer names keeps its gzip: a later answer may
// name it.
func (p *publisher) release(b *product.Batch) {
	for _, d := range b.Documents {
		if p.store.Has(d.SHA256) {
			d.InStore(p.store.Object)
		}
		d.Release()
	}
	for _, a := range b.Answers {
		for _, d := range a.Inputs.Documents {
			d.Release()
		}
	}
}

// report logs what was published: at level info the first time that a job publishes, at level debug later.
func (p *publisher) report(job string, b *product.Batch, answers []*product.Answer, took time.Duration) {
	if len(answers) == 0 {
		return
	}
	log := p.log.Debug
	if !p.reported[job] {
		p.reported[job], log = true, p.log.Info
	}
	var names []string
	for _, a := range answers {
		names = append(names, a.Product.Name)
	}
	log("refreshed", "job", job, "as_of", answers[0].AsOf, "new_documents", len(b.Documents), "resources", names, "took", took)
}

// Restore makes the stored answers current, as they were sealed, and updates their freshness. The documents that they name become the
// accepted ones. A file that cannot be read is logged and skipped. Call it before [Refresher.Run].
func (p *publisher) Restore() error {
	p.state.Lock()
	defer p.state.Unlock()
	restored := map[string]*currentAnswer{}
	for _, one := range p.cfg.products {
		h, f, err := p.board.stored(one)
		switch {
		case errors.Is(err, snapshots.ErrNoSnapshot):
		case err != nil:
			p.log.Error("stored answer not readable", "resource", one.Name, "err", err)
		default:
			restored[one.Name] = h
			p.adopt(one, &f)
			p.log.Info("restored", "resource", one.Name, "as_of", f.Edition.Default.Meta.AsOf)
		}
	}
	if err := p.board.setStored(restored); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if err := p.ClockError(); err != nil {
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
