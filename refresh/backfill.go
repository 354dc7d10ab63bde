package refresh

import (
	"context"
	"fmt"
	"slices"
	"time"

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
		if r.cal.Next(d) == today {
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
	b := r.newBatch("backfill")
	b.past = true
	var names []upstream.Name
	names, b.at = p.past(r.cal, d)
	for _, name := range names {
		doc, err := r.cfg.Past.At(name, b.at)
		if err != nil {
			return err
		}
		if kind, _ := name.Split(); kind == upstream.SettlementKind {
			name = latestSettlement
		}
		if b.documents[name], err = newDocument(doc); err != nil {
			return err
		}
	}
	r.publishing.Lock()
	defer r.publishing.Unlock()
	answers, err := r.compute(b, []*product{p})
	if err != nil {
		return err
	}
	for _, a := range answers {
		q := p.quoteInstant(a.asOf, a.captured, a.restsOn, r.cal)
		fresh := (&health{}).freshness(b.at, a.asOf, p.due(b.at, r.cal), q, r.cal, nil)
		if err := a.seal(r, fresh); err != nil {
			return err
		}
		r.writeFile(a)
		r.archive(answers)
		if p.remember != nil {
			carry := r.carry
			p.remember(r, a)
			r.carry = carry // the carry of a past chain is not an input of the next answer
		}
	}
	return nil
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
		doc, err := r.cfg.Past.At(name, at)
		if err != nil {
			return err
		}
		b := r.newBatch("backfill")
		b.past = true
		if b.documents[name], err = newDocument(doc); err != nil {
			return err
		}
		in, err := gatherExposure(b, nil)
		if err != nil {
			return err
		}
		for _, state := range missing {
			encoded, err := encodeState(state, b.documents[name].chain, in)
			if err != nil {
				return err
			}
			r.writeState(state, session.String(), encoded)
		}
	}
	return nil
}
