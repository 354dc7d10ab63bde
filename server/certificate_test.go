package server_test

import (
	"crypto/tls"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/bench/testkit"
	"strikecache/server"
)

// inForce returns the name on the certificate that a client would get.
func inForce(t *testing.T, p *server.Certificate) string {
	t.Helper()
	cert, err := p.Config().GetCertificate(&tls.ClientHelloInfo{})
	must(t, err)
	return cert.Leaf.Subject.CommonName
}

// A new pair is in force within two seconds. After a bad pair, the old one stays in force, the fault is logged once, and Err
// returns it until the files are good again. The bubble's clock begins in the year 2000.
func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const day = 24 * time.Hour
		at := time.Now()
		first := issue(t, "first", at, time.Hour)
		second := issue(t, "second", at, time.Hour)
		dir := t.TempDir()
		elsewhere, _ := second.write(t, t.TempDir())
		certFile, keyFile := first.write(t, dir)
		var log testkit.Text
		p, err := server.TLSFlags{Cert: certFile, Key: keyFile}.Open(log.Logger(slog.LevelDebug))
		must(t, err)
		defer p.Close()
		for _, step := range []struct {
			name    string
			do      func()
			inForce string
			fault   string // "" for none
			logged  string
		}{
			{"as opened", func() {}, "first", "", ""},
			{"another pair", func() { second.write(t, dir) }, "second", "", "TLS certificate loaded"},
			{"a key of another", func() { keyPair{Cert: second.Cert, Key: first.Key}.write(t, dir) }, "second", "private key does not match", "the old one stays"},
			{"mended as it was", func() { second.write(t, dir) }, "second", "", "usable again"},
			{"the first pair", func() { first.write(t, dir) }, "first", "", "TLS certificate loaded"},
			{"one that has expired", func() { issue(t, "old", at.Add(-day), time.Hour).write(t, dir) }, "first", "has expired at 1999-12-31T01:00:00Z", "the old one stays"},
			{"one of the future", func() { issue(t, "new", at.Add(5*time.Minute), time.Hour).write(t, dir) }, "first", "not valid before 2000-01-01T00:05:00Z", "the old one stays"},
			{"whose time comes", func() { time.Sleep(5 * time.Minute) }, "new", "", "TLS certificate loaded"},
			{"by a link", func() { os.Remove(certFile); os.Symlink(elsewhere, certFile); os.WriteFile(keyFile, second.Key, 0o600) }, "second", "", "TLS certificate loaded"},
			{"time goes by", func() { time.Sleep(time.Hour) }, "second", "has expired", ""},
		} {
			log.Take()
			step.do()
			time.Sleep(10*time.Second + time.Millisecond) // the files are read five times
			synctest.Wait()
			err := p.Err()
			if got := inForce(t, p); got != step.inForce || (err != nil) != (step.fault != "") || err != nil && !strings.Contains(err.Error(), step.fault) {
				t.Errorf("%s: %s is in force, %v", step.name, got, err)
			}
			logged := log.Take()
			if n := strings.Count(logged, "\n"); !strings.Contains(logged, step.logged) || n > 1 || n == 0 && step.logged != "" {
				t.Errorf("%s: log %s", step.name, logged)
			}
		}
		if want := at.Add(time.Hour); !p.Expires().Equal(want) {
			t.Errorf("expires %v, want %v", p.Expires(), want)
		}
	})
}

// Open fails for files that cannot serve any client. An expired certificate is used, and Err returns an error.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	a, b := issueNow(t, "a"), issueNow(t, "b")
	certFile, keyFile := a.write(t, dir)
	other, _ := b.write(t, t.TempDir())
	for _, c := range [][3]string{
		{filepath.Join(dir, "none"), keyFile, "none"}, {certFile, filepath.Join(dir, "none"), "none"}, {dir, keyFile, "not a regular file"},
		{other, keyFile, "does not match"}, {keyFile, certFile, "switched"}, {os.DevNull, keyFile, "not a regular file"},
	} {
		p, err := server.TLSFlags{Cert: c[0], Key: c[1]}.Open(slog.New(slog.DiscardHandler))
		if err == nil {
			p.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c[2]) || !strings.Contains(err.Error(), "--tls-cert") {
			t.Errorf("%v: %v", c, err)
		}
	}
	certFile, keyFile = issue(t, "old", time.Now().Add(-time.Hour), time.Minute).write(t, dir)
	p, err := server.TLSFlags{Cert: certFile, Key: keyFile}.Open(slog.New(slog.DiscardHandler))
	must(t, err)
	defer p.Close()
	if p.Err() == nil || inForce(t, p) != "old" {
		t.Errorf("expired: %v", p.Err())
	}
}
