package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
)

// target is where requests go.
type target struct {
	base    string // as given, without a trailing slash
	address string // host:port to dial
	host    string // of the Host header
	prefix  string // path before every resource
	tls     bool
	timeout time.Duration // of one request
}

// parseTarget reads a base URL.
func parseTarget(base string, timeout time.Duration) (*target, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("base URL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("base URL %q: want http://HOST:PORT or https://HOST:PORT, with or without a path", base)
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return &target{
		base: strings.TrimSuffix(base, "/"), address: net.JoinHostPort(u.Hostname(), port), host: u.Host,
		prefix: strings.TrimSuffix(u.EscapedPath(), "/"), tls: u.Scheme == "https", timeout: timeout,
	}, nil
}

// local says whether the target is this machine, by its name alone.
func (t *target) local() bool {
	host, _, _ := net.SplitHostPort(t.address)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (t *target) dial(ctx context.Context) (*client, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", t.address)
	if err != nil {
		return nil, err
	}
	if t.tls {
		host, _, _ := net.SplitHostPort(t.address)
		secure := tls.Client(conn, &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, err
		}
		conn = secure
	}
	return newClient(conn, t.timeout), nil
}

// wire returns the bytes of a request; headers are whole lines without their ends.
func (t *target) wire(method, path string, headers ...string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s%s HTTP/1.1\r\nHost: %s\r\nUser-Agent: strikecache-bench\r\n", method, t.prefix, path, t.host)
	for _, h := range headers {
		fmt.Fprintf(&b, "%s\r\n", h)
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

// client is one keep-alive connection. It speaks as much HTTP/1.1 as a measurement needs: answers with a
// Content-Length. Anything else is an error rather than a wait. It is for one goroutine.
type client struct {
	conn     net.Conn
	timeout  time.Duration
	deadline time.Time
	buf      []byte
	from, to int // unread bytes in buf
}

func newClient(conn net.Conn, timeout time.Duration) *client {
	return &client{conn: conn, timeout: timeout, buf: make([]byte, 64<<10)}
}

func (c *client) close() { _ = c.conn.Close() }

// reply is an answer. Its slices are the client's until its next request.
type reply struct {
	status   int
	length   int // of the body that was read
	etag     []byte
	coding   []byte
	closes   bool // the server ends the connection
	received int  // bytes, head and body
}

var (
	errChunked  = errors.New("chunked answer: this client measures answers with a Content-Length")
	errNoLength = errors.New("answer without Content-Length")
	errHead     = errors.New("malformed answer")
	errHeadSize = errors.New("head of the answer exceeds 64 KiB")
	errSurplus  = errors.New("bytes beyond the answer")
)

// do sends a request and reads its answer; the body goes to keep when that is not nil, and is dropped otherwise.
// After an error the client is of no further use.
func (c *client) do(request []byte, keep *bytes.Buffer) (reply, error) {
	// A deadline a request would cost a timer each; moving it once a second keeps it between one and two timeouts.
	if now := time.Now(); c.deadline.Sub(now) < c.timeout {
		c.deadline = now.Add(c.timeout + time.Second)
		if err := c.conn.SetDeadline(c.deadline); err != nil {
			return reply{}, err
		}
	}
	if c.from != c.to {
		return reply{}, errSurplus
	}
	if _, err := c.conn.Write(request); err != nil {
		return reply{}, err
	}
	head, err := c.readHead()
	if err != nil {
		return reply{}, err
	}
	r, err := parseHead(head, bytes.HasPrefix(request, []byte("HEAD ")))
	if err != nil {
		return reply{}, err
	}
	r.received = len(head) + r.length
	return r, c.readBody(r.length, keep)
}

// readHead reads to the blank line and returns the head with it.
func (c *client) readHead() ([]byte, error) {
	c.from, c.to = 0, 0
	for {
		searched := max(0, c.to-3)
		n, err := c.conn.Read(c.buf[c.to:])
		c.to += n
		if i := bytes.Index(c.buf[searched:c.to], []byte("\r\n\r\n")); i >= 0 {
			c.from = searched + i + 4
			return c.buf[:c.from], nil
		}
		if err != nil {
			return nil, err
		}
		if c.to == len(c.buf) {
			return nil, errHeadSize
		}
	}
}

// readBody takes n bytes. The head stays in place, for the reply's slices.
func (c *client) readBody(n int, keep *bytes.Buffer) error {
	take := func(b []byte) {
		if keep != nil {
			keep.Write(b)
		}
		n -= len(b)
	}
	buffered := min(n, c.to-c.from)
	take(c.buf[c.from : c.from+buffered])
	c.from += buffered
	if n == 0 {
		return nil
	}
	room := c.buf[c.from:]
	if len(room) < 16<<10 {
		room = make([]byte, 16<<10)
	}
	for n > 0 {
		got, err := c.conn.Read(room[:min(n, len(room))])
		take(room[:got])
		if err != nil && n > 0 {
			return fmt.Errorf("body ends %d bytes early: %w", n, err)
		}
	}
	c.from, c.to = 0, 0
	return nil
}

// parseHead reads a head with its blank line. toHead says that the request was a HEAD, whose answer has no body.
func parseHead(head []byte, toHead bool) (reply, error) {
	line, rest, _ := bytes.Cut(head, []byte("\r\n"))
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.")) || line[8] != ' ' || len(line) > 12 && line[12] != ' ' {
		return reply{}, fmt.Errorf("%w: %.40q", errHead, line)
	}
	r := reply{closes: line[7] == '0'}
	var ok bool
	if r.status, ok = number(line[9:12]); !ok || r.status < 200 {
		return reply{}, fmt.Errorf("%w: status %q", errHead, line[9:12])
	}
	length, chunked := -1, false
	for {
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		if len(line) == 0 {
			break
		}
		name, value, found := bytes.Cut(line, []byte(":"))
		if !found {
			return reply{}, fmt.Errorf("%w: line %.40q", errHead, line)
		}
		value = bytes.TrimSpace(value)
		switch {
		case is(name, "content-length"):
			n, ok := number(value)
			if !ok || length >= 0 && n != length {
				return reply{}, fmt.Errorf("%w: Content-Length %.40q", errHead, value)
			}
			length = n
		case is(name, "transfer-encoding"):
			chunked = true
		case is(name, "connection"):
			r.closes = r.closes || is(value, "close")
		case is(name, "etag"):
			r.etag = value
		case is(name, "content-encoding"):
			r.coding = value
		}
	}
	switch {
	case toHead || r.status == 204 || r.status == 304:
	case chunked:
		return reply{}, errChunked
	case length < 0:
		return reply{}, errNoLength
	default:
		r.length = length
	}
	return r, nil
}

// is compares without regard to case; lower is in lower case.
func is(b []byte, lower string) bool {
	return len(b) == len(lower) && (string(b) == lower || strings.EqualFold(string(b), lower))
}

// number reads at most nine decimal digits.
func number(b []byte) (int, bool) {
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, len(b) > 0 && len(b) <= 9
}
