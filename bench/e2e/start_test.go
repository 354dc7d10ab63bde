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
	"testing"
	"time"
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
	cmd := command(t, append([]string{"serve", "--data-dir", dir, "--sim-speed", "0"}, args...)...)
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

func TestStartWithAnotherRate(t *testing.T) {
	t.Parallel()
	dir, old := storedDay(t), shared(t).envelope(gammaPath)
	now := restarted(t, dir, binary, gammaPath, func(e envelope) bool { return !bytes.Equal(e.Data, old.Data) }, "--risk-free-rate", "0.09")
	want := serveReady(t, "--sim-start", marketStart, "--sim-speed", "0", "--risk-free-rate", "0.09").envelope(gammaPath)
	if !bytes.Equal(want.Data, now.Data) || fmt.Sprint(want.Meta.Receipt.Inputs) != fmt.Sprint(now.Meta.Receipt.Inputs) {
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
	args := []string{"--data-dir", storedDay(t), "--sim-speed", "0"}
	p := serveReady(t, args...)
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
