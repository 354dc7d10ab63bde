package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// targets are targets without a parameter of their path, by the status and code of their answer.
var targets = map[string][]string{
	"200": {
		"http://a/", "http://a/api/v1/gex/spx", "HTTP://A:80/api/v1/gex/spx?x", "https://b/api/v1/gex/spx",
		"/", "/?date=2024-01-01", "/api/v1/gex/spx", "/api/v1/gex/spx?", "/api/v1/gex/spx?/../..", "/api/v1/gex/spx??", "/api/v1/gex/spx?x=http://a", "/api/v1/gex/spx?" + strings.Repeat("a", 4080),
		"/api/public/vix-term-structure?", "/healthz?x=1", "/readyz?x",
	},
	"400 invalid_parameter": {"/api/v1/gex/spx/series?date=x"},
	"400 bad_request": {
		"*", "", " /", "/ /", "#", "api/v1/gex/spx", "a:443", "http://[::1/api/v1/gex/spx", "http://%zz/", "/\xc3\xa4", "/\x00", "/api/v1/gex/spx\x00", "/api/v1/gex/spx#x", "/\x7f",
	},
	"404 unknown_underlying": {"/api/v1/gex/ndx"},
	"414 uri_too_long":       {"/" + strings.Repeat("a", 4096), "/" + strings.Repeat("a", 9000), "/" + strings.Repeat("a", 20_000)},
	"404 not_found": {
		"http://a/api/v1/gex/spx/", "http://a//api/v1/gex/spx", "//a/api/v1/gex/spx",
		"//", "/.", "/..", "/api", "/api/", "/api/v1", "/api/v1/gex", "/api/v1/gex/spx/", "/api/v1/gex/spx/historical/", "/api/v1/gex/spx//", "//api/v1/gex/spx", "/api//v1/gex/spx", "/api/v1/gex//spx",
		"/API/v1/gex/spx", "/api/V1/gex/spx", "/api/v1/GEX/SPX", "/api/v1/gex/%73px", "/api/v1/gex%2Fspx", "/api/v1/gex%2fspx", "/%61pi/v1/gex/spx", "/api/v1/gex/spx%00", "/api/v1/gex/spx%20", "/api/v1/gex/spx%2F", "/api/v1/gex/spx%3Fdate=1", "/api/v1/gex/spx;x=1", "/api/v1/gex/spx&x=1",
		"/api/v1/gex/../gex/spx", "/api/v1/./gex/spx", "/api/v1/gex/spx/.", "/api/v1/gex/spx/..", "/../api/v1/gex/spx", "/../../../../etc/passwd", "/api/v1/gex/spx/../../../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2f..%2fetc%2fpasswd", "/..%5c..%5cetc", "/....//....//etc/passwd",
		"/api/v1/gex/spx/historical/2024-01-02", "/api/v2/gex/spx", "/api/v1/gex/spx.json", "/api/v1/gex/spx~", "/api/v1/gex/spx'", "/api/v1/gex/spx%27", "/api/public/spx-max-pain/", "/api/public", "/healthz/", "/readyz/", "/HEALTHZ", "/health", "/data", "/data/keys.json", "/keys.json",
		"/simulated/usage.json", "/.env", "/.git/config", "/debug/pprof/", "/metrics", "/robots.txt", "/index.html", "/wp-login.php", "/%zz", "/%", "/%C3%A4", "/%FF", "/\\", "/api\\v1\\gex\\spx", "/nowhere?limit=0", "/http://a/api/v1/gex/spx",
		"/" + strings.Repeat("a", 4095), "/" + strings.Repeat("../", 1000), "/" + strings.Repeat("%2e", 1000), "/" + strings.Repeat("/", 4000),
	},
}

