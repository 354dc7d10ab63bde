package refresh

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/upstream"
)

// PastSource is a source that still has the documents of past instants.
type PastSource interface {
	// At returns the document that the upstream had at an instant of market time. The caller owns the document.
	At(name upstream.Name, at time.Time) (*upstream.Document, error)
}

// afterClose is the time from the close of a session until its last quotes are final. The schedule window has ended by then.
const afterClose = windowAfterClose + 4*time.Minute

// backfill computes and stores the answers of the last sessions whose dates have no file, oldest session first, from the
// documents that the upstream had after each close. It never replaces a file. It then makes the next fetches unconditional:
// the same documents give other answers now, because the answers compare with earlier dates.
func (r *Refresher) backfill(ctx context.Context) error {
	today := r.cal.SessionDate(r.cfg.Clock.Now())
	began, stored := time.Now(), 0
	for d := r.cal.Back(today, r.cfg.BackfillSessions); d < today && ctx.Err() == nil; d = r.cal.Next(d) {
		for _, p := range products {
			if p.past == nil || slices.Contains(r.store.DatesOf(p.name), d.String()) || ctx.Err() != nil {
				continue
			}
			if err := r.backfillProduct(p, d); err != nil {
				return fmt.Errorf("back-fill %s of %s: %w", p.name, d, err)
			}
			stored++
		}
		if d >= r.cal.Back(today, 2) { // before today's open, the newest documents are still of the session before
			if err := r.backfillStates(ctx, d); err != nil {
				return fmt.Errorf("back-fill states of %s: %w", d, err)
			}
		}
	}
	if stored > 0 {
		r.log.Info("back-filled", "sessions", r.cfg.BackfillSessions, "snapshots", stored, "took", time.Since(began).Round(time.Millisecond))
		r.mu.Lock()
		for _, d := range r.accepted {
			d.origin = nil // the next fetch is not conditional
		}
		r.mu.Unlock()
	}
	return nil
}

// backfillProduct computes and stores the answer of a product for a past session. The current answer stays.
func (r *Refresher) backfillProduct(p *product, d compute.Date) error {
	names, at := p.past(r.cal, d)
	b, err := r.pastBatch(names, at)
	if err != nil {
		return err
	}
	r.publishing.Lock()
	defer r.publishing.Unlock()
	a, err := r.storePast(b, p)
	if err == nil && p.remember != nil {
		carry := r.carry
		p.remember(r, a)
		r.carry = carry // the carry of a past chain is not an input of the next answer
	}
	return err
}

