package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"strikecache/bench/need"
	"strikecache/server"
)

// speech is TLS for both ends; a nil one is none.
type speech struct {
	pair   *server.Certificate
	client *tls.Config
	bare   bool // the client under test makes no handshake
}

func newSpeech(t testing.TB) *speech {
	t.Helper()
	issued := issueNow(t, "a")
	certFile, keyFile := issued.write(t, t.TempDir())
	pair, err := server.OpenCertificate(certFile, keyFile, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pair.Close)
	return &speech{pair: pair, client: &tls.Config{RootCAs: rootsOf(t, issued), ServerName: "localhost"}}
}

func (s *speech) server() *tls.Config {
	if s == nil {
		return nil
	}
	return s.pair.Config()
}

// shake makes the handshake of a client.
func (s *speech) shake(plain net.Conn) (net.Conn, error) {
	secure := tls.Client(plain, s.client)
	return secure, secure.Handshake()
}

// dial opens a TLS connection.
func (s *speech) dial(t testing.TB, address string) *tls.Conn {
	t.Helper()
	c, err := s.shake(dial(t, address))
	if err != nil {
		t.Fatal(err)
	}
	return c.(*tls.Conn)
}

// Over TLS every request is answered as it is without.
func TestTLSAnswersAlike(t *testing.T) {
	shelf, secure := newShelf(t), newSpeech(t)
	plain, over := listen(t, newServer(shelf)), listen(t, newServer(shelf, func(c *server.Config) { c.TLS = secure.server() }))
	get := "GET /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\n"
	for name, raw := range map[string]string{
		"a resource":        get + "Connection: close\r\n\r\n",
		"gzip":              get + "Accept-Encoding: gzip\r\nConnection: close\r\n\r\n",
		"304":               get + "If-None-Match: *\r\nConnection: close\r\n\r\n",
		"HEAD":              "HEAD /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
		"pipelined":         get + "\r\n" + get + "\r\n" + ask + "Host: a\r\nConnection: close\r\n\r\n",
		"a page":            "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
		"a probe":           "GET /readyz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
		"of both kinds":     get + "\r\nPOST /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello" + ask + "Host: a\r\nConnection: close\r\n\r\n",
		"an unknown key":    get + "X-API-Key: sk_guess\r\nConnection: close\r\n\r\n",
		"smuggling":         "POST /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + get + "\r\n",
		"a head too large":  ask + "Host: a\r\nX: " + strings.Repeat("x", 9000) + "\r\n\r\n",
		"a body too large":  ask + "Host: a\r\nContent-Length: 1025\r\n\r\n",
		"HTTP/2 by itself":  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"a method too long": strings.Repeat("A", 17),
	} {
		want := exchange(t, plain, raw, false)
		c := secure.dial(t, over)
		if _, err := io.WriteString(c, raw); err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(c) // the end is a proper one, of TLS, not a torn connection
		got := string(b)
		if err != nil || undated(got) != undated(want) || !strings.HasPrefix(got, "HTTP/1.1 ") {
			t.Errorf("%s: %v %.2000q, want %.2000q", name, err, got, want)
		}
	}
}

// undated returns responses without their Date fields, and without Last-Modified, which pages have from the start of
// their server.
func undated(s string) string {
	var kept strings.Builder
	for line := range strings.Lines(s) {
		if !strings.HasPrefix(line, "Date: ") && !strings.HasPrefix(line, "Last-Modified: ") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// Versions before 1.2, protocols other than HTTP/1.1 and clients without TLS are let go unanswered, and counted.
func TestTLSHandshakes(t *testing.T) {
	secure := newSpeech(t)
	web := newServer(newShelf(t), func(c *server.Config) { c.TLS = secure.server() })
	address := listen(t, web)
	var failed uint64
	for name, c := range map[string]struct {
		change func(*tls.Config)
		ok     bool
	}{
		"1.3":                    {func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 }, true},
		"1.2":                    {func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }, true},
		"1.1":                    {func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }, false},
		"HTTP/2 and HTTP/1.1":    {func(c *tls.Config) { c.NextProtos = []string{"h2", "http/1.1"} }, true},
		"HTTP/2 alone":           {func(c *tls.Config) { c.NextProtos = []string{"h2"} }, false},
		"a name that is unknown": {func(c *tls.Config) { c.ServerName, c.InsecureSkipVerify = "elsewhere.test", true }, true},
	} {
		cfg := secure.client.Clone()
		c.change(cfg)
		conn := tls.Client(dial(t, address), cfg)
		err := conn.Handshake()
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			failed++
			continue
		}
		if status, _, err := request(conn, vix); status != 200 || err != nil {
			t.Errorf("%s: %d %v", name, status, err)
		}
		if p := conn.ConnectionState().NegotiatedProtocol; p != "" && p != "http/1.1" {
			t.Errorf("%s: %s", name, p)
		}
	}
	for name, raw := range map[string]string{"no TLS": vix, "noise": "\x16\x03\x01\xff\xff\x01", "half a head": "\x16\x03"} {
		failed++
		if got := exchange(t, address, raw, true); strings.Contains(got, "HTTP/1.1 ") {
			t.Errorf("%s: answered %q", name, got)
		}
	}
	need.Until(t, "failures are counted", func() bool { return web.Stats().TLSHandshakesFailed == failed })
	need.Until(t, "they are gone", func() bool { return web.Stats().ConnectionsOpen <= 4 })
}

