package server_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"strikecache/server"
)

// unusual are targets that are no path, and paths with bytes that no target has, with the status of their answer.
var unusual = map[string]int{
	"http://a/": 200, "http://a/api/v1/gex/spx": 200, "HTTP://A:80/api/v1/gex/spx?x": 200, "https://b/api/v1/gex/spx": 200, "http://a/api/v1/gex/spx/": 404, "http://a//api/v1/gex/spx": 404,
	"*": 400, "": 400, " /": 400, "/ /": 400, "#": 400, "api/v1/gex/spx": 400, "a:443": 400, "http://[::1/api/v1/gex/spx": 400, "http://%zz/": 400,
}

// parameter is a public parameter with a valid value.
type parameter struct{ path, name, good string }

var parameters = []parameter{
	{"/api/v1/gex/spx/historical", "date", "2026-11-19"}, {"/api/public/spx-max-pain", "expiration", "2026-11-27"}, {"/api/v1/options/flow/unusual", "limit", "20"},
	{"/api/v1/gex/spx/levels", "format", "line"}, {"/api/v1/gex/spx/series", "format", "csv"},
}

// formats are the values of the parameter format by path.
var formats = map[string][]string{
	"/api/v1/gex/spx/levels": {"json", "csv", "line"}, "/api/v1/gex/spx/series": {"json", "csv"}, "/api/v1/gex/spx/matrix": {"json", "csv"},
	"/api/public/spx-max-pain":     {"json", "csv"},
	"/api/v1/options/flow/unusual": {"json", "csv"},
}

// queries returns queries with a parameter at and beyond its bounds, and with other parameters.
func (x parameter) queries() []string {
	n, v := x.name, x.good
	all := []string{
		n + "=" + v, n + "=" + escaped(v), n + "=" + strings.ToLower(escaped(v)), escaped(n) + "=" + v, "&&" + n + "=" + v + "&", "x=1&" + n + "=" + v + "&y", "", "&", "=", "=" + v, "%",
		"%zz=1", "x", n + "[]=x", n + ".=x", strings.ToUpper(n) + "=x", "x" + n + "=x", n + "x=x", "+" + n + "=x", "%20" + n + "=x", n + "%00=x", "x=" + n + "=1", "x=%26" + n + "=x",
		"x=" + strings.Repeat("9", 3900), strings.Repeat("a&", 1900), "x=../../etc/passwd", "x=http://a/b?" + n + "=c",
		n, n + "=", n + "&x", "x&" + n, n + "=" + v + "&" + n + "=" + v, n + "=" + v + "&" + n + "=x", n + "=" + v + "&" + n + "=", n + "=" + v + "&" + n, n + "&" + n,
		n + "=&" + n + "=" + v, n + "=" + v + "&" + escaped(n) + "=" + v, strings.Repeat(n+"="+v+"&", 100), n + "=" + v + ";" + n + "=" + v, n + "==" + v, n + "=" + v + "=", n + "=" + v + "?" + n + "=" + v,
	}
	for _, value := range []string{
		"x", "null", "undefined", "true", "*", "%2A", "-", "_", ".", "..", "/", "%2F", "%25", "%", "%2", "%zz", "%u0031", "%C0%B1", "%FF", "%E2%82", "%00", v + "%00", "%00" + v, v + "%0A", v + "%0D%0AX-Injected:%201",
		"%20" + v, v + "%20", "+" + v, v + "+", "%09" + v, "%2B" + v, "%EF%BB%BF" + v, v + "%E2%80%8B", escaped(escaped(v)), "'" + v + "'", "%22" + v + "%22", v + "," + v, v + "%26" + v, v + "/", v + "/..",
		"../../etc/passwd", "..%2F..%2Fetc%2Fpasswd", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "%252e%252e%252fetc", "..%5C..%5Cwindows", "%2Fetc%2Fpasswd", "file:///etc/passwd", "http://a/" + v, "./" + v, v + "/../" + v, ".tmp-gex-spx",
		"%27%20OR%201=1--", "$(id)", "`id`", "{{7*7}}", "%3Cscript%3E", "%C3%A4", "%F0%9F%92%A9", "%EF%BC%91", strings.Repeat("9", 3900), strings.Repeat("%39", 1300), strings.Repeat("%00", 1300), strings.Repeat(v, 100),
		"\xc3\xa4", "\xff", "\xef\xbc\x92\xef\xbc\x90", "\x00", v + "\x00", v + " ", " " + v, v + "\t", v + "\n", v + "\rX: 1", "\x7f", "\x1b[0m", v + "#", v + "#" + v,
		strings.Repeat("9", 4200), strings.Repeat("9", 8100), "2026-11-17", "2026-11-18", "2026-11-20", "2026-11-28", "2026-12-18", "2024-02-29", "2000-02-29", "1970-01-01", "1969-12-31", "1900-01-01", "0004-02-29", "0001-01-01", "0000-01-01",
		"2026-11-21", "2027-11-20", "2999-12-31", "9999-12-31",
		"1", "100",
		"0", "-0", "00", "01", "007", "020", "101", "110", "199", "999", "1000", "-1", "-20", "%2B1", "%2B20", "1.0", "20.", ".5", "1e1", "1E2", "0x10", "0b1", "1_0", "1,0",
		"2147483648", "4294967316", "18446744073709551636", "99999999999999999999999999", "NaN", "Infinity", "-Infinity", "%EF%BC%92%EF%BC%90", "%D9%A2%D9%A0", "%C2%B2%C2%B0", "20px", "ten",
		"2023-02-29", "1900-02-29", "2100-02-29", "2024-02-30", "2024-02-31", "2024-04-31", "2024-13-01", "2024-00-01", "2024-01-00", "2024-01-32", "0000-00-00", "2024-99-99", "10000-01-01", "99999-01-01", "-001-01-01", "-2024-01-01",
		"%2B2024-01-01", "+024-01-01", "024-01-01", "24-01-01", "2024-1-1", "2024-01-1", "2024-1-01", "20240101", "2024-0101", "2024/01/01", "2024.01.01", "2024%2F01%2F01", "01-01-2024", "01/01/2024", "2024-W01-1", "2024-001",
		"2024-01-01T00:00:00Z", "2024-01-01T", "2024-01-01Z", "2024-01-01%2000:00", "2024-Jan-01", "today", "yesterday", "latest", "now", "2024-01", "2024", "1704067200", "2024-01-0a", "2024-01-%EF%BC%91", "2%C2%B024-01-1", "2024%E2%80%9001%E2%80%9001", "2024-01--1", "2024- 1- 1",
	} {
		all = append(all, n+"="+value)
	}
	return all
}

