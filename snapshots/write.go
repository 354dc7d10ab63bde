package snapshots

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
)

// WriteFile replaces the file dir/name by b, with mode 0644. It creates dir. A crash or an error at any instant leaves the
// old file or the new one, whole: WriteFile writes and syncs a temporary file in dir, renames it and syncs dir. After an
// error the new file stands only if the sync of dir was what failed. A crash may leave the temporary file behind; see
// [Temporary] and [Unfinished]. WriteFile does not keep b.
func WriteFile(dir, name string, b []byte) error {
	w := writer{disk: system, log: slog.New(slog.DiscardHandler)}
	return w.write(dir, name, b)
}

// WritePrivateFile is [WriteFile] for a file that only its owner may use: the new file has mode 0600, and the owner and
// group of the file that it replaces. So root may change a file of a server that does not run as root.
func WritePrivateFile(dir, name string, b []byte) error {
	w := writer{disk: system, log: slog.New(slog.DiscardHandler), private: true}
	return w.write(dir, name, b)
}

const tempPrefix = ".tmp-"

// Temporary says whether a file name is that of an unfinished write: of a file that is being written, or that a crash left
// behind.
func Temporary(name string) bool { return strings.HasPrefix(name, tempPrefix) }

// Unfinished returns the paths of the temporary files of dir/name. If nobody is writing dir/name now, a crash left them
// and they may be removed.
func Unfinished(dir, name string) (paths []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), tempPrefix+name+"-")
		if ok && strings.Trim(number, "0123456789") == "" && e.Type().IsRegular() {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

// disk holds the operations of a write that can fail. A test lets them fail one by one.
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
	disk    disk
	log     *slog.Logger
	private bool // as WritePrivateFile describes
	files   atomic.Int64
	bytes   atomic.Int64
	failed  [steps]atomic.Int64
}

// write does what [WriteFile] promises. The debug log has a line before each step and one at the end, so that the last line
// tells at which step a process died.
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
	if err := w.setAccess(tmp, path); err != nil {
		return err
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

// setAccess sets the mode, and the owner if it matters, of the temporary file that is to replace path.
func (w *writer) setAccess(tmp *os.File, path string) error {
	mode := os.FileMode(0o644)
	if w.private {
		mode = 0o600
	}
	if err := tmp.Chmod(mode); err != nil {
		return fmt.Errorf("set mode of temporary file: %w", err)
	}
	old, err := os.Lstat(path)
	if err != nil || !w.private {
		return nil
	}
	if err := keepOwner(tmp, old); err != nil {
		return fmt.Errorf("keep the owner of %s: %w", path, err)
	}
	return nil
}

// makeDir creates a directory, with its parents, and makes their entries durable. If it cannot make an entry durable, it
// removes the directory, so that the next call tries again.
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

// probe says why this process may not write a directory: at the start, not hours later. It passes a disk that is full or
// fails otherwise, which may recover: until then the stored answers are served.
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
