package e2e

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// newKey creates a key in a data directory with the binary and returns its secret and public id.
func newKey(t testing.TB, dir string, args ...string) (secret, id string) {
	t.Helper()
	stdout, stderr, code := run(t, command(t, append([]string{"keys", "create", "--data-dir", dir}, args...)...))
	if code != 0 {
		t.Fatalf("%s", stderr)
	}
	return strings.TrimSpace(stdout), regexp.MustCompile(`k_[0-9a-f]{12}`).FindString(stderr)
}

// The life of a key: created, used, counted across a restart, used up, revoked.
func TestKeys(t *testing.T) {
	t.Parallel()
	if left := time.Until(time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)); left < 2*time.Minute {
		time.Sleep(left) // a key's requests count by UTC day
	}
	dir := storedDay(t)
	secret, id := newKey(t, dir, "dashboard", "--per-minute", "600", "--per-day", "5")
	args := []string{"--data-dir", dir, "--sim-speed", "0", "--sim-start", marketStart}
	p := serveReady(t, args...)
	for n := 1; n <= 6; n++ {
		resp, body := p.get(gammaPath, "X-API-Key", secret)
		if n == 6 {
			if resp.StatusCode != 429 || !strings.Contains(string(body), "quota_exceeded") {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
		} else if u := envelopeOf(t, body).Usage; u.Tier != "keyed" || u.Key != id || u.RequestsToday != n || u.Remaining == nil || *u.Remaining != 5-n {
			t.Errorf("request %d: %s", n, body[len(body)-200:])
		}
		if n == 3 {
			p.stop()
			p = serveReady(t, args...)
		}
	}
	if _, body := p.get(gammaPath); envelopeOf(t, body).Usage.Tier != "anonymous" {
		t.Errorf("%s", body[len(body)-200:])
	}
	if out := does(t, "keys", "revoke", "--data-dir", dir, "dashboard"); !strings.Contains(out, id) {
		t.Error(out)
	}
	p.until("the key is revoked", func() bool { return p.answers(gammaPath, http.StatusUnauthorized, "X-API-Key", secret) })
	p.stop() // it saves the counts
	if out := does(t, "keys", "list", "--data-dir", dir); !regexp.MustCompile(id + `  dashboard .*  600 +5 +5 +` + time.Now().UTC().Format("2006-01-02T") + `\S+Z  revoked`).MatchString(out) {
		t.Error(out)
	}
}

// keyed creates a key that the shared server knows. The time makes its name unique, also when a test runs twice.
func keyed(t *testing.T, p *process, name string) (secret, id string) {
	t.Helper()
	secret, id = newKey(t, market.dir, name+time.Now().Format("150405.000000000"), "--per-minute", "6000")
	p.until("the key is known", func() bool { return p.answers(gammaPath, http.StatusOK, "X-API-Key", secret) })
	return secret, id
}

// from sends raw bytes from an address of this machine and returns all answers.
func (p *process) from(address, raw string) string {
	p.t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}, Timeout: patience}
	c, err := dialer.Dial("tcp", p.address())
	if err != nil {
		p.t.Skipf("needs to speak from %s: %v", address, err)
	}
	defer c.Close()
	_, err = io.WriteString(c, raw)
	must(p.t, errors.Join(err, c.SetDeadline(time.Now().Add(patience)), c.(*net.TCPConn).CloseWrite()))
	answer, err := io.ReadAll(c)
	must(p.t, err)
	return string(answer)
}

// Even with the most detailed log, no secret and no client address reaches the log, the disk, the metrics or a profile.
func TestNothingSecretLeaves(t *testing.T) {
	t.Parallel()
	const peer, client, invalid = "127.9.8.7", "198.51.100.7", "sk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	data := storedDay(t)
	file := filepath.Join(data, "keys.json")
	secret, id := newKey(t, data, "dashboard", "--per-minute", "3", "--per-day", "100")
	args := []string{
		"--data-dir", data, "--sim-speed", "0", "--sim-start", marketStart, "--log-level", "debug", "--trusted-proxies", peer, "--anonymous-rate", "5",
		"--admin-listen", "127.0.0.1:0",
	}
	p := serveReady(t, args...)
	const get = "GET /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: " + client + "\r\n"
	withKey := get + "X-API-Key: " + secret + "\r\n"
	answered := ""
	for _, raw := range []string{
		withKey + "\r\n", withKey + "\r\n", withKey + "\r\n", withKey + "\r\n", // over the rate
		withKey + "X-API-Key: " + secret + "\r\n\r\n", // the general path
		get + "X-API-Key: " + invalid + "\r\n\r\n", get + "X-API-Key: " + secret + invalid + "\r\n\r\n",
		get + "\r\n", get + "\r\n", get + "\r\n", get + "\r\n", get + "\r\n", get + "\r\n", // over the rate
		"GET /" + secret + " HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: " + client + "\r\n\r\n",
		"GET /api/public/spx-max-pain?expiration=" + secret + " HTTP/1.1\r\nHost: " + secret + "\r\nX-Forwarded-For: " + client + "\r\n\r\n",
		"GET / HTTP/9.9\r\nX-API-Key: " + secret + "\r\n\r\n", withKey, "\x16\x03\x01" + secret,
	} {
		answered += p.from(peer, raw)
	}
	// The answers show each case: a known key, a key over its rate, an unknown key, an address over its rate.
	for _, want := range []string{`"key":"` + id, "invalid_api_key", "rate_limited", "not_found", "http_version_not_supported", "bad_request"} {
		if !strings.Contains(answered, want) {
			t.Fatalf("no answer has %s:\n%s", want, answered)
		}
	}
	secrets := []string{secret, strings.TrimPrefix(secret, "sk_"), invalid, sum([]byte(secret)), sum([]byte(invalid))}
	for _, path := range []string{"/metrics", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2", "/debug/pprof/heap?debug=1"} {
		absent(t, "the admin's "+path, p.operator(path), append(secrets, peer+":", client)...)
	}
	if n := metric(p.operator("/metrics"), `strikecache_key_requests_refused_total{key="`+id+`"}`); n != "1" {
		t.Errorf("%q requests refused by the key, want 1", n)
	}
	p.stop()
	absent(t, "the log", p.logged(), append(secrets, client, peer)...)
	var private []string
	look := func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Base(filepath.Dir(path)) == "objects" {
			return err
		}
		text, err := os.ReadFile(path)
		what := append(secrets[:3:3], peer, client)
		if path != file { // only the key file has the digest
			what = append(secrets, peer, client)
		}
		absent(t, path, string(text), what...)
		if name := d.Name(); name == "keys.json" || name == "usage.json" {
			private = append(private, name)
			if info, err := d.Info(); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v %v", path, info.Mode(), err)
			}
		}
		return err
	}
	if err := filepath.WalkDir(data, look); err != nil || len(private) < 2 {
		t.Errorf("files of keys and usage that were checked: %q, %v", private, err)
	}
}

func absent(t *testing.T, where, text string, secrets ...string) {
	t.Helper()
	for _, s := range secrets {
		if i := strings.Index(text, s); i >= 0 {
			t.Errorf("%s has %s: %.200q", where, s, text[max(0, i-100):])
		}
	}
}
