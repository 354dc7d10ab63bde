package refresh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// PastSource is a source that still has the documents of past instants.
type PastSource interface {
	// At returns the document that the upstream had at an instant of market time. The caller owns the document.
	At(name upstream.Name, at time.Time) (*upstream.Document, error)
}

// afterClose is the time from the close of a session until its last quotes are final. The refresh window has ended by then.
const afterClose = windowAfterClose + 4*time.Minute

// The jobs that fill in what the source still has.
const (
	backfillJob = "backfill"
	trackJob    = "track"
)

// otherSessions is how many past sessions are filled in of the flow and of an underlying besides the first: as many as the flow compares
// with.
const otherSessions = 2

// backfill computes and stores the answers of the last sessions whose dates have no file, oldest session first, from the
// documents that the upstream had after each close. It never replaces a file. It then computes the current answers again:
// the same documents give other answers now, because the answers compare with earlier dates.
func (r *Refresher) backfill(ctx context.Context) error {
	now := r.cfg.Clock.Now()
	today := r.cal.SessionDate(now)
	began, stored, before := time.Now(), 0, map[previousKey]*document{}
	for d := r.cal.Back(today, r.cfg.BackfillSessions); (d < today || d == today && dateClosed(d, now)) && ctx.Err() == nil; d = r.cal.Next(d) {
		for _, group := range r.cfg.products.groups() {
			n, err := r.backfillGroup(ctx, group, d, before)
			if err != nil {
				return err
			}
			stored += n
		}
	}
	if stored == 0 || ctx.Err() != nil { // the next start goes on with it
		return nil
	}
	r.log.Info("back-filled", "snapshots", stored, "took", time.Since(began).Round(time.Millisecond))
	r.turn.Lock()
	defer r.turn.Unlock()
	var errs []error
	for _, group := range r.cfg.products.groups() {
		errs = append(errs, r.accept(r.newBatch(backfillJob), group))
	}
	return errors.Join(errs...)
}

// backfillGroup fills in the answers of a past session that no file has, of products that rest on the same documents, and returns how many.
// The documents of a chain are made and decoded once.
func (r *Refresher) backfillGroup(ctx context.Context, group products, d compute.Date, before map[previousKey]*document) (stored int, err error) {
	var shared *pastDocuments
	for _, p := range group {
		tooOld := p.chains && p.underlying != r.cfg.first() && d < r.cal.Back(r.cal.SessionDate(r.cfg.Clock.Now()), otherSessions)
		if !p.backfilled || tooOld || !p.offered(p, &r.cfg) || ctx.Err() != nil || slices.Contains(r.store.DatesOf(p.name), d.String()) {
			continue
		}
		if shared == nil || p.underlying == "" {
			shared, err = r.pastDocuments(p, d, before)
		}
		if err == nil {
			err = r.backfillProduct(p, d, shared)
		}
		if err != nil {
			return stored, fmt.Errorf("back-fill %s of %s: %w", p.name, d, err)
		}
		stored++
	}
	return stored, nil
}

// pastDocuments are the documents of a past session and what was known before it.
type pastDocuments struct {
	*batch
	memory *memory
}

// pastDocuments returns the documents that a product of a past session rests on. before has what is known of the session before, and gets
// what the next session needs.
func (r *Refresher) pastDocuments(p *product, d compute.Date, before map[previousKey]*document) (*pastDocuments, error) {
	names, at := p.past(p, &r.cfg, d)
	b := r.newBatch(backfillJob)
	b.accepted, b.at = nil, at
	m := newMemory(&r.cfg)
	m.before = before
	for _, name := range names {
		doc, err := r.cfg.Past.At(name, at)
		if err != nil {
			return nil, err
		}
		past, err := newDocument(doc)
		if err != nil {
			return nil, err
		}
		switch {
		case past.settlement != nil:
			b.documents[latestSettlement] = past
		case p.feed == vixFeed:
			m.keepClose(past, d)
			b.documents[rung(name)] = past
		default:
			b.documents[name] = past
		}
	}
	return &pastDocuments{b, m}, nil
}

