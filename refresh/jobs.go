package refresh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/refresh/product"
	"strikecache/refresh/upstream"
)

// jobs fetch documents and hand them to the publisher. A job owns the publisher's state while it runs, but not while it waits for the
// upstream.
type jobs struct {
	*publisher
	cal *compute.Calendar

	schedules map[string][]schedule     // by resource: those of the jobs that refresh it
	scheduled atomic.Pointer[[]*retry]  // the jobs of the run that goes on; nil: none goes on
	progress  atomic.Pointer[time.Time] // see advance
	turn      sync.Mutex                // held by a refresh while it owns the state or waits for it
	played    atomic.Pointer[string]    // see History
	playedAll atomic.Bool               // all past sessions were played: their documents may be removed when they are old
	reading   sync.Mutex                // held from the read of a file in a folder until its document is decoded
}

// offers says whether the upstream has the documents of a product, as far as is known: for a rotation, the quote and the history of at least
// one sector.
func (j *jobs) offers(p *product.Product) bool {
	has := func(symbol string) bool { return j.cfg.Source.Offers(feed.ChainOf(symbol)) }
	switch {
	case p.Feed == product.Funds:
		return slices.ContainsFunc(compute.Sectors, func(s compute.Sector) bool {
			return j.cfg.Source.Offers(upstream.Quotes(s.Symbol)) && j.cfg.Source.Offers(upstream.History(s.Symbol))
		})
	case p.Feed == product.Settlements:
		return j.cfg.Source.Offers(upstream.Settlement(j.cal.SessionDate(j.cfg.Clock.Now()).String()))
	case p.EveryChain():
		return slices.ContainsFunc(j.cfg.Underlyings, has)
	}
	return has(p.Underlying)
}

// own calls f, which owns the state until it returns.
func (j *jobs) own(f func() error) error {
	j.state.Lock()
	defer j.state.Unlock()
	return f()
}

// inTurn is own for a refresh. All refreshes together wait for the state as one: so history, which waits for it too, comes after each of
// them, and does not starve when they follow each other without a break.
func (j *jobs) inTurn(f func() error) error {
	j.turn.Lock()
	defer j.turn.Unlock()
	return j.own(f)
}

// leave calls f while others may own the state.
func (j *jobs) leave(f func()) {
	j.state.Unlock()
	defer j.state.Lock()
	f()
}

// await is leave for a refresh.
func (j *jobs) await(f func()) {
	j.leave(func() {
		j.turn.Unlock()
		defer j.turn.Lock()
		f()
	})
}

// arrived is the answer of the source to a request.
type arrived struct {
	sent *upstream.Document
	doc  *feed.Document // sent, decoded
	err  error          // of the source, or why doc is not valid
}

// ask asks the source for documents, one after another, while others may own the state, and then decodes them. It leaves the rest when over
// half of all have failed.
func (j *jobs) ask(ctx context.Context, names ...upstream.Name) (got []arrived) {
	since := map[upstream.Name]*upstream.Document{}
	for _, name := range names {
		since[name] = j.intake.Since(name)
	}
	failed := 0
	j.await(func() {
		for _, name := range names {
			var one arrived
			one.sent, one.err = j.cfg.Source.Fetch(ctx, name, since[name])
			j.advance()
			if one.err == nil {
				one.err = ctx.Err()
			}
			got = append(got, one)
			if one.err != nil && !errors.Is(one.err, upstream.ErrNotModified) {
				failed++
			}
			if failed > len(names)/2 {
				return
			}
		}
	})
	for i := range got {
		if one := &got[i]; one.err == nil {
			one.doc, one.err = j.intake.Take(one.sent)
		}
	}
	return got
}

