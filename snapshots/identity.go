package snapshots

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode"
)

// The identity of a directory is one line of text that says what the directory holds. It is stored twice: as text, which
// people read and earlier versions wrote alone, and as a copy with a digest, which tells whether the text is damaged.
const (
	identityName = "identity"
	identityCopy = ".identity"
)

// Bind says what the directory holds, once and for all: the first call stores the identity, and later calls fail if theirs
// is another. If one of the two stored forms is damaged, Bind restores it from the other and logs that. If neither is
// intact, Bind stores the identity only where no dated file could belong to another one.
func (s *Store) Bind(identity string) error {
	s.disk.Lock()
	defer s.disk.Unlock()
	held, complete, bad := readIdentity(s.dir)
	s.mu.Lock()
	empty := len(s.index) == 0
	s.mu.Unlock()
	switch {
	case held == "" && bad != nil && !empty:
		return fmt.Errorf("%s: %w; if %s holds the %[4]s, restore the file: echo '%[4]s' > %[1]s",
			filepath.Join(s.dir, identityName), bad.Err, s.dir, identity)
	case held != "" && held != identity:
		return fmt.Errorf("%s holds the %s, not the %s", s.dir, held, identity)
	}
	s.identity = identity
	if bad != nil {
		s.opts.Log.Error("identity file damaged, written again", "file", bad.Path, "err", bad.Err)
	}
	if complete {
		return nil
	}
	err := s.writeIdentity()
	if err != nil && held != "" { // the directory is known: a disk that refuses writes does not prevent the start
		s.opts.Log.Error("identity not written", "dir", s.dir, "err", err)
		return nil
	}
	return err
}

// writeIdentity writes both forms, the copy last: it is missing after a crash between them. s.disk is held.
func (s *Store) writeIdentity() error {
	framed, err := frame(fileHeader{Product: identityName}, []byte(s.identity))
	if err != nil {
		return err
	}
	if err := s.writer.write(s.dir, identityName, []byte(s.identity+"\n")); err != nil {
		return err
	}
	return s.writer.write(s.dir, identityCopy, framed)
}

// readIdentity returns what the directory of a source holds, "" if neither form says it; whether both forms are there and
// intact; and the damaged form, nil if none is. A copy with a digest wins over the text. A directory of an earlier version
// has no copy, and that is no damage.
func readIdentity(dir string) (held string, complete bool, bad *BadFile) {
	textPath, copyPath := filepath.Join(dir, identityName), filepath.Join(dir, identityCopy)
	text, textErr := readIdentityText(textPath)
	copied, copyErr := readIdentityCopy(copyPath)
	missing := errors.Is(copyErr, fs.ErrNotExist)
	switch {
	case copyErr == nil && textErr == nil && text != copied:
		textErr = fmt.Errorf("%w: it says %.200q, its copy %.200q", ErrTorn, text, copied)
		fallthrough
	case copyErr == nil && textErr != nil:
		return copied, false, &BadFile{textPath, textErr}
	case copyErr == nil:
		return copied, true, nil
	case missing && errors.Is(textErr, fs.ErrNotExist):
		return "", false, nil
	case textErr != nil:
		return "", false, &BadFile{textPath, textErr}
	case missing:
		return text, false, nil
	}
	return text, false, &BadFile{copyPath, copyErr}
}

func readIdentityCopy(path string) (string, error) {
	b, err := readFile(path)
	if err != nil {
		return "", err
	}
	_, payload, err := unframeAs(b, identityName, "")
	return string(payload), err
}

// readIdentityText reads the text form: one line of printable characters.
func readIdentityText(path string) (string, error) {
	b, err := readFile(path)
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
