package server

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"time"

	"strikecache/snapshots"
)

// cachePolicy is a Cache-Control for everyone and one for the holder of a key, whose answers no shared cache may
// keep.
type cachePolicy struct{ public, private string }

func (c *cachePolicy) of(keyed bool) string {
	if keyed {
		return c.private
	}
	return c.public
}

func policyOf(directives string) *cachePolicy {
	return &cachePolicy{"public, " + directives, "private, " + directives}
}

var (
	// gammaCache is the caching of the gamma exposure, which is cached for 25 seconds whatever the refresh.
	gammaCache = policyOf("max-age=25, stale-while-revalidate=25, stale-if-error=86400")
	// recentCache is that of a historical date which may still change.
	recentCache = policyOf("max-age=25")
	closedCache = policyOf("max-age=31536000, immutable")
	// secondsCache is that of the other answers, by their refresh interval.
	secondsCache = func() (policies [3601]*cachePolicy) {
		for seconds := range policies {
			policies[seconds] = policyOf("max-age=" + strconv.Itoa(seconds))
		}
		return policies
	}()
)

// refreshed is the answer of a snapshot that is replaced at its refresh interval.
func refreshed(s *snapshots.Snapshot) answer {
	return answer{s, secondsCache[min(max(s.Meta.RefreshSeconds, 0), len(secondsCache)-1)]}
}

// current answers with what a resource without parameters serves now.
func current(resource string) func(*Server, []byte) (answer, *apiError) {
	return func(s *Server, _ []byte) (answer, *apiError) {
		e := s.cfg.Finder.Current(resource)
		switch {
		case e == nil:
			return answer{}, s.notReady(resource)
		case resource == gammaResource:
			return answer{e.Default, gammaCache}, nil
		}
		return refreshed(e.Default), nil
	}
}

// notReady says whether waiting helps.
func (s *Server) notReady(resource string) *apiError {
	if slices.Contains(s.cfg.Readiness().Unfed, resource) {
		return errUnfed
	}
	return errNotReady
}

// maxPain answers with the payout of an expiration, without one of the default.
func (s *Server) maxPain(value []byte) (answer, *apiError) {
	e := s.cfg.Finder.Current(painResource)
	if e == nil {
		return answer{}, s.notReady(painResource)
	}
	if value == nil {
		return refreshed(e.Default), nil
	}
	if snapshot, ok := e.Variants[string(value)]; ok {
		return refreshed(snapshot), nil
	}
	if !validDate(value) {
		return answer{}, errExpiration
	}
	return answer{}, &apiError{
		status: 404, code: codeNoExpiration, message: "SPX has no such expiration that is not settled",
		parameter: "expiration", extra: func(b *errorBody) { b.Expirations = e.Names() },
	}
}

// flow answers with the highest-scoring observations.
func (s *Server) flow(value []byte) (answer, *apiError) {
	e := s.cfg.Finder.Current(flowResource)
	if e == nil {
		return answer{}, s.notReady(flowResource)
	}
	if value == nil {
		return refreshed(e.Default), nil
	}
	if snapshot, ok := e.Variants[string(value)]; ok {
		return refreshed(snapshot), nil
	}
	return answer{}, errLimit
}

// historical answers with the stored gamma exposure of a date, without one of the newest.
func (s *Server) historical(value []byte) (answer, *apiError) {
	if value == nil {
		snapshot, err := s.cfg.Finder.Historical("")
		if errors.Is(err, snapshots.ErrNoSnapshot) {
			return answer{}, s.notReady(gammaResource)
		}
		return answer{snapshot, recentCache}, s.historicalError(err)
	}
	dates := s.cfg.Finder.Dates()
	i, found := slices.BinarySearchFunc(dates, value, func(date string, value []byte) int { return compareText(date, value) })
	if !found {
		return answer{}, s.noSnapshot(value)
	}
	snapshot, err := s.cfg.Finder.Historical(dates[i])
	if errors.Is(err, snapshots.ErrNoSnapshot) { // the file is bad, or gone
		return answer{}, s.noSnapshot(value)
	}
	var buffer [len(time.DateOnly)]byte
	open := s.cfg.Now().Add(-closedAfter).AppendFormat(buffer[:0], time.DateOnly)
	if bytes.Compare(value, open) < 0 {
		return answer{snapshot, closedCache}, s.historicalError(err)
	}
	return answer{snapshot, recentCache}, s.historicalError(err)
}

// closedAfter is how long after its end, in UTC, a date can no longer change.
const closedAfter = 15 * time.Minute

func compareText(a string, b []byte) int {
	switch {
	case a < string(b):
		return -1
	case a > string(b):
		return 1
	}
	return 0
}

// noSnapshot says why there is no snapshot of a date.
func (s *Server) noSnapshot(value []byte) *apiError {
	if !validDate(value) {
		return errDate
	}
	date := string(value)
	if date > s.cfg.Now().Format(time.DateOnly) {
		return errFuture
	}
	return &apiError{
		status: 404, code: codeNoSnapshot, message: "no snapshot of that date is stored", parameter: "date",
		extra: func(b *errorBody) { b.Nearest = around(s.cfg.Finder.Dates(), date) },
	}
}

func (s *Server) historicalError(err error) *apiError {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, snapshots.ErrBusy):
		return errBusy
	}
	s.cfg.Log.Error("historical lookup failed", "err", err)
	return errInternal
}
