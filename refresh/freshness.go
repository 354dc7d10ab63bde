package refresh

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/refresh/product"
	"strikecache/snapshots"
)

// The values of meta.freshness.state, and the values of meta.freshness.reason that are not an [upstream.Reason].
const (
	stateFresh  = "fresh"
	stateStale  = "stale"
	stateClosed = "closed"

	reasonLag       = "upstream_lag"     // in the refresh window, but the data is old
	reasonOutside   = "outside_session"  // outside the refresh window
	reasonOvernight = "overnight_quotes" // option quotes move, the index does not
	reasonAlone     = "no_refresher"     // no member of the fleet refreshes
)

const (
	// maxLag is the greatest age of as_of in the refresh window before the answer is stale with the reason upstream_lag. The upstream
	// delays quotes by 15 minutes, and by up to 32 minutes at the close.
	maxLag = 32 * time.Minute
	// firstDocument is how long after the start of the refresh window an answer of the session before is still closed: the first
	// quotes of a session are up to half a minute late, and are fetched within a minute.
	firstDocument = 2 * time.Minute
)

// freshness returns meta.freshness of an answer at now. before is the freshness that was served last, or nil: since changes only with state or
// reason.
func (h health) freshness(a *product.Answer, now time.Time, cal *compute.Calendar, before *snapshots.Freshness) snapshots.Freshness {
	f := h.at(a, now, cal)
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

func (h health) at(a *product.Answer, now time.Time, cal *compute.Calendar) snapshots.Freshness {
	if h.failures >= failuresToStale {
		return because(stateStale, string(h.reason), h.since)
	}
	if feed.InWindow(now, cal) {
		start, _ := feed.Window(compute.DateOf(now.In(compute.NewYork)), cal)
		due := now.Add(-maxLag - a.Product.Between())
		if a.Product.Daily() { // no newer file can exist
			due = cal.Close(cal.Previous(cal.SessionDate(now)))
		}
		if !a.AsOf.Before(due) {
			return snapshots.Freshness{State: stateFresh, Since: start}
		}
		if !now.Before(start.Add(firstDocument)) {
			return because(stateStale, reasonLag, compute.Later(start, a.AsOf.Add(now.Sub(due))))
		}
		now = start.Add(-time.Second)
	}
	if began := night(a, cal); !began.IsZero() {
		return because(stateClosed, reasonOvernight, began)
	}
	return because(stateClosed, reasonOutside, feed.LastWindowEnd(now, cal))
}

// night returns when the night began whose option quotes an answer rests on: those of SPX if it rests on all chains. It is the zero
// time if they are of no night, and if the answer rests on no chain, or not on SPX.
func night(a *product.Answer, cal *compute.Calendar) time.Time {
	symbol := cmp.Or(a.Product.Underlying, "SPX")
	if a.Product.Feed != product.Chains || a.Captured == nil || a.RestsOn != nil && !slices.Contains(a.RestsOn, symbol) {
		return time.Time{}
	}
	head := compute.Chain{UnderlyingQuote: compute.UnderlyingQuote{Symbol: symbol, AsOf: a.AsOf, CapturedAt: *a.Captured}}
	return head.Night(cal)
}

func because(state, reason string, since time.Time) snapshots.Freshness {
	return snapshots.Freshness{State: state, Reason: &reason, Since: since}
}

// withFreshness seals the data of an edition again with another freshness. Variants that shared a snapshot share the new one.
func withFreshness(e *snapshots.Edition, fresh snapshots.Freshness) (*snapshots.Edition, error) {
	resealed := map[*snapshots.Snapshot]*snapshots.Snapshot{}
	for _, s := range append(slices.Collect(maps.Values(e.Variants)), e.Default) {
		if resealed[s] != nil {
			continue
		}
		meta := s.Meta
		meta.Freshness = fresh
		again, err := s.Reseal(meta)
		if err != nil {
			return nil, err
		}
		resealed[s] = again
	}
	out := &snapshots.Edition{Default: resealed[e.Default], Variants: maps.Clone(e.Variants)}
	for name, s := range e.Variants {
		out.Variants[name] = resealed[s]
	}
	return out, nil
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
