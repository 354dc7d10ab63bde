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
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// A server that asks for a client certificate and credentials lets in only the member that has both.
func TestTLSAndCredentials(t *testing.T) {
	dir := t.TempDir()
	authority, key := certificate(t, dir, "ca", nil, nil)
	certificate(t, dir, "server", authority, key)
	certificate(t, dir, "client", authority, key)
	file := func(name string) string { return filepath.Join(dir, name) }
	pair, err := tls.LoadX509KeyPair(file("server.pem"), file("server.key"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(authority)
	opts := &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12},
	}
	credentials(t, opts, file("user.creds"))
	s, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer stopNATS(s)
	if !s.ReadyForConnections(patience) {
		t.Fatal("the NATS server does not start")
	}
	all := Flags{NATSReplicas: 1, NATS: urlOf(s), NATSCA: file("ca.pem"), NATSCert: file("client.pem"), NATSKey: file("client.key"), NATSCreds: file("user.creds")}
	for what, lack := range map[string]func(*Flags){
		"the authority":   func(f *Flags) { f.NATSCA = "" },
		"the certificate": func(f *Flags) { f.NATSCert, f.NATSKey = "", "" },
		"the credentials": func(f *Flags) { f.NATSCreds = "" },
	} {
		flags := all
		lack(&flags)
		n := joinWith(t, flags, t.TempDir())
		until(t, "refused without "+what, func() bool { return n.Status().Err != nil })
		if n.Status().Connected {
			t.Errorf("connected without %s", what)
		}
		n.stop()
	}
	n := joinWith(t, all, t.TempDir())
	until(t, "the member with all refreshes", n.leads)
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
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
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

// credentials lets only the user in whose credentials file it writes.
func credentials(t *testing.T, opts *server.Options, path string) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	pair := func(create func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string) {
		k, err := create()
		must(err)
		public, err := k.PublicKey()
		must(err)
		return k, public
	}
	operator, operatorKey := pair(nkeys.CreateOperator)
	_, systemKey := pair(nkeys.CreateAccount)
	account, accountKey := pair(nkeys.CreateAccount)
	user, userKey := pair(nkeys.CreateUser)
	accounts := &server.MemAccResolver{}
	for key, name := range map[string]string{systemKey: "SYS", accountKey: "A"} {
		claims := jwt.NewAccountClaims(key)
		claims.Name = name
		if key == accountKey {
			claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
		}
		token, err := claims.Encode(operator)
		must(err)
		must(accounts.Store(key, token))
	}
	opts.TrustedKeys, opts.SystemAccount, opts.AccountResolver = []string{operatorKey}, systemKey, accounts
	token, err := jwt.NewUserClaims(userKey).Encode(account)
	must(err)
	seed, err := user.Seed()
	must(err)
	file, err := jwt.FormatUserConfig(token, seed)
	must(err)
	must(os.WriteFile(path, file, 0o600))
}
