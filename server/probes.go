package server

import (
	"github.com/goccy/go-json"
	"github.com/valyala/fasthttp"

	"strikecache/snapshots"
)

// probe answers /healthz and /readyz, which are for orchestrators and never cached.
func (s *Server) probe(ctx *fasthttp.RequestCtx, row int, body func() (int, []byte, error)) {
	if !ctx.IsGet() && !ctx.IsHead() {
		s.refuse(ctx, nil, errReading)
		return
	}
	status, b, err := body()
	if err != nil {
		s.refuse(ctx, nil, errInternal)
		return
	}
	setLines(&ctx.Response.Header, []byte(typeLine+commonLines+"Cache-Control: no-store"))
	ctx.Response.SetStatusCode(status)
	ctx.Response.SetBody(b)
	if ctx.IsHead() {
		b = nil
	}
	s.traffic.add(row, status, snapshots.Identity, len(b))
}

// Healthz returns the status and the JSON body of /healthz: the process serves.
func (s *Server) Healthz() (status int, body []byte, err error) {
	body, err = json.Marshal(struct {
		Status string `json:"status"`
		Source string `json:"source"`
	}{"ok", s.cfg.Source})
	return fasthttp.StatusOK, body, err
}

// Readyz returns the status and the JSON body of /readyz: 200 once every resource that the source can feed has an
// answer.
func (s *Server) Readyz() (status int, body []byte, err error) {
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
	if status = fasthttp.StatusOK; !doc.Ready {
		status = fasthttp.StatusServiceUnavailable
	}
	body, err = json.Marshal(doc)
	return status, body, err
}
