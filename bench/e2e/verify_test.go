package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// verifier returns a command of bench/clients/verify.py.
func verifier(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(installed(t, "python3"), append([]string{filepath.Join(root, "bench", "clients", "verify.py")}, args...)...)
	cmd.Env = append(os.Environ(), "no_proxy=127.0.0.1", "PYTHONDONTWRITEBYTECODE=1")
	return cmd
}

// verifies verifies every current answer of a server, and others, with a folder of documents. It returns the last line of the program.
func verifies(t testing.TB, p *process, documents string, others ...string) string {
	t.Helper()
	stdout, stderr, code := run(t, verifier(t, append([]string{"--quiet", "--documents", documents, "--all", p.url}, others...)...))
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if last := lines[len(lines)-1]; code == 0 && strings.HasSuffix(last, " 0 differ") {
		return last
	}
	t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	return ""
}

// A program that has only the methods page, the answers and the stored documents finds the same figures and digests: of every
// resource of an index, of one with other roots and hours, of funds and a stock, and of a past date.
func TestAnswersAreVerified(t *testing.T) {
	t.Parallel()
	p := shared(t)
	last := verifies(t, p, filepath.Join(market.dir, "simulated", "objects"),
		p.url+datePath+earlierDay, p.url+volPath+"/historical?date="+earlierDay)
	figure(t, "the simulated market, verified by a second program: %s", last)
}

// The same for a real chain, whose answers agree with the OpenAPI document: it has oddities that the simulated chain does not
// have.
func TestRecordedAnswersAreVerified(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := serveReady(t, "--data-dir", dir, "--source", "replay", "--folder", filepath.Join(recorded(t), "replay"), "--anonymous-rate", "600")
	p.until("the answer is stored", func() bool {
		_, _, code := run(t, command(t, "recompute", "--data-dir", dir, "--source", "replay", "--date", "2026-08-11"))
		return code == 0
	})
	c := newContract(p)
	for _, target := range targets {
		status := http.StatusOK
		if target == sectorsPath {
			status = http.StatusServiceUnavailable // no history is recorded
		}
		c.ask(status, http.MethodGet, target)
	}
	verifies(t, p, filepath.Join(dir, "replay", "objects"))
}

// Without an answer there is nothing to verify.
func TestVerifierArguments(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"--documents", t.TempDir()}, {"--documents", t.TempDir(), filepath.Join(t.TempDir(), "missing")},
		{"--documents", t.TempDir(), "--all", "http://" + freeAddress(t)}} {
		if stdout, stderr, code := run(t, verifier(t, args...)); code != 2 || stderr == "" {
			t.Errorf("%q: exit %d, %s%s", args, code, stdout, stderr)
		}
	}
	if stdout, _, code := run(t, verifier(t, "--help")); code != 0 || !strings.Contains(stdout, "--strike") {
		t.Errorf("--help: exit %d, %s", code, stdout)
	}
}

// The verifier sends its key, and waits as long as a server asks over a limit. It does not wait for the next day.
func TestVerifierWaits(t *testing.T) {
	t.Parallel()
	p, asked := shared(t), 0
	limited := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++ // one request at a time
		_, body := p.get(r.URL.Path)
		switch {
		case r.Header.Get("X-API-Key") != "secret":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == flowPath, asked == 1:
			w.Header().Set("Retry-After", map[bool]string{true: "40000", false: "1"}[r.URL.Path == flowPath])
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			_, _ = w.Write(body) // the program says whether it has arrived
		}
	}))
	defer limited.Close()
	for _, c := range []struct {
		key, path, says string
		code            int
	}{
		{"secret", levelsPath, "checks, 0 differ", 0}, {"secret", flowPath, "0 answers: nothing was verified, 1 could not be read", 2}, {"", levelsPath, "0 answers: nothing was verified, 1 could not be read", 2},
	} {
		cmd := verifier(t, "--quiet", "--documents", filepath.Join(market.dir, "simulated", "objects"), limited.URL+c.path)
		cmd.Env = append(cmd.Env, "API_KEY="+c.key)
		if stdout, stderr, code := run(t, cmd); code != c.code || !strings.Contains(stdout, c.says) {
			t.Errorf("%s: exit %d, %s%s", c.path, code, stdout, stderr)
		}
	}
	if asked != 4 {
		t.Errorf("%d requests", asked)
	}
}

// The market of README.md whose clock stands still has the numbers that README.md shows.
func TestNumbersOfTheReadme(t *testing.T) {
	t.Parallel()
	_, shown, _ := strings.Cut(text(t, "README.md"), "jq '.data | {")
	_, shown, _ = strings.Cut(shown, "\n")
	shown, _, _ = strings.Cut(shown, "\n```")
	var want, got map[string]any
	if err := json.Unmarshal([]byte(shown), &want); err != nil || len(want) != 6 {
		t.Fatalf("README.md shows %q: %v", shown, err)
	}
	p := serveReady(t, "--sim-small=false", "--sim-start", "2026-11-20T16:00:00Z", "--sim-speed", "0")
	_, body := p.get(gammaPath)
	answer := struct{ Data *map[string]any }{&got}
	must(t, json.Unmarshal(body, &answer))
	for name, x := range want {
		if got[name] != x {
			t.Errorf("README.md shows %s as %v, the server as %v", name, x, got[name])
		}
	}
}