// fetch fetches a document that may be large. The error is [upstream.ErrNotModified] when the accepted document is still the newest.
// Others may own the state meanwhile.
func (j *jobs) fetch(ctx context.Context, name upstream.Name) (*feed.Document, error) {
	if j.cfg.Source.Watched() { // the files of a folder are read one by one: the bytes of many would wait in memory
		j.await(j.reading.Lock)
		defer j.reading.Unlock()
	}
	got := j.ask(ctx, name)[0]
	return got.doc, got.err
}

// fetchInto fetches documents into the batch. It passes over those that the source does not have, and those of which the accepted one is
// still the newest. It logs and returns an error for each of the others.
func (j *jobs) fetchInto(ctx context.Context, b *product.Batch, names ...upstream.Name) (errs []error) {
	names = slices.DeleteFunc(names, func(name upstream.Name) bool { return !j.cfg.Source.Offers(name) })
	for i, one := range j.ask(ctx, names...) {
		switch {
		case one.err == nil:
			b.Add(one.doc)
		case !errors.Is(one.err, upstream.ErrNotModified):
			j.log.Warn("document not fetched", "document", names[i], "err", one.err)
			errs = append(errs, fmt.Errorf("%s: %w", names[i], one.err))
		}
	}
	return errs
}

// job is a function that the schedule calls at an interval.
type job struct {
	name    string
	changes product.List // whose answers its documents change
	schedule
	last      bool // at the start, it runs after the other jobs
	stateless bool // it does not need the state
	run       func(context.Context) error
	reads     func(now time.Time) []upstream.Name // the documents that the job fetches; nil: it fetches none
}

// refreshChain fetches the chain of an underlying and publishes the products that rest on it.
func (j *jobs) refreshChain(ctx context.Context, symbol string) error {
	name, products := feed.ChainOf(symbol), j.cfg.products.OfChain(symbol)
	if !j.cfg.Source.Asks(name) {
		return nil
	}
	d, err := j.fetch(ctx, name)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		b := j.newBatch()
		b.Add(d)
		if err = j.accept(compute.PathOf(symbol), b, products, symbol); partial(err) {
			return err
		}
	case errors.Is(err, upstream.ErrNotModified):
		j.board.succeed(products, symbol)
		return nil
	case !j.cfg.Source.Offers(name): // no more, by this answer
		err = fmt.Errorf("not asked again for %s: %w", feed.UnknownRetry, err)
		j.board.succeed(products.Where((*product.Product).EveryChain), symbol) // a delisted stock makes nothing else stale
		products = products.Where(func(p *product.Product) bool { return !p.EveryChain() })
	}
	if err != nil {
		return j.board.fail(symbol, fmt.Errorf("%s: %w", name, err), products)
	}
	return nil
}

// quotesFailure is the document name under which failures of the sector quotes are counted.
const quotesFailure = "quotes"

// refreshSectors fetches the quotes of all funds and the histories of those that have a quote, and publishes the
// rotation. The refresh fails as soon as the quotes of more than half of the funds have failed. Fewer failures are only
// logged: the funds concerned keep their accepted quotes. The error joins the refused documents.
func (j *jobs) refreshSectors(ctx context.Context) error {
	products := j.cfg.products.Of(product.Funds)
	if !j.offers(products[0]) {
		return nil
	}
	b := j.newBatch()
	var quotes, histories []upstream.Name
	for _, symbol := range compute.FundSymbols() {
		quotes = append(quotes, upstream.Quotes(symbol))
	}
	errs := j.fetchInto(ctx, b, quotes...)
	if len(errs) > len(quotes)/2 {
		return j.board.fail(quotesFailure, errors.Join(errs...), products)
	}
	for _, symbol := range compute.FundSymbols() {
		if b.Document(upstream.Quotes(symbol)) != nil {
			histories = append(histories, upstream.History(symbol))
		}
	}
	errs = append(errs, j.fetchInto(ctx, b, histories...)...)
	if err := j.accept("sectors", b, products, quotesFailure); err != nil {
		return j.board.fail(quotesFailure, errors.Join(append(errs, err)...), products)
	}
	return refusedAmong(errs...)
}
