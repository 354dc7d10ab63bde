package snapshots

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
)

// disk is the operations of a write that can fail; a test lets them fail one by one.
type disk struct {
	mkdir   func(dir string, mode os.FileMode) error
	create  func(dir, pattern string) (*os.File, error)
	write   func(f *os.File, b []byte) (int, error)
	sync    func(f *os.File) error
	rename  func(from, to string) error
	syncDir func(dir string) error
}

var system = disk{
	mkdir:   os.Mkdir,
	create:  os.CreateTemp,
	write:   (*os.File).Write,
	sync:    (*os.File).Sync,
	rename:  os.Rename,
	syncDir: syncDir,
}

// step is a part of writing a file.
type step int

const (
	stepCreate  step = iota // of the directory too
	stepWrite               // into the temporary file
	stepSync                // of the temporary file
	stepRename              // to the file's own name
	stepSyncDir             // of the directory, which makes the new name durable
	steps                   // how many
)

// String returns the name that the log and metrics use.
func (s step) String() string {
	return [...]string{"create", "write", "sync", "rename", "syncdir"}[s]
}

// writer writes files, one at a time, and counts what came of them.
type writer struct {
	disk   disk
	log    *slog.Logger
	files  atomic.Int64
	bytes  atomic.Int64
	failed [steps]atomic.Int64
}

const tempPrefix = ".tmp-"

// write replaces dir/name such that a crash at any instant leaves the old file or the new one, whole: it
// writes and syncs a temporary file beside it, renames it and syncs the directory. It creates dir. After an error
// the old file stands, or the new one when only the last step failed. The debug log has a line before each step
// and one at the end, so that the last line tells where a process died.
func (w *writer) write(dir, name string, b []byte) (err error) {
	path := filepath.Join(dir, name)
	var at step
	begin := func(s step) {
		at = s
		w.log.Debug("storing", "step", s.String(), "file", path)
	}
	defer func() {
		if err != nil {
			w.failed[at].Add(1)
			return
		}
		w.files.Add(1)
		w.bytes.Add(int64(len(b)))
		w.log.Debug("stored", "file", path)
	}()
	begin(stepCreate)
	if err := w.makeDir(dir); err != nil {
		return err
	}
	tmp, err := w.disk.create(dir, tempPrefix+name+"-*")
	if err != nil {
		return fmt.Errorf("create temporary file: %w", err)
	}
	defer func() {
		if err != nil {
			tmp.Close()
			os.Remove(tmp.Name())
		}
	}()
	if err := tmp.Chmod(0o644); err != nil {
		return fmt.Errorf("set mode of temporary file: %w", err)
	}
	begin(stepWrite)
	if n, err := w.disk.write(tmp, b); err != nil {
		return fmt.Errorf("write temporary file: %w", err)
	} else if n < len(b) {
		return fmt.Errorf("write temporary file: %w", io.ErrShortWrite)
	}
	begin(stepSync)
	if err := w.disk.sync(tmp); err != nil {
		return fmt.Errorf("sync temporary file: %w", err)
	}
	if err := tmp.Close(); err != nil {
		return fmt.Errorf("close temporary file: %w", err)
	}
	begin(stepRename)
	if err := w.disk.rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("rename temporary file: %w", err)
	}
	begin(stepSyncDir)
	return w.disk.syncDir(dir)
}

// makeDir creates a directory, with its parents, and makes their entries durable. One whose entry is not durable
// is removed again, so that the next call does not take it for done.
func (w *writer) makeDir(dir string) error {
	switch info, err := os.Stat(dir); {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("%s is not a directory", dir)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("look at directory: %w", err)
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := w.makeDir(parent); err != nil {
			return err
		}
	}
	if err := w.disk.mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("create directory: %w", err)
	}
	if err := w.disk.syncDir(parent); err != nil {
		os.Remove(dir)
		return err
	}
	return nil
}

// probe says why a directory cannot be written at all, at a start and not hours later. A disk that is full or
// fails otherwise may mend: what is stored can be served until it does.
func (w *writer) probe(dir string) error {
	f, err := w.disk.create(dir, tempPrefix+"probe-*")
	if err == nil {
		f.Close()
		return os.Remove(f.Name())
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("directory cannot be written: %w", err)
	}
	return nil
}