// escaped percent-encodes every byte.
func escaped(s string) string {
	var out strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&out, "%%%02X", s[i])
	}
	return out.String()
}

// FuzzTarget: a target gets the answer that follows from how package url reads it, both in HTTP/1.1 and in HTTP/1.0. The
// connection ends if the target is malformed or no path. Otherwise the next request is answered.
func FuzzTarget(f *testing.F) {
	address := listen(f, newServer(newFinder(f)))
	for target := range unusual {
		f.Add(target)
	}
	for _, x := range parameters {
		for _, query := range x.queries() {
			f.Add(x.path + "?" + query)
		}
		f.Add(x.path + "?format=csv&" + x.name + "=" + x.good)
		f.Add(x.path + "?" + x.name + "=1&format=csv")
	}
	for _, target := range []string{
		"/", "//a/api/v1/gex/spx", "/?date=2024-01-01", "/api/v1/gex/spx", "/api/v1/gex/spx?", "/api/v1/gex/spx?/../..", "/api/v1/gex/spx??", "/api/v1/gex/spx?x=http://a", "/api/v1/gex/spx?" + strings.Repeat("a", 4080), "/api/v1/gex/spx/series?date=x", "/api/public/vix-term-structure?", "/healthz?x=1", "/readyz?x",
		"/\xc3\xa4", "/\x00", "/api/v1/gex/spx\x00", "/api/v1/gex/spx#x", "/\x7f", "/" + strings.Repeat("a", 4096), "/" + strings.Repeat("a", 9000), "/" + strings.Repeat("a", 20_000),
		"//", "/.", "/..", "/api", "/api/", "/api/v1", "/api/v1/gex", "/api/v1/gex/spx/", "/api/v1/gex/spx/historical/", "/api/v1/gex/spx//", "//api/v1/gex/spx", "/api//v1/gex/spx", "/api/v1/gex//spx",
		"/API/v1/gex/spx", "/api/V1/gex/spx", "/api/v1/GEX/SPX", "/api/v1/gex/%73px", "/api/v1/gex%2Fspx", "/api/v1/gex%2fspx", "/%61pi/v1/gex/spx", "/api/v1/gex/spx%00", "/api/v1/gex/spx%20", "/api/v1/gex/spx%2F", "/api/v1/gex/spx%3Fdate=1", "/api/v1/gex/spx;x=1", "/api/v1/gex/spx&x=1",
		"/api/v1/gex/../gex/spx", "/api/v1/./gex/spx", "/api/v1/gex/spx/.", "/api/v1/gex/spx/..", "/../api/v1/gex/spx", "/../../../../etc/passwd", "/api/v1/gex/spx/../../../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2f..%2fetc%2fpasswd", "/..%5c..%5cetc", "/....//....//etc/passwd",
		"/api/v1/gex/spx/historical/2024-01-02", "/api/v1/gex/ndx", "/api/v2/gex/spx", "/api/v1/gex/spx.json", "/api/v1/gex/spx~", "/api/v1/gex/spx'", "/api/v1/gex/spx%27", "/api/public/spx-max-pain/", "/api/public", "/healthz/", "/readyz/", "/HEALTHZ", "/health", "/data", "/data/keys.json", "/keys.json",
		"/simulated/usage.json", "/.env", "/.git/config", "/debug/pprof/", "/metrics", "/robots.txt", "/index.html", "/wp-login.php", "/%zz", "/%", "/%C3%A4", "/%FF", "/\\", "/api\\v1\\gex\\spx", "/nowhere?limit=0", "/http://a/api/v1/gex/spx", "//a/api/v1/gex/spx",
		"/" + strings.Repeat("a", 4095), "/" + strings.Repeat("../", 1000), "/" + strings.Repeat("%2e", 1000), "/" + strings.Repeat("/", 4000),
	} {
		f.Add(target)
	}
	f.Fuzz(func(t *testing.T, target string) {
		newer := answers(t, address, "GET "+target+" HTTP/1.1\r\nHost: a\r\n\r\n"+series, true)
		older := answers(t, address, "GET "+target+" HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"+series, true)
		if strings.ContainsAny(target, "\r\n") {
			return // this may be several requests, or part of one
		}
		status, code := expected(target)
		if status == 0 {
			status, code = newer[0].StatusCode, newer[0].Error.Code
		}
		ends := status == 414 || code == "bad_request" || !strings.HasPrefix(target, "/")
		for _, replies := range [][]reply{newer, older} {
			if first := replies[0]; first.StatusCode != status || first.Error.Code != code || first.Close != ends {
				t.Errorf("%q: %d %s, close %v, want %d %s", target, first.StatusCode, first.body[:min(len(first.body), 300)], first.Close, status, code)
			}
			if n := len(replies); ends && n != 1 || !ends && (n != 2 || replies[1].StatusCode != 200) {
				t.Errorf("%q: %d answers to two requests", target, n)
			}
		}
	})
}

