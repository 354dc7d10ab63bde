package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// issue writes the files of a new self-signed certificate for 127.0.0.1, and adds it to those that are trusted.
func issue(t testing.TB, dir, name string, trusted *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	secret, err2 := x509.MarshalPKCS8PrivateKey(key)
	must(t, errors.Join(err, err2))
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	writeFile(t, filepath.Join(dir, "tls.crt"), string(text))
	writeFile(t, filepath.Join(dir, "tls.key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	trusted.AppendCertsFromPEM(text)
}

// The server loads its certificate from files, also after they change. If a new certificate is bad, the server keeps the
// old one and says so.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir, trusted := t.TempDir(), x509.NewCertPool()
	certFile := filepath.Join(dir, "tls.crt")
	issue(t, dir, "first", trusted)
	p := serve(t, "--data-dir", storedDay(t), "--sim-speed", "0", "--sim-start", marketStart, "--tls-cert", certFile, "--tls-key", filepath.Join(dir, "tls.key"))
	if !strings.HasPrefix(p.url, "https://") {
		t.Fatalf("serving on %s", p.url)
	}
	client := &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, DisableKeepAlives: true}}
	ask := func(path string) (name, body string) {
		t.Helper()
		resp, text, err := send(client, http.MethodGet, p.url+path)
		if err != nil || resp.Proto != "HTTP/1.1" {
			t.Fatal(resp, err)
		}
		return resp.TLS.PeerCertificates[0].Subject.CommonName, string(text)
	}
	readyz := func(want string) {
		t.Helper()
		p.until(want, func() bool { _, body := ask("/readyz"); return strings.Contains(body, want) })
	}
	readyz(`"ready":true`)
	if name, body := ask(gammaPath); name != "first" || !strings.Contains(body, `"success":true`) {
		t.Errorf("%s %.200s", name, body)
	}
	if _, stderr, code := run(t, command(t, "verify", "--ready", p.url)); code != 1 || !strings.Contains(stderr, "certificate") {
		t.Errorf("a health check that does not know the issuer: exit %d, %s", code, stderr)
	}
	trusting := command(t, "verify", "--ready", p.url)
	trusting.Env = append(trusting.Env, "SSL_CERT_FILE="+certFile)
	if out, stderr, code := run(t, trusting); code != 0 || !strings.HasPrefix(out, "ready: ") {
		t.Errorf("a health check that knows the issuer: exit %d, %s", code, stderr)
	}
	must(t, os.WriteFile(certFile, []byte("-----BEGIN"), 0o600))
	readyz(`"degraded":["tls"]`)
	issue(t, dir, "second", trusted)
	p.until("the new one is served", func() bool { name, _ := ask("/healthz"); return name == "second" })
	readyz(`"degraded":[]`)
	p.signal(syscall.SIGHUP)
	p.until("the files are read again", func() bool {
		return p.hasEnded() || strings.Contains(p.logged(), `msg="key file and certificate read after SIGHUP"`)
	})
	if log := p.logged(); !strings.Contains(log, "TLS certificate not loaded") {
		t.Errorf("log %s", log)
	}
	p.stop()
}
