package refresh

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/refresh/product"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// The values of meta.freshness.state, and the values of meta.freshness.reason that are not an [upstream.Reason].
const (
	stateFresh  = "fresh"
	stateStale  = "stale"
	stateClosed = "closed"

	reasonLag       = "upstream_lag"     // the data is old, or outside the refresh window of a session before the last
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
	end := feed.LastWindowEnd(now, cal)
	last := cal.SessionDate(end)
	due := cal.Open(last)
	if a.Product.Daily() {
		due = cal.Close(cal.Previous(last))
	}
	if a.AsOf.Before(due) {
		return because(stateStale, reasonLag, end)
	}
	if began := night(a, cal); !began.IsZero() {
		return because(stateClosed, reasonOvernight, began)
	}
	return because(stateClosed, reasonOutside, end)
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

var errNoLease = errors.New("this member of the fleet does not hold the lease")

// partialFailure is the error of a run that refused some documents, or failed to compute some products, and published the other
// answers. The run is counted and logged as failed, but the job does not back off.
type partialFailure struct{ error }

func (e *partialFailure) Unwrap() error { return e.error }

func partial(err error) bool {
	_, is := errors.AsType[*partialFailure](err)
	return is
}

// refusedAmong returns the errors of refused documents and of products among the errors of a run that published its answers, nil when
// there are none.
func refusedAmong(errs ...error) error {
	var refused []error
	for _, err := range errs {
		if refusals(err) != nil || partial(err) {
			refused = append(refused, err)
		}
	}
	if refused == nil {
		return nil
	}
	return &partialFailure{errors.Join(refused...)}
}

// refusals returns the reason of each document that a run refused, from the error of the run, which the log has, too.
func refusals(err error) (reasons []string) {
	switch e := any(err).(type) {
	case *upstream.Error:
		if e.Reason.Refuses() {
			return []string{string(e.Reason)}
		}
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			reasons = append(reasons, refusals(err)...)
		}
	case interface{ Unwrap() error }:
		return refusals(e.Unwrap())
	}
	return reasons
}

// reasonOf returns the code of a failed refresh that clients see in meta.freshness.reason.
func reasonOf(err error) upstream.Reason {
	if errors.Is(err, product.ErrNoInput) {
		return upstream.Empty
	}
	return upstream.ReasonOf(err)
}

// failuresToStale is how many failed refreshes in a row, for one document, make an answer stale.
const failuresToStale = 3

// health counts the failed refreshes of one product that one document caused.
type health struct {
	failures int             // in a row
	reason   upstream.Reason // of the last failure
	since    time.Time       // of the failure that made the answer stale
}

// healths holds the health of one product by the document that failed. A document that succeeded last has no entry. The
// key is a symbol, [quotesFailure] or [settlementFailure].
type healths map[string]health

func (h healths) fail(document string, reason upstream.Reason, now time.Time) {
	one := h[document]
	one.failures++
	one.reason = reason
	if one.failures == failuresToStale {
		one.since = now
	}
	h[document] = one
}

// end forgets the failures of the documents that succeeded.
func (h healths) end(succeeded []string) {
	for _, document := range succeeded {
		delete(h, document)
	}
}

// worst returns the health of the document that made the answer stale first, else of that with the most failures. Only documents in
// restsOn count, or all if it is nil, and none in succeeded.
func (h healths) worst(restsOn, succeeded []string) (worst health) {
	for _, document := range slices.Sorted(maps.Keys(h)) {
		one := h[document]
		if slices.Contains(succeeded, document) || restsOn != nil && !slices.Contains(restsOn, document) {
			continue
		}
		stale, stalest := one.failures >= failuresToStale, worst.failures >= failuresToStale
		if stale && (!stalest || one.since.Before(worst.since)) || !stalest && one.failures > worst.failures {
			worst = one
		}
	}
	return worst
}
