package snapshots

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// WritePrivateFile replaces the file dir/name by b. It creates dir. The new file has mode 0600, and the owner and group of the
// file that it replaces, so root may change a file of a server that does not run as root. A crash or an error at any instant
// leaves the whole old file or the whole new one; see [writer]. A crash may leave a temporary file behind; see [Unfinished].
// WritePrivateFile does not keep b.
func WritePrivateFile(dir, name string, b []byte) error {
	w := writer{log: slog.New(slog.DiscardHandler), private: true}
	return w.writeOne(dir, name, b)
}

const tempPrefix = ".tmp-"

// Temporary says whether a file name is that of an unfinished write, which is under way or was cut off by a crash.
func Temporary(name string) bool { return strings.HasPrefix(name, tempPrefix) }

// Unfinished returns the paths of the temporary files of dir/name. If no process is writing dir/name now, a crash left
// them, and they may be removed.
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

// step is a part of writing a file.
type step int

const (
	stepCreate  step = iota // of the temporary file, and of the directory
	stepWrite               // into the temporary file
	stepSync                // of the temporary file
	stepRename              // to the file's own name
	stepSyncDir             // of the directory, which makes the new name durable
	steps                   // how many are counted
	stepLink                // from the temporary file to a file with the same bytes
	stepLock                // of the directory of a source
)

// String returns the name that the log and [Stats] use.
func (s step) String() string {
	return [...]string{"create", "write", "sync", "rename", "sync_dir"}[s]
}

// writer replaces files, and counts successes and failures. It writes and syncs a temporary file in the same directory,
// renames it and syncs the directory. So a crash or an error at any instant leaves the whole old file or the whole new one.
// After an error, the new file is in place only if the sync of the directory failed. New files have mode 0644.
type writer struct {
	log      *slog.Logger
	dirs     sync.Mutex                       // held while directories are made
	unsynced sync.Once                        // the warning that the file system cannot sync
	private  bool                             // as WritePrivateFile describes
	fault    func(at step, path string) error // in tests, makes a step fail; else nil
	files    atomic.Int64
	bytes    atomic.Int64
	failed   [steps]atomic.Int64
}

// replacement is the bytes that replace the file dir/name.
type replacement struct {
	dir, name string
	body      []byte
	// link, unless empty, is a durable file with the same bytes: the new file becomes a hard link to it where the file system
	// has such links.
	link string
}

func (r replacement) path() string { return filepath.Join(r.dir, r.name) }

// atOnce bounds the open files and the threads of a batch.
const atOnce = 16

// write replaces files. It writes and syncs up to atOnce of them at the same time, renames these in the given order, and syncs
// each of their directories once. A crash may leave some of the files old and the others new. An error belongs to the
// replacement of the same index.
func (w *writer) write(batch []replacement) (errs []error) {
	for part := range slices.Chunk(batch, atOnce) {
		errs = append(errs, w.writePart(part)...)
	}
	return errs
}

func (w *writer) writePart(batch []replacement) []error {
	temps, errs, synced := make([]string, len(batch)), make([]error, len(batch)), map[string]error{}
	var writes sync.WaitGroup
	for i, r := range batch {
		writes.Go(func() { temps[i], errs[i] = w.writeTemp(r) })
	}
	writes.Wait()
	for i, r := range batch {
		if errs[i] == nil {
			errs[i] = w.step(stepRename, r.path(), func() error { return os.Rename(temps[i], r.path()) })
		}
		if errs[i] != nil {
			os.Remove(temps[i]) // leaves its room on the disk to others
		}
	}
	for i, r := range batch {
		if errs[i] == nil {
			errs[i] = w.step(stepSyncDir, r.path(), func() error {
				if _, done := synced[r.dir]; !done {
					synced[r.dir] = syncDir(r.dir)
				}
				return synced[r.dir]
			})
		}
		if errs[i] == nil {
			w.files.Add(1)
			w.bytes.Add(int64(len(r.body)))
			w.log.Debug("stored", "file", r.path())
		}
	}
	return errs
}

func (w *writer) writeOne(dir, name string, b []byte) error {
	return w.write([]replacement{{dir: dir, name: name, body: b}})[0]
}

