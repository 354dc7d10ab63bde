package refresh

import (
	"errors"

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
