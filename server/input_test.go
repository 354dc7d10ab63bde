package server_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"strikecache/server"
	"strikecache/server/keys"
)

// input is one request as bytes, and the documented answer.
type input struct {
	name, raw string
	status    int
	code      string // of an error
	parameter string // that the error names
	ends      bool   // whether the server ends the connection
}

// refusal is an error as the interface defines it; a member beyond these is a fault.
type refusal struct {
	Success *bool `json:"success"`
	Error   struct {
		Code        string   `json:"code"`
		Message     string   `json:"message"`
		Parameter   string   `json:"parameter"`
		Expirations []string `json:"expirations"`
		Nearest     *struct {
			Earlier *string `json:"earlier"`
			Later   *string `json:"later"`
		} `json:"nearest"`
	} `json:"error"`
	Meta struct {
		Endpoint *string `json:"endpoint"`
		Source   string  `json:"source"`
	} `json:"meta"`
	Usage struct {
		Tier string `json:"tier"`
	} `json:"usage"`
}

// inside matches texts that no client may see: places in the code, paths of the machine, messages of Go's failures.
var inside = regexp.MustCompile(`\.go\b|goroutine|panic|runtime|nil pointer|/root|/home|/tmp|/etc/|/var/|fasthttp|ristretto|no such file`)

// Every public parameter, path, method and field at and beyond its bounds gets the documented answer, and the connection goes on
// after any request that has one meaning. TestSmuggling and TestUnusualRequests show the framing.
func TestBadInput(t *testing.T) {
	var log logText
	web, secrets := withKeys(t, newFinder(t), func(c *server.Config) { c.Log = log.logger() }, keys.Key{Name: "input", PerMinute: 6000})
	address := listen(t, web)
	for _, in := range slices.Concat(inputsOfParameters(), inputsOfPaths(), inputsOfMethods(), inputsOfFields(secrets["input"])) {
		if err := in.try(dial(t, address)); err != nil {
			t.Errorf("%.80s: %v\n%.300q", in.name, err, in.raw)
		}
	}
	if text := log.String(); strings.Contains(text, "panic") || strings.Contains(text, "level=ERROR") {
		t.Errorf("the log has errors:\n%s", text)
	}
}

// try sends the request, and a good one behind it, and compares what comes back with what is documented.
func (in input) try(c net.Conn) error {
	defer c.Close()
	if _, err := io.WriteString(c, in.raw); err != nil {
		return err
	}
	r := bufio.NewReader(c)
	method, _, _ := strings.Cut(in.raw, " ")
	resp, err := http.ReadResponse(r, &http.Request{Method: method})
	if err != nil {
		return err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != in.status || resp.Close != in.ends {
		return fmt.Errorf("%d, want %d; Connection: close %v; %w; %.200s", resp.StatusCode, in.status, resp.Close, err, body)
	}
	if in.status >= 400 {
		if err := in.refused(resp, body); err != nil {
			return fmt.Errorf("%w: %v %.300s", err, resp.Header, body)
		}
	}
	if in.ends {
		if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
			return fmt.Errorf("%q after the last answer, %w", rest, err)
		}
		return nil
	}
	if _, err := io.WriteString(c, series); err != nil {
		return err
	}
	next, err := http.ReadResponse(r, nil)
	if err == nil && next.StatusCode != 200 {
		err = fmt.Errorf("the next request has status %d", next.StatusCode)
	}
	return err
}

// allow returns the right value of Allow. Resources also answer OPTIONS, and probes and pages do not.
func (in input) allow() string {
	switch {
	case in.status != 405:
		return ""
	case strings.Contains(in.raw, " /api/"):
		return "GET, HEAD, OPTIONS"
	}
	return "GET, HEAD"
}

