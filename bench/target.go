package main

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// target is the server that is loaded.
type target struct {
	base       string // scheme and host, as in the URL
	host, port string // to connect to
	timeout    time.Duration
	tls        bool
	config     *tls.Config // nil: that of the system
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
	return &target{base: u.Scheme + "://" + u.Host, host: u.Hostname(), port: port, timeout: timeout, tls: u.Scheme == "https"}, path, nil
}

// local says whether the target is this machine, judged by its name alone.
func (t *target) local() bool {
	ip, err := netip.ParseAddr(t.host)
	return t.host == "localhost" || err == nil && ip.IsLoopback()
}

// address is where to connect to.
func (t *target) address() string { return net.JoinHostPort(t.host, t.port) }

// dial opens a connection.
func (t *target) dial() (net.Conn, error) {
	d := &net.Dialer{Timeout: t.timeout}
	if !t.tls {
		return d.Dial("tcp", t.address())
	}
	conn, err := tls.DialWithDialer(d, "tcp", t.address(), t.config)
	if err != nil {
		return nil, err // and not a connection that is nil
	}
	return conn, nil
}

// request is a GET request that is sent again and again.
type request struct {
	path       string
	headers    []string // NAME: VALUE
	revalidate bool     // with the last ETag in If-None-Match
	name       string   // under which the report counts it
}

// head returns the bytes of a request, without its last line break. A header field of the caller takes the place of ours.
func (t *target) head(q request) []byte {
	text := "GET " + q.path + " HTTP/1.1\r\n"
	for _, ours := range []string{"Host: " + t.base[strings.Index(t.base, "://")+3:], "User-Agent: strikecache-bench"} {
		name, _, _ := strings.Cut(ours, ":")
		if !slices.ContainsFunc(q.headers, func(h string) bool { n, _, _ := strings.Cut(h, ":"); return strings.EqualFold(n, name) }) {
			text += ours + "\r\n"
		}
	}
	for _, h := range q.headers {
		name, value, _ := strings.Cut(h, ":")
		text += name + ": " + strings.TrimSpace(value) + "\r\n"
	}
	return []byte(text)
}

// get sends one request for a path, on a connection of its own.
func (t *target) get(path string, headers ...string) (status int, body []byte, err error) {
	conn, err := t.dial()
	if err == nil {
		defer func() { _ = conn.Close() }()
		err = conn.SetDeadline(time.Now().Add(t.timeout))
	}
	if err == nil {
		_, err = conn.Write(append(t.head(request{path: path, headers: headers}), "\r\n"...))
	}
	var answer *http.Response
	if err == nil {
		answer, err = http.ReadResponse(bufio.NewReader(conn), nil)
	}
	if err == nil {
		body, err = io.ReadAll(io.LimitReader(answer.Body, 64<<20))
	}
	if err != nil {
		return 0, nil, fmt.Errorf("get %s%s: %w", t.base, path, err)
	}
	return answer.StatusCode, body, nil
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
		name, _, _ := strings.Cut(path, "?")
		requests = append(requests, request{path, []string{"Accept-Encoding: " + codings[i%len(codings)]}, i%3 == 0, name})
	}
	return requests, err
}
