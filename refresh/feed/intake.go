package feed

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"strikecache/compute"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// Intake decodes documents, and decides which ones are valid. It holds the documents that were accepted last. One goroutine
// at a time uses it.
type Intake struct {
	Clock    Clock
	Calendar *compute.Calendar
	Log      *slog.Logger

	guards   map[upstream.Name]*guard
	accepted map[upstream.Name]*Document // by [Document.Key]
}

// NewIntake returns an intake without documents.
func NewIntake(clock Clock, cal *compute.Calendar, log *slog.Logger) *Intake {
	return &Intake{clock, cal, log, map[upstream.Name]*guard{}, map[upstream.Name]*Document{}}
}

// guardOf returns the guard of a chain or of a document of a fund, nil for other documents.
func (i *Intake) guardOf(name upstream.Name) *guard {
	if kind, symbol := name.Split(); kind != upstream.OptionsKind && !slices.Contains(compute.FundSymbols(), symbol) {
		return nil
	}
	if i.guards[name] == nil {
		i.guards[name] = &guard{}
	}
	return i.guards[name]
}

// Document returns the document that was accepted last under a name, nil before the first. It may still have to be opened.
func (i *Intake) Document(name upstream.Name) *Document { return i.accepted[name] }

// Since returns the document with which the next request for a name compares, nil if the upstream must send it whole. A file of another name,
// as the settlements of an earlier date, has no validators.
func (i *Intake) Since(name upstream.Name) *upstream.Document {
	d := i.accepted[keyOf(name)]
	if d == nil || d.Failed || d.origin == nil {
		return nil
	}
	since := *d.origin
	if since.Name != name {
		since.ETag, since.LastModified = "", ""
	}
	return &since
}

// Take decodes a document that has arrived. The error says why it is not valid. Take refuses a document of the future, one that the guard
// refuses, and a chain without a contract to compute with.
func (i *Intake) Take(doc *upstream.Document) (*Document, error) {
	d, err := New(doc)
	if err != nil {
		return nil, err
	}
	return d, i.validate(d)
}

func (i *Intake) validate(d *Document) error {
	now := i.Clock.Now()
	if what, at := d.latest(i.Calendar); at.After(now.Add(MaxAhead)) {
		return upstream.Refuse(upstream.ClockAhead, "%s %s is ahead of the clock, which shows %s",
			what, at.UTC().Format(time.RFC3339), now.Format(time.RFC3339))
	}
	if g := i.guardOf(upstream.Name(d.Name)); g != nil {
		d.mark = markOf(d, i.Calendar)
		if !i.Clock.StandsStill() { // else each name has one document for ever
			if err := g.check(d.mark, i.measured(d.Key())); err != nil {
				return err
			}
		}
	}
	switch c := d.Chain; {
	case c == nil:
	case len(c.Unread) > len(c.Contracts):
		return upstream.Refuse(upstream.OIMissing, "the open interest of %d of %d contracts cannot be read", len(c.Unread), len(c.Unread)+len(c.Contracts))
	case compute.Unsettled(c, i.Calendar).Contracts == 0:
		if why := compute.UnderlyingOf(c.Symbol).Unusable(); why != "" {
			return upstream.Refuse(upstream.Empty, "%s cannot be an underlying: %s", c.Symbol, why)
		}
		left := struct {
			compute.Skipped
			Settled int `json:"settled"`
		}{c.Skipped, len(c.Contracts)}
		return upstream.Refuse(upstream.Empty, "no contract of the chain can be used: %s", Counts(left))
	}
	return nil
}

// measured returns the accepted document of a name with its mark: one that a stored answer names is opened for it. A document that
// cannot be opened is dropped.
func (i *Intake) measured(name upstream.Name) *Document {
	d := i.accepted[name]
	if d == nil || d.mark.sha256 != "" {
		return d
	}
	if err := d.Open(); err != nil {
		i.Log.Error("stored document not readable", "document", name, "err", err)
		delete(i.accepted, name)
		return nil
	}
	d.mark = markOf(d, i.Calendar)
	d.Release()
	return d
}

// Accept makes documents the accepted ones.
func (i *Intake) Accept(documents map[upstream.Name]*Document) {
	maps.Copy(i.accepted, documents)
}

// Adopt makes an input of a stored answer the accepted document of its name, unless one is known that arrived later. about says what the
// answer says of the underlying of a chain. load reads the bytes when they are needed.
func (i *Intake) Adopt(in snapshots.StoredInput, about compute.UnderlyingQuote, load func(sha256 string) ([]byte, error)) {
	d := Stored(in, load)
	if other := i.accepted[d.Key()]; d.Newest() && (other == nil || other.Received.Before(d.Received)) {
		d.Underlying = about
		i.accepted[d.Key()] = d
	}
}
