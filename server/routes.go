package server

import (
	"bytes"
	"cmp"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"strikecache/snapshots"
)

// route is one public resource. All paths are concrete, because a parameter in the path costs three allocations a
// request.
type route struct {
	path       string
	endpoint   string   // the canonical name, as meta.endpoint has it
	underlying string   // in small letters; "" if the resource is not that of one underlying
	parameter  string   // the only query parameter that it takes besides format; "" for none
	formats    []string // the values of the parameter format besides json
	formed     []string // the values of parameter whose answers have other forms; nil: all
	dated      string   // the resource whose stored dates the parameter date chooses from; "" for none
	past       bool     // the answer is always that of a stored date
	longest    int      // of the first underlying: the largest max-age in seconds, whatever the refresh interval; 0: the refresh interval
	// unknown makes the error for a value of the parameter that the resource does not have.
	unknown func(e *snapshots.Edition, value []byte) *apiError
}

// routes is the table of the public resources. {u} stands for an underlying.
var routes = []route{
	{path: "/api/v1/gex/{u}", endpoint: "gex/{u}", longest: gammaInterval},
	{path: "/api/v1/gex/{u}/historical", endpoint: "gex/{u}/historical", parameter: "date", dated: "gex/{u}", past: true, longest: gammaInterval},
	{path: "/api/v1/gex/{u}/intraday", endpoint: "gex/{u}/intraday", parameter: "date", dated: "gex/{u}/intraday", formats: table},
	{path: "/api/v1/gex/{u}/levels", endpoint: "gex/{u}/levels", formats: []string{"csv", "line"}},
	{path: "/api/v1/gex/{u}/matrix", endpoint: "gex/{u}/matrix", formats: table},
	{path: "/api/v1/gex/{u}/series", endpoint: "gex/{u}/series", formats: table},
	{path: "/api/v1/volatility/{u}", endpoint: "volatility/{u}"},
	{path: "/api/v1/volatility/{u}/historical", endpoint: "volatility/{u}/historical", parameter: "date", dated: "volatility/{u}", past: true},
	{path: "/api/v1/volatility/{u}/series", endpoint: "volatility/{u}/series", formats: table},
	{path: "/api/v1/underlyings", endpoint: "underlyings"},
	{path: "/api/v1/sectors/rotation", endpoint: "sectors/rotation", parameter: "date", dated: "sectors/rotation"},
	{path: "/api/public/{u}-max-pain", endpoint: "{u}-max-pain", parameter: "expiration", unknown: noExpiration},
	{path: "/api/v1/options/flow/unusual", endpoint: "options/flow/unusual", parameter: "limit", unknown: noLimit, formats: table, formed: []string{"20", "100"}},
	{path: "/api/public/vix-term-structure", endpoint: "vix-term-structure", parameter: "date", dated: "vix-term-structure"},
	{path: "/api/public/vix-term-structure/series", endpoint: "vix-term-structure/series", formats: table},
}

// table is the formats of resources that are a table.
var table = []string{"csv"}

// placeholder stands for an underlying in the table of routes.
const placeholder = "{u}"

// of returns the route for an underlying.
func (r route) of(underlying string) route {
	for _, text := range []*string{&r.path, &r.endpoint, &r.dated} {
		*text = strings.Replace(*text, placeholder, underlying, 1)
	}
	r.underlying = underlying
	return r
}

// routesOf returns the routes of the table for underlyings, which are in small letters.
func routesOf(underlyings []string) (all []route) {
	for _, r := range routes {
		if !strings.Contains(r.path, placeholder) {
			all = append(all, r)
			continue
		}
		for i, u := range underlyings {
			one := r.of(u)
			if i > 0 {
				one.longest = 0
			}
			all = append(all, one)
		}
	}
	return all
}

// Resources returns the names of the public resources, such as gex/spx/series, in the order of the routes.
func (s *Server) Resources() (names []string) {
	for i := range s.routes {
		names = append(names, s.routes[i].endpoint)
	}
	return names
}

