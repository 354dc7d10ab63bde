package snapshots

import (
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
		fails(t, w.writeOne(dir, "keys.json", []byte("new")), c.err, "%s", c.name)
		equal(t, f.fired.Load(), 1, "%s: faults", c.name)
		if c.step == stepSyncDir {
			want = "new"
		}
		b, _ := os.ReadFile(filepath.Join(dir, "keys.json"))
		equal(t, string(b), want, "%s: the file holds", c.name)
		equal(t, Unfinished(dir, "keys.json"), nil, "%s: left behind", c.name)
		f.on.Store(false)
		must(t, w.writeOne(dir, "keys.json", []byte("next")))
	}
}
