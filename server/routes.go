package server

import (
	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"
)

// route is one public resource. All paths are concrete: a parameter in the path costs three allocations a
// request.
type route struct {
	path      string
	endpoint  string // the canonical name, as meta.endpoint has it
	parameter string // the one query parameter that is known; "" for none
	// find returns the snapshot that answers, or an error of this package.
	find func(s *Server, value []byte) (answer, *apiError)
}

// routes is the one table of the public resources.
var routes = []route{
	{"/api/v1/gex/spx", gammaResource, "", current(gammaResource)},
	{"/api/v1/gex/spx/historical", gammaResource + "/historical", "date", (*Server).historical},
	{"/api/v1/gex/spx/series", gammaResource + "/series", "", current(gammaResource + "/series")},
	{"/api/v1/sectors/rotation", "sectors/rotation", "", current("sectors/rotation")},
	{"/api/public/spx-max-pain", painResource, "expiration", (*Server).maxPain},
	{"/api/v1/options/flow/unusual", flowResource, "limit", (*Server).flow},
	{"/api/public/vix-term-structure", "vix-term-structure", "", current("vix-term-structure")},
}

const (
	gammaResource = "gex/spx"
	painResource  = "spx-max-pain"
	flowResource  = "options/flow/unusual"
)

// handler builds the request handler of all paths.
func (s *Server) handler() fasthttp.RequestHandler {
	r := router.New()
	r.RedirectTrailingSlash, r.RedirectFixedPath = false, false
	r.HandleMethodNotAllowed, r.HandleOPTIONS = false, false
	for i := range routes {
		route := &routes[i]
		r.ANY(route.path, func(ctx *fasthttp.RequestCtx) { s.serve(ctx, route) })
	}
	r.ANY("/healthz", func(ctx *fasthttp.RequestCtx) { s.probe(ctx, s.healthz) })
	r.ANY("/readyz", func(ctx *fasthttp.RequestCtx) { s.probe(ctx, s.readyz) })
	r.NotFound = func(ctx *fasthttp.RequestCtx) {
		s.refuse(ctx, "", errNotFound)
	}
	return r.Handler
}
