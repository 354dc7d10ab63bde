package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
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
		if filepath.Base(filepath.Dir(file)) >= marketDay {
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		content[file] = string(b)
	}
	if len(content) < storedBefore {
		t.Fatalf("%d files of past dates", len(content))
	}
	return content
}

// restarted starts a binary on stored files, and returns the answer that is as expected. The files of past dates stay as
// they are.
func restarted(t *testing.T, dir, binary, path string, expected func(envelope) bool, args ...string) (now envelope) {
	t.Helper()
	before := pastFiles(t, dir)
	p := serveWith(t, commandOf(binary, append([]string{"serve", "--data-dir", dir, "--sim-speed", "0"}, args...)...))
	p.until(path+" is answered as expected", func() bool {
		resp, body := p.get(path)
		if resp.StatusCode != http.StatusOK {
			return false
		}
		now = envelopeOf(t, body)
		return expected(now)
	})
	p.stopped()
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
	fresh := serve(t, "--sim-start", marketStart, "--sim-speed", "0", "--risk-free-rate", "0.09")
	fresh.ready()
	if want := fresh.envelope(gammaPath); !bytes.Equal(want.Data, now.Data) || fmt.Sprint(want.Meta.Receipt.Inputs) != fmt.Sprint(now.Meta.Receipt.Inputs) {
		t.Errorf("after the restart %.300s\nin an empty directory %.300s", now.Data, want.Data)
	}
	pain := restarted(t, dir, binary, painPath, anything, "--risk-free-rate", "0.09")
	if !bytes.Equal(pain.Data, shared(t).envelope(painPath).Data) {
		t.Error("max pain depends on the rate")
	}
}

// otherMethod builds a binary whose gamma method has another name, and returns its path.
func otherMethod(t *testing.T) string {
	t.Helper()
	method := regexp.MustCompile(`"gex/\d+"`)
	replace := map[string]string{}
	for _, pattern := range []string{"compute/*.go", "compute/*/*.go", "refresh/*.go", "refresh/*/*.go"} {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file, "_test.go") || !method.Match(b) {
				continue
			}
			other := filepath.Join(t.TempDir(), filepath.Base(file))
			if err := os.WriteFile(other, method.ReplaceAll(b, []byte(`"gex/test"`)), 0o600); err != nil {
				t.Fatal(err)
			}
			replace[file] = other
		}
	}
	if len(replace) == 0 {
		t.Fatal("no file names the method")
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	path, err := build("strikecache-other-method", "-overlay", file, ".")
	if err != nil {
		t.Fatal(err)
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

// A product of which nothing is stored is served right after the start, as one that this build has for the first time.
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
	dir := storedDay(t)
	args := []string{"--data-dir", dir, "--sim-speed", "0"}
	p := serve(t, args...)
	p.ready()
	seen := map[string][]byte{}
	for _, target := range targets {
		_, seen[target] = p.get(target)
	}
	for range 3 {
		began := time.Now()
		p.kill()
		p = serve(t, args...)
		for _, target := range targets {
			p.until(target+" is answered", func() bool { resp, _ := p.get(target); return resp.StatusCode == http.StatusOK })
			if _, body := p.get(target); !bytes.Equal(body, seen[target]) {
				t.Errorf("%s differs after the restart:\n%.300s\n%.300s", target, seen[target], body)
			}
		}
		figure(t, "killed and started again: the last answers were served after %v", time.Since(began).Round(time.Millisecond))
	}
	p.stopped()
	verified(t, dir)
}