// refused checks an error: its code, its envelope, its headers, and that it has nothing else.
func (in input) refused(resp *http.Response, body []byte) error {
	h := resp.Header
	if h.Get("Cache-Control") != "no-store" || h.Get("Content-Type") != "application/json" || h.Get("X-Content-Type-Options") != "nosniff" ||
		h.Get("Access-Control-Allow-Origin") != "*" || h.Get("ETag") != "" {
		return fmt.Errorf("wrong header fields")
	}
	if h.Get("Allow") != in.allow() || (in.status == 401) != (h.Get("WWW-Authenticate") == "ApiKey") {
		return fmt.Errorf("wrong Allow or WWW-Authenticate for %d", in.status)
	}
	var doc refusal
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(&doc); err != nil {
		return fmt.Errorf("wrong envelope: %w", err)
	}
	if d.More() || doc.Success == nil || *doc.Success || doc.Error.Message == "" || doc.Meta.Endpoint == nil || doc.Meta.Source != "simulated" || doc.Usage.Tier != "anonymous" {
		return fmt.Errorf("wrong envelope")
	}
	if doc.Error.Code != in.code || doc.Error.Parameter != in.parameter {
		return fmt.Errorf("want %s of %q", in.code, in.parameter)
	}
	if (in.code == "snapshot_not_found") != (doc.Error.Nearest != nil) || (in.code == "expiration_not_found") != (len(doc.Error.Expirations) > 0) {
		return fmt.Errorf("wrong error.nearest or error.expirations")
	}
	if leak := inside.Find(body); leak != nil {
		return fmt.Errorf("the body reveals %q", leak)
	}
	return nil
}

func get(target string) string { return "GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n" }

// parameter is a public parameter with a valid value.
type parameter struct{ path, name, good string }

// inputsOfParameters tries each parameter with values that no parameter accepts, and at its own bounds.
func inputsOfParameters() (inputs []input) {
	date := parameter{"/api/v1/gex/spx/historical", "date", "2026-11-19"}
	expiration := parameter{"/api/public/spx-max-pain", "expiration", "2026-11-27"}
	limit := parameter{"/api/v1/options/flow/unusual", "limit", "20"}
	inputs = slices.Concat(date.always(), date.noDates(), expiration.always(), expiration.noDates(), limit.always())
	for _, old := range []string{"2024-02-29", "2000-02-29", "1970-01-01", "1969-12-31", "1900-01-01", "0004-02-29", "0001-01-01", "0000-01-01"} {
		inputs = append(inputs, date.with(old, 404, "snapshot_not_found"))
	}
	for _, future := range []string{"2026-11-21", "2027-11-20", "2999-12-31", "9999-12-31"} {
		inputs = append(inputs, date.with(future, 400, "invalid_parameter"))
	}
	for _, none := range []string{"2024-02-29", "1969-12-31", "0000-01-01", "2999-12-31", "9999-12-31", "2026-11-19"} {
		inputs = append(inputs, expiration.with(none, 404, "expiration_not_found"))
	}
	for _, n := range []string{"1", "20", "100"} {
		inputs = append(inputs, limit.with(n, 200, ""))
	}
	for _, n := range []string{
		"0", "-0", "00", "01", "007", "020", "101", "110", "199", "999", "1000", "-1", "-20", "%2B1", "%2B20", "1.0", "20.", ".5", "1e1", "1E2", "0x10", "0b1", "1_0", "1,0",
		"2147483648", "4294967316", "18446744073709551636", "99999999999999999999999999", "NaN", "Infinity", "-Infinity", "%EF%BC%92%EF%BC%90", "%D9%A2%D9%A0", "%C2%B2%C2%B0", "20px", "ten",
	} {
		inputs = append(inputs, limit.with(n, 400, "invalid_parameter"))
	}
	return inputs
}

// with returns a request whose target has the value as it is, not escaped.
func (x parameter) with(value string, status int, code string) input {
	in := input{name: x.name + "=" + value, raw: get(x.path + "?" + x.name + "=" + value), status: status, code: code}
	if code == "bad_request" || code == "uri_too_long" {
		in.ends = true
	} else if code != "" {
		in.parameter = x.name
	}
	return in
}

// query returns a request with this query.
func (x parameter) query(query string, status int, code string) input {
	in := x.with("", status, code)
	in.name, in.raw = x.name+": ?"+query, get(x.path+"?"+query)
	return in
}

// escaped percent-encodes every byte.
func escaped(s string) string {
	var out strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&out, "%%%02X", s[i])
	}
	return out.String()
}

