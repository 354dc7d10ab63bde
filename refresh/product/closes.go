package product

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/refresh/upstream"
)

const (
	vixIndex   = "_VIX"
	vix3mIndex = "_VIX3M"
)

// CloseIndices are the indices whose closes a VIX curve rests on.
var CloseIndices = []string{vixIndex, vix3mIndex}

// closesKept is for how many days a close waits for the settlement file of its date.
const closesKept = 14

// closeFinal is the time from the close of a session until the upstream's quotes of indices have their closes.
const closeFinal = 31 * time.Minute

// KeepClose keeps a quote of VIX or VIX3M that has the close of its date, and is final at now.
func (m *Memory) KeepClose(d *feed.Document, now time.Time) {
	if m.closes == nil {
		m.reopenCloses()
	}
	date := compute.DateOf(d.Quote.AsOf.In(compute.NewYork))
	if index := "_" + d.Symbol(); slices.Contains(CloseIndices, index) && closeOn(d, date, m.calendar) != nil && !now.Before(m.calendar.Close(date).Add(closeFinal)) {
		m.closes[closeKey{index, date}] = d
		maps.DeleteFunc(m.closes, func(old closeKey, _ *feed.Document) bool { return old.date < date-closesKept })
	}
}

// reopenCloses keeps the closes among the inputs of the stored curve. One that cannot be read is asked for again.
func (m *Memory) reopenCloses() {
	m.closes = map[closeKey]*feed.Document{}
	f, err := m.store.LoadCurrent(VIXResource)
	if err != nil {
		return
	}
	for _, in := range f.Inputs {
		d := feed.Stored(in, m.store.Object)
		if kind, _ := d.UpstreamName().Split(); kind == upstream.QuotesKind && d.Open() == nil {
			m.KeepClose(d, f.Edition.Default.Meta.ComputedAt)
		}
	}
}

// Close returns a quote or a history with the close of an index on a date, nil when none is known.
func (b *Batch) Close(index string, date compute.Date) *feed.Document {
	if b.Memory.closes == nil {
		b.Memory.reopenCloses()
	}
	if d := b.Memory.closes[closeKey{index, date}]; d != nil {
		return d
	}
	for _, name := range []upstream.Name{upstream.Quotes(index), upstream.History(index)} {
		if d := b.Document(name); d != nil && d.Open() == nil && closeOn(d, date, b.Calendar) != nil {
			return d
		}
	}
	return nil
}

// IndexQuotes returns the names of the quotes of [compute.VIXIndices].
func IndexQuotes() (names []upstream.Name) {
	for _, symbol := range compute.VIXIndices {
		names = append(names, upstream.Quotes("_"+symbol))
	}
	return names
}

// closeOn returns the close of a date from a quote or a history, nil when the document does not have it. A quote has the
// close if its last trade is of that date, at least 14 minutes after the close of the session: 16:14 New York.
func closeOn(d *feed.Document, date compute.Date, cal *compute.Calendar) *float64 {
	if d.Quote != nil {
		if compute.DateOf(d.Quote.AsOf.In(compute.NewYork)) != date || d.Quote.AsOf.Before(cal.Close(date).Add(14*time.Minute)) {
			return nil
		}
		return new(d.Quote.Spot)
	}
	i, found := slices.BinarySearchFunc(d.Closes, date, func(c compute.Close, d compute.Date) int { return cmp.Compare(c.Date, d) })
	if !found {
		return nil
	}
	return new(d.Closes[i].Price)
}
