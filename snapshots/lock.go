package snapshots

import (
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

// lockDir takes the store's directory, or returns ErrLocked. There are two locks. The first is on the lock file, and is
// lost if somebody removes the directory. The second is on the path of the directory, on systems where [lockPlace] can lock
// a path. The kernel releases both when the process ends. The lock file has the number of this process, for people to read.
func (s *Store) lockDir() error {
	f, err := os.OpenFile(filepath.Join(s.dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("open lock file: %w", err)
	}
	s.locks = append(s.locks, f)
	if err := lockFile(f); err != nil {
		text := make([]byte, 20)
		n, _ := f.Read(text)
		return fmt.Errorf("%w: process %s", err, strings.TrimSpace(string(text[:n])))
	}
	place, err := lockPlace(s.opts.Dir, s.opts.Source)
	if err != nil {
		return err
	}
	if place != nil {
		s.locks = append(s.locks, place)
	}
	if f.Truncate(0) == nil {
		fmt.Fprintln(f, os.Getpid()) // the lock does not need it
	}
	return nil
}

// Bind records what the directory holds. The first call stores the identity. A later call fails if its identity is another.
// If the stored identity is damaged, the error says how to repair it.
func (s *Store) Bind(identity string) error {
	held, err := readIdentity(s.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.disk.Lock()
		defer s.disk.Unlock()
		return s.writer.writeOne(s.dir, identityName, []byte(identity+"\n"+digest([]byte(identity))+"\n"))
	case err != nil:
		return fmt.Errorf("%w; if the directory holds the %s, remove %s", err, identity, filepath.Join(s.dir, identityName))
	case held != identity:
		return fmt.Errorf("%s holds the %s, not the %s", s.dir, held, identity)
	}
	return nil
}

// readIdentity returns the identity of the directory of a source. The file has two lines: the identity, and its SHA-256.
func readIdentity(dir string) (string, error) {
	b, err := readFile(filepath.Join(dir, identityName))
	if err != nil {
		return "", err
	}
	identity, sum, _ := strings.Cut(string(b), "\n")
	if sum != digest([]byte(identity))+"\n" {
		return "", fmt.Errorf("%w: the second line of identity is not the SHA-256 of the first: %.200q", ErrTorn, b)
	}
	return identity, nil
}
