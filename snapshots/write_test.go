package snapshots

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// A file that only its owner may use has mode 0600 from its first byte on; an older file's wider mode does not stay.
func TestWritePrivateFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	for _, text := range []string{"first", "second"} {
		if err := WritePrivateFile(dir, "keys.json", []byte(text)); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "keys.json")
		if b, err := os.ReadFile(path); err != nil || string(b) != text {
			t.Errorf("read %q, %v", b, err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 && runtime.GOOS != "windows" {
			t.Errorf("mode %04o", mode)
		}
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Unfinished finds what a crash left of one file, and no file that only looks like it.
func TestUnfinished(t *testing.T) {
	dir := t.TempDir()
	left := []string{".tmp-keys.json-1", ".tmp-keys.json-22"}
	for _, name := range append(left, ".tmp-keys.json", ".tmp-keys.json-x", ".tmp-keys.json-a-1", ".tmp-other.json-1", "keys.json-3") {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{filepath.Join(dir, left[0]), filepath.Join(dir, left[1])}
	if got := Unfinished(dir, "keys.json"); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if got := Unfinished(filepath.Join(dir, "none"), "keys.json"); len(got) != 0 {
		t.Errorf("found %q", got)
	}
}
