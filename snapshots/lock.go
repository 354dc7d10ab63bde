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

// lockDir takes a directory, or returns ErrLocked. The kernel releases the lock when the file is closed or the process ends.
// The lock file has the number of this process, for people to read.
func lockDir(dir string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	if err := lockFile(lock); err != nil {
		text := make([]byte, 20)
		n, _ := lock.Read(text)
		return nil, errors.Join(fmt.Errorf("%w: process %s", err, strings.TrimSpace(string(text[:n]))), lock.Close())
	}
	if lock.Truncate(0) == nil {
		fmt.Fprintln(lock, os.Getpid()) // the lock does not need it
	}
	return lock, nil
}

// Bind records what the directory holds. The first call stores the identity. A later call fails if its identity is another.
func (s *Store) Bind(identity string) error {
	path := filepath.Join(s.dir, identityName)
	held, err := readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.disk.Lock()
		defer s.disk.Unlock()
		return s.writer.writeOne(s.dir, identityName, []byte(identity+"\n"))
	case err != nil:
		return fmt.Errorf("read %s: %w", path, err)
	case string(held) != identity+"\n":
		return fmt.Errorf("%s holds the %.200s, as %s says, not the %s", s.dir, bytes.TrimSpace(held), path, identity)
	}
	return nil
}