// always returns the requests that get the same answers with every parameter.
func (x parameter) always() (inputs []input) {
	n, v := x.name, x.good
	for _, q := range []string{
		n + "=" + v, n + "=" + escaped(v), n + "=" + strings.ToLower(escaped(v)), escaped(n) + "=" + v, "&&" + n + "=" + v + "&", "x=1&" + n + "=" + v + "&y", "", "&", "=", "=" + v, "%",
		"%zz=1", "x", n + "[]=x", n + ".=x", strings.ToUpper(n) + "=x", "x" + n + "=x", n + "x=x", "+" + n + "=x", "%20" + n + "=x", n + "%00=x", "x=" + n + "=1", "x=%26" + n + "=x",
		"x=" + strings.Repeat("9", 3900), strings.Repeat("a&", 1900), "x=../../etc/passwd", "x=http://a/b?" + n + "=c",
	} {
		inputs = append(inputs, x.query(q, 200, ""))
	}
	for _, q := range []string{
		n, n + "=", n + "&x", "x&" + n, n + "=" + v + "&" + n + "=" + v, n + "=" + v + "&" + n + "=x", n + "=" + v + "&" + n + "=", n + "=" + v + "&" + n, n + "&" + n,
		n + "=&" + n + "=" + v, n + "=" + v + "&" + escaped(n) + "=" + v, strings.Repeat(n+"="+v+"&", 100), n + "=" + v + ";" + n + "=" + v, n + "==" + v, n + "=" + v + "=", n + "=" + v + "?" + n + "=" + v,
	} {
		inputs = append(inputs, x.query(q, 400, "invalid_parameter"))
	}
	for _, bad := range []string{
		"x", "null", "undefined", "true", "*", "%2A", "-", "_", ".", "..", "/", "%2F", "%25", "%", "%2", "%zz", "%u0031", "%C0%B1", "%FF", "%E2%82", "%00", v + "%00", "%00" + v, v + "%0A", v + "%0D%0AX-Injected:%201",
		"%20" + v, v + "%20", "+" + v, v + "+", "%09" + v, "%2B" + v, "%EF%BB%BF" + v, v + "%E2%80%8B", escaped(escaped(v)), "'" + v + "'", "%22" + v + "%22", v + "," + v, v + "%26" + v, v + "/", v + "/..",
		"../../etc/passwd", "..%2F..%2Fetc%2Fpasswd", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "%252e%252e%252fetc", "..%5C..%5Cwindows", "%2Fetc%2Fpasswd", "file:///etc/passwd", "http://a/" + v, "./" + v, v + "/../" + v, ".tmp-gex-spx",
		"%27%20OR%201=1--", "$(id)", "`id`", "{{7*7}}", "%3Cscript%3E", "%C3%A4", "%F0%9F%92%A9", "%EF%BC%91", strings.Repeat("9", 3900), strings.Repeat("%39", 1300), strings.Repeat("%00", 1300), strings.Repeat(v, 100),
	} {
		inputs = append(inputs, x.with(bad, 400, "invalid_parameter"))
	}
	for _, malformed := range []string{"\xc3\xa4", "\xff", "\xef\xbc\x92\xef\xbc\x90", "\x00", v + "\x00", v + " ", " " + v, v + "\t", v + "\n", v + "\rX: 1", "\x7f", "\x1b[0m", v + "#", v + "#" + v} {
		inputs = append(inputs, x.with(malformed, 400, "bad_request"))
	}
	inputs = append(inputs, x.with(strings.Repeat("9", 4200), 414, "uri_too_long"), x.with(strings.Repeat("9", 8100), 414, "uri_too_long"))
	return inputs
}

