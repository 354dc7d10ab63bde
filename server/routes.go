package server

import (
	"bytes"
	"regexp"
	"strings"

	"strikecache/snapshots"
)

// route is one public resource. All paths are concrete, because a parameter in the path costs three allocations a
// request.
type route struct {
	path       string
	endpoint   string   // the canonical name, as meta.endpoint has it
	underlying string   // in small letters; "" if the resource does not belong to one underlying
	widget     string   // the path of a widget, which has the underlying as a parameter; "" if the resource does not belong to one
	parameter  string   // the only query parameter besides date and format; "" for none
	formats    []string // the values of the parameter format besides json
	formed     []string // the values of parameter whose answers have these formats, besides the default
	dated      string   // the resource whose stored dates are the values of the parameter date; "" for none
	served     []string // the underlyings of the server
	ofOne      string   // the path of the same figures of one underlying, with {u} in its place; "" if there is none
	past       bool     // also without the parameter date, the answer is that of a stored date
	longest    int      // the largest max-age in seconds, for the first underlying only; 0: the refresh interval
	// unknown returns the error for a value of parameter for which the resource has no answer.
	unknown func(e *snapshots.Edition, value []byte) *apiError
}

// routes is the table of the public resources. {u} stands for an underlying.
var routes = []route{
	{path: "/api/v1/gex/{u}", endpoint: "gex/{u}", longest: gammaInterval, formats: table},
	{path: "/api/v1/gex/{u}/historical", endpoint: "gex/{u}/historical", dated: "gex/{u}", past: true, longest: gammaInterval, formats: table},
	{path: "/api/v1/gex/{u}/intraday", endpoint: "gex/{u}/intraday", dated: "gex/{u}/intraday", formats: table},
	{path: "/api/v1/gex/{u}/levels", endpoint: "gex/{u}/levels", formats: []string{"csv", "line"}},
	{path: "/api/v1/gex/{u}/matrix", endpoint: "gex/{u}/matrix", formats: table},
	{path: "/api/v1/gex/{u}/open-interest", endpoint: "gex/{u}/open-interest", formats: table},
	{path: "/api/v1/gex/{u}/strikes", endpoint: "gex/{u}/strikes", dated: "gex/{u}/strikes", formats: table},
	{path: "/api/v1/gex/{u}/series", endpoint: "gex/{u}/series", formats: table},
	{path: "/api/v1/gex/{u}/summary", endpoint: "gex/{u}/summary", longest: gammaInterval},
	{path: "/api/v1/volatility/{u}", endpoint: "volatility/{u}", formats: table},
	{path: "/api/v1/volatility/{u}/historical", endpoint: "volatility/{u}/historical", dated: "volatility/{u}", past: true, formats: table},
	{path: "/api/v1/volatility/{u}/series", endpoint: "volatility/{u}/series", formats: table},
	{path: "/api/v1/underlyings", endpoint: "underlyings", ofOne: "/api/v1/gex/{u}/summary", formats: table},
	{path: "/api/v1/sectors/rotation", endpoint: "sectors/rotation", dated: "sectors/rotation", formats: table},
	{path: "/api/v1/sectors/rotation/series", endpoint: "sectors/rotation/series", formats: table},
	{path: "/api/public/{u}-max-pain", endpoint: "{u}-max-pain", parameter: "expiration", unknown: noExpiration, dated: "{u}-max-pain", formats: table},
	{path: "/api/public/{u}-max-pain/series", endpoint: "{u}-max-pain/series", formats: table},
	{path: flowPath, endpoint: "options/flow/{u}", parameter: "limit", unknown: noLimit, dated: "options/flow/{u}", formats: table, formed: allForms},
	{path: "/api/v1/options/flow/unusual", endpoint: "options/flow/unusual", parameter: "limit", unknown: noLimit, dated: "options/flow/unusual", ofOne: flowPath, formats: table, formed: allForms},
	{path: "/api/public/vix-term-structure", endpoint: "vix-term-structure", dated: "vix-term-structure", formats: table},
	{path: "/api/public/vix-term-structure/series", endpoint: "vix-term-structure/series", formats: table},
}

const flowPath = "/api/v1/options/flow/{u}"

var (
	table    = []string{"csv"}       // the formats of a resource that is a table
	allForms = []string{"20", "100"} // the limits of a flow that have them
)

// placeholder stands for an underlying in the table of routes.
const placeholder = "{u}"

// withoutUnderlying makes the path of a widget, such as /api/widgets/gex/series, of the name of a resource.
var withoutUnderlying = strings.NewReplacer("/"+placeholder, "", placeholder+"-", "")

func (r route) of(underlying string) route {
	endpoint := r.endpoint
	r.ofOne, r.underlying = r.path, underlying
	for _, text := range []*string{&r.path, &r.endpoint, &r.dated} {
		*text = strings.Replace(*text, placeholder, underlying, 1)
	}
	r.widget = "/api/widgets/" + withoutUnderlying.Replace(endpoint)
	return r
}

// routesOf returns the routes of the table for underlyings, which are in small letters.
func routesOf(underlyings []string) (all []route) {
	for _, r := range routes {
		r.served = underlyings
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

// pathsOf returns the paths of the table, with an underlying in place of {u}.
func pathsOf(underlying string) (paths []string) {
	for i := range routes {
		paths = append(paths, routes[i].of(underlying).path)
	}
	return paths
}

// example is the underlying in texts that show paths.
const example = "spx"

// errNotFound and errNoUnderlying are not in the table of errors, because they name the routes and the underlyings.
var errNotFound = define(apiError{status: 404, code: "not_found", message: "no such resource; the resources are " + strings.Join(pathsOf(example), ", ") + ", also with other underlyings in place of " + example})

var errNoUnderlying = define(apiError{status: 404, code: "unknown_underlying", message: "no such underlying; error.underlyings has those that are served, in small letters"})

var symbolForm = regexp.MustCompile(`^[A-Za-z]{1,6}(\.[A-Za-z])?$`) // SPX and brk.b name no path

func (s *Server) noTarget(path []byte) *apiError {
	if len(path) == 0 { // CONNECT a:443
		return errMethod
	}
	for i := range routes {
		before, after, isOf := strings.Cut(routes[i].path, placeholder)
		symbol, found := bytes.CutPrefix(path, []byte(before))
		if symbol, ends := bytes.CutSuffix(symbol, []byte(after)); isOf && found && ends && symbolForm.Match(symbol) {
			return noUnderlying(s.underlyings)
		}
	}
	return errNotFound
}

func noUnderlying(served []string) *apiError {
	e := *errNoUnderlying
	e.underlyings = served
	return e.rendered()
}
