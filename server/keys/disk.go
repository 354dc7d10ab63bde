package keys

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// privateMode is that of every file written here.
const privateMode = 0o600

// disk is the steps of a write that can fail; a test lets them fail one by one.
type disk struct {
	create  func(dir, pattern string) (*os.File, error)
	write   func(f *os.File, b []byte) (int, error)
	sync    func(f *os.File) error
	rename  func(from, to string) error
	syncDir func(dir string) error
}

var system = disk{
	create:  os.CreateTemp, // with mode 0600
	write:   (*os.File).Write,
	sync:    (*os.File).Sync,
	rename:  os.Rename,
	syncDir: syncDir,
}

// tempPrefix is another than that of package snapshots, which sweeps its own out of the directory of the counts.
const tempPrefix = ".new-"

// orphans returns the temporary files beside a file. While the file's lock is held, no writer has one open: a crash
// left them.
func orphans(path string) (found []string) {
	dir, name := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // whoever opens the file says why
	}
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), tempPrefix+name+"-")
		if ok && strings.Trim(number, "0123456789") == "" && e.Type().IsRegular() {
			found = append(found, filepath.Join(dir, e.Name()))
		}
	}
	return found
}

// sweep removes what a crash left beside a file, if anything. One that cannot be removed does no harm.
func sweep(path string) {
	if len(orphans(path)) == 0 {
		return // and needs no lock
	}
	unlock, err := lock(path + ".lock")
	if err != nil {
		return
	}
	defer unlock()
	for _, orphan := range orphans(path) {
		os.Remove(orphan)
	}
}

// replace replaces a file such that a crash or an error at any step leaves the old file or the new one, whole. The
// new file has mode 0600 and the owner of the old one.
func (d disk) replace(path string, b []byte) (err error) {
	dir, name := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	tmp, err := d.create(dir, tempPrefix+name+"-*")
	if err != nil {
		return fmt.Errorf("create temporary file: %w", err)
	}
	defer func() {
		if err != nil {
			tmp.Close()
			os.Remove(tmp.Name())
		}
	}()
	if err := tmp.Chmod(privateMode); err != nil && checksModes {
		return fmt.Errorf("set mode of temporary file: %w", err)
	}
	if old, err := os.Lstat(path); err == nil {
		if err := keepOwner(tmp, old); err != nil {
			return fmt.Errorf("keep the owner of %s: %w", path, err)
		}
	}
	if _, err := d.write(tmp, b); err != nil {
		return fmt.Errorf("write temporary file: %w", err)
	}
	if err := d.sync(tmp); err != nil {
		return fmt.Errorf("sync temporary file: %w", err)
	}
	if err := tmp.Close(); err != nil {
		return fmt.Errorf("close temporary file: %w", err)
	}
	if err := d.rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("rename temporary file: %w", err)
	}
	return d.syncDir(dir)
}

// checkRegular says what is wrong with a path that is to be a file.
func checkRegular(path string, info os.FileInfo) error {
	switch mode := info.Mode(); {
	case mode&os.ModeSymlink != 0:
		return fmt.Errorf("%s is a symbolic link; give the file itself", path)
	case !mode.IsRegular():
		return fmt.Errorf("%s is not a regular file", path)
	}
	return nil
}

// checkPrivate says what is wrong with a file that only its owner may read.
func checkPrivate(path string, info os.FileInfo) error {
	if err := checkRegular(path, info); err != nil {
		return err
	}
	if mode := info.Mode().Perm(); checksModes && mode&0o077 != 0 {
		return fmt.Errorf("%s has mode %04o: others than its owner may use it; run chmod 600 %s", path, mode, path)
	}
	return nil
}

// inspect describes a file that passes a check.
func inspect(path string, check func(string, os.FileInfo) error) (os.FileInfo, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	return info, check(path, info)
}

// read reads a file of at most limit bytes that passes a check, and describes what it read.
func read(path string, limit int64, check func(string, os.FileInfo) error) ([]byte, os.FileInfo, error) {
	before, err := inspect(path, check) // before opening it, which waits if it is a pipe
	if err != nil {
		return nil, nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !os.SameFile(before, info) {
		return nil, nil, fmt.Errorf("%s was replaced while it was opened", path)
	}
	if err := check(path, info); err != nil {
		return nil, nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, nil, err
	}
	if int64(len(b)) > limit {
		return nil, nil, fmt.Errorf("%s has over %d bytes", path, limit)
	}
	return b, info, nil
}

// sameStamp says whether nothing points to a file having changed.
func sameStamp(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && a.Mode() == b.Mode()
}