// noDates returns requests with values that are not dates.
func (x parameter) noDates() (inputs []input) {
	for _, bad := range []string{
		"2023-02-29", "1900-02-29", "2100-02-29", "2024-02-30", "2024-02-31", "2024-04-31", "2024-13-01", "2024-00-01", "2024-01-00", "2024-01-32", "0000-00-00", "2024-99-99", "10000-01-01", "99999-01-01", "-001-01-01", "-2024-01-01",
		"%2B2024-01-01", "+024-01-01", "024-01-01", "24-01-01", "2024-1-1", "2024-01-1", "2024-1-01", "20240101", "2024-0101", "2024/01/01", "2024.01.01", "2024%2F01%2F01", "01-01-2024", "01/01/2024", "2024-W01-1", "2024-001",
		"2024-01-01T00:00:00Z", "2024-01-01T", "2024-01-01Z", "2024-01-01%2000:00", "2024-Jan-01", "today", "yesterday", "latest", "now", "2024-01", "2024", "1704067200", "2024-01-0a", "2024-01-%EF%BC%91", "2%C2%B024-01-1", "2024%E2%80%9001%E2%80%9001", "2024-01--1", "2024- 1- 1",
	} {
		in := x.with(bad, 400, "invalid_parameter")
		if strings.Contains(bad, " ") {
			in = x.with(bad, 400, "bad_request")
		}
		inputs = append(inputs, in)
	}
	return inputs
}

// inputsOfPaths returns requests for unknown paths, and for paths that are nearly those of resources.
func inputsOfPaths() (inputs []input) {
	for _, target := range []string{
		"//", "/.", "/..", "/api", "/api/", "/api/v1", "/api/v1/gex", "/api/v1/gex/spx/", "/api/v1/gex/spx/historical/", "/api/v1/gex/spx//", "//api/v1/gex/spx", "/api//v1/gex/spx", "/api/v1/gex//spx",
		"/API/v1/gex/spx", "/api/V1/gex/spx", "/api/v1/GEX/SPX", "/api/v1/gex/%73px", "/api/v1/gex%2Fspx", "/api/v1/gex%2fspx", "/%61pi/v1/gex/spx", "/api/v1/gex/spx%00", "/api/v1/gex/spx%20", "/api/v1/gex/spx%2F", "/api/v1/gex/spx%3Fdate=1", "/api/v1/gex/spx;x=1", "/api/v1/gex/spx&x=1",
		"/api/v1/gex/../gex/spx", "/api/v1/./gex/spx", "/api/v1/gex/spx/.", "/api/v1/gex/spx/..", "/../api/v1/gex/spx", "/../../../../etc/passwd", "/api/v1/gex/spx/../../../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2f..%2fetc%2fpasswd", "/..%5c..%5cetc", "/....//....//etc/passwd",
		"/api/v1/gex/spx/historical/2024-01-02", "/api/v1/gex/ndx", "/api/v2/gex/spx", "/api/v1/gex/spx.json", "/api/v1/gex/spx~", "/api/v1/gex/spx'", "/api/v1/gex/spx%27", "/api/public/spx-max-pain/", "/api/public", "/healthz/", "/readyz/", "/HEALTHZ", "/health", "/data", "/data/keys.json", "/keys.json",
		"/simulated/usage.json", "/.env", "/.git/config", "/debug/pprof/", "/metrics", "/robots.txt", "/index.html", "/wp-login.php", "/%zz", "/%", "/%C3%A4", "/%FF", "/\\", "/api\\v1\\gex\\spx", "/nowhere?limit=0", "/http://a/api/v1/gex/spx", "//a/api/v1/gex/spx",
		"/" + strings.Repeat("a", 4095), "/" + strings.Repeat("../", 1000), "/" + strings.Repeat("%2e", 1000), "/" + strings.Repeat("/", 4000), "http://a/api/v1/gex/spx/", "http://a//api/v1/gex/spx", "*",
	} {
		inputs = append(inputs, input{name: "path " + target, raw: get(target), status: 404, code: "not_found", ends: target[0] != '/'})
	}
	for _, target := range []string{"/", "/?date=2024-01-01", "http://a/", "http://a/api/v1/gex/spx", "HTTP://A:80/api/v1/gex/spx?x", "https://b/api/v1/gex/spx", "/api/v1/gex/spx?", "/api/v1/gex/spx?/../..", "/api/v1/gex/spx??", "/healthz?x=1", "/readyz?x", "/api/v1/gex/spx?" + strings.Repeat("a", 4080)} {
		inputs = append(inputs, input{name: "path " + target, raw: get(target), status: 200, ends: target[0] != '/'})
	}
	for _, target := range []string{"", " /", "/ /", "/\xc3\xa4", "/\x00", "/api/v1/gex/spx\x00", "/api/v1/gex/spx#x", "#", "/\x7f", "api/v1/gex/spx", "a:443", "http://[::1/api/v1/gex/spx", "http://%zz/"} {
		inputs = append(inputs, input{name: "path " + target, raw: get(target), status: 400, code: "bad_request", ends: true})
	}
	for _, n := range []int{4096, 5000, 8000, 9000, 20_000} {
		inputs = append(inputs, input{name: "overlong path", raw: get("/" + strings.Repeat("a", n)), status: 414, code: "uri_too_long", ends: true})
	}
	return inputs
}

