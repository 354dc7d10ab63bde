package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// Each answer is read in one piece, and byte by byte.
func TestAnswers(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for _, c := range []struct {
		name, text string
		status     int
		body       int64
		etag       string
		closes     bool
		end        bool // the server closes the connection
		err        string
	}{
		{name: "length", text: "HTTP/1.1 200 OK\r\ncontent-LENGTH: 3\r\nETag: \"a\"\r\n\r\nabc", status: 200, body: 3, etag: `"a"`},
		{name: "length 0", text: "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", status: 500},
		{name: "no reason", text: "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", status: 200},
		{name: "long", text: "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + long, status: 200, body: 100_000},
		{name: "lines without CR", text: "HTTP/1.1 200 OK\nContent-Length: 1\n\nx", status: 200, body: 1},
		{name: "chunks", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n3;a=b\r\nab\n\r\nA \r\n0123456789\r\n0\r\nX-Trailer: a\r\n\r\n", status: 200, body: 13},
		{name: "chunks count before a length", text: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", status: 200, body: 1},
		{name: "304 with a length", text: "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", status: 304},
		{name: "204", text: "HTTP/1.1 204 No Content\r\n\r\n", status: 204},
		{name: "204 with chunks", text: "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", status: 204},
		{name: "interim", text: "HTTP/1.1 103 Early Hints\r\nETag: \"no\"\r\nConnection: close\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\nETag: \"b\"\r\n\r\nx", status: 200, body: 1, etag: `"b"`},
		{name: "close", text: "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 1\r\n\r\nx", status: 200, body: 1, closes: true},
		{name: "until the end", text: "HTTP/1.1 200 OK\r\n\r\nabcd", status: 200, body: 4, closes: true, end: true},
		{name: "HTTP/1.0", text: "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", status: 200, body: 1, closes: true},
		{name: "HTTP/1.0 that stays", text: "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\nx", status: 200, body: 1},
		{name: "same length twice", text: "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", status: 200, body: 1},

		{name: "nothing", end: true, err: "closed before the end"},
		{name: "cut header", text: "HTTP/1.1 200 OK\r\nContent-", end: true, err: "closed before the end"},
		{name: "cut body", text: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx", end: true, err: "closed before the end"},
		{name: "cut chunk", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", end: true, err: "closed before the end"},
		{name: "no last chunk", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n", end: true, err: "closed before the end"},
		{name: "too much", text: "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxy", err: "after the end"},
		{name: "another protocol", text: "SSH-2.0-OpenSSH_9.2\r\n", err: "status line"},
		{name: "HTTP/2", text: "HTTP/2.0 200 OK\r\n\r\n", err: "status line"},
		{name: "status", text: "HTTP/1.1 2x0 OK\r\n\r\n", err: "status line"},
		{name: "short status", text: "HTTP/1.1 20 OK\r\n\r\n", err: "status line"},
		{name: "field", text: "HTTP/1.1 200 OK\r\nno field\r\n\r\n", err: "header field"},
		{name: "blank in a name", text: "HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\nx", err: "header field"},
		{name: "negative length", text: "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", err: "Content-Length"},
		{name: "two lengths", text: "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy", err: "Content-Length"},
		{name: "no size", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", err: "chunk size"},
		{name: "chunk longer than its size", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabcd\r\n0\r\n\r\n", err: "chunk longer"},
		{name: "endless header", text: "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", 200_000), err: "longer than 1 MB"},
		{name: "endless line", text: "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("b", 2<<20), err: "longer than 1 MB"},
	} {
		for _, size := range []int{1, 7, len(c.text) + 1} {
			var a answerReader
			a.begin()
			done, err := false, error(nil)
			for rest := c.text; rest != "" && err == nil; {
				n := min(size, len(rest))
				if done && c.err == "" {
					t.Errorf("%s in pieces of %d: complete before %q", c.name, size, rest)
				}
				done, err = a.read([]byte(rest[:n]))
				rest = rest[n:]
			}
			if c.end && err == nil {
				err = a.end()
				done = err == nil
			}
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%s in pieces of %d: %v, want an error with %q", c.name, size, err, c.err)
				}
			} else if err != nil || !done || a.status != c.status || a.body != c.body || string(a.etag) != c.etag || a.closes != c.closes {
				t.Errorf("%s in pieces of %d: %v, done %v, %+v", c.name, size, err, done, a)
			}
		}
	}
}

// Reading an answer allocates nothing.
func TestReadingAllocatesNothing(t *testing.T) {
	text := []byte("HTTP/1.1 200 OK\r\nServer: x\r\nConnection: keep-alive\r\nETag: \"a\"\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
	var a answerReader
	if n := testing.AllocsPerRun(100, func() {
		a.begin()
		if done, err := a.read(text); !done || err != nil {
			t.Fatal(done, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A server that answers what is no HTTP, or nothing, has failed requests with a reason.
func TestWrongAnswersAreFailures(t *testing.T) {
	for text, reason := range map[string]string{"220 smtp\r\n": "no HTTP/1 status line", "": "connection closed before the end"} {
		to := serverTarget(t, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			io.WriteString(conn, text)
			conn.Close()
		})
		got := load(t.Context(), loadCommand{target: to, Connections: 1, Rate: 100, Duration: 50 * time.Millisecond})
		if got.Failed != got.Requests || got.Requests != 5 || !strings.Contains(fmt.Sprint(got.Errors), reason) {
			t.Errorf("%q: %d of %d failed, %v, want %q", text, got.Failed, got.Requests, got.Errors, reason)
		}
	}
}

func TestTimeout(t *testing.T) {
	over := make(chan struct{})
	to := serverTarget(t, func(http.ResponseWriter, *http.Request) { <-over })
	t.Cleanup(func() { close(over) })
	got := load(t.Context(), loadCommand{target: to, Connections: 1, Rate: 10, Duration: 100 * time.Millisecond, Timeout: 20 * time.Millisecond})
	if got.Failed != 1 || got.Errors["timeout"] != 1 || got.Latency.Max < 20_000 {
		t.Errorf("%v %+v", got.Errors, got.Latency)
	}
}

// The sockets of TLS are those of Go's library, which every other system uses for all loads. Every answer closes its
// connection with "close".
func TestLoadOverTLS(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/close" {
			w.Header().Set("Connection", "close")
		}
		w.(http.Flusher).Flush()
		fmt.Fprint(w, strings.Repeat("x", 40_000))
	}))
	t.Cleanup(s.Close)
	to, _, err := parseTarget(s.URL, time.Minute)
	must(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	to.config = &tls.Config{RootCAs: roots, ServerName: "example.com"}
	got := load(t.Context(), loadCommand{target: to, Connections: 3, Rate: 300, Duration: 500 * time.Millisecond}, request{path: "/", name: "/"}, request{path: "/close", name: "/close"})
	if got.Status[200] != 150 || got.bytes != 150*40_000 || got.Paths[1].Requests == 0 {
		t.Errorf("%v %v, %d bytes", got.Status, got.Errors, got.bytes)
	}
	if status, body, err := to.get("/"); status != 200 || len(body) != 40_000 || err != nil {
		t.Errorf("%d, %d bytes, %v", status, len(body), err)
	}
	to.config = nil
	if got := load(t.Context(), loadCommand{target: to, Connections: 1, Rate: 100, Duration: 30 * time.Millisecond}); got.Failed != 3 || got.Requests != 3 {
		t.Errorf("a certificate of nobody: %v %v", got.Status, got.Errors)
	}
}

// After a wait for news with much time, a shorter wait ends at its own instant.
func TestAnEarlierInstant(t *testing.T) {
	s := newNetSockets(serverTarget(t, func(http.ResponseWriter, *http.Request) {}), 1)
	defer s.end()
	must(t, s.open(0))
	if id, _, err := s.next(time.Hour); id != 0 || err != nil {
		t.Fatal(id, err)
	}
	if id, got, err := s.next(time.Millisecond); id != -1 || err != nil || !s.until.IsZero() {
		t.Error(id, got, err, s.until)
	}
}
