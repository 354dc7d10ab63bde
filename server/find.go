package server

import (
	"errors"
	"slices"
	"time"

	"strikecache/snapshots"
)

// Finder finds snapshots. [snapshots.Store] implements it. Requests call its methods at the same time, so they must be safe
// for concurrent use, must not block for long, and must not allocate when the snapshot is in memory. The server does not
// change anything that they return.
type Finder interface {
	// Current returns the current edition of a resource, nil before its first answer.
	Current(resource string) *snapshots.Edition
	// Publications counts the publications that have begun and those that have ended. It is odd while Current may return the
	// editions from before and from after a publication.
	Publications() uint64
	// Historical returns the stored answer of a dated resource, such as gex/spx or gex/spx/intraday, of a UTC date YYYY-MM-DD, or the
	// newest for "". The error is [snapshots.ErrNoSnapshot] when there is none, and [snapshots.ErrBusy] when too many files are
	// being read.
	Historical(resource, date string) (*snapshots.Snapshot, error)
	// DatesOf returns the UTC dates of the stored answers of a dated resource, YYYY-MM-DD, rising.
	DatesOf(resource string) []string
}

// find returns the snapshot to send, or an error. value is the value of the route's parameter, nil when absent. past says that
// the snapshot is of a date, and closed that it never changes.
func (s *Server) find(r *route, value []byte, past bool) (found *snapshots.Snapshot, closed bool, err *apiError) {
	if past {
		return s.historical(r, value)
	}
	e := s.cfg.Finder.Current(r.endpoint)
	switch {
	case e == nil:
		return nil, false, s.notReady(r.endpoint)
	case value == nil:
		return e.Default, false, nil
	}
	if variant, ok := e.Variants[string(value)]; ok {
		return variant, false, nil
	}
	return nil, false, r.unknown(e, value)
}

// inForm returns a form of the answer that was found for a value of the route's parameter.
func (s *Server) inForm(form string, r *route, found *snapshots.Snapshot, value []byte, past bool) (*snapshots.Snapshot, *apiError) {
	f := found.Form(form)
	switch {
	case f != nil:
		return f, nil
	case past: // an older version stored it
		return nil, s.noSnapshot(r, value)
	}
	return nil, s.notReady(r.endpoint) // of an older version, until it is computed again
}

func noLimit(*snapshots.Edition, []byte) *apiError { return errLimit }

func noExpiration(e *snapshots.Edition, value []byte) *apiError {
	if !validDate(value) {
		return errExpiration
	}
	unknown := *errNoExpiration
	unknown.expirations = e.Names()
	return unknown.rendered()
}

// notReady returns the error of a resource without an answer: errUnfed when the source has no documents for the resource,
// else errNotReady with the reason of the last failure, if there was one.
func (s *Server) notReady(resource string) *apiError {
	r := s.cfg.Readiness()
	if slices.Contains(r.Unfed, resource) {
		return errUnfed
	}
	reason := r.failed(resource)
	if reason == "" {
		return errNotReady
	}
	failed := *errNotReady
	failed.reason = reason
	failed.message += "; the last attempt failed: " + reason
	return failed.rendered()
}

// historical finds the stored answer of the date in value. If value is nil, it finds the newest.
func (s *Server) historical(r *route, value []byte) (snapshot *snapshots.Snapshot, closed bool, _ *apiError) {
	date := ""
	if value != nil {
		dates := s.cfg.Finder.DatesOf(r.dated)
		i, found := slices.BinarySearch(dates, string(value)) // allocates nothing for a date
		if !found {
			return nil, false, s.noSnapshot(r, value)
		}
		date = dates[i]
		var buffer [len(time.DateOnly)]byte
		closed = i < len(dates)-1 && (s.cfg.Complete == nil || s.cfg.Complete()) && date < string(s.cfg.Now().Add(-closedAfter).AppendFormat(buffer[:0], time.DateOnly))
	}
	snapshot, err := s.cfg.Finder.Historical(r.dated, date)
	switch {
	case err == nil:
		return snapshot, closed, nil
	case errors.Is(err, snapshots.ErrNoSnapshot) && value == nil:
		return nil, false, s.notReady(r.dated)
	case errors.Is(err, snapshots.ErrNoSnapshot): // the file is damaged, or was removed
		return nil, false, s.noSnapshot(r, value)
	case errors.Is(err, snapshots.ErrBusy):
		return nil, false, errBusy
	}
	s.cfg.Log.Error("historical snapshot not loaded", "resource", r.dated, "date", date, "err", err)
	return nil, false, errInternal
}

// closedAfter is the time from the end of a UTC date until its snapshot is served as immutable, if a later date is stored: else the
// date may be open, and the clock a day ahead. It is 5 minutes longer than the time until the date closes.
const closedAfter = 15 * time.Minute

// noSnapshot returns the error for a date without a snapshot: malformed, in the future, or not stored.
func (s *Server) noSnapshot(r *route, value []byte) *apiError {
	if !validDate(value) {
		return errDate
	}
	date := string(value)
	if date > s.cfg.Now().Format(time.DateOnly) {
		return errFuture
	}
	dates, unknown := s.cfg.Finder.DatesOf(r.dated), *errNoSnapshot
	unknown.nearest = &nearest{}
	i, found := slices.BinarySearch(dates, date)
	if i > 0 {
		unknown.nearest.Earlier = &dates[i-1]
	}
	if found { // its file is damaged
		i++
	}
	if i < len(dates) {
		unknown.nearest.Later = &dates[i]
	}
	return unknown.rendered()
}

// validDate says whether b is an existing date YYYY-MM-DD.
func validDate(b []byte) bool {
	if len(b) != len(time.DateOnly) {
		return false
	}
	_, err := time.Parse(time.DateOnly, string(b))
	return err == nil
}
