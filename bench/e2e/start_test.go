package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"strikecache/compute"
	"strikecache/refresh/simulated"
)

// A start computes from the stored inputs, and keeps a stored answer only where its receipt and its data are equal to what
// it computed. In these tests the market stands still, so nothing but the start can change an answer.

// pastFiles returns the content of the files of all dates before the market's day, by path.
func pastFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "simulated", "????-??-??", "*"))
	if err != nil {
		t.Fatal(err)
	}
	content := map[string]string{}
	for _, file := range files {
		if b, err := os.ReadFile(file); filepath.Base(filepath.Dir(file)) < marketDay {
			content[file] = fmt.Sprint(string(b), err)
		}
	}
	if len(content) < storedBefore {
		t.Fatalf("%d files of past dates", len(content))
	}
	return content
}

// restarted starts a binary on stored files and returns the first answer that is as expected. The files of past dates stay
// as they are.
func restarted(t *testing.T, dir, binary, path string, expected func(envelope) bool, args ...string) (now envelope) {
	t.Helper()
	before := pastFiles(t, dir)
	cmd := command(t, append([]string{"serve", "--data-dir", dir, "--sim-speed", "0", "--sim-start", marketStart}, args...)...)
	cmd.Path = binary
	p := serveWith(t, cmd)
	p.until(path+" is answered as expected", func() bool {
		resp, body := p.get(path)
		if resp.StatusCode != http.StatusOK {
			return false
		}
		now = envelopeOf(t, body)
		return expected(now)
	})
	p.stop()
	if after := pastFiles(t, dir); !maps.Equal(before, after) {
		t.Errorf("the %d files of past dates changed, there are %d now", len(before), len(after))
	}
	return now
}

func anything(envelope) bool { return true }

// sinceReference matches the fields that compare with the session before. An empty directory has no such session. Nor has it the
// answer before, whose carry is an input: so two servers share only the chain.
var sinceReference = regexp.MustCompile(`"changes":.*"by_expiration"`)

func TestStartWithAnotherRate(t *testing.T) {
	t.Parallel()
	dir, old := storedDay(t), shared(t).envelope(gammaPath)
	now := restarted(t, dir, binary, gammaPath, func(e envelope) bool { return !bytes.Equal(e.Data, old.Data) }, "--risk-free-rate", "0.09")
	want := serveReady(t, "--sim-start", marketStart, "--sim-speed", "0", "--risk-free-rate", "0.09").envelope(gammaPath)
	if without := sinceReference.ReplaceAll; !bytes.Equal(without(want.Data, nil), without(now.Data, nil)) || want.Meta.Receipt.Inputs[0] != now.Meta.Receipt.Inputs[0] {
		t.Errorf("after the restart %.300s\nin an empty directory %.300s", now.Data, want.Data)
	}
	if pain := restarted(t, dir, binary, painPath, anything, "--risk-free-rate", "0.09"); !bytes.Equal(pain.Data, shared(t).envelope(painPath).Data) {
		t.Error("max pain depends on the rate")
	}
}

// otherMethod builds a binary whose gamma method has another name, and returns its path.
func otherMethod(t *testing.T) string {
	t.Helper()
	source := filepath.Join(root, "compute", "gamma.go")
	b, err := os.ReadFile(source)
	method := regexp.MustCompile(`"gex/\d+"`)
	if err != nil || len(method.FindAll(b, -1)) != 1 {
		t.Fatalf("%s does not name the method once: %v", source, err)
	}
	other := writeFile(t, filepath.Join(t.TempDir(), "gamma.go"), string(method.ReplaceAll(b, []byte(`"gex/test"`))))
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{source: other}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "strikecache")
	cmd := exec.Command("go", "build", "-overlay", writeFile(t, filepath.Join(t.TempDir(), "overlay.json"), string(overlay)), "-o", path, ".")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

func TestStartWithAnotherMethod(t *testing.T) {
	t.Parallel()
	old := shared(t).envelope(gammaPath)
	now := restarted(t, storedDay(t), otherMethod(t), gammaPath, func(e envelope) bool { return e.Meta.Receipt.Method == "gex/test" })
	if !bytes.Equal(now.Data, old.Data) || fmt.Sprint(now.Meta.Receipt.Inputs) != fmt.Sprint(old.Meta.Receipt.Inputs) {
		t.Errorf("the same method by another name has another result: %.300s", now.Data)
	}
}

