package snapshots

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// The debug log has a line before each step, in order, and one at the end; other levels have none.
func TestStoringIsLoggedStepByStep(t *testing.T) {
	for level, want := range map[slog.Level][]string{
		slog.LevelDebug: {"create", "write", "sync", "rename", "sync_dir", "stored"}, slog.LevelInfo: nil,
	} {
		log := &testLog{}
		w := &writer{log: log.logger(level)}
		dir := t.TempDir()
		must(t, w.writeOne(dir, "gex-spx", []byte("12345")))
		var got []string
		for line := range strings.Lines(log.String()) {
			if !strings.HasSuffix(line, " file="+filepath.Join(dir, "gex-spx")+"\n") {
				t.Errorf("line %q", line)
			}
			if _, rest, ok := strings.Cut(line, "msg=storing step="); ok {
				step, _, _ := strings.Cut(rest, " ")
				got = append(got, step)
			} else if strings.Contains(line, "msg=stored ") {
				got = append(got, "stored")
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("level %v: %q, want %q", level, got, want)
		}
		if w.files.Load() != 1 || w.bytes.Load() != 5 {
			t.Errorf("%d files, %d bytes", w.files.Load(), w.bytes.Load())
		}
	}
}

// A private file has mode 0600 from its first byte on, and any other 0644, whatever mode the older file has.
func TestWriteFile(t *testing.T) {
	for mode, private := range map[os.FileMode]bool{0o644: false, 0o600: true} {
		w := &writer{log: slog.New(slog.DiscardHandler), private: private}
		dir := filepath.Join(t.TempDir(), "2026-11-20")
		path := filepath.Join(dir, "gex")
		for _, want := range []string{"first", "second, longer", "3"} {
			must(t, w.writeOne(dir, "gex", []byte(want)))
			if b, err := os.ReadFile(path); err != nil || string(b) != want {
				t.Errorf("%q, %v, want %q", b, err, want)
			}
			info, err := os.Stat(path)
			if err != nil || info.Mode() != mode && runtime.GOOS != "windows" {
				t.Errorf("mode %v, %v, want %v", info.Mode(), err, mode)
			}
			must(t, os.Chmod(path, 0o640))
		}
		if got := names(t, dir); !slices.Equal(got, []string{"gex"}) {
			t.Errorf("directory holds %q", got)
		}
	}
}

// Unfinished finds what a crash left of one file, and no file that only looks like it.
func TestUnfinished(t *testing.T) {
	dir := t.TempDir()
	left := []string{".tmp-keys.json-1", ".tmp-keys.json-22"}
	for _, name := range append(left, ".tmp-keys.json", ".tmp-keys.json-x", ".tmp-keys.json-a-1", ".tmp-other.json-1", "keys.json-3") {
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	want := []string{filepath.Join(dir, left[0]), filepath.Join(dir, left[1])}
	if got := Unfinished(dir, "keys.json"); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if got := Unfinished(filepath.Join(dir, "none"), "keys.json"); len(got) != 0 {
		t.Errorf("found %q", got)
	}
}

// Each step of a private write fails. The old file stays, or the new one if only the sync of its name failed. No temporary
// file is left.
func TestFaultPrivateFileSteps(t *testing.T) {
	for _, c := range diskFaults {
		dir := filepath.Join(t.TempDir(), friday)
		w := &writer{log: slog.New(slog.DiscardHandler), private: true}
		want := ""
		if !c.fresh {
			want = "old"
			must(t, w.writeOne(dir, "keys.json", []byte("old")))
		}
		f := c.in(w)
		f.on.Store(true)
		if err := w.writeOne(dir, "keys.json", []byte("new")); !errors.Is(err, c.err) || f.fired.Load() != 1 {
			t.Errorf("%s: written with %v, %d faults", c.name, err, f.fired.Load())
		}
		if c.step == stepSyncDir {
			want = "new"
		}
		if b, _ := os.ReadFile(filepath.Join(dir, "keys.json")); string(b) != want || len(Unfinished(dir, "keys.json")) != 0 {
			t.Errorf("%s: the file holds %q, want %q; left behind %q", c.name, b, want, Unfinished(dir, "keys.json"))
		}
		f.on.Store(false)
		if err := w.writeOne(dir, "keys.json", []byte("next")); err != nil {
			t.Errorf("%s: after the fault: %v", c.name, err)
		}
	}
}
