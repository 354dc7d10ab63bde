package server

import (
	"bytes"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"strikecache/snapshots"
)

// route is one public resource. All paths are concrete, because a parameter in the path costs three allocations a
// request.
type route struct {
	path      string
	endpoint  string // the canonical name, as meta.endpoint has it
	parameter string // the only query parameter that is not ignored; "" for none
	dated     string // the resource whose stored dates the parameter date chooses from; "" for none
	// unknown makes the error for a value of the parameter that the resource does not have.
	unknown func(e *snapshots.Edition, value []byte) *apiError
}

// routes is the table of the public resources.
var routes = []route{
	{path: "/api/v1/gex/spx", endpoint: gammaResource},
	{path: "/api/v1/gex/spx/historical", endpoint: historicalResource, parameter: "date", dated: gammaResource},
	{path: "/api/v1/gex/spx/intraday", endpoint: trackResource, parameter: "date", dated: trackResource},
	{path: "/api/v1/gex/spx/matrix", endpoint: gammaResource + "/matrix"},
	{path: "/api/v1/gex/spx/series", endpoint: gammaResource + "/series"},
	{path: "/api/v1/sectors/rotation", endpoint: "sectors/rotation"},
	{path: "/api/public/spx-max-pain", endpoint: "spx-max-pain", parameter: "expiration", unknown: noExpiration},
	{path: "/api/v1/options/flow/unusual", endpoint: "options/flow/unusual", parameter: "limit", unknown: noLimit},
	{path: "/api/public/vix-term-structure", endpoint: "vix-term-structure"},
}

const (
	gammaResource      = "gex/spx"
	historicalResource = gammaResource + "/historical"
	trackResource      = gammaResource + "/intraday"
)

// Resources returns the names of the public resources, such as gex/spx/series, in the order of the routes.
func Resources() []string {
	names := make([]string, len(routes))
	for i := range routes {
		names[i] = routes[i].endpoint
	}
	return names
}

func paths() []string {
	paths := make([]string, len(routes))
	for i := range routes {
		paths[i] = routes[i].path
	}
	return paths
}

// errNotFound is here and not in the table of errors, because it names the routes.
var errNotFound = define(apiError{status: 404, code: "not_found", message: "no such resource; the resources are " + strings.Join(paths(), ", ")})

// value returns the value of the route's parameter in a query, nil when the parameter is absent.
func (r *route) value(query []byte) ([]byte, *apiError) {
	if r.parameter == "" || len(query) == 0 {
		return nil, nil
	}
	value, n := parameter(query, r.parameter)
	if n > 1 {
		return nil, repeated(r.parameter)
	}
	return value, nil
}

// parameter returns the decoded value of a query parameter, nil when it is absent, and how many times it is given.
func parameter(query []byte, name string) (value []byte, n int) {
	for len(query) > 0 {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte{'&'})
		key, v, _ := bytes.Cut(pair, []byte{'='})
		if string(unescape(key)) != name {
			continue
		}
		if n == 0 {
			value = unescape(v)
		}
		n++
	}
	return value, n
}

// unescape decodes %XX and +. It never returns nil. It returns b itself when there is nothing to decode or an escape is
// malformed. A malformed b contains a %, and no valid value of a parameter does.
func unescape(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	if !bytes.ContainsAny(b, "%+") {
		return b
	}
	decoded, err := url.QueryUnescape(string(b))
	if err != nil {
		return b
	}
	return []byte(decoded)
}

// Finder finds snapshots. [snapshots.Store] implements it. Requests call its methods at the same time, so they must be safe
// for concurrent use, must not block for long, and must not allocate when the snapshot is in memory. The server does not
// change anything that they return.
type Finder interface {
	// Current returns the current edition of a resource, nil before its first answer.
	Current(resource string) *snapshots.Edition
	// Publications counts the publications that have begun and those that have ended. It is odd while Current may return the
	// editions from before and from after a publication.
	Publications() uint64
	// Historical returns the stored answer of a dated resource, gex/spx or gex/spx/intraday, of a UTC date YYYY-MM-DD, or the
	// newest for "". The error is [snapshots.ErrNoSnapshot] when there is none, and [snapshots.ErrBusy] when too many files are
	// being read.
	Historical(resource, date string) (*snapshots.Snapshot, error)
	// DatesOf returns the UTC dates of the stored answers of a dated resource, YYYY-MM-DD, rising.
	DatesOf(resource string) []string
}

