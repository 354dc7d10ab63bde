package fleet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// A member trusts only a server whose authority it knows, and the server lets in only the member that has the password.
func TestTLSAndPassword(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	authority, key := certificate(t, dir, "ca", nil, nil)
	certificate(t, dir, "server", authority, key)
	file := func(name string) string { return filepath.Join(dir, name) }
	pair, err := tls.LoadX509KeyPair(file("server.pem"), file("server.key"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, Username: "strikecache", Password: "secret",
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer stopNATS(s)
	if !s.ReadyForConnections(patience) {
		t.Fatal("the NATS server does not start")
	}
	withPassword := strings.Replace(urlOf(s), "://", "://strikecache:secret@", 1)
	for what, flags := range map[string]Flags{"the authority": {NATS: withPassword}, "the password": {NATS: urlOf(s), NATSCA: file("ca.pem")}} {
		n := start(t, flags, t.TempDir(), nil)
		until(t, "refused without "+what, func() bool { return n.Status().Err != nil })
		if n.Status().Connected {
			t.Errorf("connected without %s", what)
		}
		n.stop()
	}
	n := start(t, Flags{NATS: withPassword, NATSCA: file("ca.pem")}, t.TempDir(), nil)
	until(t, "the member with both refreshes", n.refreshes)
}

// certificate writes NAME.pem and NAME.key. Without an authority it makes one.
func certificate(t *testing.T, dir, name string, authority *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if authority == nil {
		authority, signer, c.IsCA, c.KeyUsage = c, key, true, x509.KeyUsageCertSign
	}
	der, err := x509.CreateCertificate(rand.Reader, c, authority, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for suffix, block := range map[string]*pem.Block{".pem": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(dir, name+suffix), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made, key
}
