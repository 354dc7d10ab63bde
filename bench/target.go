package main

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// target is the server that is loaded.
type target struct {
	base       string // scheme and host, as in the URL
	host, port string // to connect to
	timeout    time.Duration
}

// parseTarget splits a URL into a server and a path with its query, "" when the URL has neither.
func parseTarget(text string, timeout time.Duration) (*target, string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, "", fmt.Errorf("URL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Fragment != "" || u.User != nil {
		return nil, "", fmt.Errorf("URL %q: want http://HOST:PORT/PATH or https://HOST:PORT/PATH", text)
	}
	path := ""
	if u.Path != "" && u.Path != "/" || u.RawQuery != "" {
		path = u.RequestURI()
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	return &target{u.Scheme + "://" + u.Host, u.Hostname(), port, timeout}, path, nil
}

// local says whether the target is this machine, judged by its name alone.
func (t *target) local() bool {
	ip, err := netip.ParseAddr(t.host)
	return t.host == "localhost" || err == nil && ip.IsLoopback()
}

// connect returns a client with one keep-alive connection, which opens with the first request. The client sends each
// request once, and does not follow redirects.
func (t *target) connect() *fasthttp.HostClient {
	return &fasthttp.HostClient{
		Name: "strikecache-bench", Addr: net.JoinHostPort(t.host, t.port), IsTLS: strings.HasPrefix(t.base, "https:"),
		Dial:     func(address string) (net.Conn, error) { return net.DialTimeout("tcp", address, t.timeout) },
		MaxConns: 1, MaxIdemponentCallAttempts: 1, MaxIdleConnDuration: time.Minute, MaxResponseBodySize: 64 << 20,
		DisablePathNormalizing: true,
	}
}

// request is a GET request that is sent again and again.
type request struct {
	path       string
	headers    []string // NAME: VALUE
	revalidate bool     // with the last ETag in If-None-Match
}

// prepare writes a request into r, which must be empty.
func (t *target) prepare(r *fasthttp.Request, q request) {
	r.SetRequestURI(t.base + q.path)
	r.UseHostHeader = true // if the headers have one
	r.SetTimeout(t.timeout)
	for _, h := range q.headers {
		name, value, _ := strings.Cut(h, ":")
		r.Header.Add(name, strings.TrimSpace(value))
	}
}

// get sends one request for a path.
func (t *target) get(path string, headers ...string) (status int, body []byte, err error) {
	client := t.connect()
	defer client.CloseIdleConnections()
	var q fasthttp.Request
	var r fasthttp.Response
	t.prepare(&q, request{path: path, headers: headers})
	if err := client.Do(&q, &r); err != nil {
		return 0, nil, fmt.Errorf("get %s%s: %w", t.base, path, err)
	}
	return r.StatusCode(), r.Body(), nil
}

// Paths of strikecache.
const (
	gamma      = "/api/v1/gex/spx"
	historical = gamma + "/historical"
	series     = gamma + "/series"
	maxPain    = "/api/public/spx-max-pain"
	flow       = "/api/v1/options/flow/unusual"
	volatility = "/api/public/vix-term-structure"
)

// mix finds these values in documents of strikecache. A server that is not ready may have no dates and expirations yet.
var (
	resource   = regexp.MustCompile(`"(/api/[^"]+)":`)                    // in /openapi.json
	storedDate = regexp.MustCompile(`\["(\d{4}-\d\d-\d\d)"`)              // at the beginning of a row of the series
	expiration = regexp.MustCompile(`\{"expiration":"(\d{4}-\d\d-\d\d)"`) // in the list of expirations of max pain
)

// codings are the values of Accept-Encoding in a mix.
var codings = []string{"gzip, deflate, br, zstd", "gzip", "br", "identity"}

// mix returns the kinds of requests that a cache in front would pass on: every resource in every coding, the stored dates,
// the expirations, flow limits, and revalidations. It returns none when the target is not a strikecache.
func (t *target) mix() (requests []request, err error) {
	find := func(path string, what *regexp.Regexp) (found []string) {
		status, body, err2 := t.get(path)
		err = cmp.Or(err, err2)
		if status == http.StatusOK {
			for _, match := range what.FindAllSubmatch(body, -1) {
				found = append(found, string(match[1]))
			}
		}
		return found
	}
	resources := find("/openapi.json", resource)
	if !slices.Contains(resources, gamma) {
		return nil, err
	}
	var paths []string
	for _, path := range resources {
		paths = append(paths, slices.Repeat([]string{path}, len(codings))...)
	}
	for _, date := range find(series, storedDate) {
		paths = append(paths, historical+"?date="+date)
	}
	for _, date := range find(maxPain, expiration) {
		paths = append(paths, maxPain+"?expiration="+date)
	}
	for limit := 1; limit <= 100; limit += 9 {
		paths = append(paths, flow+"?limit="+strconv.Itoa(limit))
	}
	for i, path := range paths {
		requests = append(requests, request{path, []string{"Accept-Encoding: " + codings[i%len(codings)]}, i%3 == 0})
	}
	return requests, err
}
