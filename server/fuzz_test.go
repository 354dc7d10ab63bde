package server_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
)

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
