package cboe

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/refresh/upstream"
)

// patience is a timeout for what must happen. It is long enough for a busy machine.
const patience = 5 * time.Minute

// local starts a server and returns a client of it that hardly spaces its requests.
func local(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	srv := httptest.NewServer(handler)
	t.Cleanup(srv.Close)
	c, err := NewClient(srv.URL+"/base/", 6_000_000, Dialer.DialContext)
	must(t, err)
	c.timeout, c.backoff = patience, time.Millisecond
	return c
}

func fetch(t *testing.T, c *Client, name upstream.Name) (*upstream.Document, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return c.Fetch(ctx, name, nil)
}

// A request has the address and the headers of its document. The next one sends the validators of the last document back.
func TestClientAsksAsItShould(t *testing.T) {
	var got *http.Request
	const modified = "Tue, 11 Aug 2026 20:36:41 GMT"
	text := strings.Repeat(`{"a":1}`, 20)
	packed := zipped(text)
	c := local(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		if r.Header.Get("If-None-Match") == `"abc"` && r.Header.Get("If-Modified-Since") == modified {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("ETag", `"abc"`)
		w.Header().Set("Last-Modified", modified)
		w.Header().Set("Content-Disposition", "attachment; filename=FuturesSettlements_2026-10-02.csv")
		w.Header().Set("Content-Encoding", "Gzip")
		w.Write(packed)
	})
	for name, want := range map[upstream.Name]string{
		upstream.Options("_SPX"):          "/base/options/_SPX.json",
		upstream.Quotes("XLK"):            "/base/quotes/XLK.json",
		upstream.History("_VIX"):          "/base/charts/historical/_VIX.json",
		upstream.Settlement("2026-10-05"): "/base/settlement?dt=2026-10-05",
	} {
		doc, err := fetch(t, c, name)
		must(t, err)
		if got.URL.String() != want || !strings.HasPrefix(got.UserAgent(), "strikecache") || got.Header.Get("Accept-Encoding") != "gzip" {
			t.Errorf("%s: asked for %s with %v, want %s", name, got.URL, got.Header, want)
		}
		if unpacked, err := Unpack(doc); err != nil || string(unpacked) != text || doc.Body != nil || !bytes.Equal(doc.Gzip, packed) {
			t.Errorf("document with the text %q, %v", unpacked, err)
		}
		if doc.ETag != `"abc"` || doc.FileDate != "2026-10-02" || doc.Generated.Format(http.TimeFormat) != modified {
			t.Errorf("document %+v", doc)
		}
		if _, err := c.Fetch(t.Context(), name, doc); !errors.Is(err, upstream.ErrNotModified) {
			t.Errorf("%s again: %v", name, err)
		}
	}
}

func zipped(text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	fmt.Fprint(z, text)
	z.Close()
	return b.Bytes()
}

// The bytes of a body say whether it is gzip: x-gzip is an old name (RFC 9110, section 8.4.1.3), stores of files send a .gz without a coding,
// and proxies that unpack leave the coding (https://github.com/curl/curl/issues/2368).
func TestClientLooksAtTheBytes(t *testing.T) {
	const text = `{"a":1}`
	for _, coding := range []string{"gzip", "x-gzip", "identity", ""} {
		for _, body := range [][]byte{[]byte(text), zipped(text)} {
			doc, err := fetch(t, local(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Encoding"] = []string{coding}
				w.Write(body)
			}), upstream.Quotes("XLK"))
			if err == nil && doc.Gzip != nil {
				doc.Body, err = Unpack(doc)
			}
			if err != nil || string(doc.Body) != text {
				t.Errorf("coding %q of %q: %v", coding, body, err)
			}
		}
	}
}

