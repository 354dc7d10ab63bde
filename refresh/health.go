package refresh

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"strikecache/compute"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// The states of freshness, and the reasons that are not an [upstream.Reason].
const (
	stateFresh  = "fresh"
	stateStale  = "stale"
	stateClosed = "closed"

	reasonLag       = "upstream_lag"     // in session, but the data is old
	reasonOutside   = "outside_session"  // outside the schedule window
	reasonOvernight = "overnight_quotes" // option quotes move, the index does not
)

const (
	// failuresToStale is how many failures in a row make an answer stale.
	failuresToStale = 3
	// maxLag is the oldest as_of that is not a lag in session: quotes are 15 minutes late, and up to 32 at the
	// close.
	maxLag = 32 * time.Minute
)

// health is how the refreshes of one resource went that rest on one document.
type health struct {
	failures int // in a row
	reason   upstream.Reason
	since    time.Time // of the failure that made it stale
}

func (h *health) fail(reason upstream.Reason, now time.Time) {
	h.failures++
	h.reason = reason
	if h.failures == failuresToStale {
		h.since = now
	}
}

// healths are how the refreshes of one resource go, by the document that failed. One that succeeded has no entry.
type healths map[string]health

func (h healths) fail(document string, reason upstream.Reason, now time.Time) {
	one := h[document]
	one.fail(reason, now)
	h[document] = one
}

func (h healths) end(good []string) {
	for _, document := range good {
		delete(h, document)
	}
}

// worst returns the health that an answer has which rests on documents, nil for all, when those that are good no
// longer count: that of the one which made it stale first, else of the one with the most failures.
func (h healths) worst(documents, good []string) (worst health) {
	for _, document := range slices.Sorted(maps.Keys(h)) {
		one := h[document]
		past := slices.Contains(good, document) || documents != nil && !slices.Contains(documents, document)
		if past {
			continue
		}
		stale, stalest := one.failures >= failuresToStale, worst.failures >= failuresToStale
		if stale && (!stalest || one.since.Before(worst.since)) || !stalest && one.failures > worst.failures {
			worst = one
		}
	}
	return worst
}

// freshness judges an answer that describes the instant asOf. due is the instant that an answer must at least
// describe in session. overnight says that the resource rests on option quotes. before is what was last said of
// the resource, nil for nothing: while state and reason last, so does since.
func (h *health) freshness(now, asOf, due time.Time, overnight bool, cal *compute.Calendar, before *snapshots.Freshness) snapshots.Freshness {
	f := h.judge(now, asOf, due, overnight, cal)
	switch {
	case before == nil:
	case before.Equal(f):
		f.Since = before.Since
	case before.State == stateStale && f.State == stateFresh:
		f.Since = now
	}
	f.Since = f.Since.UTC().Truncate(time.Second)
	return f
}

func (h *health) judge(now, asOf, due time.Time, overnight bool, cal *compute.Calendar) snapshots.Freshness {
	if h.failures >= failuresToStale {
		return because(stateStale, string(h.reason), h.since)
	}
	if !inWindow(now, cal) {
		if h.failures == 0 {
			return closed(now, overnight, cal)
		}
		return snapshots.Freshness{State: stateFresh, Since: now}
	}
	start, _ := window(compute.DateOf(now.In(compute.NewYork)), cal)
	if asOf.Before(due) {
		return because(stateStale, reasonLag, later(start, asOf.Add(now.Sub(due))))
	}
	return snapshots.Freshness{State: stateFresh, Since: start}
}

// closed describes an instant outside the schedule window. Index options trade from 20:15 New York on the eve of
// a session to 09:15 on its day.
func closed(now time.Time, overnight bool, cal *compute.Calendar) snapshots.Freshness {
	session := cal.SessionDate(now)
	start, end := window(session, cal)
	if now.Before(start) {
		_, end = window(cal.Previous(session), cal)
	}
	day := compute.DateOf(now.In(compute.NewYork))
	evening, morning := day.At(20, 15, 0, compute.NewYork), day.At(9, 15, 0, compute.NewYork)
	switch {
	case !overnight:
	case !now.Before(evening) && cal.IsSession(day+1):
		return because(stateClosed, reasonOvernight, evening)
	case now.Before(morning) && cal.IsSession(day):
		return because(stateClosed, reasonOvernight, (day-1).At(20, 15, 0, compute.NewYork))
	case now.Before(start) && cal.IsSession(day):
		return because(stateClosed, reasonOutside, morning)
	}
	return because(stateClosed, reasonOutside, end)
}

