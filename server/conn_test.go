package server_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// Ambiguous requests are refused with the documented error, and the connection ends: nothing after them is answered.
func TestSmuggling(t *testing.T) {
	address := listen(t, newServer(newFinder(t)))
	for name, c := range map[string]struct {
		raw    string
		status int
		code   string
	}{
		"Content-Length and Transfer-Encoding": {"POST /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "bad_request"},
		"Transfer-Encoding alone":              {"POST /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "bad_request"},
		"Transfer-Encoding disguised":          {seriesLine + "Host: a\r\ntransfer-ENCODING: identity\r\n\r\n", 400, "bad_request"},
		"Transfer-Encoding in HTTP/1.0":        {"GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "bad_request"},
		"two Content-Lengths":                  {seriesLine + "Host: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400, "bad_request"},
		"the same Content-Length twice":        {seriesLine + "Host: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 400, "bad_request"},
		"a list of Content-Lengths":            {seriesLine + "Host: a\r\nContent-Length: 5, 5\r\n\r\nhello", 400, "bad_request"},
		"signed Content-Length":                {seriesLine + "Host: a\r\nContent-Length: +5\r\n\r\nhello", 400, "bad_request"},
		"negative Content-Length":              {seriesLine + "Host: a\r\nContent-Length: -5\r\n\r\nhello", 400, "bad_request"},
		"hexadecimal Content-Length":           {seriesLine + "Host: a\r\nContent-Length: 0x5\r\n\r\nhello", 400, "bad_request"},
		"empty Content-Length":                 {seriesLine + "Host: a\r\nContent-Length:\r\n\r\n", 400, "bad_request"},
		"Content-Length over the limit":        {seriesLine + "Host: a\r\nContent-Length: 1025\r\n\r\n", 413, "body_too_large"},
		"Content-Length that overflows":        {seriesLine + "Host: a\r\nContent-Length: 18446744073709551617\r\n\r\n", 413, "body_too_large"},
		"space before the colon":               {seriesLine + "Host: a\r\nContent-Length : 5\r\n\r\nhello", 400, "bad_request"},
		"tab before the colon":                 {seriesLine + "Host: a\r\nX\t: 5\r\n\r\n", 400, "bad_request"},
		"field without a name":                 {seriesLine + "Host: a\r\n: 5\r\n\r\n", 400, "bad_request"},
		"field without a colon":                {seriesLine + "Host: a\r\nnothing\r\n\r\n", 400, "bad_request"},
		"folded line":                          {seriesLine + "Host: a\r\nX: 1\r\n 2\r\n\r\n", 400, "bad_request"},
		"folded line with a tab":               {seriesLine + "Host: a\r\nX: 1\r\n\t2\r\n\r\n", 400, "bad_request"},
		"bare CR in a value":                   {seriesLine + "Host: a\r\nX: 1\rY: 2\r\n\r\n", 400, "bad_request"},
		"bare CR in the request line":          {"GET /\r HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad_request"},
		"NUL in a value":                       {seriesLine + "Host: a\r\nX: 1\x002\r\n\r\n", 400, "bad_request"},
		"NUL in a name":                        {seriesLine + "Host: a\r\nX\x00: 12\r\n\r\n", 400, "bad_request"},
		"DEL in a value":                       {seriesLine + "Host: a\r\nX: \x7f\r\n\r\n", 400, "bad_request"},
		"bare LF after the request line":       {"GET /api/v1/gex/spx/series HTTP/1.1\nHost: a\r\n\r\n", 400, "bad_request"},
		"bare LF after a field":                {seriesLine + "Host: a\nX: 1\r\n\r\n", 400, "bad_request"},
		"bare LF that never ends":              {"GET /api/v1/gex/spx/series HTTP/1.1\n" + strings.Repeat("X: 1\n", 200), 400, "bad_request"},
		"bare LF at the end of the head":       {seriesLine + "Host: a\r\n\n", 400, "bad_request"},
		"no Host":                              {seriesLine + "\r\n", 400, "bad_request"},
		"two Hosts":                            {seriesLine + "Host: a\r\nHost: a\r\n\r\n", 400, "bad_request"},
		"Host that is none":                    {seriesLine + "Host: a b\r\n\r\n", 400, "bad_request"},
		"an empty Host":                        {seriesLine + "Host:\r\n\r\n", 400, "bad_request"},
		"Host with a path":                     {seriesLine + "Host: a/b\r\n\r\n", 400, "bad_request"},
		"HTTP/9.9":                             {"GET / HTTP/9.9\r\nHost: a\r\n\r\n", 505, "http_version_not_supported"},
		"HTTP/2.0":                             {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "http_version_not_supported"},
		"HTTP/1.2":                             {"GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505, "http_version_not_supported"},
		"HTTP/0.9":                             {"GET /\r\n\r\n", 400, "bad_request"},
		"no version":                           {"GET / \r\nHost: a\r\n\r\n", 400, "bad_request"},
		"lower-case version":                   {"GET / http/1.1\r\nHost: a\r\n\r\n", 400, "bad_request"},
		"version with more":                    {"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400, "bad_request"},
		"version of two digits":                {"GET / HTTP/1.10\r\nHost: a\r\n\r\n", 400, "bad_request"},
		"two spaces in the request line":       {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad_request"},
		"tab in the request line":              {"GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad_request"},
		"method that is no token":              {"G(T / HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad_request"},
		"method without end":                   {strings.Repeat("A", 17), 400, "bad_request"},
		"TLS":                                  {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "bad_request"},
		"target without end":                   {"GET /" + strings.Repeat("a", 5000), 414, "uri_too_long"},
	} {
		t.Run(name, func(t *testing.T) {
			got := exchange(t, address, c.raw+series, false) // the server ends the connection by itself
			resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(got)), nil)
			if err != nil {
				t.Fatalf("%v in %q", err, got)
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != c.status || !bytes.Contains(body, []byte(`"code":"`+c.code+`"`)) {
				t.Errorf("%d %s %v, want %d %s", resp.StatusCode, body, err, c.status, c.code)
			}
			if !resp.Close || strings.Count(got, "Server: ") != 1 || !bytes.HasSuffix(body, []byte(`,"usage":{"tier":"anonymous"}}`)) {
				t.Errorf("%q", got)
			}
		})
	}
}

// Unusual but correct requests are answered.
func TestUnusualRequests(t *testing.T) {
	address := listen(t, newServer(newFinder(t)))
	for name, c := range map[string]struct {
		raw      string
		statuses string
	}{
		"pipelined":                  {strings.Repeat(seriesLine+"Host: a\r\n\r\n", 5), "200 200 200 200 200"},
		"pipelined, of both kinds":   {seriesLine + "Host: a\r\n\r\nPOST /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello" + seriesLine + "Host: a\r\n\r\nGET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n" + series, "200 405"},
		"a body of lines":            {"POST /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\na\nb\n\nc\n" + series, "405"},
		"a malformed one behind it":  {series + seriesLine + "Host: a\nX: 1\r\n\r\n" + series, "200 400"},
		"a body that looks like one": {"GET /api/v1/gex/spx/series HTTP/1.1\r\nHost: a\r\nContent-Length: 35\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n\r\n" + series, "200"},
		"an empty line first":        {"\r\n" + series, "200"},
		"Host of an IPv6 address":    {seriesLine + "Host: [::1]:8080\r\n\r\n", "200"},
		"HTTP/1.0 without a Host":    {"GET /api/v1/gex/spx/series HTTP/1.0\r\n\r\n", "200"},
		"HTTP/1.0 that goes on":      {strings.Repeat("GET /api/v1/gex/spx/series HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 2), "200 200"},
		"tabs around a value":        {seriesLine + "Host:\t a \t\r\nX:\r\n\r\n", "200"},
		"Accept-Encoding twice":      {seriesLine + "Host: a\r\nAccept-Encoding: gzip;q=0\r\nAccept-Encoding: br;q=0\r\n\r\n", "200"},
		"Content-Length: 0":          {seriesLine + "Host: a\r\nContent-Length: 0\r\n\r\n" + series, "200 200"},
		"Expect":                     {seriesLine + "Host: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi" + series, "200"},
		"OPTIONS of everything":      {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "404"},
		"a half request":             {seriesLine + "Host: a\r\n", ""},
		"nothing":                    {"", ""},
		"a request and a half":       {series + seriesLine, "200"},
		"HEAD":                       {"HEAD /api/v1/gex/spx/series HTTP/1.1\r\nHost: a\r\n\r\n" + series, "200 200"},
	} {
		t.Run(name, func(t *testing.T) {
			var statuses []string
			responses := answers(t, address, c.raw, strings.Fields(c.raw + " GET")[0])
			for _, r := range responses {
				statuses = append(statuses, strconv.Itoa(r.StatusCode))
			}
			if s := strings.Join(statuses, " "); s != c.statuses {
				t.Errorf("%s, want %s", s, c.statuses)
			}
		})
	}
}

// The answers do not depend on how the bytes of the requests are split.
func TestSplitRequests(t *testing.T) {
	address := listen(t, newServer(newFinder(t)))
	raw := seriesLine + "Host: a\r\nAccept-Encoding: gzip\r\n\r\n" + series + "POST /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello" + series
	served := func(parts ...string) string {
		c := dial(t, address)
		defer c.Close()
		for _, p := range parts {
			if _, err := io.WriteString(c, p); err != nil {
				break // the connection has ended
			}
			runtime.Gosched()
		}
		got, err := io.ReadAll(c)
		if err != nil && !isReset(err) {
			t.Fatal(err)
		}
		return undated(string(got))
	}
	want := served(raw)
	if strings.Count(want, "HTTP/1.1 ") != 3 {
		t.Fatalf("%q", want)
	}
	for cut := 1; cut < len(raw); cut += 3 {
		if got := served(raw[:cut], raw[cut:]); got != want {
			t.Errorf("cut at %d: %q", cut, got)
		}
	}
	if got := served(strings.Split(raw, "")...); got != want {
		t.Errorf("byte by byte: %q", got)
	}
}