// parameters are the public parameters, each with a valid value, and with the answers to further values that have the form of the parameter.
var parameters = []struct {
	path, name, good string
	also             map[string][]string
}{
	{"/api/v1/gex/spx/historical", "date", "2026-11-19", map[string][]string{
		"200":                    {"2026-11-17", "2026-11-20"},
		"404 snapshot_not_found": {"2026-11-18", "2024-02-29", "2000-02-29", "1970-01-01", "1969-12-31", "1900-01-01", "0004-02-29", "0001-01-01", "0000-01-01"},
		"400 invalid_parameter":  {"2026-11-21", "2026-12-18", "2027-11-20", "2999-12-31", "9999-12-31", "1", "100"},
	}},
	{"/api/public/spx-max-pain", "expiration", "2026-11-27", map[string][]string{
		"200":                      {"2026-12-18"},
		"404 expiration_not_found": {"2026-11-20", "2026-11-28", "2024-02-29", "2000-02-29", "0000-01-01", "9999-12-31"},
		"400 invalid_parameter":    {"1", "100"},
	}},
	{"/api/v1/options/flow/unusual", "limit", "20", map[string][]string{"200": {"1", "100"}, "400 invalid_parameter": {"2026-11-19"}}},
	{"/api/v1/gex/spx/levels", "format", "line", map[string][]string{"200": {"json", "csv"}, "400 invalid_parameter": {"20", "LINE"}}},
	{"/api/v1/gex/spx/series", "format", "csv", map[string][]string{"200": {"json"}, "400 invalid_parameter": {"line"}}},
}

// escaped percent-encodes every byte.
func escaped(s string) string {
	var out strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&out, "%%%02X", s[i])
	}
	return out.String()
}

// queriesOf returns queries with a parameter in every spelling and without it, by the status and code of their answer.
func queriesOf(n, v string) map[string][]string {
	all := map[string][]string{
		"200": {
			n + "=" + v, n + "=" + escaped(v), n + "=" + strings.ToLower(escaped(v)), escaped(n) + "=" + v, "&&" + n + "=" + v + "&", "x=1&" + n + "=" + v + "&y", "", "&", "=", "=" + v, "%",
			"%zz=1", "x", n + "[]=x", "_=1&" + n[:len(n)-2] + "=x", n[2:] + "=x", "max" + n + "=x", n + n + "=x", "x=" + n + "=1", "x=%26" + n + "=x",
			"x=" + strings.Repeat("9", 3900), strings.Repeat("a&", 1900), "x=../../etc/passwd", "x=http://a/b?" + n + "=c",
		},
		"400 invalid_parameter": {
			n + ".=x", "x" + n + "=x", n + "s=" + v, n[:len(n)-1] + "=" + v, "x" + n[1:] + "=" + v, n[:1] + n[2:3] + n[1:2] + strings.ToUpper(n[3:]) + "=" + v, "+" + n + "=x", n + "%00=x", // slips
			strings.ToUpper(n) + "=x", n, n + "=", n + "&x", "x&" + n, n + "=" + v + "&" + n + "=" + v, n + "=" + v + "&" + n + "=x", n + "=" + v + "&" + n + "=", n + "=" + v + "&" + n, n + "&" + n,
			n + "=&" + n + "=" + v, n + "=" + v + "&" + escaped(n) + "=" + v, strings.Repeat(n+"="+v+"&", 100), n + "=" + v + ";" + n + "=" + v, n + "==" + v, n + "=" + v + "=", n + "=" + v + "?" + n + "=" + v,
		},
		"414 uri_too_long": {n + "=" + strings.Repeat("9", 4200), n + "=" + strings.Repeat("9", 8100)},
	}
	for _, value := range []string{
		"\xc3\xa4", "\xff", "\xef\xbc\x92\xef\xbc\x90", "\x00", v + "\x00", v + " ", " " + v, v + "\t", "\x7f", "\x1b[0m", v + "#", v + "#" + v, "2024- 1- 1",
	} {
		all["400 bad_request"] = append(all["400 bad_request"], n+"="+value)
	}
	for _, value := range []string{
		"x", "null", "undefined", "true", "*", "%2A", "-", "_", ".", "..", "/", "%2F", "%25", "%", "%2", "%zz", "%u0031", "%C0%B1", "%FF", "%E2%82", "%00", v + "%00", "%00" + v, v + "%0A", v + "%0D%0AX-Injected:%201",
		"%20" + v, v + "%20", "+" + v, v + "+", "%09" + v, "%2B" + v, "%EF%BB%BF" + v, v + "%E2%80%8B", escaped(escaped(v)), "'" + v + "'", "%22" + v + "%22", v + "," + v, v + "%26" + v, v + "/", v + "/..",
		"../../etc/passwd", "..%2F..%2Fetc%2Fpasswd", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "%252e%252e%252fetc", "..%5C..%5Cwindows", "%2Fetc%2Fpasswd", "file:///etc/passwd", "http://a/" + v, "./" + v, v + "/../" + v, ".tmp-gex-spx",
		"%27%20OR%201=1--", "$(id)", "`id`", "{{7*7}}", "%3Cscript%3E", "%C3%A4", "%F0%9F%92%A9", "%EF%BC%91", strings.Repeat("9", 3900), strings.Repeat("%39", 1300), strings.Repeat("%00", 1300), strings.Repeat(v, 100),
		"0", "-0", "00", "01", "007", "020", "101", "110", "199", "999", "1000", "-1", "-20", "%2B1", "%2B20", "1.0", "20.", ".5", "1e1", "1E2", "0x10", "0b1", "1_0", "1,0",
		"2147483648", "4294967316", "18446744073709551636", "99999999999999999999999999", "NaN", "Infinity", "-Infinity", "%EF%BC%92%EF%BC%90", "%D9%A2%D9%A0", "%C2%B2%C2%B0", "20px", "ten",
		"2023-02-29", "1900-02-29", "2100-02-29", "2024-02-30", "2024-02-31", "2024-04-31", "2024-13-01", "2024-00-01", "2024-01-00", "2024-01-32", "0000-00-00", "2024-99-99", "10000-01-01", "99999-01-01", "-001-01-01", "-2024-01-01",
		"%2B2024-01-01", "+024-01-01", "024-01-01", "24-01-01", "2024-1-1", "2024-01-1", "2024-1-01", "20240101", "2024-0101", "2024/01/01", "2024.01.01", "2024%2F01%2F01", "01-01-2024", "01/01/2024", "2024-W01-1", "2024-001",
		"2024-01-01T00:00:00Z", "2024-01-01T", "2024-01-01Z", "2024-01-01%2000:00", "2024-Jan-01", "today", "yesterday", "latest", "now", "2024-01", "2024", "1704067200", "2024-01-0a", "2024-01-%EF%BC%91", "2%C2%B024-01-1", "2024%E2%80%9001%E2%80%9001", "2024-01--1",
	} {
		all["400 invalid_parameter"] = append(all["400 invalid_parameter"], n+"="+value)
	}
	return all
}