// ofUnderlying matches the paths of an underlying.
var ofUnderlying = regexp.MustCompile(`^(?:/api/v1/gex/([A-Za-z]{1,6})(?:/(?:historical|intraday|levels|matrix|series))?|/api/v1/volatility/([A-Za-z]{1,6})(?:/(?:historical|series))?|/api/public/([A-Za-z]{1,6})-max-pain(?:/series)?)$`)

// expected returns the documented answer to a target; 0 if the target begins with no slash and is not of the table above.
func expected(target string) (status int, code string) {
	if status, known := unusual[target]; known {
		return status, map[int]string{200: "", 400: "bad_request", 404: "not_found"}[status]
	}
	if !strings.HasPrefix(target, "/") {
		return 0, ""
	}
	bad := strings.IndexFunc(target, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '#' })
	switch {
	case bad > 4096, bad < 0 && len(target) > 4096:
		return 414, "uri_too_long"
	case bad >= 0:
		return 400, "bad_request"
	}
	path, query, _ := strings.Cut(target, "?")
	own := "" // the parameter of the path
	if at := slices.IndexFunc(parameters, func(x parameter) bool { return x.path == path }); at >= 0 {
		own = parameters[at].name
	} else if slices.Contains([]string{"/healthz", "/readyz"}, path) || server.IsPage(path) {
		return 200, ""
	} else if m := ofUnderlying.FindStringSubmatch(path); m != nil && m[1]+m[2]+m[3] != "spx" {
		return 404, "unknown_underlying"
	} else if !slices.Contains([]string{"/api/v1/gex/spx", "/api/v1/gex/spx/series", "/api/v1/gex/spx/levels", "/api/v1/gex/spx/matrix", "/api/v1/volatility/spx", "/api/v1/volatility/spx/series", "/api/v1/underlyings", "/api/v1/sectors/rotation", "/api/public/vix-term-structure"}, path) {
		return 404, "not_found"
	}
	var given, format []string
	for _, pair := range strings.Split(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		plain, err := url.QueryUnescape(name)
		if lower := strings.ToLower(plain); err != nil || lower != "date" && lower != "expiration" && lower != "limit" && lower != "format" || len(lower) != len(plain) {
			continue
		}
		if plain != own && (plain != "format" || formats[path] == nil) {
			return 400, "invalid_parameter"
		}
		if plain, err := url.QueryUnescape(value); err == nil {
			value = plain
		}
		if plain == "format" {
			format = append(format, value)
		} else {
			given = append(given, value)
		}
	}
	if len(format) > 1 || len(format) == 1 && (!slices.Contains(formats[path], format[0]) || format[0] == "csv" && len(given) > 0 && given[0] != "20" && given[0] != "100") {
		return 400, "invalid_parameter"
	}
	switch len(given) {
	case 0:
		return 200, ""
	case 1:
		return expectedOf(own, given[0])
	}
	return 400, "invalid_parameter"
}

var dateForm = regexp.MustCompile(`^([0-9]{4})-([0-9]{2})-([0-9]{2})$`)

// expectedOf returns the documented answer to a parameter's value. The finder has three dates, two expirations and three limits.
func expectedOf(name, value string) (status int, code string) {
	if name == "limit" {
		if slices.Contains([]string{"1", "20", "100"}, value) {
			return 200, ""
		}
		return 400, "invalid_parameter"
	}
	day := time.Time{}
	if parts := dateForm.FindStringSubmatch(value); parts != nil {
		y, _ := strconv.Atoi(parts[1])
		m, _ := strconv.Atoi(parts[2])
		d, _ := strconv.Atoi(parts[3])
		day = time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC) // of 30 February, 1 March
	}
	switch {
	case day.Format(time.DateOnly) != value:
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
		answers(t, address, string(raw), true, methods...)
	})
}