// writeTemp writes the durable temporary file of a replacement. After an error the path is that of a file to remove, or "".
func (w *writer) writeTemp(r replacement) (path string, err error) {
	var temp *os.File
	err = w.step(stepCreate, r.path(), func() (err error) { temp, err = w.create(r.dir, r.name); return err })
	if temp == nil {
		return "", err
	}
	defer temp.Close()
	if err == nil {
		err = w.step(stepWrite, r.path(), func() error {
			if r.link != "" {
				link := temp.Name() + "-link" // becomes the temporary file
				if w.refusal(stepLink, r.path()) == nil && os.Link(r.link, link) == nil && os.Rename(link, temp.Name()) == nil {
					return nil
				}
				os.Remove(link)
			}
			_, err := temp.Write(r.body)
			return err
		})
	}
	if err == nil {
		err = w.step(stepSync, r.path(), temp.Sync)
	}
	return temp.Name(), err
}

// step takes a step of writing a file. The debug log has a line before each step, so that the last lines tell at which step a
// process died.
func (w *writer) step(at step, path string, do func() error) error {
	w.log.Debug("storing", "step", at.String(), "file", path)
	err := w.refusal(at, path)
	if err == nil {
		err = do()
	}
	switch at {
	case stepSync:
		err = w.durable("file", err)
	case stepSyncDir:
		err = w.durable("directory", err)
	}
	if err == nil {
		return nil
	}
	w.failed[at].Add(1)
	for cause := err; cause != nil; cause = errors.Unwrap(cause) {
		err = cause // without the name of the temporary file: the same failure has the same text every time, and is logged once
	}
	return fmt.Errorf("write %s: %s: %w", path, at, err)
}

// durable returns the error of the sync of a file or a directory. A file system that cannot do it costs one warning: to fail would be to store
// nothing. PostgreSQL passes over the same errors of a directory (fsync_fname_ext), among them one that may not be opened for reading.
func (w *writer) durable(what string, err error) error {
	if !unsupported(err) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	w.unsynced.Do(func() {
		w.log.Warn("file system cannot sync a "+what+": after a power failure, the last files may be missing or torn", "err", err)
	})
	return nil
}

// refusal returns the error that a test injects in place of an operation.
func (w *writer) refusal(at step, path string) error {
	if w.fault == nil {
		return nil
	}
	return w.fault(at, path)
}

// create creates dir and in it the temporary file that is to replace dir/name.
func (w *writer) create(dir, name string) (*os.File, error) {
	w.dirs.Lock()
	err := w.makeDir(dir)
	w.dirs.Unlock()
	if err != nil {
		return nil, err
	}
	tmp, err := os.CreateTemp(dir, tempPrefix+name+"-*") // mode 0600
	if err != nil {
		return nil, err
	}
	if w.private {
		return tmp, keepOwner(tmp, filepath.Join(dir, name))
	}
	_ = tmp.Chmod(0o644) // FAT has no such mode
	return tmp, nil
}

// makeDir creates a directory, with its parents, and makes their entries durable. If it cannot make an entry durable, it
// removes the directory, so that the next call tries again.
func (w *writer) makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := w.makeDir(parent); err != nil {
			return err
		}
	}
	err := w.refusal(stepCreate, dir)
	if err == nil {
		err = os.Mkdir(dir, 0o755)
	}
	if errors.Is(err, fs.ErrExist) { // created meanwhile, or this process may not look at it
		return nil
	}
	if err != nil {
		return err
	}
	if err = w.refusal(stepSyncDir, parent); err == nil {
		err = syncDir(parent)
	}
	if err = w.durable("directory", err); err != nil {
		os.Remove(dir)
	}
	return err
}

// ErrLocked says that another process has taken the directory.
var ErrLocked = errors.New("another process uses this directory")

const lockName = ".lock"

// lockDir takes a directory, or returns ErrLocked. The kernel releases the lock when the file is closed or the process ends.
// The lock file has the number of this process, for people to read. A file system without locks costs one warning. One that has become
// read-only is locked, too, so that what it holds is served.
func (w *writer) lockDir(dir string) (lock *os.File, err error) {
	path := filepath.Join(dir, lockName)
	if err = w.refusal(stepCreate, path); err == nil {
		lock, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	}
	if errors.Is(err, syscall.EROFS) {
		lock, err = os.Open(path)
	}
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	if err = w.refusal(stepLock, dir); err == nil {
		err = lockFile(lock)
	}
	if unsupported(err) {
		w.log.Warn("file system cannot lock a directory: start no second process on it", "dir", dir, "err", err)
	} else if err != nil {
		text := make([]byte, 20)
		n, _ := lock.Read(text)
		return nil, errors.Join(fmt.Errorf("%w: process %s", err, strings.TrimSpace(string(text[:n]))), lock.Close())
	}
	if lock.Truncate(0) == nil {
		fmt.Fprintln(lock, os.Getpid()) // the lock does not need it
	}
	return lock, nil
}
