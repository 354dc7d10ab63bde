package refresh

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"strikecache/compute"
	"strikecache/refresh/upstream"
)

const (
	vixIndex   = "_VIX"
	vix3mIndex = "_VIX3M"
)

// vixIndices are the indices whose closes a VIX curve rests on.
var vixIndices = []string{vixIndex, vix3mIndex}

// fetchCloses fetches the closes of VIX and VIX3M that are still unknown. From 16:31 New York it reads the closes of the
// session from quotes. It reads the closes of the settlement date, at most once an hour, from quotes and then from daily
// histories.
func (r *Refresher) fetchCloses(ctx context.Context, b *batch) error {
	session := r.cal.SessionDate(b.at)
	evening := session.At(16, 31, 0, compute.NewYork)
	if !b.at.Before(evening) {
		if err := r.findCloses(ctx, session, upstream.Quotes); err != nil {
			return err
		}
	}
	f := b.settlement()
	if f == nil || len(b.closes(f.date)) == len(vixIndices) || b.at.Before(r.vixAsked[closesState].Add(historyRetry)) {
		return nil
	}
	r.vixAsked[closesState] = b.at
	if err := r.findCloses(ctx, f.date, upstream.Quotes); err != nil {
		return err
	}
	return r.findCloses(ctx, f.date, upstream.History)
}

// closes returns the document that has the close of the date for each index: one of the batch, else one that findCloses
// stored. An index whose close is unknown has no document.
func (b *batch) closes(date compute.Date) (documents []*document) {
	for _, index := range vixIndices {
		for _, name := range []upstream.Name{upstream.Quotes(index), upstream.History(index)} {
			d := b.documents[name]
			if d == nil {
				d = b.r.storedClose(name, date)
			}
			if d != nil && d.closeOn(date) != nil {
				documents = append(documents, d)
				break
			}
		}
	}
	return documents
}

// storedClose returns a document that findCloses stored under a date, nil when there is none.
func (r *Refresher) storedClose(name upstream.Name, date compute.Date) *document {
	body, stored := r.store.State(string(name), date.String())
	if stored != date.String() {
		return nil
	}
	d, err := newDocument(&upstream.Document{Name: name, Body: body})
	if err != nil {
		r.log.Error("state not readable", "state", name, "date", stored, "err", err)
		return nil
	}
	return d
}

// findCloses fetches a document of each index whose close of the date is unknown, and stores those that have the close, as
// dated states under their own names. name returns the name of the document, a quote or a history, from the symbol.
func (r *Refresher) findCloses(ctx context.Context, date compute.Date, name func(symbol string) upstream.Name) error {
	known := r.newBatch("vix").closes(date)
	for _, index := range vixIndices {
		if !r.cfg.Source.Offers(name(index)) || slices.ContainsFunc(known, func(d *document) bool { return d.isOf(index) }) {
			continue
		}
		d, err := r.fetch(ctx, name(index))
		if err != nil {
			return fmt.Errorf("%s: %w", index, err)
		}
		if d.closeOn(date) != nil {
			r.writeState(d.Name, date.String(), d.Body)
		}
	}
	return nil
}

// isOf says whether the document is a quote or history of the index.
func (d *document) isOf(index string) bool {
	_, key := upstream.Name(d.Name).Split()
	return key == index
}

// closeOn returns the close of a date from a quote or a history, nil when the document does not have it. A quote has the
// close if its last trade is of that date, at or after 16:14 New York.
func (d *document) closeOn(date compute.Date) *float64 {
	if d.quote != nil {
		if compute.DateOf(d.quote.AsOf.In(compute.NewYork)) != date || d.quote.AsOf.Before(date.At(16, 14, 0, compute.NewYork)) {
			return nil
		}
		return new(d.quote.Spot)
	}
	i, found := slices.BinarySearchFunc(d.closes, date, func(c compute.Close, d compute.Date) int { return cmp.Compare(c.Date, d) })
	if !found {
		return nil
	}
	return new(d.closes[i].Price)
}
