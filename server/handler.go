package server

import (
	"fmt"
	"net/netip"
	"runtime/debug"
	"time"

	"strikecache/server/loop"
)

// target is the resource, the page or the probe of a path. Only one of route, page, probe and of is set.
type target struct {
	route     *route
	page      *page
	probe     func() (int, []byte)
	of        map[string]*target // of a path with a parameter for the underlying: the targets, by symbol in small letters, and ""
	counts    *counts            // of its responses
	countdown countdown          // to the next change of the resource
}

func (s *Server) newTargets() map[string]*target {
	all := map[string]*target{
		"/healthz": {probe: s.Healthz, counts: s.traffic.newCounts("healthz")},
		"/readyz":  {probe: s.Readyz, counts: s.traffic.newCounts("readyz")},
	}
	for i := range s.routes {
		r := &s.routes[i]
		all[r.path] = &target{route: r, counts: s.traffic.newCounts(r.endpoint)}
		if r.widget == "" {
			continue
		}
		if all[r.widget] == nil { // of the first underlying
			all[r.widget] = &target{of: map[string]*target{"": all[r.path]}}
		}
		all[r.widget].of[r.underlying] = all[r.path]
	}
	counts := s.traffic.newCounts("page")
	for _, p := range sealedPages(s.cfg.Source, s.cfg.Fleet, pathsOf(s.underlyings[0]), s.underlyings) {
		all[p.path] = &target{page: &p, counts: counts}
	}
	return all
}

// respond fills in the response to a request for a target, nil for a path without a target. After a panic, the response is an error
// without details, and the connection ends. It allocates nothing for a resource that has an answer.
func (s *Server) respond(t *target, h *head, from netip.Addr, now time.Time, rep *response) {
	rep.reset(string(h.method) == "HEAD")
	defer func() {
		if panicked := recover(); panicked != nil {
			s.cfg.Log.Error("request panicked", "panic", fmt.Sprint(panicked), "stack", string(debug.Stack()))
			rep.reset(rep.headOnly)
			s.fail(rep, errPanic)
		}
		rep.close = rep.close || h.close
		rep.keepAlive = h.http10
	}()
	preflight := string(h.method) == "OPTIONS"
	if t != nil && t.of != nil {
		symbol := named(h.query)
		if t.of[string(symbol)] == nil {
			symbol = []byte(nameOf(string(symbol)))
		}
		if t = t.of[string(symbol)]; t == nil && !preflight {
			s.fail(rep, noUnderlying(s.underlyings))
			return
		}
	}
	if t != nil {
		rep.route, rep.counts, rep.countdown = t.route, t.counts, &t.countdown
	}
	switch {
	case preflight: // also of the server itself (RFC 9110 §9.3.7), of "/" by HAProxy, and of what is not there, so that a page can read the 404 of its GET
		rep.status, rep.lines = 204, preflightLines
	case t == nil:
		s.fail(rep, s.noTarget(h.path))
	case rep.headOnly || string(h.method) == "GET":
		s.answer(t, h, from, now, rep)
	default:
		s.fail(rep, errMethod)
	}
}

// answer fills in the response to a GET or HEAD request.
func (s *Server) answer(t *target, h *head, from netip.Addr, now time.Time, rep *response) {
	switch {
	case t.route != nil:
		s.decide(h, from, now, rep)
	case t.page != nil:
		rep.snapshot, rep.contentType, rep.lines = t.page.sealed, t.page.contentType, t.page.lines
		rep.coding = choose(h.encodings, rep.snapshot, nil)
		s.evaluate(h, rep)
	default:
		status, body := t.probe()
		rep.status, rep.tail, rep.lines = status, append(rep.tail, body...), commonLines+noStoreLine
	}
}

// handler makes the answers of a loop, as its [loop.Handler], or of a connection of fasthttp.
type handler struct {
	server   *Server
	head     head
	response response
}

// Answer implements [loop.Handler].
func (h *handler) Answer(b []byte, r loop.Request, a *loop.Answer) (used int) {
	s, rep := h.server, &h.response
	publications := s.cfg.Finder.Publications()
	switch e := h.parse(b); {
	case e == incomplete:
		return 0
	case e != nil:
		h.fail(e, r, a)
		return len(b)
	}
	h.respond(s.targets[string(h.head.path)], r, a)
	a.Repeats = rep.route != nil && rep.err == nil && !rep.past && !a.Close && rep.entry == nil &&
		s.cfg.Addresses == nil && publications%2 == 0
	a.Version = publications
	return h.head.length
}

// Again implements [loop.Handler].
func (h *handler) Again(a *loop.Answer, arrived time.Time) bool {
	if h.server.cfg.Finder.Publications() != a.Version {
		return false
	}
	h.server.countLabel(a.Label, len(a.Body)+len(a.Tail), arrived)
	return true
}

// Refuse implements [loop.Handler].
func (h *handler) Refuse(why loop.Refusal, b []byte, r loop.Request, a *loop.Answer) {
	h.head.parse(b) // sets the method
	h.fail([...]*apiError{loop.TooManyConnections: errConnections, loop.TooLate: errTimeout}[why], r, a)
}

// parse parses the head at the start of b, as [head.parse] does. It refuses a head that is too long.
func (h *handler) parse(b []byte) *apiError {
	e := h.head.parse(b[:min(len(b), maxHeader)])
	if e == incomplete && len(b) >= maxHeader {
		return errHeaderTooLong
	}
	return e
}

// respond makes the answer to the request of h.head for a target, nil for a path without a target.
func (h *handler) respond(t *target, r loop.Request, a *loop.Answer) {
	h.server.respond(t, &h.head, r.From, r.Now, &h.response)
	h.write(r, a)
	a.Linger = a.Close && !h.head.asksClose || h.head.body != 0
}

// fail makes the answer to a request with an incomplete or malformed head.
func (h *handler) fail(e *apiError, r loop.Request, a *loop.Answer) {
	h.response.reset(string(h.head.method) == "HEAD")
	h.server.fail(&h.response, e)
	h.write(r, a)
	a.Linger = true
}

// write turns the response into an answer, and counts it.
func (h *handler) write(r loop.Request, a *loop.Answer) {
	rep := &h.response
	rep.close = rep.close || r.Stopping
	a.Close, a.Head = rep.close, h.server.appendHead(a.Head, rep, r.Now)
	if !rep.headOnly {
		a.Body, a.Tail = rep.body()
	}
	a.Label = h.server.count(rep, r.Now)
}

// preflightLines are the field lines of the answer to OPTIONS. Libraries, such as those for tracing, send fields that the server
// ignores. "*" allows all but Authorization (Fetch standard, CORS-preflight fetch), and older browsers know only names. Chrome with
// Private Network Access also asks whether a page on the internet may reach a server of this machine or its network.
const preflightLines = commonLines + "Allow: " + allowed + "\r\nAccess-Control-Allow-Methods: " + allowed +
	"\r\nAccess-Control-Allow-Headers: X-API-Key, If-None-Match, If-Modified-Since, If-Match, If-Unmodified-Since, " +
	"Authorization, Cache-Control, Content-Type, *\r\nAccess-Control-Allow-Private-Network: true\r\nAccess-Control-Max-Age: 86400\r\n"
