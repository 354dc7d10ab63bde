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

// request is what an answer depends on. Its slices belong to the reader of the request.
type request struct {
	head   bool // HEAD, not GET
	query  []byte
	remote netip.Addr

	encodings, noneMatch, modifiedSince, key, forwarded []byte
}

// reply is the answer to one request. It is used again for the next one of the connection.
type reply struct {
	route   *route
	status  int
	answer  answer
	coding  snapshots.Coding
	entry   *keys.Entry // nil without a key
	verdict limits.Verdict
	policy  string // of the limits that apply
	usage   []byte // the caller's, "" for the anonymous
	tail    []byte // what continues the sealed body, keyed only
	err     *apiError
	errBody []byte
	close   bool
}

// answer is a snapshot and how long it may be cached.
type answer struct {
	snapshot *snapshots.Snapshot
	cache    *cachePolicy
}

// decide finds the answer to a request for a resource. It does not allocate when there is one.
func (s *Server) decide(r *route, q *request, now time.Time, rep *reply) {
	*rep = reply{route: r, status: fasthttp.StatusOK, usage: rep.usage[:0], tail: rep.tail[:0]}
	if e := s.charge(q, now.UnixNano(), rep); e != nil {
		s.fail(rep, e)
		return
	}
	value, e := r.value(q.query)
	if e == nil {
		rep.answer, e = r.find(s, value)
	}
	if e != nil {
		s.fail(rep, e)
		return
	}
	snapshot := rep.answer.snapshot
	rep.coding = choose(q.encodings, snapshot)
	if notModified(q, snapshot) {
		rep.status = fasthttp.StatusNotModified
		return
	}
	if rep.entry != nil {
		rep.tail = snapshot.AppendTail(rep.tail, rep.coding, rep.usage)
	}
}

// charge checks the key and the limits of a request, and counts it.
func (s *Server) charge(q *request, now int64, rep *reply) *apiError {
	switch {
	case len(q.key) > 0:
		if s.cfg.Keys == nil {
			return errKey
		}
		entry, ok := s.cfg.Keys.Lookup(q.key, now)
		if !ok {
			return errKey
		}
		rep.entry, rep.verdict, rep.policy = entry, entry.Admit(now), entry.Policy()
		rep.usage = entry.AppendUsage(rep.usage, rep.verdict)
	case s.cfg.Addresses != nil:
		client := limits.ClientAddr(q.remote, [][]byte{q.forwarded}, s.cfg.Proxies)
		rep.verdict, rep.policy = s.cfg.Addresses.Admit(client, now), s.cfg.Addresses.Policy()
	}
	switch rep.verdict.Outcome {
	case limits.RateLimited:
		return errRate
	case limits.QuotaExceeded:
		return errQuota
	}
	return nil
}

// fail makes the reply a refusal.
func (s *Server) fail(rep *reply, e *apiError) {
	rep.err, rep.status, rep.close = e, e.status, e.close
	endpoint := ""
	if rep.route != nil {
		endpoint = rep.route.endpoint
	}
	rep.errBody = s.errorBody(endpoint, e)
	usage := rep.usage
	if rep.entry == nil {
		usage = anonymousUsage
	}
	rep.tail = append(append(rep.tail[:0], usage...), '}')
}

var anonymousUsage = []byte(`{"tier":"anonymous"}`)

// body returns the body of the reply in two parts.
func (rep *reply) body() (sealed, tail []byte) {
	switch {
	case rep.err != nil:
		return rep.errBody, rep.tail
	case rep.status == fasthttp.StatusNotModified:
		return nil, nil
	case rep.entry != nil:
		return rep.answer.snapshot.Prefix(rep.coding), rep.tail
	}
	return rep.answer.snapshot.Body(rep.coding), nil
}

// notModified evaluates If-None-Match and, without one, If-Modified-Since (RFC 9110 §13.2.2). That must be the very
// date that was sent: a snapshot may be replaced by one with an earlier date.
func notModified(q *request, s *snapshots.Snapshot) bool {
	if q.noneMatch != nil {
		return anyTag(q.noneMatch, s)
	}
	return string(q.modifiedSince) == s.LastModified()
}

// anyTag says whether a list of entity tags has one of the snapshot's, in any coding. The comparison is weak: a
// CDN that unzips weakens the tag. What follows a malformed tag is ignored.
func anyTag(list []byte, s *snapshots.Snapshot) bool {
	for {
		list = bytes.TrimLeft(list, " \t,")
		if len(list) == 0 {
			return false
		}
		if list[0] == '*' {
			return true
		}
		list = bytes.TrimPrefix(list, []byte("W/"))
		if len(list) == 0 || list[0] != '"' {
			return false
		}
		end := bytes.IndexByte(list[1:], '"')
		if end < 0 {
			return false
		}
		if s.Matches(list[:end+2]) {
			return true
		}
		list = list[end+2:]
	}
}
