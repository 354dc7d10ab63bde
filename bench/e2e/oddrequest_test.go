package e2e

import (
	"strings"
)

// inputsOfPaths are paths that are not, or nearly, those of a resource.
func inputsOfPaths() (inputs []input) {
	for _, target := range []string{
		"//", "/.", "/..", "/api", "/api/", "/api/v1", "/api/v1/gex", "/api/v1/gex/spx/", "/api/v1/gex/spx/historical/", "/api/v1/gex/spx//", "//api/v1/gex/spx", "/api//v1/gex/spx", "/api/v1/gex//spx",
		"/API/v1/gex/spx", "/api/V1/gex/spx", "/api/v1/GEX/SPX", "/api/v1/gex/%73px", "/api/v1/gex%2Fspx", "/api/v1/gex%2fspx", "/%61pi/v1/gex/spx", "/api/v1/gex/spx%00", "/api/v1/gex/spx%20", "/api/v1/gex/spx%2F", "/api/v1/gex/spx%3Fdate=1", "/api/v1/gex/spx;x=1", "/api/v1/gex/spx&x=1",
		"/api/v1/gex/../gex/spx", "/api/v1/./gex/spx", "/api/v1/gex/spx/.", "/api/v1/gex/spx/..", "/../api/v1/gex/spx", "/../../../../etc/passwd", "/api/v1/gex/spx/../../../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2f..%2fetc%2fpasswd", "/..%5c..%5cetc", "/....//....//etc/passwd",
		"/api/v1/gex/spx/historical/2024-01-02", "/api/v1/gex/ndx", "/api/v2/gex/spx", "/api/v1/gex/spx.json", "/api/v1/gex/spx~", "/api/v1/gex/spx'", "/api/v1/gex/spx%27", "/api/public/spx-max-pain/", "/api/public", "/healthz/", "/readyz/", "/HEALTHZ", "/health", "/data", "/data/keys.json", "/keys.json",
		"/simulated/usage.json", "/.env", "/.git/config", "/debug/pprof/", "/metrics", "/favicon.ico", "/robots.txt", "/index.html", "/wp-login.php", "/%zz", "/%", "/%C3%A4", "/%FF", "/\\", "/api\\v1\\gex\\spx", "/nowhere?limit=0", "/http://a/api/v1/gex/spx", "//a/api/v1/gex/spx",
		"/" + strings.Repeat("a", 4095), "/" + strings.Repeat("../", 1000), "/" + strings.Repeat("%2e", 1000), "/" + strings.Repeat("/", 4000), "http://a/api/v1/gex/spx/", "http://a//api/v1/gex/spx", "*",
	} {
		inputs = append(inputs, input{name: "path " + target, raw: get(target), status: 404, code: "not_found"})
	}
	for _, target := range []string{"/", "/?date=2024-01-01", "http://a/", "http://a/api/v1/gex/spx", "HTTP://A:80/api/v1/gex/spx?x", "https://b/api/v1/gex/spx", "/api/v1/gex/spx?", "/api/v1/gex/spx?/../..", "/api/v1/gex/spx??", "/healthz?x=1", "/readyz?x", "/api/v1/gex/spx?" + strings.Repeat("a", 4080)} {
		inputs = append(inputs, input{name: "path " + target, raw: get(target), status: 200})
	}
	for _, target := range []string{"", " /", "/ /", "/\xc3\xa4", "/\x00", "/api/v1/gex/spx\x00", "/api/v1/gex/spx#x", "#", "/\x7f", "api/v1/gex/spx", "a:443", "http://[::1/api/v1/gex/spx", "http://%zz/"} {
		inputs = append(inputs, input{name: "path " + target, raw: get(target), status: 400, code: "bad_request", ends: true})
	}
	for _, n := range []int{4096, 5000, 8000, 20_000} {
		inputs = append(inputs, input{name: "overlong path", raw: get("/" + strings.Repeat("a", n)), status: 414, code: "uri_too_long", ends: true})
	}
	return inputs
}

