package server

import (
	"cmp"
	"strconv"
	"sync/atomic"
	"time"
)

// caching is the value of Cache-Control. A cache may serve an answer stale for one interval after max-age: a browser keeps an answer
// as a compression dictionary only as long as it may serve it, and a client that polls needs the dictionary just after max-age.
type caching struct {
	maxAge   int // seconds until the answer may change
	interval int // the largest maxAge, seconds; 0: the answer never changes
}

const (
	longestInterval = 3600       // seconds
	gammaInterval   = 25         // seconds, for gamma of the first underlying, at every refresh interval
	forever         = 31_536_000 // seconds: a year
)

// cachingOf returns the caching of the snapshot of a response. final says that the snapshot never changes.
func (s *Server) cachingOf(rep *response, final bool, now time.Time) caching {
	if final {
		return caching{maxAge: forever}
	}
	resource, interval := cmp.Or(rep.route.dated, rep.route.endpoint), min(max(rep.snapshot.Meta.RefreshSeconds, 1), longestInterval)
	interval = cmp.Or(rep.route.longest, interval)
	return caching{min(rep.countdown.left(now, s.cfg.Finder.Publications(), s.cfg.NextChange, resource), interval), interval}
}

// append appends the Cache-Control line. keyed says that the request had a key: then no shared cache may store the response.
func (c caching) append(dst []byte, keyed bool) []byte {
	scope := "Cache-Control: public, max-age="
	if keyed {
		scope = "Cache-Control: private, max-age="
	}
	dst = strconv.AppendInt(append(dst, scope...), int64(c.maxAge), 10)
	if c.interval == 0 {
		return append(dst, ", immutable\r\n"...)
	}
	dst = strconv.AppendInt(append(dst, ", stale-while-revalidate="...), int64(c.interval), 10)
	return append(dst, ", stale-if-error=86400\r\n"...)
}

// countdown caches the seconds until the next change of a resource, until the next second or publication. It is safe for concurrent
// use.
type countdown struct{ current atomic.Pointer[secondsLeft] }

type secondsLeft struct {
	second       int64 // in Unix time
	publications uint64
	seconds      int
}

// left returns the whole seconds until the next change, rounded up, from 1 to longestInterval. It calls next once a second and once
// after a publication, with the start of the second: from any other instant, rounding up would add a second.
func (c *countdown) left(now time.Time, publications uint64, next func(resource string, now time.Time) time.Time, resource string) int {
	if l := c.current.Load(); l != nil && l.second == now.Unix() && l.publications == publications {
		return l.seconds
	}
	l := &secondsLeft{now.Unix(), publications, longestInterval}
	if next != nil {
		if at := next(resource, now.Truncate(time.Second)); !at.IsZero() {
			l.seconds = int(min(max(at.Add(time.Second-1).Unix()-l.second, 1), longestInterval))
		}
	}
	c.current.Store(l)
	return l.seconds
}
