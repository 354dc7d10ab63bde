package cboe

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"strikecache/refresh/upstream"
)

// The upstream's addresses.
const (
	DefaultBaseURL       = "https://cdn.cboe.com/api/global/delayed_quotes"
	defaultSettlementURL = "https://www-api.cboe.com/us/futures/market_statistics/settlement/csv"
)

const (
	userAgent    = "strikecache (delayed options analytics cache)"
	maxRedirects = 5
	refusalTries = 3
	// maxRetryAfter bounds the wait that Retry-After asks for.
	maxRetryAfter = time.Hour
	// throttledPause is how long a host gets no request after a 429 or 420 without Retry-After.
	throttledPause = time.Minute
)

// Client fetches documents over HTTP. All hosts share its turns, because a redirect may call a host by any name. Waiting requests
// go in the order of their priority: the SPX chain, settlements and the quotes that they rest on, quotes of funds, other chains,
// histories and quotes of other indices. It is safe for concurrent use.
type Client struct {
	base, settlements string        // addresses; the second takes ?dt=YYYY-MM-DD
	timeout           time.Duration // of one request with its body
	backoff           time.Duration // before the second try of a refused request, doubled before each later try
	http              *http.Client
	turns             *spacing
	direct            shortcuts
}

// Dialer opens connections. Its limit includes the look-up of the name.
var Dialer = net.Dialer{Timeout: 10 * time.Second}

// NewClient returns a client that makes so many requests a minute, to all hosts together, on connections of dial. base is the address of chains,
// quotes and histories. An address besides Cboe's also has the settlements. NewClient fails on an address that is not http or https.
func NewClient(base string, perMinute int, dial func(ctx context.Context, network, address string) (net.Conn, error)) (*Client, error) {
	base = strings.TrimSuffix(base, "/")
	if u, err := url.Parse(base); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("upstream address %q is not an http or https URL", base)
	}
	c := &Client{base: base, settlements: base + "/settlement", timeout: 30 * time.Second, backoff: 3 * time.Second, turns: newSpacing(time.Minute / time.Duration(perMinute))}
	if base == DefaultBaseURL {
		c.settlements = defaultSettlementURL
	}
	c.http = &http.Client{
		// A connection serves one request, over HTTP/1.1. The transport would repeat a request that finds its kept connection
		// closed, or that an HTTP/2 host refuses. It does not offer HTTP/2, because it has a DialContext. With one request
		// every few seconds, keeping connections would save little.
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dial, TLSHandshakeTimeout: 10 * time.Second, DisableKeepAlives: true,
		},
		// Client follows redirects itself, so that each waits for a turn.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// spxOptions is the chain of the first underlying.
var spxOptions = upstream.Options("_SPX")

// Offers implements [upstream.Source].
func (c *Client) Offers(name upstream.Name) bool {
	kind, _ := name.Split()
	return kind != upstream.Unknown
}

// Fetch implements [upstream.Source]. After a 403 it asks again, up to refusalTries times in all, because the upstream
// refuses some requests only for seconds.
func (c *Client) Fetch(ctx context.Context, name upstream.Name, since *upstream.Document) (*upstream.Document, error) {
	backoff := c.backoff
	for try := 1; ; try++ {
		doc, err := c.once(ctx, name, since)
		if err == nil || upstream.ReasonOf(err) != upstream.Refused || try == refusalTries {
			return doc, err
		}
		select {
		case <-time.After(backoff + rand.N(backoff/2)):
		case <-ctx.Done():
			return nil, err
		}
		backoff *= 2
	}
}