// tlsClients are ways to be slow before there is TLS at all.
var tlsClients = []slowClient{
	{"silent before the handshake", byRead, 5 * time.Second, "", func(c *slow) error { return c.drip("", "", "") }, false},
	{"slow handshake", byRead, 5 * time.Second, "", func(c *slow) error {
		if err := c.drip("", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "x"); !reset(err) {
			return err
		}
		return nil // a piece was under way when the server closed
	}, false},
}

// What holds for slow clients holds with TLS too, during the handshake and after it.
func TestFaultSlowTLSClients(t *testing.T) {
	count := need.Count(200)
	need.Files(t, 2*(len(slowClients)+len(tlsClients))*count+200)
	secure := newSpeech(t)
	bare := *secure
	bare.bare = true
	var cases sync.WaitGroup
	for _, c := range slowClients {
		if c.linux && runtime.GOOS != "linux" {
			continue
		}
		c.name += " of TLS"
		cases.Go(func() { c.held(t, count, secure) })
	}
	for _, c := range tlsClients {
		cases.Go(func() { c.held(t, count, &bare) })
	}
	cases.Wait()
}

// A limit of connections counts those in a handshake, holds against more than are refused with patience, and lets in
// again when one ends.
func TestFaultTLSConnectionLimit(t *testing.T) {
	const limit = 3
	secure := newSpeech(t)
	web := newServer(newShelf(t), func(c *server.Config) { c.MaxConnections, c.TLS, c.ReadTimeout = limit, secure.server(), time.Minute })
	address := listen(t, web)
	held := []net.Conn{secure.dial(t, address), secure.dial(t, address), dial(t, address)} // the last one is silent
	need.Until(t, "all are admitted", func() bool { return web.Stats().ConnectionsOpen == limit })
	surplus := need.Count(1000)
	silent := make([]net.Conn, surplus)
	for i := range silent {
		silent[i] = dial(t, address)
	}
	for _, c := range silent {
		if b, err := io.ReadAll(c); len(b) > 0 || err != nil && !reset(err) {
			t.Errorf("silent: %q %v", b, err)
		}
	}
	if n := web.Stats().ConnectionsRefused; n != uint64(surplus) {
		t.Errorf("%d refused, want %d", n, surplus)
	}
	need.Figure(t, "%d silent TLS connections over the limit closed, %d held within it", surplus, limit)
	if status, body, err := request(secure.dial(t, address), vix); status != 503 || !strings.Contains(string(body), "overloaded") || err != nil {
		t.Errorf("one more: %d %s %v", status, body, err)
	}
	for _, c := range held[:2] {
		if status, _, err := request(c, vix); status != 200 || err != nil {
			t.Error(status, err)
		}
	}
	held[2].Close()
	need.Until(t, "room for one", func() bool { return web.Stats().ConnectionsOpen == limit-1 })
	if status, _, err := request(secure.dial(t, address), vix); status != 200 || err != nil {
		t.Error(status, err)
	}
}

// A server that stops waits neither for a client in its handshake nor for an idle one, and ends both properly.
func TestTLSShutdown(t *testing.T) {
	secure := newSpeech(t)
	web := newServer(newShelf(t), func(c *server.Config) { c.TLS, c.ReadTimeout, c.IdleTimeout = secure.server(), time.Hour, time.Hour })
	ln, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- web.Serve(ln) }()
	address := ln.Addr().String()
	silent, idle := dial(t, address), secure.dial(t, address)
	if status, _, err := request(idle, vix); status != 200 || err != nil {
		t.Fatal(status, err)
	}
	need.Until(t, "both are admitted", func() bool { return web.Stats().ConnectionsOpen == 2 })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := web.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if b, err := io.ReadAll(idle); len(b) > 0 || err != nil {
		t.Errorf("idle: %q %v", b, err)
	}
	if b, err := io.ReadAll(silent); len(b) > 0 || err != nil {
		t.Errorf("silent: %q %v", b, err)
	}
}

// A certificate that is replaced serves new connections; those that are open go on.
func TestTLSReload(t *testing.T) {
	dir, first, second := t.TempDir(), issueNow(t, "first"), issueNow(t, "second")
	certFile, keyFile := first.write(t, dir)
	pair, err := server.OpenCertificate(certFile, keyFile, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer pair.Close()
	address := listen(t, newServer(newShelf(t), func(c *server.Config) { c.TLS = pair.Config() }))
	client := &speech{client: &tls.Config{RootCAs: rootsOf(t, first, second), ServerName: "localhost"}}
	name := func() string {
		c := client.dial(t, address)
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	old := client.dial(t, address)
	if got := name(); got != "first" {
		t.Fatal(got)
	}
	keyPair{Cert: second.Cert, Key: first.Key}.write(t, dir)
	need.Until(t, "the bad pair is seen", func() bool { return pair.Err() != nil })
	if got := name(); got != "first" {
		t.Errorf("with a bad pair: %s", got)
	}
	second.write(t, dir)
	need.Until(t, "the new one is served", func() bool { return name() == "second" && pair.Err() == nil })
	if _, err := io.WriteString(old, vix); err != nil {
		t.Fatal(err)
	}
	if resp, err := http.ReadResponse(bufio.NewReader(old), nil); err != nil || resp.StatusCode != 200 {
		t.Errorf("the old connection: %v %v", resp, err)
	}
}
