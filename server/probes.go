package server

import (
	"github.com/goccy/go-json"
	"github.com/valyala/fasthttp"
)

// probe answers /healthz and /readyz, which are for orchestrators and never cached.
func (s *Server) probe(ctx *fasthttp.RequestCtx, body func() (int, any)) {
	if !ctx.IsGet() && !ctx.IsHead() {
		s.refuse(ctx, nil, errMethod)
		return
	}
	status, v := body()
	b, err := json.Marshal(v)
	if err != nil {
		s.refuse(ctx, nil, errInternal)
		return
	}
	setLines(&ctx.Response.Header, []byte(typeLine+commonLines+"Cache-Control: no-store"))
	ctx.Response.SetStatusCode(status)
	ctx.Response.SetBody(b)
}

func (s *Server) healthz() (int, any) {
	return fasthttp.StatusOK, struct {
		Status string `json:"status"`
		Source string `json:"source"`
	}{"ok", s.cfg.Source}
}

// readyz is 200 once every resource that the source can feed has an answer.
func (s *Server) readyz() (int, any) {
	r := s.cfg.Readiness()
	doc := struct {
		Ready    bool     `json:"ready"`
		Source   string   `json:"source"`
		Waiting  []string `json:"waiting"`
		Unfed    []string `json:"unfed"`
		Degraded []string `json:"degraded"`
	}{len(r.Waiting) == 0, s.cfg.Source, r.Waiting, r.Unfed, r.Degraded}
	for _, list := range []*[]string{&doc.Waiting, &doc.Unfed, &doc.Degraded} {
		if *list == nil {
			*list = []string{}
		}
	}
	if !doc.Ready {
		return fasthttp.StatusServiceUnavailable, doc
	}
	return fasthttp.StatusOK, doc
}