// Each failure of the upstream has its reason.
func TestClientReasons(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	redirect := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path+to, http.StatusTemporaryRedirect)
		}
	}
	body := func(headed string, text []byte, reset bool) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if key, value, ok := strings.Cut(headed, ": "); ok {
				w.Header().Set(key, value)
			}
			w.Write(text)
			w.(http.Flusher).Flush()
			if reset {
				panic(http.ErrAbortHandler)
			}
		}
	}
	long := zipped(strings.Repeat("abcdefgh", 1000))
	var blocks bytes.Buffer // of a gzip, all empty
	z := gzip.NewWriter(&blocks)
	for range 20_000 {
		z.Flush()
	}
	z.Close()
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    upstream.Reason
	}{
		"403":                             {status(403), upstream.Refused},
		"404":                             {status(404), upstream.Missing},
		"429":                             {status(429), upstream.Throttled},
		"420":                             {status(420), upstream.Throttled},
		"500":                             {status(500), upstream.BadStatus},
		"304 without validators":          {status(304), upstream.BadStatus},
		"redirect loop":                   {redirect(""), upstream.Redirects},
		"too many redirects":              {redirect("x"), upstream.Redirects},
		"cut off":                         {body("Content-Length: 1000", []byte("{"), false), upstream.Truncated},
		"cut-off gzip":                    {body("Content-Encoding: gzip", long[:len(long)-12], false), upstream.Truncated},
		"reset in the body":               {body("", []byte("{"), true), upstream.Truncated},
		"oversized":                       {body("", make([]byte, 100<<10), false), upstream.TooLarge},
		"oversized when unpacked":         {body("Content-Encoding: gzip", zipped(string(make([]byte, 1<<20))), false), upstream.TooLarge},
		"oversized before it is unpacked": {body("Content-Encoding: gzip", blocks.Bytes(), false), upstream.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			var hits atomic.Int32
			client := local(t, func(w http.ResponseWriter, r *http.Request) { hits.Add(1); c.handler(w, r) })
			doc, err := fetch(t, client, upstream.Quotes("XLK"))
			if err == nil && doc.Gzip != nil {
				_, err = Unpack(doc)
			}
			var failure *upstream.Error
			if !errors.As(err, &failure) || failure.Reason != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if hits.Load() == 0 {
				t.Error("the server was never asked")
			}
		})
	}
}

// Without a connection, the reason says whether something did not answer in time.
func TestClientWithoutAConnection(t *testing.T) {
	for _, c := range []struct {
		err  error
		want upstream.Reason
	}{
		{&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}, upstream.Unreachable}, {&net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}, upstream.TimedOut},
		{&net.DNSError{Err: "no such host", IsNotFound: true}, upstream.Unreachable}, {&net.DNSError{Err: "i/o timeout", IsTimeout: true, IsTemporary: true}, upstream.TimedOut},
	} {
		client, err := NewClient("http://upstream.example", 20, func(context.Context, string, string) (net.Conn, error) { return nil, c.err })
		must(t, err)
		if _, err := fetch(t, client, upstream.Quotes("XLK")); upstream.ReasonOf(err) != c.want || !errors.Is(err, c.err) {
			t.Errorf("%v: %v, want %s", c.err, err, c.want)
		}
	}
}

// A request that stalls, before the head of its answer or in the body, ends at the timeout.
func TestClientTimesOut(t *testing.T) {
	for _, begin := range []string{"", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"} {
		synctest.Test(t, func(t *testing.T) {
			l := &listener{misbehave: func(l *listener, conn net.Conn) {
				answers(begin)(l, conn)
				io.Copy(io.Discard, conn)
			}}
			c, err := NewClient("http://cdn.test", 20, func(context.Context, string, string) (net.Conn, error) { return l.dial(t) })
			must(t, err)
			began := time.Now()
			if _, err := c.Fetch(t.Context(), upstream.Quotes("XLK"), nil); upstream.ReasonOf(err) != upstream.TimedOut || time.Since(began) != 30*time.Second {
				t.Errorf("after %q: %v after %v", begin, err, time.Since(began))
			}
		})
	}
}

