package server

import (
	"errors"
	"slices"
	"time"

	"strikecache/snapshots"
)

// Finder finds snapshots. [snapshots.Store] implements it. Its methods must be safe for concurrent use, must not block for long, and
// must not allocate when the snapshot is in memory. The server changes nothing that they return.
type Finder interface {
	// Current returns the current edition of a resource, nil before its first answer.
	Current(resource string) *snapshots.Edition
	// Publications counts the publications that have begun and those that have ended. It is odd while Current may return the
	// editions from before and from after a publication.
	Publications() uint64
	// Historical returns the stored edition of a dated resource, such as gex/spx or gex/spx/intraday, of a UTC date YYYY-MM-DD, or the
	// newest for "". The error is [snapshots.ErrNoSnapshot] when no such answer is stored, and [snapshots.ErrBusy] when too many files
	// are being read.
	Historical(resource, date string) (*snapshots.Edition, error)
	// DatesOf returns the UTC dates of the stored answers of a dated resource, YYYY-MM-DD, rising.
	DatesOf(resource string) []string
}

// find sets the snapshot of a response to what was asked. final says that the snapshot never changes.
func (s *Server) find(rep *response, asked query) (final bool, e *apiError) {
	r := rep.route
	var edition *snapshots.Edition
	if rep.past = r.past || asked.date != nil; rep.past {
		edition, final, e = s.historical(r, asked.date)
	} else if edition = s.cfg.Finder.Current(r.endpoint); edition == nil {
		e = s.notReady(r.endpoint)
	}
	if e != nil {
		return false, e
	}
	if rep.snapshot = edition.Default; asked.value != nil {
		if rep.snapshot = edition.Variants[string(asked.value)]; rep.snapshot == nil {
			return false, r.unknown(edition, asked.value)
		}
	}
	if asked.form == "" {
		return final, nil
	}
	switch rep.snapshot = rep.snapshot.Form(asked.form); {
	case rep.snapshot != nil:
		rep.contentType = rep.snapshot.ContentType
		return final, nil
	case rep.past: // an older version stored the answer
		return false, s.noSnapshot(r, asked.date)
	}
	return false, s.notReady(r.endpoint) // an older version made the answer; it has the form when it is computed again
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
// else errNotReady, with the reason of the last failure after a failure.
func (s *Server) notReady(resource string) *apiError {
	r := s.cfg.Readiness()
	if slices.Contains(r.Unfed, resource) {
		return errUnfed
	}
	for _, f := range r.Failures {
		if f.Resource == resource {
			failed := *errNotReady
			failed.reason = f.Reason
			failed.message += "; the last attempt failed: " + f.Reason
			return failed.rendered()
		}
	}
	return errNotReady
}

// historical finds the stored edition of the date in value, the newest if value is nil. final says that it never changes.
func (s *Server) historical(r *route, value []byte) (edition *snapshots.Edition, final bool, _ *apiError) {
	date := ""
	if value != nil {
		dates := s.cfg.Finder.DatesOf(r.dated)
		i, found := slices.BinarySearch(dates, string(value)) // allocates nothing for a date
		if !found {
			return nil, false, s.noSnapshot(r, value)
		}
		date = dates[i]
		var buffer [len(time.DateOnly)]byte
		final = i < len(dates)-1 && (s.cfg.Complete == nil || s.cfg.Complete()) && date < string(s.cfg.Now().Add(-finalAfter).AppendFormat(buffer[:0], time.DateOnly))
	}
	edition, err := s.cfg.Finder.Historical(r.dated, date)
	switch {
	case err == nil:
		return edition, final, nil
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

// finalAfter is the time from the end of a UTC date until its snapshot is served as immutable. The last publication
// of the date may take so long. A later date must also be stored: without one, the clock may be a day ahead and the date not over.
const finalAfter = 15 * time.Minute

// noSnapshot returns the error for a date without a snapshot: the date is malformed, in the future, or not stored.
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
