package server

import (
	"bytes"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"
)

// route is one public resource. All paths are concrete: a parameter in the path costs three allocations a
// request.
type route struct {
	path      string
	endpoint  string // the canonical name, as meta.endpoint has it
	parameter string // the one query parameter that is known; "" for none
	repeated  *apiError
	row       int // in the counts of traffic
	// find returns the snapshot that answers, or an error of this package. A value is a part of the request.
	find func(s *Server, value []byte) (answer, *apiError)
}

// routes is the one table of the public resources.
var routes = []route{
	{"/api/v1/gex/spx", gammaResource, "", nil, 0, current(gammaResource)},
	{"/api/v1/gex/spx/historical", gammaResource + "/historical", "date", repeated("date"), 1, (*Server).historical},
	{"/api/v1/gex/spx/series", gammaResource + "/series", "", nil, 2, current(gammaResource + "/series")},
	{"/api/v1/sectors/rotation", "sectors/rotation", "", nil, 3, current("sectors/rotation")},
	{"/api/public/spx-max-pain", painResource, "expiration", repeated("expiration"), 4, (*Server).maxPain},
	{"/api/v1/options/flow/unusual", flowResource, "limit", repeated("limit"), 5, (*Server).flow},
	{"/api/public/vix-term-structure", "vix-term-structure", "", nil, 6, current("vix-term-structure")},
}

const (
	gammaResource = "gex/spx"
	painResource  = "spx-max-pain"
	flowResource  = "options/flow/unusual"
)

// value returns the value of the route's parameter in a query, nil without one.
func (r *route) value(query []byte) ([]byte, *apiError) {
	if r.parameter == "" || len(query) == 0 {
		return nil, nil
	}
	value, n := parameter(query, r.parameter)
	if n > 1 {
		return nil, r.repeated
	}
	return value, nil
}

// plainRoute returns the resource that a plain request asks for, nil when fasthttp must look at it.
func (s *Server) plainRoute(h *head) *route {
	if !h.plain {
		return nil
	}
	path, _, _ := bytes.Cut(h.target, []byte{'?'})
	return s.byPath[string(path)]
}

func queryOf(target []byte) []byte {
	_, query, _ := bytes.Cut(target, []byte{'?'})
	return query
}

// handler builds fasthttp's handler: of everything that is no plain request for a resource.
func (s *Server) handler() fasthttp.RequestHandler {
	r := router.New()
	r.RedirectTrailingSlash, r.RedirectFixedPath = false, false
	r.HandleMethodNotAllowed, r.HandleOPTIONS = false, false
	s.byPath = map[string]*route{}
	for i := range routes {
		route := &routes[i]
		s.byPath[route.path] = route
		r.ANY(route.path, func(ctx *fasthttp.RequestCtx) { s.serve(ctx, route) })
	}
	r.ANY("/healthz", func(ctx *fasthttp.RequestCtx) { s.probe(ctx, rowHealthz, s.Healthz) })
	r.ANY("/readyz", func(ctx *fasthttp.RequestCtx) { s.probe(ctx, rowReadyz, s.Readyz) })
	for i := range s.pages {
		page := &s.pages[i]
		r.ANY(page.path, func(ctx *fasthttp.RequestCtx) { s.servePage(ctx, page) })
	}
	s.registered = r.List
	r.NotFound = func(ctx *fasthttp.RequestCtx) { s.refuse(ctx, nil, errNotFound) }
	return r.Handler
}
