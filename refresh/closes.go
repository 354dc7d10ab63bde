package refresh

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"strikecache/compute"
	"strikecache/refresh/upstream"
)

const (
	vixIndex   = "_VIX"
	vix3mIndex = "_VIX3M"
)

// vixIndices are the indices whose closes a VIX curve rests on.
var vixIndices = []string{vixIndex, vix3mIndex}

// fetchCloses fetches the closes of VIX and VIX3M that are still unknown, and keeps them in memory. From 31 minutes after the
// close it reads the closes of the session from quotes. It reads the closes of the settlement date from quotes and then from daily
// histories, at most once an hour from a source over a network. It returns an error for each document that it could not use, and
// goes on with the others.
func (j *jobs) fetchCloses(ctx context.Context, b *batch) []error {
	var dates []compute.Date
	if session := j.cal.SessionDate(b.at); !b.at.Before(j.cal.Close(session).Add(31 * time.Minute)) {
		dates = append(dates, session)
	}
	f := b.settlement()
	if f == nil || len(j.memory.closesOf(f.date)) == len(vixIndices) || j.cfg.Version == nil && !isOver(j.settlementAsked[closesAsked], b.at, historyRetry) {
		return j.findCloses(ctx, b, upstream.Quotes, dates...)
	}
	j.settlementAsked[closesAsked] = b.at
	errs := j.findCloses(ctx, b, upstream.Quotes, append(dates, f.date)...)
	return append(errs, j.findCloses(ctx, b, upstream.History, f.date)...)
}

// closesAsked is the name in jobs.settlementAsked of the closes of a settlement date.
const closesAsked = upstream.Name("closes")

// findCloses fetches a document of each index whose close of one of the dates is unknown, and keeps it if it has the close. A quote also
// comes into the batch, as one of the ladder.
// name returns the name of the document, a quote or a history, from the symbol.
func (j *jobs) findCloses(ctx context.Context, b *batch, name func(symbol string) upstream.Name, dates ...compute.Date) (errs []error) {
	for _, index := range vixIndices {
		unknown := slices.DeleteFunc(slices.Clone(dates), func(date compute.Date) bool { return j.memory.closes[closeKey{index, date}] != nil })
		if len(unknown) == 0 || !j.cfg.Source.Offers(name(index)) {
			continue
		}
		j.settlementAsked[name(index)] = b.at
		d, err := j.intake.fetch(ctx, name(index))
		if err != nil {
			j.log.Warn("index close not fetched", "document", name(index), "err", err)
			errs = append(errs, fmt.Errorf("%s: %w", name(index), err))
			continue
		}
		if d.quote != nil {
			b.addToLadder(name(index), new(*d)) // a copy: an accepted document loses its body once it is stored
		}
		for _, date := range unknown {
			if d.closeOn(date, j.cal) != nil {
				j.mu.Lock() // a back-fill reads the closes
				j.memory.keepClose(d, date)
				j.mu.Unlock()
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
// close if its last trade is of that date, at least 14 minutes after the close of the session: 16:14 New York.
func (d *document) closeOn(date compute.Date, cal *compute.Calendar) *float64 {
	if d.quote != nil {
		if compute.DateOf(d.quote.AsOf.In(compute.NewYork)) != date || d.quote.AsOf.Before(cal.Close(date).Add(14*time.Minute)) {
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
