package cboe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/refresh/upstream"
)

// site is an upstream of several hosts on one loopback server.
type site struct {
	client *Client

	mu    sync.Mutex
	asked []string // host and path of each request
}

// newSite starts the server. The configured host is cdn.site.test.
func newSite(t *testing.T, handle func(w http.ResponseWriter, r *http.Request)) *site {
	t.Helper()
	s := &site{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r.Host+r.RequestURI)
		s.mu.Unlock()
		handle(w, r)
	}))
	t.Cleanup(srv.Close)
	var err error
	s.client, err = NewClient("http://cdn.site.test/base", 6_000_000, func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, srv.Listener.Addr().String())
	})
	must(t, err)
	s.client.timeout, s.client.backoff = patience, time.Millisecond
	s.client.http.Transport.(*http.Transport).Proxy = nil
	return s
}

// fetches fetches a quote and checks which hosts were asked for it. reason is of the error, "" for none.
func (s *site) fetches(t *testing.T, reason upstream.Reason, hosts ...string) {
	t.Helper()
	_, err := fetch(t, s.client, upstream.Quotes("XLK"))
	if (err == nil) != (reason == "") || err != nil && upstream.ReasonOf(err) != reason {
		t.Errorf("error %v, want the reason %q", err, reason)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if want := strings.Join(hosts, "/base/quotes/XLK.json ") + "/base/quotes/XLK.json"; strings.Join(s.asked, " ") != want {
		t.Errorf("asked %q, want %q", s.asked, want)
	}
	s.asked = nil
}

// redirectTo redirects to the same path of another host.
func redirectTo(w http.ResponseWriter, r *http.Request, address string) {
	http.Redirect(w, r, address+r.RequestURI, http.StatusTemporaryRedirect)
}

// After a redirect within the site a document takes one request, until the other host fails. Then the configured host is asked
// again.
func TestShortcut(t *testing.T) {
	const cdn, api, next = "cdn.site.test", "api.site.test", "next.site.test"
	fails := map[string]int{} // status by host; 307: it redirects to next
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		switch status := fails[r.Host]; {
		case status == http.StatusTemporaryRedirect:
			redirectTo(w, r, "http://"+next)
		case status != 0:
			w.WriteHeader(status)
		case r.Host == cdn:
			redirectTo(w, r, "http://"+api)
		default:
			w.Header().Set("ETag", `"a"`)
			fmt.Fprint(w, "{}")
		}
	})
	s.fetches(t, "", cdn, api)
	s.fetches(t, "", api)
	s.fetches(t, "", api)

	fails[api] = http.StatusInternalServerError
	s.fetches(t, upstream.BadStatus, api)
	s.fetches(t, upstream.BadStatus, cdn, api)
	fails[api] = 0
	s.fetches(t, "", cdn, api)
	s.fetches(t, "", api)

	fails[api] = http.StatusForbidden // the second and third try of a refused request ask the configured host
	s.fetches(t, upstream.Refused, api, cdn, api, cdn, api)
	fails[api] = 0
	s.fetches(t, "", cdn, api)

	fails[api] = http.StatusTemporaryRedirect
	s.fetches(t, "", api, next)
	s.fetches(t, "", cdn, api, next) // two redirects are not remembered
	s.fetches(t, "", cdn, api, next)
}

// A redirect to another scheme, user or path is not remembered. Neither is one that ends in an error.
func TestShortcutNotTaken(t *testing.T) {
	const origin = "https://cdn.site.test/a?b"
	for _, c := range []struct {
		from, to string
		err      error
	}{
		{origin, "http://api.site.test/a?b", nil}, {origin, "https://user:secret@api.site.test/a?b", nil}, {origin, "https://api.site.test/moved?b", nil},
		{origin, "https://api.site.test/a", nil}, {origin, "https://api.site.test/a?b", errors.New("a loop")},
	} {
		var s shortcuts
		if s.learn(c.from, []string{c.from, c.to}, c.err); s.take(c.from) != c.from {
			t.Errorf("%s, redirected to %s: asks %s", c.from, c.to, s.take(c.from))
		}
	}
}

// The configured host is asked again after an hour, because the other one may answer with old documents.
func TestShortcutEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s shortcuts
		const origin, other = "https://cdn.site.test/a?b=c", "https://api.site.test/a?b=c"
		s.learn(origin, []string{origin, other}, upstream.ErrNotModified)
		time.Sleep(shortcutFor - time.Second)
		if got := s.take(origin); got != other {
			t.Errorf("before the end: %s", got)
		}
		if got := s.take("https://user:secret@cdn.site.test/a?b=c"); strings.Contains(got, "api") {
			t.Errorf("the other host gets the password of the configured one: %s", got)
		}
		time.Sleep(time.Second)
		if got := s.take(origin); got != origin {
			t.Errorf("after the end: %s", got)
		}
	})
}
