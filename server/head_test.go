package server

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A head that the parser accepts, net/http reads in the same way: where it ends, how long the body is, and the fields that
// matter. A head that net/http refuses, the parser refuses.
func FuzzHead(f *testing.F) {
	for _, raw := range []string{
		"GET /api/v1/gex/spx?x=1 HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip;q=0.5\r\nX-API-Key: sk_x\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a:80\r\nContent-Length: 5\r\n\r\nhello", "\r\nGET / HTTP/1.0\r\n\r\n",
		"GET / HTTP/1.1\r\nhost:a\r\nIf-None-Match: \"a\", W/\"b\"\r\nIf-Modified-Since: Fri, 20 Nov 2037 15:44:39 GMT\r\nX-Forwarded-For: ::1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-continue\r\nUpgrade: h2c\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\navailable-DICTIONARY: :AA==: \r\nAvailable-Dictionary: :x:\r\n\r\n",
		"GET http://a/b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost:\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"x\"\r\nIf-None-Match: \t* \r\nX-Forwarded-For: ::1\r\nX-Forwarded-For: ::2\r\nX-Forwarded-For: ::3\r\n\r\n",
	} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var h head
		if h.parse(raw) != nil {
			return
		}
		trimmed := bytes.TrimPrefix(raw, []byte("\r\n")) // net/http does not ignore an empty line before the head
		h.length -= len(raw) - len(trimmed)
		r := bufio.NewReaderSize(bytes.NewReader(trimmed), 1<<20)
		req, err := http.ReadRequest(r)
		if err != nil {
			if refusedForAnotherReason(err) {
				return
			}
			t.Fatalf("net/http refuses it: %v", err)
		}
		if req.Method != string(h.method) || req.RequestURI != string(h.target) || req.ProtoAtLeast(1, 1) == h.http10 {
			t.Errorf("%s %s %s, here %s %s", req.Method, req.RequestURI, req.Proto, h.method, h.target)
		}
		if req.ContentLength != int64(h.body) {
			t.Errorf("body of %d %v, here %d", req.ContentLength, req.TransferEncoding, h.body)
		}
		if unread := r.Buffered(); len(trimmed)-unread != h.length {
			t.Errorf("the head has %d bytes, here %d", len(trimmed)-unread, h.length)
		}
		for name, value := range map[string][]byte{
			"Accept-Encoding": h.encodings, "Available-Dictionary": h.dictionary, "If-None-Match": h.noneMatch,
			"X-Api-Key": h.key, "X-Forwarded-For": h.forwarded,
		} {
			values := req.Header[name]
			if len(values) > 0 && strings.Join(values, ", ") != string(value) || len(values) == 0 && value != nil {
				t.Errorf("%s is %q, here %q", name, values, value)
			}
		}
		if !h.close && (req.Close || h.body != 0 || req.URL.IsAbs()) {
			t.Error("a request that must be the last of its connection")
		}
	})
}

// refusedForAnotherReason says whether net/http refuses a head for a reason that does not concern where the request ends.
// net/http also parses the target, and refuses methods that the parser accepts.
func refusedForAnotherReason(err error) bool {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return false
	}
	text := err.Error()
	return strings.HasPrefix(text, "parse ") || strings.Contains(text, "invalid method")
}