// pastBatch returns a batch with the documents that the upstream had at an instant.
func (r *Refresher) pastBatch(names []upstream.Name, at time.Time) (*batch, error) {
	b := r.newBatch("backfill")
	b.past, b.at = true, at
	for _, name := range names {
		doc, err := r.cfg.Past.At(name, at)
		if err != nil {
			return nil, err
		}
		if kind, _ := name.Split(); kind == upstream.SettlementKind {
			name = latestSettlement
		}
		if b.documents[name], err = newDocument(doc); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// storePast computes and stores the answer of a product from a past batch. The caller must have locked r.publishing.
func (r *Refresher) storePast(b *batch, p *product) (*answer, error) {
	answers, err := r.compute(b, []*product{p})
	if err != nil {
		return nil, err
	}
	a := answers[0] // a past batch has every document
	q := p.quoteInstant(a.asOf, a.captured, a.restsOn, r.cal)
	fresh := (&health{}).freshness(b.at, a.asOf, p.due(b.at, r.cal), q, r.cal, nil)
	if err := a.seal(r, fresh); err != nil {
		return nil, err
	}
	states := map[string]datedState{}
	if p.name == GammaResource { // the changes of the next session compare with it
		state, err := encodeState(referenceState, b.documents[spxChain].chain, a.inputs)
		if err != nil {
			return nil, err
		}
		states[referenceState] = datedState{a.date().String(), state}
	}
	r.archiveNext(answers)
	r.write(answers, states)
	r.archive(answers)
	return a, nil
}

// backfillStates stores the states that the last chains of a session leave, where they are not stored.
func (r *Refresher) backfillStates(ctx context.Context, session compute.Date) error {
	for _, name := range append(flowNames(&r.cfg), spxChain) {
		missing := slices.DeleteFunc(statesOf(name), func(state string) bool {
			return slices.Contains(r.store.StateDates(state), session.String())
		})
		if ctx.Err() != nil || len(missing) == 0 {
			continue
		}
		_, at := pastChain(r.cal, session)
		b, err := r.pastBatch([]upstream.Name{name}, at)
		if err != nil {
			return err
		}
		in, err := gatherExposure(b, nil)
		if err != nil {
			return err
		}
		states := map[string]datedState{}
		for _, state := range missing {
			encoded, err := encodeState(state, b.documents[name].chain, in)
			if err != nil {
				return err
			}
			states[state] = datedState{session.String(), encoded}
		}
		r.write(nil, states)
	}
	return nil
}

const (
	// firstPast is the time after the open at which the first document of a session with its own as_of is there.
	firstPast = windowAfterOpen + time.Minute
	// pastEvery is the time between two rows of a track that is filled in.
	pastEvery = 5 * time.Minute
)

// backfillMorning puts rows in front of the served track, if it is of today's session and begins later: one for every 5
// minutes, from the documents that the upstream had.
func (r *Refresher) backfillMorning(ctx context.Context) error {
	today := r.cal.SessionDate(r.cfg.Clock.Now())
	r.publishing.Lock()
	served := r.track
	r.publishing.Unlock()
	first := served.firstRow()
	if !first.After(r.cal.Open(today).Add(pastEvery)) || first.After(r.cal.Close(today).Add(trackTail)) {
		return nil
	}
	rows, err := r.pastRows(ctx, today, first)
	if err != nil || ctx.Err() != nil || len(rows) == 0 {
		return err
	}
	r.publishing.Lock()
	defer r.publishing.Unlock()
	b := r.newBatch("tracks")
	if served = r.track; !served.firstRow().Equal(first) || served.late || dateClosed(served.date(), b.at) {
		return nil // the next session has begun
	}
	next, err := served.withRowsBefore(rows, b.at)
	if err != nil {
		return err
	}
	changed := []*answer{next}
	if err := r.publish(b, nil, changed, changed, nil, newStopwatch()); err != nil {
		return err
	}
	r.log.Info("track of today back-filled", "rows", len(rows))
	return nil
}

// pastRows returns the rows of session d with an as_of before the given one. After each row it pauses for as long as it took
// and waited, so that the back-fill takes at most half a processor.
func (r *Refresher) pastRows(ctx context.Context, d compute.Date, before time.Time) ([]json.RawMessage, error) {
	rows := []json.RawMessage{}
	var last time.Time
	_, end := pastChain(r.cal, d)
	for at := r.cal.Open(d).Add(firstPast); at.Before(end) && ctx.Err() == nil; at = at.Add(pastEvery) {
		began := time.Now()
		asOf, row, err := r.pastRow(at, last)
		if err != nil {
			return nil, err
		}
		if !asOf.Before(before) {
			break
		}
		if row != nil {
			last, rows = asOf, append(rows, row)
			pause(ctx, time.Since(began))
		}
	}
	return rows, nil
}

// pastRow returns the as_of of the chain that the upstream had at an instant, and its row in a track: nil if the chain has none,
// or is not newer than the one before. It waits for a refresh, as a refresh waits for it.
func (r *Refresher) pastRow(at, last time.Time) (asOf time.Time, row json.RawMessage, err error) {
	r.spxTurn.Lock()
	defer r.spxTurn.Unlock()
	doc, err := r.cfg.Past.At(spxChain, at)
	if err != nil {
		return asOf, nil, err
	}
	chain, err := newDocument(doc)
	if err != nil {
		return asOf, nil, err
	}
	chain.Drop()
	if asOf = chain.chain.AsOf; !asOf.After(last) || !inTrack(asOf, r.cal) {
		return asOf, nil, nil
	}
	levels := compute.GammaExposure(compute.GammaInput{Chain: chain.chain, Calendar: r.cal, RiskFreeRate: r.cfg.RiskFreeRate, LevelsOnly: true})
	row, err = trackRow(asOf, &levels.Data)
	return asOf, row, err
}

// pause returns after d, or when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