// once asks for a document in its turn, and follows redirects, each in another turn. They take turns with quotes, so that a loop of
// redirects of the SPX chain does not keep the quotes waiting. Where [shortcuts] know the end of a redirect, once begins there.
func (c *Client) once(ctx context.Context, name upstream.Name, since *upstream.Document) (doc *upstream.Document, err error) {
	kind, key := name.Split()
	address := c.base + "/" + string(name)
	if kind == upstream.SettlementKind {
		address = c.settlements + "?dt=" + url.QueryEscape(key)
	}
	visited := []string{c.direct.take(address)}
	defer func(origin string) { c.direct.learn(origin, visited, err) }(address)
	for address = visited[0]; ; visited = append(visited, address) {
		turn := priority(name)
		if len(visited) > 1 {
			turn = max(turn, quotesPriority)
		}
		doc, next, err := c.request(ctx, name, address, since, turn)
		if next == "" {
			return doc, err
		}
		if len(visited) > maxRedirects || slices.Contains(visited, next) {
			return nil, failed(name, upstream.Redirects, fmt.Errorf("redirect to %s is a loop, or over %d redirects", next, maxRedirects))
		}
		address = next
	}
}

// request makes one request in its turn. It returns a document, or the address of a redirect.
func (c *Client) request(ctx context.Context, name upstream.Name, address string, since *upstream.Document, priority int) (doc *upstream.Document, redirect string, err error) {
	req, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		return nil, "", failed(name, upstream.Unreachable, err)
	}
	host := hostOf(req.URL)
	switch err := c.turns.wait(ctx, host, priority); {
	case errors.Is(err, errPaused):
		return nil, "", failed(name, upstream.Throttled, err)
	case err != nil:
		return nil, "", failed(name, upstream.TimedOut, fmt.Errorf("wait for a turn: %w", err))
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req = req.WithContext(ctx)
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept", "application/json, text/csv;q=0.9")
	req.Header.Set("Accept-Encoding", "gzip") // set here, so that the transport leaves the gzip as it is
	if since != nil && since.ETag != "" {
		req.Header.Set("If-None-Match", since.ETag)
	}
	if since != nil && since.LastModified != "" {
		req.Header.Set("If-Modified-Since", since.LastModified)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, "", failed(name, upstream.Unreachable, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotModified && since != nil {
		return nil, "", upstream.ErrNotModified
	}
	if next, err := resp.Location(); err == nil && resp.StatusCode/100 == 3 {
		return nil, next.String(), nil
	}
	if resp.StatusCode != http.StatusOK {
		failure := statusError(name, resp)
		c.turns.pause(host, failure.RetryAfter)
		return nil, "", failure
	}
	body, err := readAll(name, resp.Body, min(max(resp.ContentLength, 0), 4<<20))
	if err != nil {
		return nil, "", err
	}
	modified, _ := http.ParseTime(resp.Header.Get("Last-Modified")) // zero if there is none
	doc = &upstream.Document{
		Name: name, Received: time.Now().UTC(), Generated: modified.UTC(), FileDate: fileDate(resp.Header),
		ETag: resp.Header.Get("ETag"), LastModified: resp.Header.Get("Last-Modified"),
	}
	doc.Fill(body)
	return doc, "", nil
}

// Unpack decompresses a document of which only the gzip is there. The reason of its error is Truncated or TooLarge.
func Unpack(doc *upstream.Document) (text []byte, err error) {
	from, err := gzip.NewReader(bytes.NewReader(doc.Gzip))
	if err != nil {
		return nil, failed(doc.Name, upstream.Truncated, err)
	}
	// gzip ends with the size of its text, so that the buffer need not grow
	return readAll(doc.Name, from, int64(binary.LittleEndian.Uint32(doc.Gzip[len(doc.Gzip)-4:])))
}

// readAll reads a document of perhaps size bytes. It stops when the document is too large for one of its kind.
func readAll(name upstream.Name, from io.Reader, size int64) ([]byte, error) {
	kind, _ := name.Split()
	most := kind.MaxBody()
	if size > most {
		size = 0
	}
	var full [][]byte // one buffer that grows would take three times as much for a body without end
	part, total := make([]byte, 0, size+bytes.MinRead), int64(0)
	for {
		n, err := from.Read(part[len(part):cap(part)])
		part, total = part[:len(part)+n], total+int64(n)
		switch {
		case total > most:
			return nil, failed(name, upstream.TooLarge, fmt.Errorf("body has over %d bytes", most))
		case err == io.EOF && full == nil: //nolint:errorlint // a wrapped one is another error
			return part, nil
		case err == io.EOF: //nolint:errorlint // the same
			return slices.Concat(append(full, part)...), nil
		case err != nil:
			return nil, failed(name, upstream.Truncated, err)
		case len(part) == cap(part):
			full, part = append(full, part), make([]byte, 0, 1<<20)
		}
	}
}

// failed returns an error with a reason, which is TimedOut if the cause is a timeout.
func failed(name upstream.Name, reason upstream.Reason, err error) error {
	if network, is := errors.AsType[net.Error](err); is && network.Timeout() { // also the end of a context
		reason = upstream.TimedOut
	}
	return &upstream.Error{Name: name, Reason: reason, Err: err}
}

func statusError(name upstream.Name, resp *http.Response) *upstream.Error {
	failure := &upstream.Error{Name: name, Reason: upstream.BadStatus, RetryAfter: retryAfter(resp.Header), Err: fmt.Errorf("status %d", resp.StatusCode)}
	switch resp.StatusCode {
	case http.StatusForbidden:
		failure.Reason = upstream.Refused
	case http.StatusNotFound:
		failure.Reason = upstream.Missing
	case http.StatusTooManyRequests, 420:
		failure.Reason = upstream.Throttled
		failure.RetryAfter = cmp.Or(failure.RetryAfter, throttledPause)
	}
	return failure
}

// retryAfter returns the wait that Retry-After asks for, in seconds or as a date; 0 if it asks for none.
func retryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	wait := time.Duration(0)
	if seconds, err := strconv.ParseUint(v, 10, 31); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(v); err == nil {
		now, _ := http.ParseTime(h.Get("Date")) // of the host: the clock of this machine may be wrong
		wait = at.Sub(cmp.Or(now, time.Now()))
	}
	return min(max(wait, 0), maxRetryAfter)
}

var dateInName = regexp.MustCompile(`\d{4}-\d{2}-\d{2}`)

// fileDate returns the date in the file name of Content-Disposition; "" if there is none.
func fileDate(h http.Header) string {
	_, params, _ := mime.ParseMediaType(h.Get("Content-Disposition"))
	return dateInName.FindString(params["filename"])
}

const quotesPriority = 2

// priority orders waiting requests; 0 goes first.
func priority(name upstream.Name) int {
	switch kind, key := name.Split(); {
	case name == spxOptions:
		return 0
	case kind == upstream.SettlementKind, kind == upstream.QuotesKind && (key == "_VIX" || key == "_VIX3M"):
		return 1
	case kind == upstream.QuotesKind && !strings.HasPrefix(key, "_"):
		return quotesPriority
	case kind == upstream.OptionsKind:
		return 3
	}
	return 4
}

// hostOf returns the name of a host, the same for all its ports and spellings.
func hostOf(u *url.URL) string { return strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")) }

// shortcutFor is how long a redirect is remembered. After that, the configured host is asked again, because a host that no longer
// has the documents may still answer.
const shortcutFor = time.Hour

// shortcuts remembers that a configured host redirects to another host, with the same path, so that a document takes
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
	moved, ok := *from, err == nil || errors.Is(err, upstream.ErrNotModified)
	moved.Host = last.Host
	switch direct := visited[0] != from.String(); {
	case direct && (!ok || len(visited) > 1):
		s.to.Delete(from.Host)
	case !direct && ok && len(visited) == 2 && moved.String() == last.String():
		s.to.Store(from.Host, shortcut{last.Host, time.Now().Add(shortcutFor)})
	}
}
