package fleet

import (
	"crypto/tls"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// A member trusts only a server whose authority it knows, and the server lets in only the member that has the password.
func TestTLSAndPassword(t *testing.T) {
	t.Parallel()
	web, ca := httptest.NewTLSServer(nil), filepath.Join(t.TempDir(), "ca.pem") // it has a certificate that no system trusts
	web.Close()
	must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}), 0o600))
	at := urlOf(startNATS(t, t.TempDir(), 0, func(o *server.Options) {
		o.TLSConfig = &tls.Config{Certificates: web.TLS.Certificates, MinVersion: tls.VersionTLS12}
		o.Username, o.Password = "strikecache", "secret"
	}))
	withPassword := strings.Replace(at, "://", "://strikecache:secret@", 1)
	for what, flags := range map[string]Flags{"the authority": {NATS: withPassword}, "the password": {NATS: at, NATSCA: ca}} {
		n := start(t, flags, t.TempDir(), nil)
		until(t, "refused without "+what, func() bool { return n.Status().Err != nil })
		if n.Status().Connected {
			t.Errorf("connected without %s", what)
		}
		n.stop()
	}
	n := start(t, Flags{NATS: withPassword, NATSCA: ca}, t.TempDir(), nil)
	until(t, "the member with both refreshes", n.refreshes)
}

// The log tells an operator in words what to mend.
func TestWhatToMend(t *testing.T) {
	t.Parallel()
	denied := func(subject string) func(*server.Options) {
		return func(o *server.Options) {
			o.NoAuthUser = "strikecache"
			o.Users = []*server.User{{Username: "strikecache", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{subject}}}}}
		}
	}
	password := func(o *server.Options) { o.Username, o.Password = "strikecache", "secret" }
	pair, err := nkeys.CreateUser()
	must(t, err)
	seed, err := pair.Seed()
	must(t, err)
	for _, c := range []struct {
		what, says string
		server     func(*server.Options)
		creds      string
	}{
		{what: "JetStream is off", says: "start nats-server with --jetstream", server: func(o *server.Options) { o.JetStream = false }},
		{what: "too little storage", says: "not enough storage for the bucket, which needs 4 GiB", server: func(o *server.Options) { o.JetStreamMaxStore = 100 << 20 }},
		{what: "no JetStream for the user", says: "allow it to publish to $JS.API.>", server: denied("$JS.API.>")},
		{what: "no new buckets", says: "Permissions Violation for Publish to \"$JS.API.STREAM.CREATE", server: denied("$JS.API.STREAM.CREATE.>")},
		{what: "no pointer", says: "Permissions Violation for Publish to \"$KV.", server: denied("$KV.>")},
		{what: "no blobs", says: "Permissions Violation for Publish to \"$KV.strikecache-simulated-files.", server: denied("$KV.strikecache-simulated-files.>")},
		{what: "a file without a key", says: "no nkey seed found", server: password, creds: "nonsense"},
		{what: "a key that is not known", says: "Authorization Violation", server: password, creds: "-----BEGIN NATS USER JWT-----\ne30.e30.e30\n------END NATS USER JWT------\n\n" +
			"-----BEGIN USER NKEY SEED-----\n" + string(seed) + "\n------END USER NKEY SEED------\n"},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			flags := Flags{NATS: urlOf(startNATS(t, t.TempDir(), 0, func(o *server.Options) {
				if c.server != nil {
					c.server(o)
				}
			}))}
			if c.creds != "" {
				flags.NATSCreds = filepath.Join(t.TempDir(), "user.creds")
				must(t, os.WriteFile(flags.NATSCreds, []byte(c.creds), 0o600))
			}
			n := start(t, flags, t.TempDir(), nil)
			until(t, "the log says "+c.says, func() bool { return n.log.has(strings.ReplaceAll(c.says, `"`, `\"`)) })
		})
	}
}
