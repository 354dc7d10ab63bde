package server

import (
	"bytes"
	"cmp"
	"net/url"
	"slices"
	"strings"
)

var parameters = func() (names []string) {
	for i := range routes {
		if name := routes[i].parameter; name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return append(names, dateParameter, format)
}()

// The parameters that ask for a stored date and for another form of an answer.
const (
	dateParameter = "date"
	format        = "format"
)

func (r *route) takes(parameter string) bool {
	return parameter == r.parameter || parameter == dateParameter && r.dated != "" || parameter == format && r.formats != nil
}

// query is what a request asks for.
type query struct {
	value, date []byte // decoded values of the route's parameter and of date; nil: absent
	form        string // the requested format, "" for JSON
}

// parse returns what a query asks for. A parameter of another route, or one that is misspelled, is an error: without it, the client
// would get an answer that it did not request. Other unknown parameters are ignored: caches are passed by with them.
func (r *route) parse(text []byte) (q query, _ *apiError) {
	var asked, by []byte // by: the parameter that has named the underlying
	for len(text) > 0 {
		var pair []byte
		pair, text, _ = bytes.Cut(text, []byte{'&'})
		key, v, _ := bytes.Cut(pair, []byte{'='})
		key = unescape(key)
		for _, known := range [...]string{"underlying", "symbol"} {
			if !near(key, known) {
				continue
			}
			switch symbol := unescape(v); {
			case r.ofOne == "":
				return q, invalid(known, r.path+" takes no "+known)
			case !equalFold(key, known):
				return q, invalid(known, string(key)+" must be written "+known)
			case bytes.Equal(key, by):
				return q, invalid(known, string(key)+" is given more than once")
			case r.underlying == "" || len(symbol) > 0 && !equalFold(symbol, r.underlying) && nameOf(string(symbol)) != r.underlying:
				return q, r.ofAnother(known, nameOf(string(symbol)))
			}
			by = key
		}
		for _, known := range parameters {
			if !near(key, known) {
				continue
			}
			into := &q.value
			switch known {
			case dateParameter:
				into = &q.date
			case format:
				into = &asked
			}
			switch {
			case string(key) != known || !r.takes(known):
				return q, r.misplaced(string(key), known)
			case *into != nil:
				return q, invalid(known, known+" is given more than once")
			}
			*into = unescape(v)
		}
	}
	if asked == nil || string(asked) == "json" {
		return q, nil
	}
	for _, q.form = range r.formats {
		switch {
		case string(asked) != q.form:
		case q.value == nil || slices.Contains(r.formed, string(q.value)):
			return q, nil
		case r.formed == nil:
			return q, invalid(r.parameter, "format="+q.form+" takes no "+r.parameter+": it has them all")
		default:
			return q, invalid(r.parameter, r.parameter+" must be "+strings.Join(r.formed, " or ")+" with format="+q.form)
		}
	}
	last := len(r.formats) - 1
	return q, invalid(format, "format must be "+strings.Join(append([]string{"json"}, r.formats[:last]...), ", ")+" or "+r.formats[last]+" on "+r.path)
}

// near says whether given is the name of a known parameter in letters of any case, or a slip away from it: one letter is missing, too
// many or another, or two have changed places.
func near(given []byte, known string) bool {
	same := func(a, b byte) bool { return a|' ' == b } // of a letter, the blank's bit is that of a small one
	for len(given) > 0 && len(known) > 0 && same(given[0], known[0]) {
		given, known = given[1:], known[1:]
	}
	for len(given) > 0 && len(known) > 0 && same(given[len(given)-1], known[len(known)-1]) {
		given, known = given[:len(given)-1], known[:len(known)-1]
	}
	return len(given) < 2 && len(known) < 2 || len(given) == 2 && len(known) == 2 && same(given[0], known[1]) && same(given[1], known[0])
}

// misplaced returns the error for a parameter that the route does not take, or that is misspelled. given is its name in the query,
// known the right name. The error names the path that takes the parameter and has most segments of this route's.
func (r *route) misplaced(given, known string) *apiError {
	message := given + " must be written " + known
	if !r.takes(known) {
		nearest, most := "", 0
		for i := range routes {
			path, same := routes[i].of(cmp.Or(r.underlying, example)).path, 0
			for own := strings.Split(r.path, "/"); same < len(own) && strings.HasPrefix(path+"/", strings.Join(own[:same+1], "/")+"/"); {
				same++
			}
			if routes[i].takes(known) && same > most {
				nearest, most = path, same
			}
		}
		message = r.path + " takes no " + known + "; " + nearest + " takes it"
	}
	return invalid(known, message)
}

// ofAnother returns the error for a parameter, in small letters, that names an underlying on a route of all or of another. It names the path
// of that underlying, of the first one for "".
func (r *route) ofAnother(given, underlying string) *apiError {
	if underlying = cmp.Or(underlying, r.served[0]); !slices.Contains(r.served, underlying) {
		return noUnderlying(r.served)
	}
	return invalid(given, r.path+" takes no "+given+"; one underlying is at "+strings.Replace(r.ofOne, placeholder, underlying, 1))
}

// nameOf returns the name of an underlying in paths: spx for SPX and ^SPX, brkb for BRK.B.
func nameOf(symbol string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(symbol, "^"), ".", ""))
}

// named returns the first value of the parameter underlying in a query, "" without it.
func named(query []byte) []byte {
	for len(query) > 0 {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte{'&'})
		if value, found := bytes.CutPrefix(pair, []byte("underlying=")); found {
			return unescape(value)
		}
	}
	return nil
}

// unescape decodes %XX and +. It never returns nil. It returns b itself when there is nothing to decode or an escape is malformed:
// then b contains a %, so it is no valid value of any parameter.
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
