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

// fetchCloses fetches the closes of VIX and VIX3M that are still unknown, and puts them into the states of the batch. From
// 16:31 New York it reads the closes of the session from quotes. It reads the closes of the settlement date, at most once an
// hour, from quotes and then from daily histories. It returns an error for each document that it could not use,
// and goes on with the other documents.
func (r *Refresher) fetchCloses(ctx context.Context, b *batch) []error {
	var dates []compute.Date
	if session := r.cal.SessionDate(b.at); !b.at.Before(session.At(16, 31, 0, compute.NewYork)) {
		dates = append(dates, session)
	}
	f := b.settlement()
	if f == nil || len(b.closes(f.date)) == len(vixIndices) || b.at.Before(r.vixAsked[closesState].Add(historyRetry)) {
		return r.findCloses(ctx, b, upstream.Quotes, dates...)
	}
	r.vixAsked[closesState] = b.at
	errs := r.findCloses(ctx, b, upstream.Quotes, append(dates, f.date)...)
	return append(errs, r.findCloses(ctx, b, upstream.History, f.date)...)
}

// closes returns the document that has the close of the date for each index. An index whose close is unknown has no
// document.
func (b *batch) closes(date compute.Date) (documents []*document) {
	for _, index := range vixIndices {
		if d := b.closeOf(index, date); d != nil {
			documents = append(documents, d)
		}
	}
	return documents
}

// closeOf returns the document that has the close of the date for an index: one of the batch, else one that findCloses
// found, in this run or earlier. It returns nil when the close is unknown.
func (b *batch) closeOf(index string, date compute.Date) *document {
	for _, name := range []upstream.Name{upstream.Quotes(index), upstream.History(index)} {
		d := b.documents[name]
		if d == nil {
			d = b.foundClose(name, date)
		}
		if d != nil && d.closeOn(date) != nil {
			return d
		}
	}
	return nil
}

// foundClose returns a document that findCloses found for a date, from the states of the batch or from the store, nil when
// there is none.
func (b *batch) foundClose(name upstream.Name, date compute.Date) *document {
	s := b.states[string(name)]
	if s.date != date.String() {
		s.body, s.date = b.r.store.State(string(name), date.String())
	}
	if s.date != date.String() {
		return nil
	}
	d, err := newDocument(&upstream.Document{Name: name, Body: s.body})
	if err != nil {
		b.r.log.Error("state not readable", "state", name, "date", s.date, "err", err)
		return nil
	}
	return d
}

// findCloses fetches a document of each index whose close of one of the dates is unknown. A document that has the close
// becomes a state of the batch, under its own name and the date. name returns the name of the document, a quote or a history,
// from the symbol.
func (r *Refresher) findCloses(ctx context.Context, b *batch, name func(symbol string) upstream.Name, dates ...compute.Date) (errs []error) {
	for _, index := range vixIndices {
		unknown := slices.DeleteFunc(slices.Clone(dates), func(date compute.Date) bool { return b.closeOf(index, date) != nil })
		if len(unknown) == 0 || !r.cfg.Source.Offers(name(index)) {
			continue
		}
		d, err := r.fetch(ctx, name(index))
		if err != nil {
			r.log.Warn("index close not fetched", "document", name(index), "err", err)
			errs = append(errs, fmt.Errorf("%s: %w", name(index), err))
			continue
		}
		for _, date := range unknown {
			if d.closeOn(date) != nil {
				b.states[d.Name] = datedState{date.String(), d.Body}
			}
		}
	}
	return errs
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