// inputsOfMethods returns requests with other methods than GET, HEAD and OPTIONS.
func inputsOfMethods() (inputs []input) {
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "LINK", "PROPFIND", "PURGE", "QUERY", "get", "Get", "gET", "head", "options", "GETT", "GE", "X", "!", "G-E_T.1", strings.Repeat("A", 16)} {
		for path, in := range map[string]input{
			"/api/v1/gex/spx": {status: 405, code: "method_not_allowed"}, "/api/v1/options/flow/unusual?limit=0": {status: 405, code: "method_not_allowed"},
			"/healthz": {status: 405, code: "method_not_allowed"}, "/nowhere": {status: 404, code: "not_found"},
		} {
			in.name, in.raw = method+" "+path, method+" "+path+" HTTP/1.1\r\nHost: a\r\n\r\n"
			inputs = append(inputs, in)
		}
	}
	for _, method := range []string{"", strings.Repeat("A", 17), strings.Repeat("GET", 500), "G\xc3\x84T", "GET,", "G(T", "GET\t", "GET\x00", "\"GET\"", "GET:"} {
		inputs = append(inputs, input{name: "method " + method, raw: method + " /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\n\r\n", status: 400, code: "bad_request", ends: true})
	}
	return append(inputs,
		input{name: "OPTIONS", raw: "OPTIONS /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\n\r\n", status: 204},
		input{name: "OPTIONS of a bad parameter", raw: "OPTIONS /api/v1/options/flow/unusual?limit=x HTTP/1.1\r\nHost: a\r\n\r\n", status: 204},
		input{name: "OPTIONS nowhere", raw: "OPTIONS /nowhere HTTP/1.1\r\nHost: a\r\n\r\n", status: 404, code: "not_found"},
		input{name: "OPTIONS of a probe", raw: "OPTIONS /healthz HTTP/1.1\r\nHost: a\r\n\r\n", status: 405, code: "method_not_allowed"},
		input{name: "OPTIONS of a page", raw: "OPTIONS / HTTP/1.1\r\nHost: a\r\n\r\n", status: 405, code: "method_not_allowed"},
		input{name: "OPTIONS of a file", raw: "OPTIONS /assets/app.css HTTP/1.1\r\nHost: a\r\n\r\n", status: 405, code: "method_not_allowed"})
}

