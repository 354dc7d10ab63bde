package feed

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"strikecache/compute"
	"strikecache/refresh/upstream"
)

// Polite spares the source that it wraps, an upstream over a network: it answers for the source that a document is not modified
// when the document cannot have changed yet, or was asked for a short time ago, and does not ask again for an hour for what the source
// refuses. A source that has a Version is not spared: another program may change its documents at any time. Polite is safe for concurrent use.
type Polite struct {
	upstream.Source
	clock   Clock
	cal     *compute.Calendar
	first   upstream.Name // a chain that is always asked for
	version func(upstream.Name) string

	mu    sync.Mutex // held only briefly
	asked map[upstream.Name]asked
}

// asked is the last request for a document.
type asked struct {
	at  time.Time
	err error
}

// NewPolite returns a polite source. first is the chain that it also asks for if the upstream says that it does not have it.
func NewPolite(source upstream.Source, clock Clock, cal *compute.Calendar, first upstream.Name) *Polite {
	p := &Polite{Source: source, clock: clock, cal: cal, first: first, asked: map[upstream.Name]asked{}}
	if watched, is := source.(interface{ Version(upstream.Name) string }); is {
		p.version = watched.Version
	}
	return p
}

const (
	// UnknownRetry is for how long a document is not asked for after the upstream has refused it, or said that it does not have the chain.
	UnknownRetry = time.Hour
	// historyRetry is the time between two requests for a history that lacks the last session, and firstHistoryRetry while there is none:
	// without any history there is no rotation.
	historyRetry      = time.Hour
	firstHistoryRetry = 5 * time.Minute
	// indexRetry is the time between two requests for the quote of a volatility index. Ten quotes in 10 minutes leave room in the 20
	// requests a minute, of which chains and sector quotes take 16.
	indexRetry = 10 * time.Minute
)

// Watched says whether another program may change the documents at any time. Whoever uses them then asks for their versions each second.
func (p *Polite) Watched() bool { return p.version != nil }

// Version returns a text that changes whenever the document of a name does, and "" while there is none. The source must be watched.
func (p *Polite) Version(name upstream.Name) string { return p.version(name) }

// Forget forgets all requests: whoever asked has lost the documents.
func (p *Polite) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.asked)
}

// Offers implements [upstream.Source]. A chain is not offered from when the upstream says that it does not have it until it answers otherwise.
func (p *Polite) Offers(name upstream.Name) bool {
	return p.Source.Offers(name) && !p.gone(name, math.MaxInt64)
}

// Asks says whether a chain is asked for now: an hour after the upstream has said that it does not have it, it is asked again.
func (p *Polite) Asks(name upstream.Name) bool {
	return p.Source.Offers(name) && !p.gone(name, UnknownRetry)
}

// gone says whether the last request for a chain is less than an interval ago, and the upstream said that it does not have it.
func (p *Polite) gone(name upstream.Name, interval time.Duration) bool {
	kind, _ := name.Split()
	last := p.since(name, interval)
	return kind == upstream.OptionsKind && name != p.first && last != nil && IsUnknown(last.err)
}

// IsUnknown says whether the upstream has answered that it does not have a document.
func IsUnknown(err error) bool {
	return slices.Contains([]upstream.Reason{upstream.Missing, upstream.Refused}, upstream.ReasonOf(err))
}

// since returns the last request for a document, nil if that is at least an interval ago. A request of the future, which was made when the
// clock was ahead, counts as that long ago.
func (p *Polite) since(name upstream.Name, interval time.Duration) *asked {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, known := p.asked[name]
	if age := p.clock.Now().Sub(last.at); !known || age < 0 || age >= interval {
		return nil
	}
	return &last
}

// Fetch implements [upstream.Source].
func (p *Polite) Fetch(ctx context.Context, name upstream.Name, since *upstream.Document) (*upstream.Document, error) {
	if p.version != nil {
		return p.Source.Fetch(ctx, name, since)
	}
	if p.spared(name, since) {
		return nil, upstream.ErrNotModified
	}
	if last := p.since(name, UnknownRetry); last != nil && name != p.first && upstream.ReasonOf(last.err) == upstream.Refused {
		return nil, fmt.Errorf("not asked again before %s: %w", last.at.Add(UnknownRetry).UTC().Format(time.RFC3339), last.err)
	}
	began := p.clock.Now()
	doc, err := p.Source.Fetch(ctx, name, since)
	if ctx.Err() == nil {
		p.mu.Lock()
		p.asked[name] = asked{began, err}
		p.mu.Unlock()
	}
	return doc, err
}

// spared says whether a request is not needed, or comes too soon after the last one. since is the document that the caller has.
func (p *Polite) spared(name upstream.Name, since *upstream.Document) bool {
	kind, key := name.Split()
	now, interval := p.clock.Now(), time.Duration(0)
	switch {
	case kind == upstream.OptionsKind && since != nil:
		return p.final(name, since.Generated, now)
	case kind == upstream.QuotesKind && slices.Contains(compute.VIXIndices, withoutUnderscore(key)):
		interval = indexRetry
	case kind == upstream.HistoryKind && since == nil:
		interval = firstHistoryRetry
	case kind == upstream.HistoryKind:
		if key == withoutUnderscore(key) && compute.DateOf(since.Generated) >= p.cal.Previous(p.cal.SessionDate(now)) {
			return true // that of a fund is complete
		}
		interval = historyRetry
	case kind == upstream.SettlementKind && since != nil:
		return since.FileDate >= key
	}
	return p.since(name, interval) != nil
}

// final says whether a chain was made after the last refresh window, and the next one has not begun. Until then, options that do not trade
// at night have the same quotes. But a trade of a fund before the open would make the chain one of the next session.
func (p *Polite) final(name upstream.Name, captured, now time.Time) bool {
	_, key := name.Split()
	_, _, moves := compute.UnderlyingOf(withoutUnderscore(key)).Night(p.cal.Next(p.cal.SessionDate(now)), p.cal)
	return !moves && !InWindow(now, p.cal) && !captured.Before(LastWindowEnd(now, p.cal))
}
