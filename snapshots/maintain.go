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

// Expire removes the files of the products that expired names and that are dated before the given date; products
// are named as in the index, with - for /, states as state-<name>. The newest file of a product always stays,
// for a restart to serve. It returns how many files it removed, and the first error of those it could not.
func (s *Store) Expire(before string, expired func(file string) bool) (removed int, first error) {
	s.disk.Lock()
	defer s.disk.Unlock()
	s.mu.Lock()
	var old []write
	for file, dates := range s.index {
		if !expired(strings.TrimSuffix(file, lateSuffix)) {
			continue
		}
		for _, date := range dates[:max(len(dates)-1, 0)] {
			if date < before {
				old = append(old, write{date: date, file: file})
			}
		}
	}
	s.mu.Unlock()
	for _, w := range old {
		if err := os.Remove(s.path(w.date, w.file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			if first == nil {
				first = fmt.Errorf("expire old files: %w", err)
			}
			continue
		}
		removed++
		s.mu.Lock()
		s.forget(w.file, w.date)
		delete(s.pending, s.path(w.date, w.file))
		s.mu.Unlock()
	}
	return removed, first
}

// FileName returns the name of a product's file in the directory of a date.
func FileName(product string) string { return fileName(product) }

// Usage returns the bytes that all files of the source take.
func (s *Store) Usage() (bytes int64, err error) {
	err = filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if path != s.dir && errors.Is(err, fs.ErrNotExist) {
			return nil // replaced meanwhile
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	return bytes, err
}

// FileSize returns the bytes of a product's newest file, 0 when there is none.
func (s *Store) FileSize(product string) int64 {
	dates := s.DatesOf(product)
	if len(dates) == 0 {
		return 0
	}
	info, err := os.Stat(s.path(dates[len(dates)-1], fileName(product)))
	if err != nil {
		return 0
	}
	return info.Size()
}

const identityName = "identity"

// Bind says what the directory holds, once and for all: the first call writes the identity down, and later ones
// fail when theirs is another.
func (s *Store) Bind(identity string) error {
	b, err := os.ReadFile(filepath.Join(s.dir, identityName))
	if errors.Is(err, fs.ErrNotExist) {
		return s.writer.write(s.dir, identityName, []byte(identity+"\n"))
	}
	if err != nil {
		return fmt.Errorf("read identity: %w", err)
	}
	if held := strings.TrimSpace(string(b)); held != identity {
		return fmt.Errorf("%s holds the %s, not the %s", s.dir, held, identity)
	}
	return nil
}

// BadFile is a file that [Verify] found at fault.
type BadFile struct {
	Path string
	Err  error
}

// Verify checks every dated file below a data directory, all sources, and returns how many it read and the
// bad ones. It takes no lock and changes nothing; a running server may keep writing.
func Verify(dir string) (files int, bad []BadFile, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if path != dir && errors.Is(err, fs.ErrNotExist) {
				return nil // removed meanwhile
			}
			return err
		}
		if d.IsDir() || !isDate(filepath.Base(filepath.Dir(path))) || strings.HasPrefix(d.Name(), tempPrefix) {
			return nil
		}
		files++
		if err := verifyFile(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			bad = append(bad, BadFile{path, err})
		}
		return nil
	})
	return files, bad, err
}

func verifyFile(path string) error {
	h, b, err := readStored(path)
	if err != nil {
		return err
	}
	if strings.HasPrefix(h.Product, stateProduct) {
		return nil
	}
	f, err := decodeFile(b, h.Product, h.Date)
	if err != nil {
		return err
	}
	for name, s := range f.Edition.snapshots {
		if err := s.verify(); err != nil {
			return fmt.Errorf("%w: entry %.40q: %w", ErrTorn, name, err)
		}
	}
	return nil
}

// verify decodes every body and compares it with identity.
func (s *Snapshot) verify() error {
	identity := s.bodies[Identity]
	for c, body := range s.bodies {
		if body == nil {
			continue
		}
		out, err := decompress(Coding(c), body, len(identity))
		if err != nil {
			return fmt.Errorf("decode %v body: %w", Coding(c), err)
		}
		if !bytes.Equal(out, identity) {
			return fmt.Errorf("%v body is another than identity", Coding(c))
		}
	}
	return nil
}
