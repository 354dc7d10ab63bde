package server_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"strikecache/bench/testkit"
	"strikecache/server"
	"strikecache/server/keys"
	"strikecache/snapshots"
)

// reply is a response with its body. The other fields are those of an error as the interface defines it.
type reply struct {
	*http.Response `json:"-"`
	body           []byte

	Success *bool `json:"success"`
	Error   struct {
		Code        string   `json:"code"`
		Message     string   `json:"message"`
		Parameter   string   `json:"parameter"`
		Reason      string   `json:"reason"`
		Expirations []string `json:"expirations"`
		Underlyings []string `json:"underlyings"`
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

// documented are the codes of each status.
var documented = map[int][]string{
	400: {"invalid_parameter", "bad_request"}, 401: {"invalid_api_key"}, 404: {"not_found", "snapshot_not_found", "expiration_not_found", "unknown_underlying"}, 405: {"method_not_allowed"},
	412: {"precondition_failed"}, 413: {"body_too_large"}, 414: {"uri_too_long"}, 431: {"headers_too_large"}, 503: {"not_ready"}, 505: {"http_version_not_supported"},
}

// inside matches texts that no client may see: places in the code, paths of the machine, messages of Go's failures.
var inside = regexp.MustCompile(`\.go\b|goroutine|panic|runtime|nil pointer|/root|/home|/tmp|/etc/|/var/|fasthttp|ristretto|no such file`)

// checkError checks an error: its code, its envelope, its header fields, and that it has nothing else.
func (r *reply) checkError() error {
	d := json.NewDecoder(strings.NewReader(string(r.body)))
	d.DisallowUnknownFields()
	if err := d.Decode(r); err != nil {
		return err
	}
	e, h := r.Error, r.Header
	_, unnamed := slices.BinarySearch([]string{"expiration_not_found", "invalid_parameter", "snapshot_not_found"}, e.Code)
	switch {
	case d.More() || r.Success == nil || *r.Success || e.Message == "" || r.Meta.Endpoint == nil || r.Meta.Source != "simulated" || r.Usage.Tier != "anonymous":
		return errors.New("wrong envelope")
	case !slices.Contains(documented[r.StatusCode], e.Code):
		return errors.New("wrong code")
	case (e.Parameter != "") != unnamed, (e.Nearest != nil) != (e.Code == "snapshot_not_found"), (len(e.Expirations) > 0) != (e.Code == "expiration_not_found"), (len(e.Underlyings) > 0) != (e.Code == "unknown_underlying"):
		return errors.New("wrong parameter, nearest or expirations")
	case h.Get("Cache-Control") != "no-store" || h.Get("Content-Type") != "application/json" || h.Get("X-Content-Type-Options") != "nosniff" ||
		h.Get("Access-Control-Allow-Origin") != "*" || h.Get("ETag") != "":
		return errors.New("wrong header fields")
	case (r.StatusCode == 405) != (h.Get("Allow") != ""), (r.StatusCode == 401) != (h.Get("WWW-Authenticate") == "ApiKey"), (r.StatusCode == 503) != (h.Get("Retry-After") != ""):
		return errors.New("wrong Allow, WWW-Authenticate or Retry-After")
	}
	if leak := inside.Find(r.body); leak != nil {
		return fmt.Errorf("the body reveals %q", leak)
	}
	return nil
}

// answers sends raw bytes and returns the responses; see [exchange] for done. It checks all that is an error.
func answers(t *testing.T, address string, raw string, done bool, methods ...string) (replies []reply) {
	t.Helper()
	got := bufio.NewReader(strings.NewReader(exchange(t, address, raw, done)))
	for {
		if _, err := got.Peek(1); err != nil {
			return replies
		}
		method := "GET"
		if n := len(replies); n < len(methods) {
			method = methods[n]
		}
		resp, err := http.ReadResponse(got, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("%.300q: %v", raw, err)
		}
		r := reply{Response: resp}
		if r.body, err = io.ReadAll(resp.Body); err != nil {
			t.Fatalf("%.300q: %v", raw, err)
		}
		switch empty := resp.StatusCode < 200 || resp.StatusCode == 204 || resp.StatusCode == 304 || method == "HEAD"; {
		case empty != (len(r.body) == 0):
			err = errors.New("a body where none belongs, or none")
		case !empty && resp.StatusCode >= 400:
			err = r.checkError()
		case !empty && resp.Header.Get("Content-Type") == "application/json" && resp.Header.Get("Content-Encoding") == "" && !json.Valid(r.body):
			err = errors.New("no JSON")
		}
		if err != nil {
			t.Errorf("%.300q: %d %v: %v: %.300s", raw, resp.StatusCode, resp.Header, err, r.body)
		}
		replies = append(replies, r)
	}
}

// input is a request, and what is documented of its answer.
type input struct {
	raw      string
	status   int
	code     string // of an error
	contains string
	ends     bool // the server ends the connection by itself
}

// Every method and field at and beyond its bounds, and every error with details of its own, gets the documented answer. The
// connection goes on after any request that has one meaning, and ends after any other. TestTargets shows the targets.
func TestErrors(t *testing.T) {
	s := newFinder(t)
	for _, absent := range []string{"sectors/rotation", "vix-term-structure", "gex/spx", "gex/spx/matrix"} {
		delete(s.editions, absent)
	}
	s.editions["gex/spx/series"] = &snapshots.Edition{Default: seal(t, "gex/spx/series", `{}`)} // without forms, from an older version
	s.past["gex/spx/intraday"]["2026-11-18"] = seal(t, "gex/spx/intraday", `{}`)
	var log testkit.Text
	web, secrets := withKeys(t, s, func(c *server.Config) {
		unfedSectors(c)
		c.Log, c.Underlyings = log.Logger(slog.LevelDebug), []string{"SPX", "QQQ", "BRK.B"}
	}, keys.Key{Name: "input", PerMinute: 6000})
	address := listen(t, web)
	for _, in := range slices.Concat(inputsOfTargets(), inputsOfMethods(), inputsOfFields(secrets["input"]), inputsOfFrames()) {
		replies := answers(t, address, in.raw+series, !in.ends)
		if n := len(replies); in.ends && n != 1 || !in.ends && (n != 2 || replies[1].StatusCode != 200) {
			t.Errorf("%.300q: %d answers to two requests", in.raw, n)
			continue
		}
		r, allow := replies[0], ""
		if r.StatusCode != in.status || r.Error.Code != in.code || r.Close != in.ends || !strings.Contains(string(r.body), in.contains) {
			t.Errorf("%.300q: %d %s, want %d %s with %q", in.raw, r.StatusCode, r.body, in.status, in.code, in.contains)
		}
		if r.StatusCode == 405 || r.StatusCode == 204 {
			allow = "GET, HEAD, OPTIONS"
		}
		if phrase := map[int]string{413: "413 Content Too Large", 414: "414 URI Too Long"}[r.StatusCode]; phrase != "" && r.Status != phrase { // RFC 9110
			t.Errorf("%.300q: %s", in.raw, r.Status)
		}
		if r.Header.Get("Allow") != allow {
			t.Errorf("%.300q: Allow %q", in.raw, r.Header.Get("Allow"))
		}
	}
	if text := log.String(); strings.Contains(text, "panic") || strings.Contains(text, "level=ERROR") {
		t.Errorf("the log has errors:\n%s", text)
	}
}

func asked(method, target, fields string) string {
	return method + " " + target + " HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n"
}

// inputsOfTargets returns requests whose errors have details of their own. A parameter of another resource, or in other letters,
// would otherwise give an answer that nobody asked for.
func inputsOfTargets() (inputs []input) {
	for _, e := range []struct {
		target         string
		status         int
		code, contains string
	}{
		{"/nowhere", 404, "not_found", "/api/v1/gex/spx"},
		{"/api/v1/gex/TSLA/levels", 404, "unknown_underlying", `served, in small letters","underlyings":["spx"`},
		{"/api/public/SPX-max-pain", 404, "unknown_underlying", `served, in small letters","underlyings":["spx"`},
		{"/api/v1/gex/brk.b", 404, "unknown_underlying", `"underlyings":["spx"`},
		{"/api/v1/gex/spx?underlying=zzz", 404, "unknown_underlying", `"underlyings":["spx"`},
		{"/api/v1/options/flow/unusual?symbol=%00", 404, "unknown_underlying", `"underlyings":["spx"`},
		{"/api/widgets/gex?underlying=zzz", 404, "unknown_underlying", `"underlyings":["spx"`},
		{"/api/public/spx-max-pain?expiration=2026-12-19", 404, "expiration_not_found", `"expirations":["2026-11-27","2026-12-18"]`},
		{"/api/public/spx-max-pain?date=2026-11-19&expiration=2026-11-27", 404, "expiration_not_found", `"expirations":["2026-12-18"]`},
		{"/api/v1/gex/spx/historical?date=2026-11-18", 404, "snapshot_not_found", `"nearest":{"earlier":"2026-11-17","later":"2026-11-19"}`},
		{"/api/v1/gex/spx/historical?date=2020-01-01", 404, "snapshot_not_found", `"nearest":{"earlier":null,"later":"2026-11-17"}`},
		{"/api/v1/gex/spx/intraday?date=2026-11-19", 404, "snapshot_not_found", `"nearest":{"earlier":"2026-11-18","later":"2026-11-20"}`},
		{"/api/v1/sectors/rotation?date=2026-11-14", 404, "snapshot_not_found", `"nearest":{"earlier":"2026-11-13","later":"2026-11-16"}`},
		{"/api/public/vix-term-structure?date=2026-11-20", 404, "snapshot_not_found", `"nearest":{"earlier":"2026-11-19","later":null}`}, // today
		{"/api/v1/gex/spx/intraday?format=csv&date=2026-11-18", 404, "snapshot_not_found", "no snapshot of that date is stored"},
		{"/api/public/vix-term-structure", 503, "not_ready", "no answer yet"},
		{"/api/v1/gex/spx/series?format=csv", 503, "not_ready", "no answer yet"},
		{"/api/v1/gex/spx/matrix?format=csv", 503, "not_ready", "no answer yet"},
		{"/api/v1/sectors/rotation", 503, "not_ready", "no documents"},
		{"/api/v1/gex/spx", 503, "not_ready", `the last attempt failed: upstream_unreachable","reason":"upstream_unreachable"`},
	} {
		inputs = append(inputs, input{raw: asked("GET", e.target, ""), status: e.status, code: e.code, contains: e.contains})
	}
	for target, message := range map[string]string{
		"/api/v1/options/flow/unusual?limit=0":                          "limit must be a whole number from 1 to 100",
		"/api/v1/options/flow/unusual?limit=20&limit=20":                "limit is given more than once",
		"/api/v1/options/flow/unusual?limt=5":                           "limt must be written limit",
		"/api/v1/options/flow/unusual?_=1&limits=5":                     "limits must be written limit",
		"/api/v1/options/flow/unusual?limit=0&format=json":              "limit must be a whole number from 1 to 100",
		"/api/v1/options/flow/unusual?limit=1&format=csv":               "limit must be 20 or 100 with format=csv",
		"/api/v1/options/flow/unusual?expiration=2026-12-18":            "/api/v1/options/flow/unusual takes no expiration; /api/public/spx-max-pain takes it",
		"/api/v1/options/flow/unusual?limit=0&date=2026-11-18":          "limit must be a whole number from 1 to 100",
		"/api/v1/gex/spx/summary?underlyings=ndx":                       "underlyings must be written underlying",
		"/api/widgets/gex/levels?underlyin=qqq":                         "underlyin must be written underlying",
		"/api/public/spx-max-pain?symbols=NDX":                          "symbols must be written symbol",
		"/api/v1/options/flow/unusual?underlying=QQQ":                   "/api/v1/options/flow/unusual takes no underlying; one underlying is at /api/v1/options/flow/qqq",
		"/api/v1/options/flow/unusual?limit=5&Symbol=%5eSPX":            "/api/v1/options/flow/unusual takes no symbol; one underlying is at /api/v1/options/flow/spx",
		"/api/v1/gex/spx/levels?symbol=QQQ":                             "/api/v1/gex/spx/levels takes no symbol; one underlying is at /api/v1/gex/qqq/levels",
		"/api/v1/gex/spx?symbol=brk.b":                                  "/api/v1/gex/spx takes no symbol; one underlying is at /api/v1/gex/brkb",
		"/api/v1/gex/spx?underlying=spx&x=1&underlying=qqq":             "underlying is given more than once",
		"/api/widgets/gex?underlying=spx&underlying=qqq":                "underlying is given more than once",
		"/api/v1/underlyings?symbol=qqq":                                "/api/v1/underlyings takes no symbol; one underlying is at /api/v1/gex/qqq/summary",
		"/api/v1/sectors/rotation?symbol=XLK":                           "/api/v1/sectors/rotation takes no symbol",
		"/api/public/vix-term-structure/series?underlying=spx":          "/api/public/vix-term-structure/series takes no underlying",
		"/api/v1/options/flow/unusual?underlying=":                      "/api/v1/options/flow/unusual takes no underlying; one underlying is at /api/v1/options/flow/spx",
		"/api/public/spx-max-pain?expiration=2026-12-32":                "expiration must be YYYY-MM-DD, a calendar date",
		"/api/public/spx-max-pain?EXPIRATION=2026-12-18":                "EXPIRATION must be written expiration",
		"/api/public/spx-max-pain?format=csv&expiration=2026-11-27":     "format=csv takes no expiration: it has them all",
		"/api/public/spx-max-pain?date=2026-11-21&expiration=x":         "date must not be in the future by the market's clock",
		"/api/public/spx-max-pain?date=2026-11-19&expiration=x":         "expiration must be YYYY-MM-DD, a calendar date",
		"/api/public/vix-term-structure?date=2026-11-21":                "date must not be in the future by the market's clock",
		"/api/public/vix-term-structure/series?date=%32026-11-19&date=": "/api/public/vix-term-structure/series takes no date; /api/public/vix-term-structure takes it",
		"/api/v1/sectors/rotation?date=":                                "date must be YYYY-MM-DD, a UTC calendar date",
		"/api/v1/gex/spx?date=2026-11-19":                               "/api/v1/gex/spx takes no date; /api/v1/gex/spx/historical takes it",
		"/api/v1/gex/spx?x=1&Date":                                      "/api/v1/gex/spx takes no date; /api/v1/gex/spx/historical takes it",
		"/api/v1/gex/spx/summary?format=csv":                            "/api/v1/gex/spx/summary takes no format; /api/v1/gex/spx takes it",
		"/api/v1/gex/spx/historical?date=2026-11-21":                    "date must not be in the future by the market's clock",
		"/api/v1/gex/spx/historical?date=2026-11-17&date=2026-11-17":    "date is given more than once",
		"/api/v1/gex/spx/historical?date=" + strings.Repeat("9", 4000):  "date must be YYYY-MM-DD, a UTC calendar date",
		"/api/v1/gex/spx/historical?Date=2026-11-19":                    "Date must be written date",
		"/api/v1/gex/spx/historical?date=2026-11-19&d%41te=x":           "dAte must be written date",
		"/api/v1/gex/spx/historical?limit=0&date=2026-11-19":            "/api/v1/gex/spx/historical takes no limit; /api/v1/options/flow/spx takes it",
		"/api/v1/gex/spx/intraday?date=today":                           "date must be YYYY-MM-DD, a UTC calendar date",
		"/api/v1/gex/spx/intraday?date=2000-01-01&format=x":             "format must be json or csv on /api/v1/gex/spx/intraday",
		"/api/v1/gex/spx/levels?format=xml":                             "format must be json, csv or line on /api/v1/gex/spx/levels",
		"/api/v1/gex/spx/levels?format=csv%0d%0aX-Injected:%201":        "format must be json, csv or line on /api/v1/gex/spx/levels",
		"/api/v1/gex/spx/levels?format=csv&format=csv":                  "format is given more than once",
		"/api/v1/gex/spx/levels?Format=csv":                             "Format must be written format",
		"/api/v1/gex/spx/levels?format=csv&limit=5":                     "/api/v1/gex/spx/levels takes no limit; /api/v1/options/flow/spx takes it",
		"/api/v1/gex/spx/series?format=line":                            "format must be json or csv on /api/v1/gex/spx/series",
		"/api/v1/gex/spx/series?format=":                                "format must be json or csv on /api/v1/gex/spx/series",
		"/api/v1/gex/spx/series?format=CSV":                             "format must be json or csv on /api/v1/gex/spx/series",
	} {
		inputs = append(inputs, input{raw: asked("GET", target, ""), status: 400, code: "invalid_parameter", contains: `"message":"` + message + `"`})
	}
	return inputs
}

// inputsOfMethods returns requests with other methods than GET and HEAD.
func inputsOfMethods() (inputs []input) {
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "LINK", "PROPFIND", "PURGE", "QUERY", "get", "Get", "gET", "head", "options", "GETT", "GE", "X", "!", "G-E_T.1", strings.Repeat("A", 16)} {
		inputs = append(inputs,
			input{raw: asked(method, "/api/v1/gex/spx", ""), status: 405, code: "method_not_allowed"},
			input{raw: asked(method, "/api/v1/options/flow/unusual?limit=0", ""), status: 405, code: "method_not_allowed"},
			input{raw: asked(method, "/healthz", ""), status: 405, code: "method_not_allowed"},
			input{raw: asked(method, "/docs", ""), status: 405, code: "method_not_allowed"},
			input{raw: asked(method, "/nowhere", ""), status: 404, code: "not_found"})
	}
	for _, method := range []string{"", strings.Repeat("A", 17), strings.Repeat("GET", 500), "G\xc3\x84T", "GET,", "G(T", "GET\t", "GET\x00", "\"GET\"", "GET:"} {
		inputs = append(inputs, input{raw: asked(method, "/api/v1/gex/spx", ""), status: 400, code: "bad_request", ends: true})
	}
	return append(inputs,
		input{raw: "OPTIONS / HTTP/1.0\r\n\r\n", status: 204, ends: true}, // the health check of HAProxy
		input{raw: asked("OPTIONS", "/docs", ""), status: 204},
		input{raw: asked("CONNECT", "a:443", ""), status: 405, code: "method_not_allowed", ends: true},
		input{raw: asked("GET", "/api/widgets/gex/series?underlying=^Spx", ""), status: 200},
		input{raw: asked("OPTIONS", "/api/v1/gex/spx", ""), status: 204},
		input{raw: asked("OPTIONS", "/api/v1/options/flow/unusual?limit=x", ""), status: 204},
		input{raw: asked("OPTIONS", "/api/v1/gex/none", ""), status: 204}, // so that a page reads the 404 of its GET
		input{raw: asked("OPTIONS", "/nowhere", ""), status: 204})
}

// inputsOfFields returns requests with fields at and beyond their bounds. A field without meaning gets a good answer.
func inputsOfFields(secret string) (inputs []input) {
	const target, bad = "/api/v1/gex/spx/series", "/api/v1/options/flow/unusual?limit=0"
	for _, fields := range []string{
		"X-API-Key:\r\n", "X-API-Key: \t \r\n", "X-API-Key: " + secret + "\r\n", "x-api-key:" + secret + " \t\r\n", "X-API-Key: " + secret + "\r\nX-HTTP-Method-Override: DELETE\r\n",
		strings.Repeat("X: 1\r\n", 1000), strings.Repeat("A:\r\n", 1500), "X: \xff\xfe\r\n", "X: \xc3\xa4\r\n", "X:\r\n", "X: " + strings.Repeat("a", 8000) + "\r\n",
		"Accept: text/html;q=0\r\n", "Accept: application/xml\r\n", "Accept-Encoding:\r\n", "Accept-Encoding: identity;q=0, *;q=0\r\n", "Accept-Encoding: " + strings.Repeat("gzip;q=9,", 800) + "\r\n", "Accept-Encoding: \xff\r\nAccept-Encoding: ;;q=,=\r\n",
		"If-None-Match:\r\n", "If-None-Match: \"\r\n", "If-None-Match: \xff\r\n", "If-None-Match: W/W/\"a\"\r\n", "If-None-Match: " + strings.Repeat("\"a\",", 1800) + "\r\n", "If-None-Match: \"a\"\r\nIf-None-Match: \"b\"\r\n",
		"If-Modified-Since:\r\n", "If-Modified-Since: yesterday\r\n", "If-Modified-Since: Sat, 32 Foo 99999 25:61:61 GMT\r\n", "If-Modified-Since: " + strings.Repeat("9", 8000) + "\r\n", "If-Match:\r\n", "If-Match: *\r\n", "If-Unmodified-Since: x\r\n", "If-Unmodified-Since: Fri, 01 Jan 2100 00:00:00 GMT\r\n", "If-Match: *\r\nIf-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT\r\n", "Range: bytes=0-1\r\n", "Range: bytes=9999999999999999999-\r\n",
		"X-Forwarded-For: ' OR 1=1\r\n", "X-Forwarded-For: " + strings.Repeat("::1,", 1900) + "\r\n", "Forwarded: for=\"\r\n", "X-Forwarded-Host: evil.example\r\n", "X-Original-URL: /etc/passwd\r\n", "X-HTTP-Method-Override: DELETE\r\n", "Cookie: " + strings.Repeat("a=b;", 1900) + "\r\n", "Authorization: Basic Og==\r\n",
		"Origin: null\r\n", "Referer: \xff\r\n", "User-Agent: ${jndi:ldap://a}\r\n", "Content-Length: 0\r\n", "Content-Type: multipart/form-data\r\n", "Upgrade: h2c\r\n", "Connection: keep-alive\r\n", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n", "Keep-Alive: timeout=-1\r\n", "TE: trailers\r\n", "Proxy: http://a\r\n",
	} {
		inputs = append(inputs, input{raw: asked("GET", target, fields), status: 200})
	}
	for _, key := range []string{
		"x", "sk_", "k_000000000000", secret + "x", secret[:len(secret)-1], strings.ToUpper(secret), strings.ToLower(secret), "Bearer " + secret, "\"" + secret + "\"", secret + "," + secret, strings.Repeat("s", 128), strings.Repeat("s", 129), strings.Repeat("s", 7900), "\xff\xfe", "\xc3\xa4", "%73k_", "../../keys.json", "*", "null",
		secret + "\r\nX-API-Key: " + secret, secret + "\r\nX-API-Key:", "\r\nX-API-Key: " + secret, "a\r\nx-api-key: b",
	} {
		inputs = append(inputs, input{raw: asked("GET", target, "X-API-Key: "+key+"\r\n"), status: 401, code: "invalid_api_key"})
	}
	for _, fields := range []string{
		"X: " + strings.Repeat("a", 16384) + "\r\n", "X-API-Key: " + strings.Repeat("a", 17000) + "\r\n", strings.Repeat("X: 1\r\n", 2800), strings.Repeat("a", 17000) + ": 1\r\n", "X: " + strings.Repeat("a", 60_000) + "\r\n", "Cookie: " + strings.Repeat("a=b;", 5000) + "\r\n",
	} {
		inputs = append(inputs, input{raw: asked("GET", target, fields), status: 431, code: "headers_too_large", ends: true})
	}
	most := strings.Repeat("a", 16384-len(asked("GET", target, "X: \r\n"))) // so that request line and fields have as many bytes as allowed
	return append(inputs,
		input{raw: asked("GET", target, "X: "+most+"\r\n"), status: 200},
		input{raw: asked("GET", target, "X: a"+most+"\r\n"), status: 431, code: "headers_too_large", ends: true},
		input{raw: asked("GET", target, "If-None-Match: *\r\n"), status: 304},
		input{raw: asked("GET", target, "If-Match: \"x\"\r\nIf-None-Match: *\r\n"), status: 412, code: "precondition_failed"},
		input{raw: asked("GET", "/docs", "If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT\r\n"), status: 412, code: "precondition_failed"},
		input{raw: asked("GET", "/docs", "Accept-Encoding: gzip\r\nIf-Match: \"x\"\r\n"), status: 412, code: "precondition_failed"},
		input{raw: asked("GET", bad, "If-Match: \"x\"\r\n"), status: 400, code: "invalid_parameter"},
		input{raw: asked("OPTIONS", "/api/v1/gex/spx", "If-Match: \"x\"\r\n"), status: 204},
		input{raw: asked("OPTIONS", "/openapi.json", ""), status: 204},
		input{raw: asked("GET", bad, "X-API-Key: x\r\n"), status: 401, code: "invalid_api_key"},
		input{raw: asked("GET", bad, "If-None-Match: *\r\n"), status: 400, code: "invalid_parameter"},
		input{raw: asked("GET", target, "Connection: close\r\n"), status: 200, ends: true},
		input{raw: asked("GET", bad, "Connection: close\r\n"), status: 400, code: "invalid_parameter", ends: true})
}

// inputsOfFrames returns requests that two parsers could read differently.
func inputsOfFrames() (inputs []input) {
	for _, raw := range []string{
		"POST /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", // Content-Length and Transfer-Encoding
		"POST /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n", // Transfer-Encoding and Content-Length
		seriesLine + "Host: a\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",                     // Transfer-Encoding and no content
		seriesLine + "Host: a\r\ntransfer-ENCODING: identity\r\n\r\n",                                                  // Transfer-Encoding disguised
		seriesLine + "Host: a\r\nTransfer-Encoding:\r\n\r\n",                                                           // an empty Transfer-Encoding
		seriesLine + "Host: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",                                    // a coding that is not known
		seriesLine + "Host: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",                                 // chunked twice
		seriesLine + "Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",            // chunked in two lines
		seriesLine + "Host: a\r\nTransfer-Encoding: chunked;x=y\r\n\r\n0\r\n\r\n",                                      // chunked with a parameter
		seriesLine + "Host: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",                                         // a name that ends alike
		"GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",                                                         // Transfer-Encoding in HTTP/1.0
		seriesLine + "Host: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",                                  // two Content-Lengths
		seriesLine + "Host: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",                                  // the same Content-Length twice
		seriesLine + "Host: a\r\nContent-Length: 5, 5\r\n\r\nhello",                                                    // a list of Content-Lengths
		seriesLine + "Host: a\r\nContent-Length: +5\r\n\r\nhello",                                                      // signed Content-Length
		seriesLine + "Host: a\r\nContent-Length: -5\r\n\r\nhello",                                                      // negative Content-Length
		seriesLine + "Host: a\r\nContent-Length: 0x5\r\n\r\nhello",                                                     // hexadecimal Content-Length
		seriesLine + "Host: a\r\nContent-Length:\r\n\r\n",                                                              // empty Content-Length
		seriesLine + "Host: a\r\nContent-Length : 5\r\n\r\nhello",                                                      // space before the colon
		seriesLine + "Host: a\r\nX\t: 5\r\n\r\n",                                                                       // tab before the colon
		seriesLine + "Host: a\r\n: 5\r\n\r\n",                                                                          // field without a name
		seriesLine + "Host: a\r\nnothing\r\n\r\n",                                                                      // field without a colon
		seriesLine + "Host: a\r\nX: 1\r\n 2\r\n\r\n",                                                                   // folded line
		seriesLine + "Host: a\r\nX: 1\r\n\t2\r\n\r\n",                                                                  // folded line with a tab
		seriesLine + "Host: a\r\nX: 1\rY: 2\r\n\r\n",                                                                   // bare CR in a value
		"GET /\r HTTP/1.1\r\nHost: a\r\n\r\n",                                                                          // bare CR in the request line
		seriesLine + "Host: a\r\nX: 1\x002\r\n\r\n",                                                                    // NUL in a value
		seriesLine + "Host: a\r\nX\x00: 12\r\n\r\n",                                                                    // NUL in a name
		seriesLine + "Host: a\r\nX: \x7f\r\n\r\n",                                                                      // DEL in a value
		"GET /api/v1/gex/spx/series HTTP/1.1\nHost: a\r\n\r\n",                                                         // bare LF after the request line
		seriesLine + "Host: a\nX: 1\r\n\r\n",                                                                           // bare LF after a field
		"GET /api/v1/gex/spx/series HTTP/1.1\n" + strings.Repeat("X: 1\n", 200),                                        // bare LF that never ends
		seriesLine + "Host: a\r\n\n",                                                                                   // bare LF at the end of the head
		seriesLine + "\r\n",                                                                                            // no Host
		seriesLine + "Host: a\r\nHost: a\r\n\r\n",                                                                      // two Hosts
		seriesLine + "Host: a b\r\n\r\n",                                                                               // Host that is none
		seriesLine + "Host:\r\n\r\n",                                                                                   // an empty Host
		seriesLine + "Host: a/b\r\n\r\n",                                                                               // Host with a path
		"GET /\r\n\r\n",                                                                                                // HTTP/0.9
		"GET / \r\nHost: a\r\n\r\n",                                                                                    // no version
		"GET / http/1.1\r\nHost: a\r\n\r\n",                                                                            // lower-case version
		"GET / HTTP/1.1 \r\nHost: a\r\n\r\n",                                                                           // version with more
		"GET / HTTP/1.10\r\nHost: a\r\n\r\n",                                                                           // version of two digits
		"GET  / HTTP/1.1\r\nHost: a\r\n\r\n",                                                                           // two spaces in the request line
		"GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n",                                                                           // tab in the request line
		strings.Repeat("A", 17),                                                                                        // method without end
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",                                                                 // TLS
	} {
		inputs = append(inputs, input{raw: raw, status: 400, code: "bad_request", ends: true})
	}
	for _, body := range []string{"0\r\n\r\n", "2;x=y\r\n{}\r\n0\r\nT: x\r\n\r\n", strings.Repeat("1\r\na\r\n", 5000), "no chunk", ""} { // ignored, and so are the requests behind it
		inputs = append(inputs,
			input{raw: asked("GET", "/api/v1/gex/spx/series", "Transfer-Encoding: chunked\r\n") + body, status: 200, ends: true},
			input{raw: asked("GET", "/healthz", "transfer-encoding:\tCHUNKED \r\nExpect: 100-continue\r\nTrailer: T\r\n") + body, status: 200, ends: true},
			input{raw: asked("POST", "/api/v1/gex/spx", "Transfer-Encoding: chunked\r\n") + body, status: 405, code: "method_not_allowed", ends: true})
	}
	return append(inputs,
		input{raw: seriesLine + "Host: a\r\nContent-Length: 1025\r\n\r\n", status: 413, code: "body_too_large", ends: true},                 // Content-Length over the limit
		input{raw: seriesLine + "Host: a\r\nContent-Length: 18446744073709551617\r\n\r\n", status: 413, code: "body_too_large", ends: true}, // Content-Length that overflows
		input{raw: "GET / HTTP/9.9\r\nHost: a\r\n\r\n", status: 505, code: "http_version_not_supported", ends: true},                        // HTTP/9.9
		input{raw: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", status: 505, code: "http_version_not_supported", ends: true},                         // HTTP/2.0
		input{raw: seriesLine[:len(seriesLine)-3] + "2\r\nHost: a\r\n\r\n", status: 200},                                                    // HTTP/1.2, RFC 9110 §6.2
		input{raw: seriesLine[:len(seriesLine)-3] + "9\r\nHost: a\r\nConnection: close\r\n\r\n", status: 200, ends: true},                   // HTTP/1.9
		input{raw: seriesLine[:len(seriesLine)-3] + "2\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", status: 200, ends: true},
		input{raw: seriesLine[:len(seriesLine)-3] + "2\r\n\r\n", status: 400, code: "bad_request", ends: true}, // HTTP/1.2 without a Host
		input{raw: "GET /" + strings.Repeat("a", 5000), status: 414, code: "uri_too_long", ends: true})         // target without end
}
