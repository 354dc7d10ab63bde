package server_test

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

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
		"tabs around a value":        {seriesLine + "Host:\t a \t\r\nX:\r\n\r\n", "200"},
		"Accept-Encoding twice":      {seriesLine + "Host: a\r\nAccept-Encoding: gzip;q=0\r\nAccept-Encoding: br;q=0\r\n\r\n", "200"},
		"Expect":                     {seriesLine + "Host: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi" + series, "200"},
		"OPTIONS of everything":      {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "204"},
		"malformed, without its end": {series + seriesLine + "X : 1\r\n", "200 400"},
		"a line feed alone":          {series + "\n", "200 400"},
		"more after close":           {seriesLine + "Host: a\r\nConnection: close\r\n\r\n" + strings.Repeat(series, 300), "200"},
		"a half request":             {seriesLine + "Host: a\r\n", ""},
		"nothing":                    {"", ""},
		"a request and a half":       {series + seriesLine, "200"},
		"HEAD":                       {"HEAD /api/v1/gex/spx/series HTTP/1.1\r\nHost: a\r\n\r\n" + series, "200 200"},
	} {
		t.Run(name, func(t *testing.T) {
			var statuses []string
			responses := answers(t, address, c.raw, true, strings.Fields(c.raw + " GET")[0])
			for _, r := range responses {
				statuses = append(statuses, strconv.Itoa(r.StatusCode))
			}
			equal(t, strings.Join(statuses, " "), c.statuses, "statuses")
		})
	}
}

// A body that never ends is cut after the answer.
func TestBodyWithoutEnd(t *testing.T) {
	c := dial(t, listen(t, newServer(newFinder(t))))
	_, err := io.WriteString(c, seriesLine+"Host: a\r\nTransfer-Encoding: chunked\r\n\r\n")
	if resp, err2 := http.ReadResponse(bufio.NewReader(c), nil); err != nil || err2 != nil || resp.StatusCode != 200 || !resp.Close {
		t.Fatalf("%v %v %v", resp, err, err2)
	}
	for err == nil {
		_, err = io.WriteString(c, "8\r\n12345678\r\n")
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
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
		equal(t, served(raw[:cut], raw[cut:]), want, "cut at %d", cut)
	}
	equal(t, served(strings.Split(raw, "")...), want, "byte by byte")
}
