package refresh

import (
	"context"
	"sync"
	"time"

	"strikecache/compute"
	"strikecache/refresh/upstream"
)

// intake fetches documents, decodes them, and decides which ones can be believed. It holds the documents that were accepted
// last. Its methods are safe for concurrent use, but only one job may fetch documents of a name.
type intake struct {
	cfg    *Config
	guards map[upstream.Name]*guard

	mu       sync.Mutex // held only briefly
	accepted map[upstream.Name]*document
}

func newIntake(cfg *Config) *intake {
	i := &intake{cfg: cfg, guards: map[upstream.Name]*guard{}, accepted: map[upstream.Name]*document{}}
	for _, symbol := range cfg.Underlyings { // the source may offer the chain later
		i.guards[chainOf(symbol)] = &guard{}
	}
	for _, symbol := range compute.FundSymbols() {
		i.guards[upstream.Quotes(symbol)], i.guards[upstream.History(symbol)] = &guard{}, &guard{}
	}
	return i
}

// document returns the document of a name that was accepted last, nil before the first.
func (i *intake) document(name upstream.Name) *document {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.accepted[name]
}

// fetch fetches a document, decodes it and checks whether it can be believed. The error is [upstream.ErrNotModified] when
// the accepted document is still the newest.
func (i *intake) fetch(ctx context.Context, name upstream.Name) (*document, error) {
	doc, err := i.ask(ctx, name)
	if err != nil {
		return nil, err
	}
	return i.take(doc)
}

// ask is the first half of [intake.fetch]: it fetches a document.
func (i *intake) ask(ctx context.Context, name upstream.Name) (*upstream.Document, error) {
	if i.cfg.Lease != nil && !i.cfg.Lease() {
		return nil, &upstream.Error{Reason: upstream.Unreachable, Err: errNoLease}
	}
	var since *upstream.Document
	if d := i.document(name); d != nil && !d.failed {
		since = d.origin
	}
	return i.cfg.Source.Fetch(ctx, name, since)
}

// take is the second half of [intake.fetch].
func (i *intake) take(doc *upstream.Document) (*document, error) {
	d, err := newDocument(doc)
	if err == nil {
		err = i.believe(d)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// believe checks a decoded document before anything else sees it. It returns a refusal for a document of the future, for one that the
// guard refuses, and for a chain without a contract to compute with.
func (i *intake) believe(d *document) error {
	now := i.cfg.Clock.Now()
	if what, at := d.latest(i.cfg.Calendar); at.After(now.Add(maxAhead)) {
		return upstream.Refuse(upstream.ClockAhead, "%s %s is ahead of the clock, which shows %s",
			what, at.UTC().Format(time.RFC3339), now.Format(time.RFC3339))
	}
	if g := i.guards[upstream.Name(d.Name)]; g != nil { // a chain, or a document of a fund
		i.measure(d)
		if !i.cfg.Clock.standsStill() { // else each name has one document for ever
			if err := g.check(d.mark, i.document(upstream.Name(d.Name))); err != nil {
				return err
			}
		}
	}
	switch c := d.chain; {
	case c == nil:
	case len(c.Unread) > len(c.Contracts):
		return upstream.Refuse(upstream.OIMissing, "the open interest of %d of %d contracts cannot be read", len(c.Unread), len(c.Unread)+len(c.Contracts))
	case compute.Unsettled(c, i.cfg.Calendar).Contracts == 0:
		if why := compute.UnderlyingOf(c.Symbol).Unusable(); why != "" {
			return upstream.Refuse(upstream.Empty, "%s cannot be an underlying: %s", c.Symbol, why)
		}
		return upstream.Refuse(upstream.Empty, "no contract of the chain can be used: %s", counts(painSkipped{c.Skipped, len(c.Contracts)}))
	}
	return nil
}

// measure completes the mark of a decoded document.
func (i *intake) measure(d *document) {
	d.mark.sha256 = d.SHA256
	switch {
	case d.chain != nil:
		n := compute.Unsettled(d.chain, i.cfg.Calendar)
		d.mark.price, d.mark.quotes, d.mark.held = d.chain.Spot, n.TwoSided, n.Held
	case d.quote != nil:
		d.mark.price = d.quote.Spot
	case d.closes != nil:
		d.mark.captured, d.mark.rows = d.closes[len(d.closes)-1].Date.Midnight(), len(d.closes)
		d.mark.sha256 = d.Received.Truncate(historyRetry).String() // the same one counts again each hour: a history changes once a day
	}
}

// accept makes the documents of a batch the accepted ones.
func (i *intake) accept(documents map[upstream.Name]*document) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for name, d := range documents {
		i.accepted[name] = d
	}
}
