package snapshots

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// A private file has mode 0600 from its first byte on, and any other 0644, whatever mode the older file has.
func TestWriteFile(t *testing.T) {
	for mode, private := range map[os.FileMode]bool{0o644: false, 0o600: true} {
		w := &writer{log: slog.New(slog.DiscardHandler), private: private}
		dir := filepath.Join(t.TempDir(), "2026-11-20")
		path := filepath.Join(dir, "gex")
		for _, want := range []string{"first", "second, longer", "3"} {
			must(t, w.writeOne(dir, "gex", []byte(want)))
			equal(t, text(os.ReadFile(path)), want, "bytes")
			info, err := os.Stat(path)
			failIf(t, err != nil || info.Mode() != mode && runtime.GOOS != "windows", "mode %v, %v, want %v", info.Mode(), err, mode)
			must(t, os.Chmod(path, 0o640))
		}
		equal(t, names(t, dir), []string{"gex"}, "directory holds")
		equal(t, [2]int64{w.files.Load(), w.bytes.Load()}, [2]int64{3, 20}, "files and bytes written")
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
