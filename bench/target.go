package main

import (
	"bufio"
	"bytes"
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

// dial opens a connection.
func (t *target) dial() (net.Conn, error) {
	d, address := &net.Dialer{Timeout: t.timeout}, net.JoinHostPort(t.host, t.port)
	if t.tls {
		return (&tls.Dialer{NetDialer: d, Config: t.config}).Dial("tcp", address)
	}
	return d.Dial("tcp", address)
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
	var x *exchange
	conn, err := t.dial()
	if err == nil {
		x, err = exchangeOver(conn, t.timeout, append(t.head(request{path: path, headers: headers}), "\r\n"...))
	}
	if err != nil {
		return 0, nil, fmt.Errorf("get %s%s: %w", t.base, path, err)
	}
	return x.status, x.body, nil
}

// exchangeOver sends a request, reads the answer and closes the connection.
func exchangeOver(conn net.Conn, timeout time.Duration, request []byte) (*exchange, error) {
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	if _, err := conn.Write(request); err != nil {
		return nil, err
	}
	var raw bytes.Buffer
	resp, err := http.ReadResponse(bufio.NewReader(io.TeeReader(conn, &raw)), nil)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	return &exchange{status: resp.StatusCode, ETag: resp.Header.Get("ETag"), body: body, raw: raw.Bytes(),
		coding: cmp.Or(resp.Header.Get("Content-Encoding"), "identity")}, err
}

// Paths of strikecache.
const (
	gamma = "/api/v1/gex/spx"
	// placeholder stands in the document and in these paths for an underlying.
	placeholder = "{u}"
	historical  = "/api/v1/gex/{u}/historical"
	series      = "/api/v1/gex/{u}/series"
	maxPain     = "/api/public/{u}-max-pain"
	flow        = "/api/v1/options/flow/unusual"
	underlyings = "/api/v1/underlyings"
	volatility  = "/api/public/vix-term-structure"
)

// mix finds these values in documents of strikecache. A server that is not ready may have no dates and expirations yet.
var (
	resource   = regexp.MustCompile(`"(/api/[^"]+)":`)                    // in /openapi.json
	storedDate = regexp.MustCompile(`\["(\d{4}-\d\d-\d\d)"`)              // at the beginning of a row of the series
	expiration = regexp.MustCompile(`\{"expiration":"(\d{4}-\d\d-\d\d)"`) // in the list of expirations of max pain
	symbol     = regexp.MustCompile(`\{"symbol":"([A-Z]+)"`)              // at the beginning of a row of the underlyings
)

// codings are the values of Accept-Encoding in a mix.
var codings = []string{"gzip, deflate, br, zstd", "gzip", "br", "identity"}

// mix returns the kinds of requests that a cache in front would pass on: every resource (of which underlyings: spx or all) in every
// coding, the stored dates, the expirations, flow limits, and revalidations, and the underlyings. It returns none when the target is not a
// strikecache. The report counts a resource of all underlyings in one row.
func (t *target) mix(which string) (requests []request, of []string, err error) {
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
	if !slices.Contains(resources, strings.Replace(gamma, "spx", placeholder, 1)) {
		return nil, nil, err
	}
	of = []string{"SPX"}
	if which == "all" {
		if of = find(underlyings, symbol); len(of) == 0 {
			return nil, nil, cmp.Or(err, fmt.Errorf("--mix all: %s%s names no underlying", t.base, underlyings))
		}
	}
	add := func(name, query, underlying string) {
		i := len(requests)
		path := strings.Replace(name, placeholder, strings.ToLower(underlying), 1)
		if which != "all" {
			name = path
		}
		requests = append(requests, request{path + query, []string{"Accept-Encoding: " + codings[i%len(codings)]}, i%3 == 0, name})
	}
	for _, path := range resources {
		for i, u := range of {
			for range codings {
				if i == 0 || strings.Contains(path, placeholder) {
					add(path, "", u)
				}
			}
		}
	}
	for _, u := range of {
		for _, date := range find(strings.Replace(series, placeholder, strings.ToLower(u), 1), storedDate) {
			add(historical, "?date="+date, u)
		}
		for _, date := range find(strings.Replace(maxPain, placeholder, strings.ToLower(u), 1), expiration) {
			add(maxPain, "?expiration="+date, u)
		}
	}
	for limit := 1; limit <= 100; limit += 9 {
		add(flow, "?limit="+strconv.Itoa(limit), "")
	}
	return requests, of, err
}
