package server_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"strikecache/server"
)

// documented are the codes of each status.
var documented = map[int][]string{
	400: {"invalid_parameter", "bad_request"}, 401: {"invalid_api_key"}, 404: {"not_found", "snapshot_not_found", "expiration_not_found"}, 405: {"method_not_allowed"},
	413: {"body_too_large"}, 414: {"uri_too_long"}, 431: {"headers_too_large"}, 505: {"http_version_not_supported"},
}

// answers sends raw bytes and returns the responses, whose bodies are read, with the
// codes of the errors.
func answers(t *testing.T, address string, raw string, methods ...string) (responses []*http.Response, codes []string) {
	t.Helper()
	got := exchange(t, address, raw, true)
	r := bufio.NewReader(strings.NewReader(got))
	for {
		if _, err := r.Peek(1); err != nil {
			return responses, codes
		}
		method := "GET"
		if n := len(responses); n < len(methods) {
			method = methods[n]
		}
		resp, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		var doc struct {
			Success bool
			Error   struct{ Code string }
		}
		switch {
		case resp.StatusCode == 100 || resp.StatusCode == 204 || resp.StatusCode == 304 || method == "HEAD":
			if len(body) > 0 {
				t.Errorf("%q: %d with a body", raw, resp.StatusCode)
			}
		case resp.StatusCode == 200 && resp.Header.Get("Content-Type") != "application/json; charset=utf-8" && resp.Header.Get("Content-Security-Policy") != "": // a page
		case resp.Header.Get("Content-Encoding") != "", bytes.HasPrefix(body, []byte(`{"status":"ok"`)), bytes.HasPrefix(body, []byte(`{"ready":`)):
		default:
			if err := json.Unmarshal(body, &doc); err != nil {
				t.Fatalf("%q: %d %v %q", raw, resp.StatusCode, err, body)
			}
			if doc.Success != (resp.StatusCode == 200) || resp.StatusCode != 200 && !slices.Contains(documented[resp.StatusCode], doc.Error.Code) {
				t.Errorf("%q: %d %s", raw, resp.StatusCode, body)
			}
		}
		if resp.StatusCode >= 400 && resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%q: %d %v", raw, resp.StatusCode, resp.Header)
		}
		responses, codes = append(responses, resp), append(codes, doc.Error.Code)
	}
}

// FuzzTarget: a target gets the answer that follows from how packages http and url read it, both in HTTP/1.1 and in HTTP/1.0.
func FuzzTarget(f *testing.F) {
	address := listen(f, newServer(newFinder(f)))
	for _, target := range []string{
		"/", "/api/v1/gex/spx", "/api/v1/gex/spx?x", "/api/v1/gex/spx/historical?date=2026-11-17", "/api/v1/gex/spx/historical?date=2026-11-18", "/api/v1/gex/spx/historical?date=2026-11-21", "/api/v1/gex/spx/historical?date=&date=2026-11-17", "/api/public/spx-max-pain?expiration=2026-11-27",
		"/api/public/spx-max-pain?expiration=2026-11-28", "/api/v1/options/flow/unusual?limit=20", "/api/v1/options/flow/unusual?l%69mit=%320", "/api/v1/options/flow/unusual?limit=020", "/api/v1/options/flow/unusual?limit=20#x", "http://a/api/v1/gex/spx", "//api/v1/gex/spx", "/api/v1/gex/%73px", "/../etc/passwd", "*", "a:443", "/\xff",
		"/api/v1/options/flow/unusual?limit=20;limit=1", "/api/v1/gex/spx?x=http://a", "http://%zz/", "http://[::1/api", "/api/public/vix-term-structure?", "/api/v1/gex/spx/series?date=x",
		"/api/v1/options/flow/unusual?limit=101", "/api/v1/options/flow/unusual?limit=", "/api/v1/options/flow/unusual?limit", "/api/v1/options/flow/unusual?limit=+20", "/api/v1/options/flow/unusual?limit=2%30%", "/api/v1/options/flow/unusual?limit=%E2%91%A0", "/api/v1/options/flow/unusual?limit=20&lim%69t=20",
		"/api/public/spx-max-pain?expiration=", "/api/public/spx-max-pain?expiration=../../etc/passwd", "/api/v1/gex/spx/historical?date=2026-1-1", "/api/v1/gex/spx/historical?date=2026-02-29",
	} {
		f.Add(target)
	}
	f.Fuzz(func(t *testing.T, target string) {
		direct, codes := answers(t, address, "GET "+target+" HTTP/1.1\r\nHost: a\r\n\r\n")
		other, otherCodes := answers(t, address, "GET "+target+" HTTP/1.0\r\nHost: a\r\n\r\n")
		if strings.ContainsAny(target, "\r\n") {
			return // this may be several requests, or part of one
		}
		if len(direct) != 1 || len(other) != 1 || direct[0].StatusCode != other[0].StatusCode || codes[0] != otherCodes[0] {
			t.Fatalf("%q: %v %v from the loop, %v %v through fasthttp", target, direct, codes, other, otherCodes)
		}
		status, code := direct[0].StatusCode, codes[0]
		if want, wantCode := expected(target); want != 0 && (status != want || code != wantCode) {
			t.Errorf("%q: %d %s, want %d %s", target, status, code, want, wantCode)
		}
	})
}

