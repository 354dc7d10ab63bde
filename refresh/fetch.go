package refresh

import (
	"context"
	"fmt"
	"time"

	"strikecache/compute"
	"strikecache/refresh/upstream"
)

// fetch fetches a document, decodes it and checks whether it can be believed. The error is [upstream.ErrNotModified] when
// the accepted document is still the newest, or the new one repeats it.
func (r *Refresher) fetch(ctx context.Context, name upstream.Name) (*document, error) {
	var since *upstream.Document
	r.mu.Lock()
	if d := r.accepted[name]; d != nil {
		since = d.origin
	}
	r.mu.Unlock()
	if r.cfg.Fleet != nil && !r.cfg.Fleet.Holds() {
		return nil, &upstream.Error{Reason: upstream.Unreachable, Err: errNoLease}
	}
	doc, err := r.cfg.Source.Fetch(ctx, name, since)
	if err != nil {
		return nil, err
	}
	d, err := newDocument(doc)
	if err == nil {
		err = r.believe(d)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// believe checks a decoded document before anything else sees it. It returns a refusal, or [upstream.ErrNotModified] for a
// document that repeats the accepted one.
func (r *Refresher) believe(d *document) error {
	name, now := upstream.Name(d.Name), r.cfg.Clock.Now()
	if what, at := d.latest(); at.After(now.Add(maxAhead)) {
		return &refusal{upstream.ClockAhead, fmt.Errorf("%s %s is ahead of the clock, which shows %s",
			what, at.UTC().Format(time.RFC3339), now.Format(time.RFC3339))}
	}
	g := r.guards[name]
	if g == nil {
		return nil // neither a chain nor the quote of a fund
	}
	r.measure(d)
	accepted := r.acceptedDocument(name)
	if !r.cfg.Clock.standsStill() { // when the clock stands still, each name has one document for ever
		if err := g.check(d.mark, accepted); err != nil {
			return err
		}
	}
	if accepted == nil || !r.repeats(d, accepted) {
		return nil
	}
	if d.chain != nil {
		d.standFor(accepted)
	}
	return r.notModified(d, accepted)
}

// repeats says whether a document has the content of the accepted one: they differ only in their own timestamps, and these
// change neither the date nor the state of the open interest.
func (r *Refresher) repeats(d, accepted *document) bool {
	date, state := compute.OpenInterestDate(d.captured, r.cal)
	before, stateBefore := compute.OpenInterestDate(accepted.captured, r.cal)
	return d.content == accepted.content && (d.chain == nil || date == before && state == stateBefore)
}

// notModified returns [upstream.ErrNotModified] for a document that repeats the accepted one. The next conditional request
// then names the new document. It returns nil, and the products are computed, if the accepted document comes from the
// archive or dates were filled in since: answers may change without a new document.
func (r *Refresher) notModified(d, accepted *document) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if accepted.origin == nil {
		return nil
	}
	accepted.origin, accepted.mark = d.origin, d.mark
	return upstream.ErrNotModified
}