// inputsOfMethods are methods beyond the three that are allowed.
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
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "QUERY"} {
		inputs = append(inputs,
			input{name: method + " with a body", raw: method + " /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\nlimit=5", status: 405, code: "method_not_allowed"},
			input{name: method + " with the largest body", raw: method + " /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\nContent-Length: 1024\r\n\r\n" + strings.Repeat("{", 1024), status: 405, code: "method_not_allowed"},
			input{name: method + " with one byte more", raw: method + " /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\nContent-Length: 1025\r\n\r\n" + strings.Repeat("{", 1025), status: 413, code: "body_too_large", ends: true})
	}
	return append(inputs,
		input{name: "OPTIONS", raw: "OPTIONS /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\n\r\n", status: 204},
		input{name: "OPTIONS of a bad parameter", raw: "OPTIONS /api/v1/options/flow/unusual?limit=x HTTP/1.1\r\nHost: a\r\n\r\n", status: 204},
		input{name: "OPTIONS nowhere", raw: "OPTIONS /nowhere HTTP/1.1\r\nHost: a\r\n\r\n", status: 404, code: "not_found"},
		input{name: "OPTIONS of a probe", raw: "OPTIONS /healthz HTTP/1.1\r\nHost: a\r\n\r\n", status: 405, code: "method_not_allowed"},
		input{name: "OPTIONS of a page", raw: "OPTIONS / HTTP/1.1\r\nHost: a\r\n\r\n", status: 405, code: "method_not_allowed"},
		input{name: "OPTIONS of a file", raw: "OPTIONS /assets/app.css HTTP/1.1\r\nHost: a\r\n\r\n", status: 405, code: "method_not_allowed"},
		input{name: "HEAD", raw: "HEAD /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\n\r\n", status: 200},
		input{name: "GET with a body", raw: "GET /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\nContent-Length: 26\r\n\r\nGET / HTTP/1.1\r\nHost: b\r\n\r\n"[:len("GET /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\nContent-Length: 26\r\n\r\n")+26], status: 200})
}

// inputsOfHeaders are fields at and beyond their bounds. The answer to a header that means nothing is a good one.
func inputsOfHeaders(secret string) (inputs []input) {
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

// inputsOfFraming are what is no HTTP, another HTTP, or could be read as two different requests.
func inputsOfFraming() (inputs []input) {
	const line = "GET /api/v1/gex/spx HTTP/1.1\r\n"
	for _, raw := range []string{
		line + "\r\n", line + "Host: a\r\nHost: a\r\n\r\n", line + "Host: a\r\nhost: b\r\n\r\n", line + "Host: a b\r\n\r\n", line + "Host: a/b\r\n\r\n", line + "Host: \xc3\xa4\r\n\r\n", line + "Host: u@a\r\n\r\n", line + "Host: a\r\n :\r\n\r\n", line + "Host: a\r\nX : 1\r\n\r\n", line + "Host: a\r\nX\r\n\r\n",
		line + "Host: a\r\n: 1\r\n\r\n", line + "Host: a\r\nX: 1\r\n 2\r\n\r\n", line + "Host: a\r\nX: \x00\r\n\r\n", line + "Host: a\r\nX: a\rb\r\n\r\n", line + "Host: a\r\nX: a\nY: b\r\n\r\n", line + "Host: a\n\n", line + "Host: a\r\nX\xc3\xa4: 1\r\n\r\n", line + "Host: a\r\nX-API-Key: a\x00b\r\n\r\n", line + "Host: a\r\nX-API-Key: a\x7f\r\n\r\n",
		line + "Host: a\r\nContent-Length: x\r\n\r\n", line + "Host: a\r\nContent-Length: -1\r\n\r\n", line + "Host: a\r\nContent-Length: 1, 1\r\n\r\nx", line + "Host: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", line + "Host: a\r\nContent-Length:\r\n\r\n", line + "Host: a\r\nContent-Length: 0x1\r\n\r\nx", line + "Host: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		line + "Host: a\r\nTransfer-Encoding: identity\r\n\r\n", line + "Host: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "GET /\r\n", "GET\r\n", "hello\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "\r\n\r\n", "\n", "\x00", "SSH-2.0-OpenSSH_9.2\r\n", "{\"a\":1}\r\n\r\n",
		"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", "GET / HTTP/11\r\nHost: a\r\n\r\n", "GET / http/1.1\r\nHost: a\r\n\r\n", "GET / HTTPS/1.1\r\nHost: a\r\n\r\n", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		inputs = append(inputs, input{name: "framing", raw: raw, status: 400, code: "bad_request", ends: true})
	}
	for _, version := range []string{"0.9", "0.0", "1.2", "1.9", "2.0", "2.1", "3.0", "9.9"} {
		inputs = append(inputs, input{name: "HTTP/" + version, raw: "GET /api/v1/gex/spx HTTP/" + version + "\r\nHost: a\r\n\r\n", status: 505, code: "http_version_not_supported", ends: true})
	}
	for _, size := range []string{"1025", "99999999", "18446744073709551617", strings.Repeat("9", 200)} {
		inputs = append(inputs, input{name: "body of " + size, raw: line + "Host: a\r\nContent-Length: " + size + "\r\n\r\n", status: 413, code: "body_too_large", ends: true})
	}
	return append(inputs,
		input{name: "the preface of HTTP/2", raw: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", status: 505, code: "http_version_not_supported", ends: true},
		input{name: "an empty line first", raw: "\r\n" + line + "Host: a\r\n\r\n", status: 200},
		input{name: "no host in HTTP/1.0", raw: "GET /api/v1/gex/spx HTTP/1.0\r\n\r\n", status: 200, ends: true},
		input{name: "an empty host", raw: line + "Host:\r\n\r\n", status: 200})
}
