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