// A target gets the documented answer, both in HTTP/1.1 and in HTTP/1.0. The connection ends if the target is malformed or no path. Otherwise the
// next request is answered.
func TestTargets(t *testing.T) {
	address := listen(t, newServer(newFinder(t)))
	ask := func(target, want string) {
		ends := strings.HasPrefix(want, "414") || want == "400 bad_request" || !strings.HasPrefix(target, "/")
		for _, line := range []string{" HTTP/1.1\r\nHost: a\r\n\r\n", " HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"} {
			replies := answers(t, address, "GET "+target+line+series, true)
			first := replies[0]
			if got := strings.TrimSpace(fmt.Sprint(first.StatusCode, " ", first.Error.Code)); got != want || first.Close != ends {
				t.Errorf("%q: %s, %.300s, close %v, want %s", target, got, first.body, first.Close, want)
			}
			if n := len(replies); ends && n != 1 || !ends && (n != 2 || replies[1].StatusCode != 200) {
				t.Errorf("%q: %d answers to two requests", target, n)
			}
		}
	}
	for want, all := range targets {
		for _, target := range all {
			ask(target, want)
		}
	}
	for _, x := range parameters {
		for want, queries := range queriesOf(x.name, x.good) {
			for _, query := range queries {
				ask(x.path+"?"+query, want)
			}
		}
		for want, values := range x.also {
			for _, value := range values {
				ask(x.path+"?"+x.name+"="+value, want)
			}
		}
	}
}