// pathsOf returns the paths of an underlying, and those of none.
func pathsOf(underlying string) (paths []string) {
	for i := range routes {
		paths = append(paths, routes[i].of(underlying).path)
	}
	return paths
}

// example is the underlying in texts that show paths.
const example = "spx"

// errNotFound and errNoUnderlying are here and not in the table of errors, because they name the routes and the underlyings.
var errNotFound = define(apiError{status: 404, code: "not_found", message: "no such resource; the resources are " + strings.Join(pathsOf(example), ", ") + ", also with other underlyings in place of " + example})

var errNoUnderlying = define(apiError{status: 404, code: "unknown_underlying", message: "no such underlying; error.underlyings has those that are served, in small letters"})

var symbolForm = regexp.MustCompile(`^[A-Za-z]{1,6}$`) // a symbol in capitals names no path

// noTarget returns the error for a path that names nothing.
func (s *Server) noTarget(path []byte) *apiError {
	for i := range routes {
		before, after, isOf := strings.Cut(routes[i].path, placeholder)
		symbol, found := bytes.CutPrefix(path, []byte(before))
		if symbol, ends := bytes.CutSuffix(symbol, []byte(after)); isOf && found && ends && symbolForm.Match(symbol) {
			e := *errNoUnderlying
			e.underlyings = s.underlyings
			return e.rendered()
		}
	}
	return errNotFound
}

// parameters are the names of the query parameters of all routes.
var parameters = func() (names []string) {
	for i := range routes {
		if name := routes[i].parameter; name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return append(names, format)
}()

// format is the name of the parameter that asks for another form of an answer.
const format = "format"

// takes says whether the route has a parameter.
func (r *route) takes(parameter string) bool {
	return parameter == r.parameter || parameter == format && r.formats != nil
}

// values returns the decoded value of the route's parameter in a query, nil when the parameter is absent, and the format asked for, ""
// for JSON. A parameter of another route, or one in other letters, is an error: ignored, it would give an answer that the client did
// not ask for.
func (r *route) values(query []byte) (value []byte, form string, _ *apiError) {
	var asked []byte
	for len(query) > 0 {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte{'&'})
		key, v, _ := bytes.Cut(pair, []byte{'='})
		key = unescape(key)
		for _, known := range parameters {
			if !equalFold(key, known) {
				continue
			}
			into := &value
			if known == format {
				into = &asked
			}
			switch {
			case string(key) != known || !r.takes(known):
				return nil, "", r.misplaced(string(key), known)
			case *into != nil:
				return nil, "", repeated(known)
			}
			*into = unescape(v)
		}
	}
	if asked == nil || string(asked) == "json" {
		return value, "", nil
	}
	for _, form = range r.formats {
		if string(asked) == form {
			if value != nil && r.formed != nil && !slices.Contains(r.formed, string(value)) {
				return nil, "", invalid(r.parameter, r.parameter+" must be "+strings.Join(r.formed, " or ")+" with format="+form)
			}
			return value, form, nil
		}
	}
	last := len(r.formats) - 1
	return nil, "", invalid(format, "format must be "+strings.Join(append([]string{"json"}, r.formats[:last]...), ", ")+" or "+r.formats[last]+" on "+r.path)
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

// misplaced returns the error for the parameter given, which the route does not take. known is its name in small letters. It names
// the routes that take it: for the underlying of the route, if they are those of an underlying.
func (r *route) misplaced(given, known string) *apiError {
	message := given + " must be written " + known
	if !r.takes(known) {
		var takers []string
		for i := range routes {
			if routes[i].takes(known) {
				takers = append(takers, routes[i].of(cmp.Or(r.underlying, example)).path)
			}
		}
		message = r.path + " takes no " + known + "; it is a parameter of " + strings.Join(takers, ", ")
	}
	return invalid(known, message)
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