// backfillProduct computes and stores the answer of a product for a past session. The current answer stays.
func (r *Refresher) backfillProduct(p *product, d compute.Date, b *pastDocuments) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, err := p.next(b.batch, b.memory)
	if err != nil || a == nil {
		return err
	}
	b.answers[p.name] = a
	night := p.night(a.asOf, a.captured, a.restsOn, r.cal)
	if err := a.seal(&r.cfg, (&health{}).freshness(b.at, a.asOf, p.due(b.at, r.cal), night, r.cal, nil)); err != nil {
		return err
	}
	f := a.file(true)
	f.Current = false
	if err := r.store.Save([]snapshots.File{f}, a.objects()); err != nil {
		return err
	}
	if in := a.inputs; in.gamma != nil { // else the next session computes this again, from the stored document
		b.memory.keepReference(p.name, d, in.newest()[0], in.gamma.State)
	}
	return nil
}

const (
	// firstPast is the time after the open at which the first document of a session with its own as_of is there.
	firstPast = windowAfterOpen + time.Minute
	// pastEvery is the time between two rows of a track that is filled in.
	pastEvery = 5 * time.Minute
)

// backfillMornings puts rows in front of each served track that is of today's session and begins later: one row for every 5 minutes,
// from the documents that the upstream had.
func (r *Refresher) backfillMornings(ctx context.Context) error {
	for _, p := range r.cfg.products {
		if !p.accumulates {
			continue
		}
		if err := r.backfillMorning(ctx, p); err != nil {
			return fmt.Errorf("back-fill %s of today: %w", p.name, err)
		}
	}
	return nil
}

func (r *Refresher) backfillMorning(ctx context.Context, p *product) error {
	today := r.cal.SessionDate(r.cfg.Clock.Now())
	first := r.firstRow(p)
	if !first.After(r.cal.Open(today).Add(pastEvery)) || first.After(r.cal.Close(today).Add(trackTail)) {
		return nil
	}
	rows, err := r.pastRows(ctx, p, today, first)
	if err != nil || ctx.Err() != nil || len(rows) == 0 {
		return err
	}
	r.turn.Lock()
	defer r.turn.Unlock()
	if !r.firstRow(p).Equal(first) {
		return nil // the next session has begun
	}
	if err := r.computeAgain(p, rows); err != nil {
		return err
	}
	r.log.Info("track of today back-filled", "underlying", p.underlying, "rows", len(rows))
	return nil
}

// firstRow returns the as_of of the first row of a served track, the zero time if there is none.
func (r *Refresher) firstRow(p *product) (asOf time.Time) {
	if e := r.board.now(p.name).edition; e != nil {
		if rows, err := trackRows(e.Default); err == nil && len(rows) > 0 {
			asOf, _ = rowInstant(rows[0]) // the row was made by trackRow
		}
	}
	return asOf
}

// pastRows returns the rows of session d with an as_of before the given one.
func (r *Refresher) pastRows(ctx context.Context, p *product, d compute.Date, before time.Time) ([]json.RawMessage, error) {
	rows := []json.RawMessage{}
	var last time.Time
	_, end := p.past(p, &r.cfg, d)
	for at := r.cal.Open(d).Add(firstPast); at.Before(end) && ctx.Err() == nil; at = at.Add(pastEvery) {
		asOf, row, err := r.pastRow(p, at, last)
		if err != nil {
			return nil, err
		}
		if !asOf.Before(before) {
			break
		}
		if row != nil {
			last, rows = asOf, append(rows, row)
		}
	}
	return rows, nil
}

// pastRow returns the as_of of the chain that the upstream had at an instant, and its row in a track: nil if the chain has none,
// or is not newer than the one before. It waits for a refresh, as a refresh waits for it.
func (r *Refresher) pastRow(p *product, at, last time.Time) (asOf time.Time, row json.RawMessage, err error) {
	r.turn.Lock()
	defer r.turn.Unlock()
	doc, err := r.cfg.Past.At(chainOf(p.underlying), at)
	if err != nil {
		return asOf, nil, err
	}
	d, err := newDocument(doc)
	if err != nil {
		return asOf, nil, err
	}
	d.Body, d.Gzip = nil, nil
	if asOf = d.chain.AsOf; !asOf.After(last) || !inTrack(asOf, r.cal) {
		return asOf, nil, nil
	}
	rate, _ := compute.RateOf(d.chain, r.cal, r.cfg.RiskFreeRate)
	gamma := compute.GammaExposure(compute.GammaInput{Chain: d.chain, Calendar: r.cal, RiskFreeRate: rate})
	row, err = trackRow(asOf, &gamma.Data)
	return asOf, row, err
}
