package refresh

import (
	"context"
	"errors"
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
	cal    *compute.Calendar
	source upstream.Source // polite, if it is over a network

	schedules map[string][]schedule // by resource: those of the jobs that refresh it
}

// offers says whether the upstream has the documents of a product, as far as is known.
func (j *jobs) offers(p *product.Product) bool { return j.cfg.offered(p, j.source) }

// own calls f, which owns the state until it returns.
func (j *jobs) own(f func() error) error {
	j.state.Lock()
	defer j.state.Unlock()
	return f()
}

// fetch fetches a document, decodes it and checks whether it can be believed. The error is [upstream.ErrNotModified] when
// the accepted document is still the newest. Others may own the state meanwhile, unless the documents are in a folder: to read a file
// takes no time, and the bytes of many would wait in memory.
func (j *jobs) fetch(ctx context.Context, name upstream.Name) (*feed.Document, error) {
	if j.cfg.Lease != nil && !j.cfg.Lease() {
		return nil, &upstream.Error{Reason: upstream.Unreachable, Err: errNoLease}
	}
	since, ask := j.intake.Since(name), j.source.Fetch
	if j.cfg.Version == nil {
		ask = j.waitFor
	}
	doc, err := ask(ctx, name, since)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	return j.intake.Take(doc)
}

// waitFor fetches a document while others may own the state.
func (j *jobs) waitFor(ctx context.Context, name upstream.Name, since *upstream.Document) (*upstream.Document, error) {
	j.state.Unlock()
	defer j.state.Lock()
	return j.source.Fetch(ctx, name, since)
}

// fetchInto fetches a document into the batch. It does nothing when the source does not have the document, or when the
// accepted one is still the newest.
func (j *jobs) fetchInto(ctx context.Context, b *product.Batch, name upstream.Name) error {
	if !j.source.Offers(name) {
		return nil
	}
	d, err := j.fetch(ctx, name)
	switch {
	case errors.Is(err, upstream.ErrNotModified):
		return nil
	case err == nil:
		b.Add(d)
	}
	return err
}

// job is a function that the schedule calls at an interval.
type job struct {
	name   string
	feed   product.Feed // whose answers its documents change
	chain  string       // the underlying whose chain it fetches; "": none
	every  time.Duration
	offset time.Duration // from the start of the refresh window to the first run of the interval
	last   bool          // at the start, it runs after the other jobs
	run    func(context.Context) error
	reads  func(now time.Time) []upstream.Name // the documents that the job fetches; nil: it fetches none
}

// refreshes says whether documents of the job change the answer of a product.
func (j job) refreshes(p *product.Product) bool {
	return j.reads != nil && j.feed == p.Feed && (j.chain == p.Underlying || p.EveryChain())
}
