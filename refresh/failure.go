package refresh

import (
	"errors"
	"maps"
	"slices"
	"time"

	"strikecache/refresh/product"
	"strikecache/refresh/upstream"
)

var errNoLease = errors.New("this member of the fleet does not hold the lease")

// partialFailure is the error of a run that refused some documents, or failed to compute some products, and published the other
// answers. The run is counted and logged as failed, but the job does not back off.
type partialFailure struct{ error }

func (e *partialFailure) Unwrap() error { return e.error }

func partial(err error) bool {
	e := (*partialFailure)(nil)
	return errors.As(err, &e)
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
