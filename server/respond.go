package server

import (
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"strikecache/snapshots"
)

// answer is a snapshot and how long it may be cached.
type answer struct {
	snapshot     *snapshots.Snapshot
	cacheControl string
}

const (
	allowed = "GET, HEAD, OPTIONS"
	// gammaCache is the caching of the gamma exposure, which is cached for 25 seconds whatever the refresh.
	gammaCache = "public, max-age=25, stale-while-revalidate=25, stale-if-error=86400"
	// recentCache is that of a historical date which may still change.
	recentCache = "public, max-age=25"
	closedCache = "public, max-age=31536000, immutable"
)

// serve answers a request for a resource.
func (s *Server) serve(ctx *fasthttp.RequestCtx, r *route) {
	switch {
	case ctx.IsGet(), ctx.IsHead():
	case ctx.IsOptions():
		s.preflight(ctx)
		return
	default:
		s.refuse(ctx, r.endpoint, errMethod)
		return
	}
	if len(ctx.Request.Header.Peek("X-API-Key")) > 0 {
		s.refuse(ctx, r.endpoint, errKey)
		return
	}
	var value []byte
	if r.parameter != "" {
		var n int
		if value, n = parameter(ctx.URI().QueryString(), r.parameter); n > 1 {
			s.refuse(ctx, r.endpoint, repeated(r.parameter))
			return
		}
	}
	a, e := r.find(s, value)
	if e != nil {
		s.refuse(ctx, r.endpoint, e)
		return
	}
	s.send(ctx, a)
}

// send sends the snapshot's bytes in the best coding that the client accepts.
func (s *Server) send(ctx *fasthttp.RequestCtx, a answer) {
	coding := negotiate(ctx.Request.Header.Peek("Accept-Encoding"))
	s.commonHeaders(ctx)
	h := &ctx.Response.Header
	h.SetContentType("application/json")
	h.Set("Cache-Control", a.cacheControl)
	h.Set("ETag", a.snapshot.ETag(coding))
	h.Set("Vary", "Accept-Encoding, X-API-Key")
	if coding != snapshots.Identity {
		h.SetContentEncoding(coding.String())
	}
	ctx.Response.SetBodyRaw(a.snapshot.Body(coding))
}

func (s *Server) commonHeaders(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "ETag, Retry-After")
	h.Set("X-Content-Type-Options", "nosniff")
}

// preflight answers OPTIONS.
func (s *Server) preflight(ctx *fasthttp.RequestCtx) {
	s.commonHeaders(ctx)
	h := &ctx.Response.Header
	h.Set("Allow", allowed)
	h.Set("Access-Control-Allow-Methods", allowed)
	h.Set("Access-Control-Allow-Headers", "X-API-Key")
	h.Set("Access-Control-Max-Age", "86400")
	ctx.Response.SetStatusCode(fasthttp.StatusNoContent)
}

// current answers with what a resource without parameters serves now.
func current(resource string) func(*Server, []byte) (answer, *apiError) {
	return func(s *Server, _ []byte) (answer, *apiError) {
		e := s.cfg.Finder.Current(resource)
		if e == nil {
			return answer{}, s.notReady(resource)
		}
		a := answer{e.Default, gammaCache}
		if resource != gammaResource {
			a.cacheControl = s.cache.maxAge(e.Default.Meta.RefreshSeconds)
		}
		return a, nil
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
	snapshot := e.Default
	if value != nil {
		var ok bool
		if snapshot, ok = e.Variants[string(value)]; !ok {
			if !validDate(value) {
				return answer{}, errExpiration
			}
			return answer{}, &apiError{
				status: 404, code: "expiration_not_found", message: "SPX has no such expiration that is not settled",
				parameter: "expiration", extra: func(b *errorBody) { b.Expirations = e.Names() },
			}
		}
	}
	return answer{snapshot, s.cache.maxAge(snapshot.Meta.RefreshSeconds)}, nil
}

// flow answers with the highest-scoring observations.
func (s *Server) flow(value []byte) (answer, *apiError) {
	e := s.cfg.Finder.Current(flowResource)
	if e == nil {
		return answer{}, s.notReady(flowResource)
	}
	snapshot := e.Default
	if value != nil {
		var ok bool
		if snapshot, ok = e.Variants[string(value)]; !ok {
			return answer{}, errLimit
		}
	}
	return answer{snapshot, s.cache.maxAge(snapshot.Meta.RefreshSeconds)}, nil
}

// historical answers with the stored gamma exposure of a date, without one of the newest.
func (s *Server) historical(value []byte) (answer, *apiError) {
	now := s.cfg.Now()
	date := ""
	if value != nil {
		if !validDate(value) {
			return answer{}, errDate
		}
		if date = string(value); date > now.Format(time.DateOnly) {
			return answer{}, errFuture
		}
	}
	snapshot, err := s.cfg.Finder.Historical(date)
	switch {
	case errors.Is(err, snapshots.ErrBusy):
		return answer{}, errBusy
	case errors.Is(err, snapshots.ErrNoSnapshot) && date == "":
		return answer{}, s.notReady(gammaResource)
	case errors.Is(err, snapshots.ErrNoSnapshot):
		return answer{}, &apiError{
			status: 404, code: "snapshot_not_found", message: "no snapshot of that date is stored", parameter: "date",
			extra: func(b *errorBody) { b.Nearest = around(s.cfg.Finder.Dates(), date) },
		}
	case err != nil:
		s.cfg.Log.Error("historical lookup failed", "date", date, "err", err)
		return answer{}, errInternal
	}
	if date != "" && date < now.Add(-closedAfter).Format(time.DateOnly) {
		return answer{snapshot, closedCache}, nil
	}
	return answer{snapshot, recentCache}, nil
}

// closedAfter is how long after its end, in UTC, a date can no longer change.
const closedAfter = 15 * time.Minute

// cacheControls remembers the Cache-Control of the few refresh intervals there are.
type cacheControls struct{ bySeconds [3601]atomic.Pointer[string] }

// maxAge returns the Cache-Control of an answer that is refreshed every so many seconds.
func (c *cacheControls) maxAge(seconds int) string {
	seconds = min(max(seconds, 0), len(c.bySeconds)-1)
	if v := c.bySeconds[seconds].Load(); v != nil {
		return *v
	}
	v := "public, max-age=" + strconv.Itoa(seconds)
	c.bySeconds[seconds].Store(&v)
	return v
}
