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
