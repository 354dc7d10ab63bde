package server

import (
	"bytes"
	"net/http"
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"

	"strikecache/server/keys"
	"strikecache/server/limits"
	"strikecache/snapshots"
)

// decide fills in the response to a GET or HEAD request for the resource of rep.route. It checks the key and the limits, finds
// the snapshot, chooses the coding, and evaluates the conditions, in this order. It allocates nothing, except for an error.
func (s *Server) decide(h *head, from netip.Addr, now time.Time, rep *response) {
	if e := s.charge(h, from, now.UnixNano(), rep); e != nil {
		s.fail(rep, e)
		return
	}
	final := false
	asked, e := rep.route.parse(h.query)
	if e == nil {
		final, e = s.find(rep, asked)
	}
	if e != nil {
		s.fail(rep, e)
		return
	}
	rep.caching = s.cachingOf(rep, final, now)
	if rep.entry == nil {
		rep.delta = rep.snapshot.Delta(h.dictionary)
	}
	rep.coding = choose(h.encodings, rep.snapshot, rep.delta)
	if s.evaluate(h, rep); rep.status == fasthttp.StatusOK && rep.user() != nil {
		rep.start = rep.snapshot.AppendStart(rep.start, rep.coding, rep.usage)
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
	case s.cfg.Addresses != nil:
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

func (s *Server) fail(rep *response, e *apiError) {
	rep.err, rep.status, rep.close = e, e.status, e.close
	rep.snapshot, rep.coding, rep.contentType = nil, snapshots.Identity, jsonType
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

// evaluate evaluates the conditions of a request for rep.snapshot, in the order of RFC 9110 §13.2.2. The response becomes 412 or 304.
// If-Modified-Since is ignored, because two snapshots may have the same second in Last-Modified.
func (s *Server) evaluate(h *head, rep *response) {
	fails := false
	if len(h.match) > 0 {
		fails = !lists(h.match, rep.snapshot, rep.user(), true)
	} else if len(h.unmodifiedSince) > 0 {
		at, err := http.ParseTime(string(h.unmodifiedSince))
		fails = err == nil && rep.snapshot.ModifiedAfter(at)
	}
	switch {
	case fails:
		s.fail(rep, errPrecondition)
	case lists(h.noneMatch, rep.snapshot, rep.user(), false):
		rep.status = fasthttp.StatusNotModified
	}
}

// lists says whether a value of If-Match or If-None-Match is *, or a list that contains the entity tag of the snapshot in any coding.
// If-None-Match is compared weakly: a CDN that decompresses a response weakens its tag. A malformed element, such as a * in a list,
// ends the list (RFC 9110 §13.1.2, §8.8.3, §5.6.1). entry is the key whose `usage` is in the body, which makes the tag weak, nil
// without such a member.
func lists(list []byte, s *snapshots.Snapshot, entry *keys.Entry, strong bool) bool {
	if string(list) == "*" {
		return true
	}
	for {
		list = bytes.TrimLeft(list, " \t,")
		weak := bytes.HasPrefix(list, []byte("W/")) || entry != nil
		list = bytes.TrimPrefix(list, []byte("W/"))
		if len(list) == 0 || list[0] != '"' {
			return false
		}
		end := 1 + bytes.IndexByte(list[1:], '"')
		tag, rest := list[:end+1], bytes.TrimLeft(list[end+1:], " \t")
		if end == 0 || bytes.ContainsAny(tag, " \t") || len(rest) > 0 && rest[0] != ',' {
			return false
		}
		if (!strong || !weak) && matches(tag, s, entry) {
			return true
		}
		list = rest
	}
}

// matches says whether a tag is one of the snapshot's. If entry is not nil, the tag must be one for this key: a tag of the snapshot
// with the key's id and a dot after the first quote.
func matches(tag []byte, s *snapshots.Snapshot, entry *keys.Entry) bool {
	if entry == nil {
		return s.Matches(tag)
	}
	own, found := bytes.CutPrefix(tag[1:], []byte(entry.ID))
	if !found || len(own) == 0 || own[0] != '.' {
		return false
	}
	var buffer [128]byte // only a tag that is longer than the snapshot's allocates
	return s.Matches(append(append(buffer[:0], '"'), own[1:]...))
}