func because(state, reason string, since time.Time) snapshots.Freshness {
	return snapshots.Freshness{State: state, Reason: &reason, Since: since}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// delayMinutes is how old the upstream's quotes are by design.
const delayMinutes = 15

// due returns the oldest instant that an answer may describe in session without lagging. Settlements are daily: the
// previous session's is the newest there can be.
func (p *product) due(now time.Time, cal *compute.Calendar) time.Time {
	if p.daily {
		return cal.Close(cal.Previous(cal.SessionDate(now)))
	}
	return now.Add(-maxLag)
}

// fail counts a failed refresh of the products for a document, and returns its error. The answers stay.
func (r *Refresher) fail(document string, err error, products []*product) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	reason, now := reasonOf(err), r.cfg.Clock.Now()
	for _, p := range products {
		r.current[p.name].health.fail(document, reason, now)
	}
	return err
}

// succeed counts a refresh of the products that found the accepted document unchanged.
func (r *Refresher) succeed(products []*product, good ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range products {
		r.current[p.name].health.end(good)
	}
}

// freshness judges a product that describes asOf. r.mu is held.
func (r *Refresher) freshness(p *product, h health, asOf, now time.Time) snapshots.Freshness {
	var before *snapshots.Freshness
	if e := r.current[p.name].edition; e != nil {
		before = &e.Default.Meta.Freshness
	}
	return h.freshness(now, asOf, p.due(now, r.cal), p.overnight, r.cal, before)
}

// reseal seals every answer again whose freshness is no longer what it says. A stale one is kept in memory alone, and
// so is one of a date that has closed: it is no new snapshot of that date.
func (r *Refresher) reseal() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.cfg.Clock.Now()
	changed := map[string]map[string]*snapshots.Edition{} // by feed
	for _, p := range r.products {
		name, h := p.name, r.current[p.name]
		if h.edition == nil {
			continue
		}
		fresh := r.freshness(p, h.health.worst(h.restsOn, nil), h.asOf(), now)
		if fresh.Equal(h.edition.Default.Meta.Freshness) {
			continue
		}
		e, err := withFreshness(h.edition, fresh)
		if err != nil {
			return fmt.Errorf("re-seal %s: %w", name, err)
		}
		r.log.Info("freshness changed", "resource", name, "state", fresh.State, "reason", textOf(fresh.Reason))
		if changed[p.feed] == nil {
			changed[p.feed] = map[string]*snapshots.Edition{}
		}
		changed[p.feed][name] = e
	}
	var errs []error
	for feed, editions := range changed {
		if err := r.store.Publish(feed, editions); err != nil {
			errs = append(errs, err)
			continue
		}
		for name, e := range editions {
			r.current[name].edition = e
		}
	}
	return errors.Join(errs...)
}

// withFreshness seals the same data with another freshness. Variants that were one snapshot stay one.
func withFreshness(e *snapshots.Edition, fresh snapshots.Freshness) (*snapshots.Edition, error) {
	done := map[*snapshots.Snapshot]*snapshots.Snapshot{}
	resealed := func(s *snapshots.Snapshot) (*snapshots.Snapshot, error) {
		if t, ok := done[s]; ok {
			return t, nil
		}
		meta := s.Meta
		meta.Freshness = fresh
		t, err := s.Reseal(meta)
		done[s] = t
		return t, err
	}
	out := &snapshots.Edition{}
	var err error
	if out.Default, err = resealed(e.Default); err != nil {
		return nil, err
	}
	if e.Variants != nil {
		out.Variants = make(map[string]*snapshots.Snapshot, len(e.Variants))
	}
	for name, s := range e.Variants {
		if out.Variants[name], err = resealed(s); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
