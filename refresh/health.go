package refresh

import (
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

	reasonUnattended = "no_refresher" // nobody refreshes it
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

// inherited stands for a document in what another process left stale, until it is refreshed or has failed here.
const inherited = ""

func (h healths) inherit(stale snapshots.Freshness) {
	h[inherited] = health{failures: failuresToStale, reason: upstream.Reason(textOf(stale.Reason)), since: stale.Since}
}

// fail notes a failure. What was stale before, and rests on the document, stays so.
func (h healths) fail(document string, reason upstream.Reason, now time.Time, restsOn []string) {
	one := h[document]
	if _, ok := h[inherited]; ok && (restsOn == nil || slices.Contains(restsOn, document)) {
		delete(h, inherited)
		one.failures = max(one.failures, failuresToStale-1)
	}
	one.fail(reason, now)
	h[document] = one
}

func (h healths) end(good []string) {
	delete(h, inherited)
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
		if document == inherited {
			past = len(good) > 0
		}
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
