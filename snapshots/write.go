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
)

// WriteFile replaces the file dir/name by b, with mode 0644. It creates dir. A crash or an error at any instant leaves the
// whole old file or the whole new one: WriteFile writes and syncs a temporary file in dir, renames it and syncs dir. After
// an error, the new file is in place only if the sync of dir failed. A crash may leave the temporary file behind; see
// [Temporary] and [Unfinished]. WriteFile does not keep b.
func WriteFile(dir, name string, b []byte) error {
	return WriteFiles([]Write{{Dir: dir, Name: name, Body: b}})[0]
}

// Write is one file of a batch: the bytes that replace Dir/Name.
type Write struct {
	Dir, Name string
	Body      []byte
	// link, unless empty, is a durable file with the same bytes: the new file becomes a hard link to it where the file system
	// has such links.
	link string
}

func (w Write) path() string { return filepath.Join(w.Dir, w.Name) }

// WriteFiles is [WriteFile] for several files. It syncs up to 16 of them at the same time, renames these in the given order, and
// syncs each of their directories once. A crash may leave some of the files old and the others new. An error belongs to the
// write of the same index.
func WriteFiles(batch []Write) []error {
	w := writer{log: slog.New(slog.DiscardHandler)}
	return w.write(batch)
}

// WritePrivateFile is [WriteFile] for a file that only its owner may use: the new file has mode 0600, and the owner and
// group of the file that it replaces. So root may change a file of a server that does not run as root.
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
	steps                   // how many
)

// String returns the name that the log uses.
func (s step) String() string {
	return [...]string{"create", "write", "sync", "rename", "syncdir"}[s]
}

// writer writes files, and counts successes and failures.
type writer struct {
	log     *slog.Logger
	private bool                             // as WritePrivateFile describes
	fault   func(at step, path string) error // in tests, makes a step fail; else nil
	files   atomic.Int64
	bytes   atomic.Int64
	failed  [steps]atomic.Int64
}

// atOnce bounds the open files and the threads of a batch.
const atOnce = 16

// write does what [WriteFiles] promises, for up to atOnce files at a time.
func (w *writer) write(batch []Write) (errs []error) {
	for part := range slices.Chunk(batch, atOnce) {
		errs = append(errs, w.writePart(part)...)
	}
	return errs
}

// writePart writes files step by step. A file whose step fails takes no further step, and leaves its room on the disk to the
// others.
func (w *writer) writePart(batch []Write) []error {
	temps, errs, synced := make([]*os.File, len(batch)), make([]error, len(batch)), map[string]error{}
	for at, do := range [steps]func(i int) error{
		stepCreate: func(i int) (err error) { temps[i], err = w.create(batch[i].Dir, batch[i].Name); return err },
		stepWrite: func(i int) error {
			if linked(batch[i].link, temps[i].Name()) {
				return nil
			}
			_, err := temps[i].Write(batch[i].Body)
			return err
		},
		stepSync:   func(i int) error { return errors.Join(temps[i].Sync(), temps[i].Close()) },
		stepRename: func(i int) error { return os.Rename(temps[i].Name(), batch[i].path()) },
		stepSyncDir: func(i int) error {
			dir := batch[i].Dir
			if _, done := synced[dir]; !done {
				synced[dir] = syncDir(dir)
			}
			return synced[dir]
		},
	} {
		var syncs sync.WaitGroup
		for i := range batch {
			if errs[i] != nil {
				continue
			}
			run := func() {
				if errs[i] = w.step(step(at), batch[i].path(), func() error { return do(i) }); errs[i] != nil && temps[i] != nil {
					temps[i].Close()
					os.Remove(temps[i].Name())
				}
			}
			if step(at) == stepSync {
				syncs.Go(run)
			} else {
				run()
			}
		}
		syncs.Wait()
	}
	for i, b := range batch {
		if errs[i] == nil {
			w.files.Add(1)
			w.bytes.Add(int64(len(b.Body)))
			w.log.Debug("stored", "file", b.path())
		}
	}
	return errs
}

// linked replaces the temporary file by a link to a file, and says whether it could. The name is empty if there is none to
// link to.
func linked(file, temp string) bool {
	if file == "" {
		return false
	}
	again := temp + "-link"
	if os.Link(file, again) != nil {
		return false
	}
	if os.Rename(again, temp) != nil {
		os.Remove(again)
		return false
	}
	return true
}

func (w *writer) writeOne(dir, name string, b []byte) error {
	return w.write([]Write{{Dir: dir, Name: name, Body: b}})[0]
}

// step takes a step of writing a file. The debug log has a line before each step, so that the last lines tell at which step a
// process died.
func (w *writer) step(at step, path string, do func() error) error {
	w.log.Debug("storing", "step", at.String(), "file", path)
	err := w.refusal(at, path)
	if err == nil {
		err = do()
	}
	if err != nil {
		w.failed[at].Add(1)
		return fmt.Errorf("write %s: %s: %w", path, at, cause(err))
	}
	return nil
}

// cause returns an error of the operating system without the name of the temporary file. So the same failure has the same
// text every time, and is logged once.
func cause(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
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
	if err := w.makeDir(dir); err != nil {
		return nil, err
	}
	tmp, err := os.CreateTemp(dir, tempPrefix+name+"-*") // mode 0600
	if err != nil {
		return nil, err
	}
	if w.private {
		return tmp, keepOwner(tmp, filepath.Join(dir, name))
	}
	return tmp, tmp.Chmod(0o644)
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
	if err != nil {
		os.Remove(dir)
	}
	return err
}
