package watch_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/server/watch"
)

// A change is loaded within the interval. While files cannot be read or loaded, the old contents stay in force, every look
// tries again, the fault is logged once, and Err returns it.
func TestFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, inForce, tries := t.TempDir(), "", 0
		a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
		write := func(path, text string) {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var mu sync.Mutex // guards tries, inForce and log
		var log bytes.Buffer
		cfg := watch.Config{
			Name: "text", Paths: []string{a, b}, Every: time.Second, Log: slog.New(slog.NewTextHandler(&lockedWriter{&mu, &log}, nil)),
			Read: func(path string) ([]byte, error) { return watch.ReadFile(path, 10) },
			Load: func(contents [][]byte, _ time.Time) error {
				mu.Lock()
				defer mu.Unlock()
				tries++
				if text := string(bytes.Join(contents, []byte("+"))); !strings.Contains(text, "bad") {
					inForce = text
					return nil
				}
				return errors.New("bad text")
			},
		}
		write(a, "1")
		if _, err := watch.Open(cfg); err == nil {
			t.Fatal("opened without a file")
		}
		write(b, "2")
		f, err := watch.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, step := range []struct {
			name           string
			do             func()
			inForce, fault string
			tries          int
			log            string
		}{
			{"nothing changes", func() {}, "1+2", "", 0, ""},
			{"a change", func() { write(b, "3") }, "1+3", "", 1, ""},
			{"a bad one", func() { write(a, "bad") }, "1+3", "bad text", 3, "text not loaded: the old one stays in force"},
			{"still bad", func() {}, "1+3", "bad text", 3, ""},
			{"as before", func() { write(a, "1") }, "1+3", "", 0, "text is usable again"},
			{"too large", func() { write(a, "12345678901") }, "1+3", "over 10 bytes", 0, "not loaded"},
			{"no file", func() { os.Remove(a); os.Mkdir(a, 0o700) }, "1+3", "not a regular file", 0, "not loaded"},
			{"mended", func() { os.Remove(a); write(a, "4") }, "4+3", "", 1, ""},
		} {
			mu.Lock()
			log.Reset()
			tries = 0
			mu.Unlock()
			step.do()
			time.Sleep(3 * time.Second)
			synctest.Wait()
			mu.Lock()
			if err := f.Err(); inForce != step.inForce || (err != nil) != (step.fault != "") || err != nil && !strings.Contains(err.Error(), step.fault) || tries != step.tries {
				t.Errorf("%s: %q in force after %d tries, %v", step.name, inForce, tries, err)
			}
			if text := log.String(); !strings.Contains(text, step.log) || strings.Count(text, "\n") > 1 || step.log == "" && text != "" {
				t.Errorf("%s: log %s", step.name, text)
			}
			mu.Unlock()
		}
	})
}

// lockedWriter writes to w with mu locked.
type lockedWriter struct {
	mu *sync.Mutex
	w  *bytes.Buffer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
