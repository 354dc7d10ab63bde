package cboe

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"strikecache/refresh/upstream"
)

// shortcutFor is how long a redirect is remembered. After that, the configured host is asked again, because a host that no longer
// has the documents may still answer.
const shortcutFor = time.Hour

// shortcuts remembers that a configured host redirects to another host of its site, with the same path, so that a document takes
// one request instead of two. A failure there ends the memory. It is safe for concurrent use.
type shortcuts struct{ to sync.Map } // configured host → shortcut

type shortcut struct {
	host  string
	until time.Time
}

// take returns the address at which a document is asked for, instead of its address at a configured host.
func (s *shortcuts) take(origin string) string {
	u, err := url.Parse(origin)
	if err != nil || u.User != nil { // a password is for the configured host
		return origin
	}
	if known, ok := s.to.Load(u.Host); ok && time.Now().Before(known.(shortcut).until) {
		u.Host = known.(shortcut).host
	}
	return u.String()
}

// learn remembers or forgets. visited has the addresses that were asked, of which the last one answered with err.
func (s *shortcuts) learn(origin string, visited []string, err error) {
	from, bad := url.Parse(origin)
	last, bad2 := url.Parse(visited[len(visited)-1])
	if bad != nil || bad2 != nil {
		return
	}
	ok := err == nil || errors.Is(err, upstream.ErrNotModified)
	switch direct := visited[0] != from.String(); {
	case direct && (!ok || len(visited) > 1):
		s.to.Delete(from.Host)
	case !direct && ok && len(visited) == 2 && last.RequestURI() == from.RequestURI() && sameSite(from, last):
		s.to.Store(from.Host, shortcut{last.Host, time.Now().Add(shortcutFor)})
	}
}

// sameSite says whether a redirect leads from HTTPS to HTTPS at another host below the same parent domain, such as from
// cdn.cboe.com to any host of cboe.com.
func sameSite(from, to *url.URL) bool {
	_, site, _ := strings.Cut(strings.ToLower(from.Hostname()), ".")
	_, err := netip.ParseAddr(from.Hostname())
	return from.Scheme == "https" && to.Scheme == "https" && to.User == nil && err != nil && strings.Contains(site, ".") &&
		strings.HasSuffix("."+strings.ToLower(to.Hostname()), "."+site)
}
