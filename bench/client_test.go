package main

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// scripted is a connection whose answers are already there, read one byte at a time or in one piece.
type scripted struct {
	net.Conn
	read func([]byte) (int, error)
}

func (s scripted) Read(p []byte) (int, error)  { return s.read(p) }
func (s scripted) Write(p []byte) (int, error) { return len(p), nil }
func (s scripted) SetDeadline(time.Time) error { return nil }
func (s scripted) Close() error                { return nil }
func answers(text string, split bool) (c *client) {
	r := strings.NewReader(text)
	s := scripted{read: r.Read}
	if split {
		s.read = iotest.OneByteReader(r).Read
	}
	return newClient(s, time.Second)
}

func TestClientReadsAnswers(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for _, c := range []struct {
		name, method, text string
		status             int
		body               string
		err                error
	}{
		{"length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", nil},
		{"any case", "GET", "HTTP/1.1 200 OK\r\ncontent-LENGTH:5\r\n\r\nhello", 200, "hello", nil},
		{"beyond the buffer", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + long, 200, long, nil},
		{"no reason", "GET", "HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n", 404, "", nil},
		{"304 without a body", "GET", "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n", 304, "", nil},
		{"304 with the length of the body it spares", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 304, "", nil},
		{"204", "GET", "HTTP/1.1 204 No Content\r\n\r\n", 204, "", nil},
		{"HEAD", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 200, "", nil},
		{"HEAD of a chunked answer", "HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 200, "", nil},
		{"the same length twice", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab", 200, "ab", nil},
		{"two lengths", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc", 0, "", errHead},
		{"no length", "GET", "HTTP/1.1 200 OK\r\nETag: \"a\"\r\n\r\nhello", 0, "", errNoLength},
		{"chunked", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 0, "", errChunked},
		{"negative length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", 0, "", errHead},
		{"length too long", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n", 0, "", errHead},
		{"interim", "GET", "HTTP/1.1 100 Continue\r\n\r\n", 0, "", errHead},
		{"no HTTP", "GET", "SSH-2.0-OpenSSH_9.2\r\n\r\n", 0, "", errHead},
		{"no colon", "GET", "HTTP/1.1 200 OK\r\nContent-Length 5\r\n\r\nhello", 0, "", errHead},
		{"endless head", "GET", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 70_000), 0, "", errHeadSize},
	} {
		for _, split := range []bool{false, true} {
			var body bytes.Buffer
			r, err := answers(c.text, split).do([]byte(c.method+" / HTTP/1.1\r\n\r\n"), &body)
			if !errors.Is(err, c.err) || err == nil && (r.status != c.status || body.String() != c.body || r.length != len(c.body)) {
				t.Errorf("%s, split %v: status %d, %d bytes, %v", c.name, split, r.status, body.Len(), err)
			}
		}
	}
}

func TestClientKeepsAlive(t *testing.T) {
	one := "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nETag: \"one\"\r\nContent-Encoding: gzip\r\n\r\nab"
	two := "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: Close\r\n\r\nc"
	c := answers(one+two, true)
	r, err := c.do([]byte("GET / HTTP/1.1\r\n\r\n"), nil)
	if err != nil || string(r.etag) != `"one"` || string(r.coding) != "gzip" || r.closes || r.received != len(one) {
		t.Fatalf("%+v %v", r, err)
	}
	if r, err = c.do([]byte("GET / HTTP/1.1\r\n\r\n"), nil); err != nil || !r.closes || r.received != len(two) {
		t.Fatalf("%+v %v", r, err)
	}
	if _, err = c.do([]byte("GET / HTTP/1.1\r\n\r\n"), nil); err == nil {
		t.Error("no error from a connection that has ended")
	}
	// Both answers in one piece: the second was never asked for.
	c = answers(one+two, false)
	if _, err := c.do([]byte("GET / HTTP/1.1\r\n\r\n"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.do([]byte("GET / HTTP/1.1\r\n\r\n"), nil); !errors.Is(err, errSurplus) {
		t.Errorf("surplus bytes: %v", err)
	}
}

func TestBodyThatEndsEarly(t *testing.T) {
	_, err := answers("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", false).do([]byte("GET / HTTP/1.1\r\n\r\n"), nil)
	if err == nil || !strings.Contains(err.Error(), "4 bytes early") {
		t.Error(err)
	}
}

func TestTarget(t *testing.T) {
	for _, c := range []struct{ base, address, prefix string }{
		{"http://127.0.0.1:8080", "127.0.0.1:8080", ""},
		{"http://127.0.0.1:8080/", "127.0.0.1:8080", ""},
		{"https://example.org/edge/", "example.org:443", "/edge"},
		{"http://[::1]:80", "[::1]:80", ""},
		{"http://[::1]", "[::1]:80", ""},
	} {
		got, err := parseTarget(c.base, time.Second)
		if err != nil || got.address != c.address || got.prefix != c.prefix {
			t.Errorf("%s: %+v %v", c.base, got, err)
		}
	}
	for _, base := range []string{"", "127.0.0.1:8080", "ftp://a", "http://", "http://a?b", "http://u:p@a", "http://a#b", "http://%zz"} {
		if _, err := parseTarget(base, time.Second); err == nil {
			t.Errorf("%q is taken for a base", base)
		}
	}
}
