package e2e

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"strikecache/bench/need"
)

// newKey creates a key with the binary and returns its secret and public id.
func newKey(t *testing.T, file string, args ...string) (secret, id string) {
	t.Helper()
	stdout, stderr, code := run(t, command(t, append([]string{"keys", "create", "--keys-file", file}, args...)...))
	if code != 0 {
		t.Fatalf("%s", stderr)
	}
	return strings.TrimSpace(stdout), regexp.MustCompile(`k_[0-9a-f]{12}`).FindString(stderr)
}

// usage is the usage member of an answer.
type usage struct {
	Tier          string
	Key           string
	RequestsToday int  `json:"requests_today"`
	Remaining     *int `json:"remaining_today"`
}

func usageOf(t *testing.T, body []byte) usage {
	t.Helper()
	var doc struct {
		Success bool
		Usage   usage
	}
	if err := json.Unmarshal(body, &doc); err != nil || !doc.Success {
		t.Fatalf("%v in %.300q", err, body)
	}
	return doc.Usage
}

// The life of a key: created, used, counted across a restart, followed when it is revoked.
func TestKeys(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "keys.json")
	secret, id := newKey(t, file, "dashboard", "--per-minute", "600", "--per-day", "5")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), secret) {
		t.Errorf("the secret is stored: %v", err)
	}
	start := func() *process {
		p := serve(t, "--data-dir", filepath.Join(dir, "data"), "--keys-file", file)
		p.ready()
		return p
	}
	p := start()
	for n := 1; n <= 3; n++ {
		_, body := p.get("/api/v1/gex/spx", "X-API-Key", secret)
		if u := usageOf(t, body); u.Tier != "keyed" || u.Key != id || u.RequestsToday != n || u.Remaining == nil || *u.Remaining != 5-n {
			t.Errorf("request %d: %s", n, body[len(body)-200:])
		}
	}
	if err := p.stop(syscall.SIGTERM); err != nil {
		t.Errorf("%v\n%s", err, p.logged())
	}
	p = start()
	resp, body := p.get("/api/v1/gex/spx", "X-API-Key", secret)
	if u := usageOf(t, body); u.RequestsToday != 4 || resp.Header.Get("X-RateLimit-Remaining") != "1" {
		t.Errorf("after a restart: %+v %v", u, resp.Header)
	}
	if _, body := p.get("/api/v1/gex/spx"); usageOf(t, body).Tier != "anonymous" {
		t.Errorf("%s", body[len(body)-200:])
	}
	p.get("/api/v1/gex/spx", "X-API-Key", secret)
	if resp, body := p.get("/api/v1/gex/spx", "X-API-Key", secret); resp.StatusCode != 429 || !strings.Contains(string(body), "quota_exceeded") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if stdout, stderr, code := run(t, command(t, "keys", "revoke", "--keys-file", file, "dashboard")); code != 0 || !strings.Contains(stdout, id) {
		t.Errorf("%d %s %s", code, stdout, stderr)
	}
	p.until("the key is revoked", func() bool {
		resp, _ := p.get("/api/v1/gex/spx", "X-API-Key", secret)
		return resp.StatusCode == 401
	})
	if log := p.logged(); strings.Contains(log, secret) {
		t.Error("the log has the secret")
	}
}

// curl reads a keyed answer in every coding it knows.
func TestCurlReadsKeyedAnswers(t *testing.T) {
	curl := need.Program(t, "curl")
	file := filepath.Join(t.TempDir(), "keys.json")
	secret, id := newKey(t, file, "curl")
	p := serve(t, "--data-dir", t.TempDir(), "--keys-file", file)
	p.ready()
	features, err := exec.Command(curl, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, coding := range []string{"gzip", "br", "zstd", "identity"} {
		if name := map[string]string{"br": "brotli"}[coding]; (name != "" || coding == "zstd") && !strings.Contains(string(features), max(name, coding)) {
			t.Logf("this curl has no %s", coding)
			continue
		}
		n++
		out, err := exec.Command(curl, "-sS", "--fail", "--compressed", "-H", "Accept-Encoding: "+coding, "-H", "X-API-Key: "+secret,
			p.url+"/api/v1/gex/spx").Output()
		if u := usageOf(t, out); err != nil || u.Key != id || u.RequestsToday != n {
			t.Errorf("%s: %v %+v", coding, err, u)
		}
	}
}

// A real browser reads a keyed answer in every coding. It sends what Accept-Encoding it likes, so a proxy in between
// asks for one coding at a time and passes the bytes on.
func TestChromiumReadsKeyedAnswers(t *testing.T) {
	chromium := need.Program(t, "chromium")
	file := filepath.Join(t.TempDir(), "keys.json")
	secret, id := newKey(t, file, "chromium")
	p := serve(t, "--data-dir", t.TempDir(), "--keys-file", file)
	p.ready()
	target, err := url.Parse(p.url)
	if err != nil {
		t.Fatal(err)
	}
	var sent sync.Map // Content-Encoding by coding asked for
	proxy := &httputil.ReverseProxy{
		Transport: &http.Transport{DisableCompression: true},
		Rewrite: func(r *httputil.ProxyRequest) {
			coding, path, _ := strings.Cut(strings.TrimPrefix(r.In.URL.Path, "/"), "/")
			r.SetURL(target)
			r.Out.URL.Path = "/" + path
			r.Out.Header.Set("Accept-Encoding", coding)
		},
		ModifyResponse: func(r *http.Response) error {
			sent.Store(r.Request.Header.Get("Accept-Encoding"), r.Header.Get("Content-Encoding"))
			return nil
		},
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			proxy.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<pre></pre><script>(async () => {
			const out = {};
			for (const coding of ["gzip", "br", "zstd", "identity"]) {
				try {
					const r = await fetch("/" + coding + "/api/v1/gex/spx", {headers: {"X-API-Key": %q}, cache: "no-store"});
					out[coding] = (await r.json()).usage;
				} catch (e) { out[coding] = String(e); }
			}
			document.querySelector("pre").textContent = JSON.stringify(out);
		})();</script>`, secret)
	}))
	defer page.Close()
	cmd := exec.Command(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--user-data-dir="+t.TempDir(), "--virtual-time-budget=20000", "--dump-dom", page.URL)
	cmd.Stderr = io.Discard
	dom, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(dom), "<pre>")
	text, _, _ = strings.Cut(text, "</pre>")
	var read map[string]usage
	if err := json.Unmarshal([]byte(html.UnescapeString(text)), &read); err != nil || len(read) != 4 {
		t.Fatalf("%v in %s", err, dom)
	}
	for coding, u := range read {
		if as, _ := sent.Load(coding); u.Tier != "keyed" || u.Key != id || coding != "identity" && as != coding {
			t.Errorf("%s, sent as %q: %+v", coding, as, u)
		}
	}
}