// A product without any stored file, such as a new one, is served right after the start.
func TestStartWithAnotherProduct(t *testing.T) {
	t.Parallel()
	dir, want := storedDay(t), shared(t).envelope(painPath)
	files, err := filepath.Glob(filepath.Join(dir, "simulated", "*", "spx-max-pain"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	if now := restarted(t, dir, binary, painPath, anything); !bytes.Equal(now.Data, want.Data) || fmt.Sprint(now.Meta.Receipt) != fmt.Sprint(want.Meta.Receipt) {
		t.Errorf("%.300s\nwant %.300s", now.Data, want.Data)
	}
}

// A killed server that is started again at once, as a service manager does after a fatal error, serves what clients saw
// last, byte for byte.
func TestKillAndStartAgain(t *testing.T) {
	t.Parallel()
	args := []string{"--data-dir", storedDay(t), "--sim-speed", "0", "--sim-start", marketStart}
	p := serveReady(t, args...)
	// The stored flow may be older than the back-fill. Then it is computed again right after the start.
	p.until("the flow knows every chain's volatilities of the session before", func() bool {
		_, body := p.get(flowPath)
		return !bytes.Contains(body, []byte("previous_session_iv have no stored snapshot"))
	})
	seen := map[string][]byte{}
	for _, target := range targets {
		_, seen[target] = p.get(target)
	}
	for range 3 {
		began := time.Now()
		p.kill()
		p = serve(t, args...)
		for _, target := range targets {
			p.until(target+" is answered", func() bool { return p.answers(target, http.StatusOK) })
			if _, body := p.get(target); !bytes.Equal(body, seen[target]) {
				t.Errorf("%s differs after the restart:\n%.300s\n%.300s", target, seen[target], body)
			}
		}
		figure(t, "killed and started again: the last answers were served after %v", time.Since(began).Round(time.Millisecond))
	}
	p.stop()
	verified(t, args[1])
}

// A market that would start before its stored answers does not start. The error names both times.
func TestStartBeforeTheStoredAnswers(t *testing.T) {
	t.Parallel()
	dir := storedDay(t)
	before := pastFiles(t, dir)
	stdout, stderr, code := run(t, command(t, "serve", "--data-dir", dir, "--sim-speed", "0", "--sim-start", "2026-11-19T16:00:00Z"))
	if code != 1 || strings.Count(stdout+stderr, "\n") != 1 || !strings.Contains(stderr, "--sim-start: 2026-11-19T16:00:00Z is before the last stored answer, of "+marketDay) {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
	if !maps.Equal(before, pastFiles(t, dir)) {
		t.Error("the files of past dates changed")
	}
}

// A machine whose clock was set back: the stored answers are of a later date. One line of the log and /readyz say so. What the
// log calls refreshed is served. The file of the later date stays as it is.
func TestClockBehindTheStoredAnswers(t *testing.T) {
	t.Parallel()
	dir, documents, u := t.TempDir(), t.TempDir(), startUpstream(t)
	cal := compute.NewCalendar(nil, nil)
	noon := cal.Next(cal.SessionDate(time.Now().Add(7*24*time.Hour))).At(12, 0, 0, compute.NewYork)
	ahead := simulated.New(simulated.Config{Seed: 7, Now: func() time.Time { return noon }, Calendar: cal})
	chain, err := ahead.Fetch(t.Context(), "options/_SPX.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(documents, "options", "_SPX.json"), string(chain.Body))
	next := serveReady(t, "--data-dir", dir, "--source", "replay", "--replay-dir", documents)
	date := next.envelope(gammaPath).Meta.AsOf.UTC().Format(time.DateOnly)
	next.stop()
	if err := os.Rename(filepath.Join(dir, "replay"), filepath.Join(dir, "cboe")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "cboe", date, "gex-spx")
	stored, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := serve(t, "--data-dir", dir, "--source", "cboe", "--cboe-base-url", "http://"+u.address+quotesBase,
		"--cboe-requests-per-minute", "6000", "--flow-symbols", "XLF")
	p.until("the clock is impaired", func() bool {
		_, body := p.get("/readyz")
		return strings.Contains(string(body), `"degraded":["clock"]`)
	})
	p.ready()
	refreshed := regexp.MustCompile(`msg=refreshed job=spx as_of=(\S+) .*gex/spx`)
	p.until("a chain is published", func() bool { return refreshed.MatchString(p.logged()) })
	logged, err := time.Parse(time.RFC3339, refreshed.FindStringSubmatch(p.logged())[1])
	if err != nil {
		t.Fatal(err)
	}
	if now := p.envelope(gammaPath).Meta.AsOf; now.Before(logged) || now.After(time.Now()) {
		t.Errorf("the log says that the gamma exposure of %v was published, served is that of %v", logged, now)
	}
	if got := p.degraded(); got != "clock" {
		t.Errorf("degraded: %s", got)
	}
	p.stop()
	line := `level=ERROR msg="clock is behind the stored answers"`
	if log := p.logged(); strings.Count(log, "level=ERROR") != 1 || !strings.Contains(log, line) || !strings.Contains(log, date) {
		t.Errorf("log: %s", log)
	}
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(after, stored) {
		t.Errorf("%s changed: %v", file, err)
	}
}