// After a 403 the client asks again, three times in all.
func TestClientRetriesRefusals(t *testing.T) {
	var hits, refusals atomic.Int32
	c := local(t, func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		if refusals.Add(-1) >= 0 {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		fmt.Fprint(w, "{}")
	})
	refusals.Store(2)
	if _, err := fetch(t, c, upstream.Quotes("XLK")); err != nil || hits.Load() != 3 {
		t.Errorf("refused twice: %v after %d requests", err, hits.Load())
	}
	refusals.Store(1000)
	if _, err := fetch(t, c, upstream.Quotes("XLF")); upstream.ReasonOf(err) != upstream.Refused || hits.Load() != 6 {
		t.Errorf("refused: %v after %d requests", err, hits.Load())
	}
}

func TestClientHonoursRetryAfter(t *testing.T) {
	tonight := time.Now().Add(2 * maxRetryAfter).UTC().Format(http.TimeFormat)
	ahead := time.Now().Add(3 * time.Hour).UTC() // by the clock of the host
	for value, want := range map[string]time.Duration{
		ahead.Add(8 * time.Second).Format(http.TimeFormat): 8 * time.Second, "": throttledPause, "7": 7 * time.Second, "99999999": maxRetryAfter, tonight: maxRetryAfter, "x": throttledPause, "-5": throttledPause,
	} {
		c := local(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", value)
			if want == 8*time.Second {
				w.Header().Set("Date", ahead.Format(http.TimeFormat))
			}
			w.WriteHeader(http.StatusTooManyRequests)
		})
		before := time.Now()
		_, err := fetch(t, c, upstream.Quotes("XLK"))
		var failure *upstream.Error
		if !errors.As(err, &failure) || failure.RetryAfter != want {
			t.Errorf("Retry-After %q: %v", value, err)
		}
		if after := c.turns.paused["127.0.0.1"].Sub(before); after < want {
			t.Errorf("Retry-After %q: the host is asked again after %v", value, after)
		}
		if want > longestPause { // nobody waits for that long
			if _, err := fetch(t, c, upstream.Quotes("XLF")); upstream.ReasonOf(err) != upstream.Throttled || !errors.Is(err, errPaused) {
				t.Errorf("Retry-After %q, the next fetch: %v", value, err)
			}
		}
	}
}

func TestNewClientRefusesBadAddresses(t *testing.T) {
	for _, address := range []string{"ftp://example.org", "example.org/base", "://", "http://"} {
		if _, err := NewClient(address, 20, nil); err == nil {
			t.Errorf("%q is accepted", address)
		}
	}
}

func TestPriorities(t *testing.T) {
	for i, names := range [][]upstream.Name{
		{spxOptions}, {upstream.Quotes("_VIX"), upstream.Settlement("2026-10-05")}, {upstream.Quotes("XLK")}, {upstream.Options("SPY")},
		{upstream.History("XLK"), upstream.Quotes("_VIX9D"), upstream.Quotes("_SKEW")}, // nothing waits for them
	} {
		for _, name := range names {
			if priority(name) != i {
				t.Errorf("%s has priority %d, want %d", name, priority(name), i)
			}
		}
	}
	for _, address := range []string{"https://cdn.cboe.com/a", "http://CDN.cboe.com", "https://user@cdn.Cboe.com.:443/"} { // one host has one pause
		if u, err := url.Parse(address); err != nil || hostOf(u) != "cdn.cboe.com" {
			t.Errorf("%s: %q, %v", address, hostOf(u), err)
		}
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

// A body without end takes hardly more memory than the largest document.
func TestBodyWithoutEnd(t *testing.T) {
	name := upstream.Options("_SPX")
	kind, _ := name.Split()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := readAll(name, zeros{}, 0)
	runtime.ReadMemStats(&after)
	var failure *upstream.Error
	if took, most := int64(after.TotalAlloc-before.TotalAlloc), kind.MaxBody(); !errors.As(err, &failure) || failure.Reason != upstream.TooLarge || took > most+most/4 {
		t.Errorf("%v, after %d bytes of memory", err, took)
	}
}
