package server

import (
	"bytes"
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"

	"strikecache/server/keys"
	"strikecache/server/limits"
	"strikecache/snapshots"
)

// decide fills in the response to a GET or HEAD request for the resource of rep.route. It checks the key and the limits, finds
// the snapshot, chooses the coding, and evaluates the conditions, in this order. It reuses the memory of rep and, unless the
// response is an error, allocates nothing.
func (s *Server) decide(h *head, from netip.Addr, now time.Time, rep *response) {
	if e := s.charge(h, from, now.UnixNano(), rep); e != nil {
		s.fail(rep, e)
		return
	}
	r := rep.route
	closed := false
	value, form, e := r.values(h.query)
	if e == nil {
		rep.past = r.past || r.dated != "" && value != nil
		rep.snapshot, closed, e = s.find(r, value, rep.past)
	}
	if e == nil && form != "" {
		if rep.snapshot, e = s.inForm(form, r, rep.snapshot, value, rep.past); e == nil {
			rep.contentType = rep.snapshot.ContentType
		}
	}
	if e != nil {
		s.fail(rep, e)
		return
	}
	rep.caching = s.cachingOf(rep, closed, now)
	if rep.entry == nil {
		rep.delta = rep.snapshot.Delta(h.dictionary)
	}
	rep.coding = choose(h.encodings, rep.snapshot, rep.delta)
	if notModified(h.noneMatch, rep.snapshot, rep.user()) {
		rep.status = fasthttp.StatusNotModified
		return
	}
	if rep.user() != nil {
		rep.tail = rep.snapshot.AppendTail(rep.tail, rep.coding, rep.usage)
	}
}

// charge looks up the key of a request, counts the request against the limits of its key or address, and returns an error
// when the key is unknown or a limit is exceeded.
func (s *Server) charge(h *head, from netip.Addr, now int64, rep *response) *apiError {
	switch {
	case len(h.key) > 0:
		if s.cfg.Keys == nil {
			return errKey
		}
		entry, ok := s.cfg.Keys.Lookup(h.key, now)
		if !ok {
			return errKey
		}
		rep.entry, rep.verdict = entry, entry.Admit(now)
		rep.usage = rep.verdict.AppendUsage(rep.usage, entry.ID)
	case s.cfg.Addresses != nil: // behind a trusted proxy, X-Forwarded-For names the address
		rep.verdict = s.cfg.Addresses.Admit(limits.ClientAddr(from, h.forwarded, s.cfg.Proxies), now)
	}
	switch rep.verdict.Outcome {
	case limits.RateLimited:
		return errRate
	case limits.QuotaExceeded:
		return errQuota
	}
	return nil
}

// fail turns a response into an error response.
func (s *Server) fail(rep *response, e *apiError) {
	rep.err, rep.status, rep.close = e, e.status, e.close
	rep.tail = append(rep.tail[:0], e.body...)
	if rep.route != nil {
		rep.tail = append(rep.tail, rep.route.endpoint...)
	}
	rep.tail = append(append(rep.tail, `","source":`...), s.source...)
	rep.tail = append(rep.tail, `},"usage":`...)
	if rep.entry == nil {
		rep.tail = append(rep.tail, `{"tier":"anonymous"}}`...)
		return
	}
	rep.tail = append(append(rep.tail, rep.usage...), '}')
}

// notModified says whether the response is 304: If-None-Match is *, or a list of entity tags with the tag of the snapshot in any
// coding. The comparison is weak, because a CDN that decompresses a response weakens its tag. The part of a list from its first
// malformed element on is ignored. A * in a list is malformed (RFC 9110 §13.1.2, §8.8.3, §5.6.1). entry is the key whose `usage` is
// in the body, nil without one. If-Modified-Since is ignored, because two snapshots may have the same second in Last-Modified.
func notModified(list []byte, s *snapshots.Snapshot, entry *keys.Entry) bool {
	if string(list) == "*" {
		return true
	}
	for {
		list = bytes.TrimPrefix(bytes.TrimLeft(list, " \t,"), []byte("W/"))
		if len(list) == 0 || list[0] != '"' {
			return false
		}
		end := 1 + bytes.IndexByte(list[1:], '"')
		tag, rest := list[:end+1], bytes.TrimLeft(list[end+1:], " \t")
		if end == 0 || bytes.ContainsAny(tag, " \t") || len(rest) > 0 && rest[0] != ',' {
			return false
		}
		if matches(tag, s, entry) {
			return true
		}
		list = rest
	}
}

// matches says whether a tag is the snapshot's for the key of an entry, or for no key if entry is nil. A tag for a key is
// `"<id>.` and the rest of a tag of the snapshot.
func matches(tag []byte, s *snapshots.Snapshot, entry *keys.Entry) bool {
	if entry == nil {
		return s.Matches(tag)
	}
	own, found := bytes.CutPrefix(tag[1:], []byte(entry.ID))
	if !found || len(own) == 0 || own[0] != '.' {
		return false
	}
	var buffer [128]byte // a longer tag is not the snapshot's, and allocates
	return s.Matches(append(append(buffer[:0], '"'), own[1:]...))
}
