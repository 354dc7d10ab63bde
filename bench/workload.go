package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// target is the server that is loaded.
type target struct {
	scheme, host string // as in the URL
	address      string // host:port to connect to
	timeout      time.Duration
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
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	path := ""
	if u.Path != "" && u.Path != "/" || u.RawQuery != "" {
		path = u.RequestURI()
	}
	return &target{u.Scheme, u.Host, net.JoinHostPort(u.Hostname(), port), timeout}, path, nil
}

// local says whether the target is this machine, judged by its name alone.
func (t *target) local() bool {
	host, _, _ := net.SplitHostPort(t.address)
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func (t *target) port() int {
	_, text, _ := net.SplitHostPort(t.address)
	port, _ := strconv.Atoi(text)
	return port
}

func (t *target) base() string { return t.scheme + "://" + t.host }

// connect returns a client with one keep-alive connection, which it opens when it first needs it. The client sends
// each request once, and does not follow redirects.
func (t *target) connect() *fasthttp.HostClient {
	return &fasthttp.HostClient{
		Addr: t.address, IsTLS: t.scheme == "https", MaxConns: 1, MaxIdemponentCallAttempts: 1,
		Dial:                     func(address string) (net.Conn, error) { return net.DialTimeout("tcp", address, t.timeout) },
		NoDefaultUserAgentHeader: true, DisablePathNormalizing: true,
		MaxIdleConnDuration: time.Minute, MaxResponseBodySize: maxBody,
	}
}

// maxBody bounds a response body, in bytes.
const maxBody = 64 << 20

// request is a GET request that is sent again and again.
type request struct {
	path       string
	headers    []string // NAME: VALUE
	revalidate bool     // with the last ETag in If-None-Match
}

// prepare writes a request into r, which it resets.
func (t *target) prepare(r *fasthttp.Request, q request) {
	r.Reset()
	r.SetRequestURI(t.base() + q.path)
	r.UseHostHeader = true
	r.Header.SetHost(t.host)
	r.Header.SetUserAgent("strikecache-bench")
	r.SetTimeout(t.timeout)
	for _, h := range q.headers {
		name, value, _ := strings.Cut(h, ":")
		if name = strings.TrimSpace(name); strings.EqualFold(name, "host") || strings.EqualFold(name, "user-agent") {
			r.Header.Set(name, strings.TrimSpace(value))
		} else {
			r.Header.Add(name, strings.TrimSpace(value))
		}
	}
}

// get asks for a path once.
func (t *target) get(path string, headers ...string) (status int, body []byte, err error) {
	client := t.connect()
	defer client.CloseIdleConnections()
	var q fasthttp.Request
	var r fasthttp.Response
	t.prepare(&q, request{path: path, headers: headers})
	if err := client.Do(&q, &r); err != nil {
		return 0, nil, fmt.Errorf("get %s%s: %w", t.base(), path, err)
	}
	return r.StatusCode(), r.Body(), nil
}

// Paths of strikecache.
const (
	gamma      = "/api/v1/gex/spx"
	historical = "/api/v1/gex/spx/historical"
	series     = "/api/v1/gex/spx/series"
	sectors    = "/api/v1/sectors/rotation"
	maxPain    = "/api/public/spx-max-pain"
	flow       = "/api/v1/options/flow/unusual"
	volatility = "/api/public/vix-term-structure"
)

// isStrikecache says whether the target answers as strikecache does.
func (t *target) isStrikecache() (bool, error) {
	status, body, err := t.get("/readyz")
	if err != nil {
		return false, err
	}
	var ready struct {
		Source string `json:"source"`
	}
	known := json.Unmarshal(body, &ready) == nil && ready.Source != ""
	return known && (status == http.StatusOK || status == http.StatusServiceUnavailable), nil
}

// mix returns what a cache in front of strikecache would miss: every resource in every coding, the stored dates, the
// expirations, flow limits, and revalidations.
func (t *target) mix() ([]request, error) {
	var paths []string
	for _, path := range []string{gamma, historical, series, sectors, maxPain, flow, volatility} {
		paths = append(paths, slices.Repeat([]string{path}, 4)...)
	}
	dates, err := t.dates()
	if err != nil {
		return nil, err
	}
	for _, d := range dates {
		paths = append(paths, historical+"?date="+d)
	}
	expirations, err := t.expirations()
	if err != nil {
		return nil, err
	}
	for _, e := range expirations {
		paths = append(paths, maxPain+"?expiration="+e)
	}
	for limit := 1; limit <= 100; limit += 9 {
		paths = append(paths, flow+"?limit="+strconv.Itoa(limit))
	}
	codings := []string{"gzip, deflate, br, zstd", "gzip", "br", "identity"}
	var requests []request
	for i, path := range paths {
		requests = append(requests, request{path, []string{"Accept-Encoding: " + codings[i%len(codings)]}, i%3 == 0})
	}
	return requests, nil
}

// dates returns the dates of the stored history; there may be none.
func (t *target) dates() ([]string, error) {
	var doc struct {
		Data struct {
			Columns []string
			Rows    [][]any
		}
	}
	if err := t.json(series, &doc); err != nil {
		return nil, err
	}
	column := slices.Index(doc.Data.Columns, "date")
	var dates []string
	for _, row := range doc.Data.Rows {
		if column >= 0 && column < len(row) {
			dates = append(dates, fmt.Sprint(row[column]))
		}
	}
	return dates, nil
}

// expirations returns the expirations that max pain is computed for; there may be none.
func (t *target) expirations() ([]string, error) {
	var doc struct {
		Data struct {
			Expirations []struct{ Expiration string }
		}
	}
	err := t.json(maxPain, &doc)
	var dates []string
	for _, e := range doc.Data.Expirations {
		dates = append(dates, e.Expiration)
	}
	return dates, err
}

// json reads a document into a value, which stays as it is while the document is not there.
func (t *target) json(path string, into any) error {
	status, body, err := t.get(path)
	if err != nil || status != http.StatusOK {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}