// expected returns the documented answer; 0 if package http refuses the request or the target has an unusual form.
func expected(target string) (status int, code string) {
	if strings.Contains(target, "#") {
		return 400, "bad_request"
	}
	req, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n")))
	if err != nil || !strings.HasPrefix(target, "/") || strings.ContainsFunc(target, func(r rune) bool { return r <= ' ' || r >= 0x7f }) || len(target) > 4096 {
		return 0, ""
	}
	path, query, _ := strings.Cut(req.RequestURI, "?")
	name := map[string]string{"/api/v1/gex/spx/historical": "date", "/api/public/spx-max-pain": "expiration", "/api/v1/options/flow/unusual": "limit"}[path]
	if name == "" {
		if slices.Contains([]string{"/api/v1/gex/spx", "/api/v1/gex/spx/series", "/api/v1/sectors/rotation", "/api/public/vix-term-structure", "/healthz", "/readyz"}, path) || server.IsPage(path) {
			return 200, ""
		}
		return 404, "not_found"
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return 0, ""
	}
	switch given := values[name]; {
	case len(given) == 0:
		return 200, ""
	case len(given) > 1:
		return 400, "invalid_parameter"
	default:
		return expectedOf(name, given[0])
	}
}

// expectedOf returns the documented answer to a parameter's value. The finder has three dates, two expirations and three limits.
func expectedOf(name, value string) (status int, code string) {
	if name == "limit" {
		if slices.Contains([]string{"1", "20", "100"}, value) {
			return 200, ""
		}
		return 400, "invalid_parameter"
	}
	_, err := time.Parse(time.DateOnly, value)
	switch {
	case err != nil || len(value) != 10:
		return 400, "invalid_parameter"
	case name == "expiration" && (value == "2026-11-27" || value == "2026-12-18"):
		return 200, ""
	case name == "expiration":
		return 404, "expiration_not_found"
	case value == "2026-11-17" || value == "2026-11-19" || value == "2026-11-20":
		return 200, ""
	case value > "2026-11-20":
		return 400, "invalid_parameter"
	}
	return 404, "snapshot_not_found"
}

// FuzzConnection: for any input, the server sends only whole responses with documented codes.
func FuzzConnection(f *testing.F) {
	address := listen(f, newServer(newFinder(f)))
	for _, raw := range []string{
		series + seriesLine + "Host: a\r\nAccept-Encoding: gzip\r\n\r\n", "HEAD /\xff HTTP/1.1\r\n\r\n", "POST /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello" + series, "OPTIONS /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\n\r\n",
		seriesLine + "Host: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi", seriesLine + "Host: a\r\nIf-None-Match: *\r\n\r\n", seriesLine + "Host: a\r\nX-API-Key: x\r\nX-API-Key: y\r\n\r\n", "GET / HTTP/2.0\r\n\r\n", "HEAD http://%zz/ HTTP/1.1\r\nHost: a\r\n\r\n", "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n",
		seriesLine + "Host: a\r\nAccept-Encoding: dcz\r\nAvailable-Dictionary: :47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:\r\n\r\n",
		"HEAD /api/v1/gex/spx HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", seriesLine + "Host: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", seriesLine + "Host: a\r\nContent-Length: 1025\r\n\r\n", "\r\n" + seriesLine + "Host: a\r\nConnection: close\r\n\r\n", seriesLine + "Host: a\r\nExpect: x\r\n\r\n", seriesLine + "Host: a\r\nConnection: Close\r\n\r\n" + series, seriesLine + "Host: a\r\nConnection: close\r\nConnection: keep-alive\r\n\r\n" + series, seriesLine + "Host: a\r\nConnection: keep-alive, close\r\n\r\n" + series, "HEAD a:443 HTTP/1.1\r\nHost: a\r\n\r\n",
		"HEAD /" + strings.Repeat("a", 5000), "HEAD / HTTP/1.1\r\nX: " + strings.Repeat("a", 9000), "HEAD / HTTP/2.0\r\n\r\n", "HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\n\r\n", "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		methods := []string{}
		r := bufio.NewReader(bytes.NewReader(bytes.TrimPrefix(raw, []byte("\r\n"))))
		for {
			req, err := http.ReadRequest(r)
			if err != nil {
				break
			}
			methods = append(methods, req.Method)
			if _, err := io.Copy(io.Discard, req.Body); err != nil {
				break
			}
		}
		if line, _, _ := bytes.Cut(bytes.TrimPrefix(raw, []byte("\r\n")), []byte{' '}); len(methods) == 0 && string(line) == "HEAD" {
			methods = []string{"HEAD"}
		}
		if len(methods) > 1 || bytes.Contains(raw, []byte("100-continue")) {
			methods = methods[:0:0]
			if bytes.Contains(raw, []byte("HEAD")) {
				return // the client cannot know where a body begins
			}
		}
		answers(t, address, string(raw), methods...)
	})
}
