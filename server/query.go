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
	return append(names, format)
}()

// format is the name of the parameter that asks for another form of an answer.
const format = "format"

func (r *route) takes(parameter string) bool {
	return parameter == r.parameter || parameter == format && r.formats != nil
}

// values returns the decoded value of the route's parameter in a query, nil when the parameter is absent, and the requested format, ""
// for JSON. A parameter of another route, or one with upper-case letters, is an error: without it, the client would get an answer that
// it did not request. Unknown parameters are ignored.
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
				return nil, "", invalid(known, known+" is given more than once")
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

// misplaced returns the error for a parameter that the route does not take, or that has upper-case letters. given is its name in the
// query, known the name in small letters. The error names the paths that take the parameter, with the underlying of this route.
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
