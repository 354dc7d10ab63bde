package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"strikecache/server"
)

// keyPair is a self-signed certificate for 127.0.0.1 and its key, in PEM.
type keyPair struct{ Cert, Key []byte }

// issue returns a new certificate of a name, valid from an instant for a time.
func issue(t testing.TB, name string, from time.Time, valid time.Duration) keyPair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: from, NotAfter: from.Add(valid),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"}, BasicConstraintsValid: true, IsCA: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	return keyPair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
	}
}

// issueNow returns a certificate that is valid now.
func issueNow(t testing.TB, name string) keyPair {
	t.Helper()
	return issue(t, name, time.Now().Add(-time.Hour), 24*time.Hour)
}

// write writes the files of a pair into a directory, each renamed into place.
func (p keyPair) write(t testing.TB, dir string) (certFile, keyFile string) {
	t.Helper()
	certFile, keyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for path, b := range map[string][]byte{certFile: p.Cert, keyFile: p.Key} {
		must(t, os.WriteFile(path+".new", b, 0o600))
		must(t, os.Rename(path+".new", path))
	}
	return certFile, keyFile
}

// tlsEnds is the TLS of both ends; nil for none.
type tlsEnds struct {
	pair   *server.Certificate
	client *tls.Config
}

func newTLSEnds(t testing.TB) *tlsEnds {
	t.Helper()
	issued := issueNow(t, "a")
	certFile, keyFile := issued.write(t, t.TempDir())
	pair, err := server.TLSFlags{Cert: certFile, Key: keyFile}.Open(slog.New(slog.DiscardHandler))
	must(t, err)
	t.Cleanup(pair.Close)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(issued.Cert) {
		t.Fatal("no certificate")
	}
	return &tlsEnds{pair: pair, client: &tls.Config{RootCAs: roots, ServerName: "localhost"}}
}

func (s *tlsEnds) server() *tls.Config {
	if s == nil {
		return nil
	}
	return s.pair.Config()
}

// handshake makes the client's TLS handshake on a connection.
func (s *tlsEnds) handshake(c net.Conn) (net.Conn, error) {
	if s == nil {
		return c, nil
	}
	secure := tls.Client(c, s.client)
	return secure, secure.Handshake()
}

// dial opens a connection, with TLS unless s is nil.
func (s *tlsEnds) dial(t testing.TB, address string) net.Conn {
	t.Helper()
	c, err := s.handshake(dial(t, address))
	must(t, err)
	return c
}

// Answers, refusals and the end of a connection are the same with and without TLS.
func TestTLSAnswersAlike(t *testing.T) {
	f, secure := newFinder(t), newTLSEnds(t)
	without, with := listen(t, newServer(f)), listen(t, newServer(f, func(c *server.Config) { c.TLS = secure.server() }))
	get := "GET /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\n"
	for name, raw := range map[string]string{
		"pipelined":        get + "\r\n" + get + "\r\n" + seriesLine + "Host: a\r\nConnection: close\r\n\r\n",
		"of both kinds":    get + "\r\nPOST /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello" + seriesLine + "Host: a\r\nConnection: close\r\n\r\n",
		"smuggling":        "POST /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + get + "\r\n",
		"a head too large": seriesLine + "Host: a\r\nX: " + strings.Repeat("x", 17000) + "\r\n\r\n",
		"HTTP/2 by itself": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		want := exchange(t, without, raw, false)
		c := secure.dial(t, with)
		write(t, c, raw)
		b, err := io.ReadAll(c) // fails unless the server closes TLS properly
		got := string(b)
		if err != nil || undated(got) != undated(want) || !strings.HasPrefix(got, "HTTP/1.1 ") {
			t.Errorf("%s: %v %.2000q, want %.2000q", name, err, got, want)
		}
	}
}

// undated returns responses without their Date and Last-Modified fields; pages have the latter from the start of the server.
func undated(s string) string {
	var kept strings.Builder
	for line := range strings.Lines(s) {
		if !strings.HasPrefix(line, "Date: ") && !strings.HasPrefix(line, "Last-Modified: ") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// Clients with TLS before 1.2, with a protocol other than HTTP/1.1 and HTTP/1.0, or without TLS get an alert, or an answer in words, and are counted.
func TestTLSHandshakes(t *testing.T) {
	secure := newTLSEnds(t)
	web := newServer(newFinder(t), func(c *server.Config) { c.TLS = secure.server() })
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
		"HTTP/1.0 alone":         {func(c *tls.Config) { c.NextProtos = []string{"http/1.0"} }, true}, // curl --http1.0: https://github.com/curl/curl/issues/12259
		"a name that is unknown": {func(c *tls.Config) { c.ServerName, c.InsecureSkipVerify = "elsewhere.test", true }, true},
	} {
		cfg := secure.client.Clone()
		c.change(cfg)
		conn := tls.Client(dial(t, address), cfg)
		err := conn.Handshake()
		if (err == nil) != c.ok || isReset(err) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			failed++
			continue
		}
		answered(t, conn)
		if p := conn.ConnectionState().NegotiatedProtocol; p != "" && p != cfg.NextProtos[len(cfg.NextProtos)-1] {
			t.Errorf("%s: %s", name, p)
		}
	}
	for raw, want := range map[string]string{
		vix: "400", "HEAD" + vix[len("GET"):]: "400", "POST / HTTP/1.1\r\n" + strings.Repeat("X: 1\r\n", 30_000): "400", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n": "400",
		"\x16\x03\x01\xff\xff\x01": "", "\x16\x03": "", "GET": "",
	} {
		failed++
		if got := exchange(t, address, raw, true); statuses(got) != want || strings.Contains(got, "plain HTTP was sent") != (want != "" && raw[0] != 'H') {
			t.Errorf("%.60q: answered %q", raw, got)
		}
	}
	until(t, "failures are counted", func() bool { return web.Stats().TLSHandshakesFailed == failed })
	until(t, "they are gone", func() bool { return web.Stats().ConnectionsOpen <= 5 })
}
