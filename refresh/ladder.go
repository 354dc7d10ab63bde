package refresh

import (
	"context"
	"fmt"
	"slices"
	"time"

	"strikecache/compute"
	"strikecache/refresh/upstream"
)

const (
	// ladderEvery is how long the job waits before it asks a source over a network for the quote of an index of the ladder again.
	// Seven quotes in 10 minutes leave room in the 20 requests a minute, of which chains and sector quotes take 16.
	ladderEvery = 10 * time.Minute
	// ladderTime bounds the fetching of the ladder, so that the next run can ask for settlements.
	ladderTime = 2 * time.Minute
)

// ladderQuotes returns the names of the quotes of [compute.VIXIndices].
func ladderQuotes() (names []upstream.Name) {
	for _, symbol := range compute.VIXIndices {
		names = append(names, upstream.Quotes("_"+symbol))
	}
	return names
}

// rung returns the name under which a batch and the accepted documents keep a quote of the ladder. It is not the name of the quote:
// a request for the close of an index must get the quote whole, not the answer that it has not changed.
func rung(quote upstream.Name) upstream.Name { return "ladder/" + quote }

// refreshLadder fetches the quotes of the ladder that are due, and publishes them. It comes after the settlements, so that it never
// delays them. No failure makes an answer stale: a quote that cannot be fetched stays the last one.
func (j *jobs) refreshLadder(ctx context.Context) (errs []error) {
	b := j.newBatch("vix")
	if b.settlement() == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, ladderTime)
	defer cancel()
	for _, name := range ladderQuotes() {
		if !j.cfg.Source.Offers(name) || j.cfg.Version == nil && !isOver(j.settlementAsked[name], b.at, ladderEvery) {
			continue
		}
		j.settlementAsked[name] = b.at
		d, err := j.intake.fetch(ctx, name)
		if err == nil {
			b.addToLadder(name, d)
			continue
		}
		j.log.Warn("index quote not fetched", "document", name, "err", err)
		errs = append(errs, fmt.Errorf("%s: %w", name, err))
		if slices.Contains([]upstream.Reason{upstream.Unreachable, upstream.TimedOut, upstream.Throttled}, upstream.ReasonOf(err)) {
			break // the others would fail, too
		}
	}
	if len(b.documents) > 0 {
		if err := j.accept(b, j.cfg.products.ofFeed(vixFeed)); err != nil {
			j.log.Warn("index quotes not published", "err", err)
		}
	}
	return errs
}

// addToLadder puts a quote of the ladder into the batch, unless one that was made later is known: servers of an upstream may differ by minutes.
func (b *batch) addToLadder(name upstream.Name, d *document) {
	if last := b.document(rung(name)); last == nil || !d.quote.CapturedAt.Before(last.quote.CapturedAt) {
		b.documents[rung(name)] = d
	}
}

// ladder returns the quotes of the ladder that the batch or the accepted documents have, without those among the given documents.
func (b *batch) ladder(without []*document) (quotes []*document) {
	for _, name := range ladderQuotes() {
		d := b.document(rung(name))
		if d != nil && !slices.ContainsFunc(without, func(other *document) bool { return other.SHA256 == d.SHA256 }) {
			quotes = append(quotes, d)
		}
	}
	return quotes
}

// addQuote puts the quote of a document into the ladder of a curve, if it is one of the ladder and not made before the one that is there.
func addQuote(in *compute.VIXInput, d *document) {
	if d.quote == nil || !slices.Contains(compute.VIXIndices, d.symbol()) || d.quote.CapturedAt.Before(in.Cash[d.symbol()].CapturedAt) {
		return
	}
	if in.Cash == nil {
		in.Cash = map[string]compute.UnderlyingQuote{}
	}
	in.Cash[d.symbol()] = d.quote.UnderlyingQuote
}