// find returns the snapshot to send, or an error. value is the value of the route's parameter, nil when absent. past says that
// the snapshot is of a date.
func (s *Server) find(r *route, value []byte, past bool) (*snapshots.Snapshot, caching, *apiError) {
	if past {
		return s.historical(r, value)
	}
	e := s.cfg.Finder.Current(r.endpoint)
	switch {
	case e == nil:
		return nil, caching{}, s.notReady(r.endpoint)
	case r.endpoint == gammaResource:
		return e.Default, gammaCaching, nil
	case value == nil:
		return e.Default, refreshCaching(e.Default), nil
	}
	if variant, ok := e.Variants[string(value)]; ok {
		return variant, refreshCaching(variant), nil
	}
	return nil, caching{}, r.unknown(e, value)
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
func (s *Server) historical(r *route, value []byte) (*snapshots.Snapshot, caching, *apiError) {
	date, closed := "", false
	if value != nil {
		dates := s.cfg.Finder.DatesOf(r.dated)
		i, found := slices.BinarySearch(dates, string(value)) // allocates nothing for a date
		if !found {
			return nil, caching{}, s.noSnapshot(r, value)
		}
		date = dates[i]
		var buffer [len(time.DateOnly)]byte
		closed = (s.cfg.Complete == nil || s.cfg.Complete()) && date < string(s.cfg.Now().Add(-closedAfter).AppendFormat(buffer[:0], time.DateOnly))
	}
	snapshot, err := s.cfg.Finder.Historical(r.dated, date)
	switch {
	case err == nil && closed:
		return snapshot, closedCaching, nil
	case err == nil && r.dated == gammaResource:
		return snapshot, recentCaching, nil
	case err == nil:
		return snapshot, refreshCaching(snapshot), nil
	case errors.Is(err, snapshots.ErrNoSnapshot) && value == nil:
		return nil, caching{}, s.notReady(r.dated)
	case errors.Is(err, snapshots.ErrNoSnapshot): // the file is damaged, or was removed
		return nil, caching{}, s.noSnapshot(r, value)
	case errors.Is(err, snapshots.ErrBusy):
		return nil, caching{}, errBusy
	}
	s.cfg.Log.Error("historical snapshot not loaded", "resource", r.dated, "date", date, "err", err)
	return nil, caching{}, errInternal
}

// closedAfter is the time from the end of a UTC date until its snapshot is served as immutable. It is 5 minutes longer than
// the time until the date closes.
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

// caching is the value of Cache-Control.
type caching struct {
	maxAge     int    // seconds
	stale      int    // seconds of stale-while-revalidate; 0: none
	directives string // the text after these, with its comma
}

var (
	gammaCaching  = caching{25, 25, ", stale-if-error=86400"} // whatever the refresh interval
	recentCaching = caching{25, 0, ""}                        // a historical date that may still change
	closedCaching = caching{31_536_000, 0, ", immutable"}     // a closed historical date
)

// refreshCaching returns the caching of a snapshot that is replaced at its refresh interval: at most an hour. A browser drops
// a dictionary when its answer may no longer be served even stale, and a client that polls asks just after max-age. So a
// dictionary may be served stale for one interval more.
func refreshCaching(s *snapshots.Snapshot) caching {
	c := caching{maxAge: min(max(s.Meta.RefreshSeconds, 0), 3600)}
	if s.IsDictionary() {
		c.stale = c.maxAge
	}
	return c
}

// append appends a Cache-Control line. keyed says that the request had a key: then no shared cache may store the response.
func (c caching) append(dst []byte, keyed bool) []byte {
	scope := "Cache-Control: public, max-age="
	if keyed {
		scope = "Cache-Control: private, max-age="
	}
	dst = strconv.AppendInt(append(dst, scope...), int64(c.maxAge), 10)
	if c.stale > 0 {
		dst = strconv.AppendInt(append(dst, ", stale-while-revalidate="...), int64(c.stale), 10)
	}
	return append(append(dst, c.directives...), "\r\n"...)
}
