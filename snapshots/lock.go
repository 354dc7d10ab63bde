package snapshots

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ErrLocked says that another process has taken the directory.
var ErrLocked = errors.New("another process uses this directory")

const lockName = ".lock"

// dirLock keeps other processes out of a source's directory, by two locks. The first is on the lock file, and is lost if
// somebody removes the directory. The second is a name in the kernel for the place where the directory stands, on systems
// that have such names. The kernel releases both when the process ends.
type dirLock struct {
	path  string // of the lock file
	file  *os.File
	place io.Closer
}

// lockDir takes the directory of a source below a data directory, or returns ErrLocked.
func lockDir(dataDir, source string) (l *dirLock, err error) {
	l = &dirLock{path: filepath.Join(dataDir, source, lockName)}
	if err := l.takeFile(); err != nil {
		return nil, err
	}
	if l.place, err = lockPlace(dataDir, source); err != nil {
		l.file.Close()
		return nil, err
	}
	return l, nil
}

// takeFile opens or creates the lock file, locks it, and writes this process's number into it for people to read.
func (l *dirLock) takeFile() error {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("open lock file: %w", err)
	}
	if err := lockFile(f); err != nil {
		defer f.Close()
		var text [20]byte
		n, _ := f.ReadAt(text[:], 0)
		if pid, notNumber := strconv.Atoi(strings.TrimSpace(string(text[:n]))); errors.Is(err, ErrLocked) && notNumber == nil {
			return fmt.Errorf("%w: process %d", err, pid)
		}
		return err
	}
	if l.file != nil {
		l.file.Close()
	}
	l.file = f
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0) // the lock holds without it
	}
	return nil
}

// gone says whether the lock file was removed or replaced, as when somebody removes the whole directory.
func (l *dirLock) gone() bool {
	there, err := os.Stat(l.path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	ours, err := l.file.Stat()
	return err == nil && !os.SameFile(there, ours)
}

func (l *dirLock) release() error {
	var err error
	if l.place != nil {
		err = l.place.Close()
	}
	return errors.Join(err, l.file.Close())
}
