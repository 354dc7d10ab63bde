package snapshots

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode"
)

// identityName is the file in a source's directory that says, in one line of text, what the directory holds.
const identityName = "identity"

// Bind says what the directory holds, once and for all: the first call stores the identity, and later calls fail if theirs
// is another. If the stored identity is damaged and there are dated files, the error says how to mend it. Without dated
// files Bind stores the identity anew.
func (s *Store) Bind(identity string) error {
	s.disk.Lock()
	defer s.disk.Unlock()
	held, err := readIdentity(s.dir)
	s.mu.Lock()
	empty := len(s.index) == 0
	s.mu.Unlock()
	switch {
	case err == nil && held == identity:
		return nil
	case err == nil:
		return fmt.Errorf("%s holds the %s, not the %s", s.dir, held, identity)
	case errors.Is(err, fs.ErrNotExist):
	case !empty:
		return fmt.Errorf("%s: %w; if %s holds the %[4]s, make it so: echo '%[4]s' > %[1]s",
			filepath.Join(s.dir, identityName), err, s.dir, identity)
	default:
		s.opts.Log.Error("identity file damaged, written anew", "dir", s.dir, "err", err)
	}
	return s.writer.write(s.dir, identityName, []byte(identity+"\n"))
}

// readIdentity returns what the directory of a source holds.
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