// inputsOfFields returns requests with fields at and beyond their bounds. A field without meaning gets a good answer.
func inputsOfFields(secret string) (inputs []input) {
	with := func(fields string) string { return "GET /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n" }
	for _, fields := range []string{
		"X-API-Key:\r\n", "X-API-Key: \t \r\n", "X-API-Key: " + secret + "\r\n", "x-api-key:" + secret + " \t\r\n", "X-API-Key: " + secret + "\r\nX-HTTP-Method-Override: DELETE\r\n",
		strings.Repeat("X: 1\r\n", 1000), strings.Repeat("A:\r\n", 1500), "X: \xff\xfe\r\n", "X: \xc3\xa4\r\n", "X:\r\n", "X: " + strings.Repeat("a", 8000) + "\r\n",
		"Accept: text/html;q=0\r\n", "Accept: application/xml\r\n", "Accept-Encoding:\r\n", "Accept-Encoding: identity;q=0, *;q=0\r\n", "Accept-Encoding: " + strings.Repeat("gzip;q=9,", 800) + "\r\n", "Accept-Encoding: \xff\r\nAccept-Encoding: ;;q=,=\r\n",
		"If-None-Match:\r\n", "If-None-Match: \"\r\n", "If-None-Match: \xff\r\n", "If-None-Match: W/W/\"a\"\r\n", "If-None-Match: " + strings.Repeat("\"a\",", 1800) + "\r\n", "If-None-Match: \"a\"\r\nIf-None-Match: \"b\"\r\n",
		"If-Modified-Since:\r\n", "If-Modified-Since: yesterday\r\n", "If-Modified-Since: Sat, 32 Foo 99999 25:61:61 GMT\r\n", "If-Modified-Since: " + strings.Repeat("9", 8000) + "\r\n", "If-Match: \"x\"\r\n", "If-Unmodified-Since: x\r\n", "Range: bytes=0-1\r\n", "Range: bytes=9999999999999999999-\r\n",
		"X-Forwarded-For: ' OR 1=1\r\n", "X-Forwarded-For: " + strings.Repeat("::1,", 1900) + "\r\n", "Forwarded: for=\"\r\n", "X-Forwarded-Host: evil.example\r\n", "X-Original-URL: /etc/passwd\r\n", "X-HTTP-Method-Override: DELETE\r\n", "Cookie: " + strings.Repeat("a=b;", 1900) + "\r\n", "Authorization: Basic Og==\r\n",
		"Origin: null\r\n", "Referer: \xff\r\n", "User-Agent: ${jndi:ldap://a}\r\n", "Content-Length: 0\r\n", "Content-Type: multipart/form-data\r\n", "Upgrade: h2c\r\n", "Connection: keep-alive\r\n", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n", "Keep-Alive: timeout=-1\r\n", "TE: trailers\r\n", "Proxy: http://a\r\n",
	} {
		inputs = append(inputs, input{name: "fields " + fields, raw: with(fields), status: 200})
	}
	for _, key := range []string{
		"x", "sk_", "k_000000000000", secret + "x", secret[:len(secret)-1], strings.ToUpper(secret), strings.ToLower(secret), "Bearer " + secret, "\"" + secret + "\"", secret + "," + secret, strings.Repeat("s", 128), strings.Repeat("s", 129), strings.Repeat("s", 7900), "\xff\xfe", "\xc3\xa4", "%73k_", "../../keys.json", "*", "null",
		secret + "\r\nX-API-Key: " + secret, secret + "\r\nX-API-Key:", "\r\nX-API-Key: " + secret, "a\r\nx-api-key: b",
	} {
		inputs = append(inputs, input{name: "key " + key, raw: with("X-API-Key: " + key + "\r\n"), status: 401, code: "invalid_api_key"})
	}
	inputs = append(inputs,
		input{name: "any tag", raw: with("If-None-Match: *\r\n"), status: 304},
		input{name: "a bad key comes before a bad parameter", raw: "GET /api/v1/options/flow/unusual?limit=0 HTTP/1.1\r\nHost: a\r\nX-API-Key: x\r\n\r\n", status: 401, code: "invalid_api_key"},
		input{name: "a tag does not excuse a bad parameter", raw: "GET /api/v1/options/flow/unusual?limit=0 HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\n\r\n", status: 400, code: "invalid_parameter", parameter: "limit"},
		input{name: "close", raw: with("Connection: close\r\n"), status: 200, ends: true},
		input{name: "close and a bad parameter", raw: "GET /api/v1/options/flow/unusual?limit=0 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", status: 400, code: "invalid_parameter", parameter: "limit", ends: true})
	for _, fields := range []string{
		"X: " + strings.Repeat("a", 8192) + "\r\n", "X-API-Key: " + strings.Repeat("a", 9000) + "\r\n", strings.Repeat("X: 1\r\n", 1400), strings.Repeat("a", 9000) + ": 1\r\n", "X: " + strings.Repeat("a", 60_000) + "\r\n", "Cookie: " + strings.Repeat("a=b;", 3000) + "\r\n",
	} {
		inputs = append(inputs, input{name: "too many bytes of fields", raw: with(fields), status: 431, code: "headers_too_large", ends: true})
	}
	const limit = 8192 // of request line and fields together
	frame := len(with("X: \r\n"))
	return append(inputs,
		input{name: "as many bytes as allowed", raw: with("X: " + strings.Repeat("a", limit-frame) + "\r\n"), status: 200},
		input{name: "one byte more", raw: with("X: " + strings.Repeat("a", limit-frame+1) + "\r\n"), status: 431, code: "headers_too_large", ends: true})
}
