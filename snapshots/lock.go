package snapshots

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrLocked says that another process has taken the directory.
var ErrLocked = errors.New("another process uses this directory")

const (
	lockName = ".lock"
	// identityName is the file that says what the directory holds.
	identityName = "identity"
)

// lockDir takes the directory, or returns ErrLocked. The kernel releases the lock when the process ends. The lock file has
// the number of this process, for people to read.
func (f *files) lockDir() (err error) {
	f.lock, err = os.OpenFile(filepath.Join(f.dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("open lock file: %w", err)
	}
	if err := lockFile(f.lock); err != nil {
		text := make([]byte, 20)
		n, _ := f.lock.Read(text)
		return fmt.Errorf("%w: process %s", err, strings.TrimSpace(string(text[:n])))
	}
	if f.lock.Truncate(0) == nil {
		fmt.Fprintln(f.lock, os.Getpid()) // the lock does not need it
	}
	return nil
}

func (f *files) unlockDir() error {
	if f.lock == nil {
		return nil
	}
	return f.lock.Close()
}

// Bind records what the directory holds. The first call stores the identity. A later call fails if its identity is another.
func (f *files) Bind(identity string) error {
	path := filepath.Join(f.dir, identityName)
	held, err := readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.disk.Lock()
		defer f.disk.Unlock()
		return f.writer.writeOne(f.dir, identityName, []byte(identity+"\n"))
	case err != nil:
		return fmt.Errorf("read %s: %w", path, err)
	case string(held) != identity+"\n":
		return fmt.Errorf("%s holds the %.200s, as %s says, not the %s", f.dir, bytes.TrimSpace(held), path, identity)
	}
	return nil
}
