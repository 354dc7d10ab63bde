package snapshots

import (
	"errors"
	"fmt"
	"io"
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
	file  *os.File
	place io.Closer // nil if the system has no such names
}

// lockDir takes the directory of a source below a data directory, or returns ErrLocked. It writes this process's number
// into the lock file for people to read.
func lockDir(dataDir, source string) (*dirLock, error) {
	f, err := os.OpenFile(filepath.Join(dataDir, source, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	if err := lockFile(f); err != nil {
		defer f.Close()
		var text [20]byte
		n, _ := f.ReadAt(text[:], 0)
		if pid, notNumber := strconv.Atoi(strings.TrimSpace(string(text[:n]))); errors.Is(err, ErrLocked) && notNumber == nil {
			return nil, fmt.Errorf("%w: process %d", err, pid)
		}
		return nil, err
	}
	place, err := lockPlace(dataDir, source)
	if err != nil {
		f.Close()
		return nil, err
	}
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0) // the lock holds without it
	}
	return &dirLock{f, place}, nil
}

func (l *dirLock) release() error {
	var err error
	if l.place != nil {
		err = l.place.Close()
	}
	return errors.Join(err, l.file.Close())
}
