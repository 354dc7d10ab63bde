package e2e

import (
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The server speaks TLS with a pair of files, follows their change, and keeps its certificate, and says so, when the
// new one is bad.
func TestTLS(t *testing.T) {
	dir, first, second := t.TempDir(), issueNow(t, "first"), issueNow(t, "second")
	certFile, keyFile := first.write(t, dir)
	p := serve(t, "--data-dir", t.TempDir(), "--tls-cert", certFile, "--tls-key", keyFile)
	if !strings.HasPrefix(p.url, "https://") {
		t.Fatalf("serving on %s", p.url)
	}
	ask := func(path string) (name, body string) {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: rootsOf(t, first, second)}}
		defer transport.CloseIdleConnections()
		resp, err := (&http.Client{Transport: transport, Timeout: 30 * time.Second}).Get(p.url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.Proto != "HTTP/1.1" {
			t.Error(resp.Proto, err)
		}
		return resp.TLS.PeerCertificates[0].Subject.CommonName, string(b)
	}
	p.until("ready", func() bool { _, body := ask("/readyz"); return strings.Contains(body, `"ready":true`) })
	if name, body := ask("/api/v1/gex/spx"); name != "first" || !strings.Contains(body, `"success":true`) {
		t.Errorf("%s %.200s", name, body)
	}
	if _, stderr, code := run(t, command(t, "verify", "--ready", p.url)); code != 1 || !strings.Contains(stderr, "certificate") {
		t.Errorf("a health check that does not know the issuer: exit %d, %s", code, stderr)
	}
	trusting := command(t, "verify", "--ready", p.url)
	trusting.Env = append(trusting.Env, "SSL_CERT_FILE="+certFile)
	if out, stderr, code := run(t, trusting); code != 0 || !strings.HasPrefix(out, "ready: ") {
		t.Errorf("one that does: exit %d, %s", code, stderr)
	}
	if err := os.WriteFile(certFile, []byte("-----BEGIN"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.until("degraded", func() bool { _, body := ask("/readyz"); return strings.Contains(body, `"degraded":["tls"]`) })
	second.write(t, dir)
	p.until("the new one is served", func() bool { name, _ := ask("/healthz"); return name == "second" })
	p.until("no longer degraded", func() bool { _, body := ask("/readyz"); return strings.Contains(body, `"degraded":[]`) })
	if log := p.logged(); !strings.Contains(log, "TLS certificate not loaded") {
		t.Errorf("log %s", log)
	}
	if err := p.stop(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
}
