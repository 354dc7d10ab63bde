package snapshots

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

// ErrLocked says that another process has taken the directory.
var ErrLocked = errors.New("another process uses this directory")

const (
	lockName = ".lock"
	// identityName is the file that says, in one line of text, what the directory holds.
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
		return s.writer.writeOne(s.dir, identityName, []byte(identity+"\n"))
	case err != nil:
		path := filepath.Join(s.dir, identityName)
		return fmt.Errorf("%w; if the directory holds the %[2]s, repair it: echo '%[2]s' > %[3]s", err, identity, path)
	case held != identity:
		return fmt.Errorf("%s holds the %s, not the %s", s.dir, held, identity)
	}
	return nil
}

// readIdentity returns the identity of the directory of a source.
func readIdentity(dir string) (string, error) {
	b, err := readFile(filepath.Join(dir, identityName))
	if err != nil {
		return "", err
	}
	line, whole := strings.CutSuffix(string(b), "\n")
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }
	if !whole || line == "" || strings.ContainsFunc(line, odd) {
		return "", fmt.Errorf("%w: identity is not one line of text: %.200q", ErrTorn, b)
	}
	return line, nil
}
