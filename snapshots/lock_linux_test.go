package snapshots

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Whoever removes the directory of a running server does not free it, whatever name it is given by the next one.
func TestRemovedDirectoryStaysTaken(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	s.disk.Lock() // or the store would create the directory again
	for _, name := range []string{dir, link, filepath.Join(dir, "..", "data")} {
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(options(name)); !errors.Is(err, ErrLocked) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.disk.Unlock()
	t.Chdir(filepath.Dir(dir))
	if _, err := Open(options("data")); !errors.Is(err, ErrLocked) {
		t.Errorf("by a relative path: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
}

// A directory of the same name elsewhere is another one.
func TestDirectoriesOfOneName(t *testing.T) {
	for range 2 {
		open(t, filepath.Join(t.TempDir(), "data"))
	}
}
