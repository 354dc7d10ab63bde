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

// The functions of this file are for processes that do not own the data directory. They take no lock and change nothing,
// and a running server may keep writing.

// ListDates returns the dates on which a product is stored in a data directory, rising.
func ListDates(dir, source, product string) (dates []string, err error) {
	err = walkDates(filepath.Join(dir, source), func(k key, e fs.DirEntry) {
		if k.file == FileName(product) && e.Type().IsRegular() {
			dates = append(dates, k.date)
		}
	})
	return dates, err
}

// ReadFile reads and verifies a product's file of a date in a data directory. It returns ErrNoSnapshot if there is none.
func ReadFile(dir, source, product, date string) (File, error) {
	k := key{date, FileName(product)}
	path := filepath.Join(dir, source, k.date, k.file)
	h, payload, err := readStored(path, k)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNoSnapshot
	}
	var f File
	if err == nil {
		f, err = decodeFile(h, payload)
	}
	if err != nil {
		return File{}, fmt.Errorf("read %s: %w", path, err)
	}
	return f, nil
}

// BadFile is a bad file that [Verify] found.
type BadFile struct {
	Path string
	Err  error
}

// Verify checks every dated file and the identity of all sources in a data directory. It returns how many dated files it
// read, and the bad files. The server passes over the same files.
func Verify(dir string) (files int, bad []BadFile, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, nil, err
	}
	sources := []string{dir}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if info, err := os.Stat(path); err == nil && info.IsDir() && !isDate(e.Name()) {
			sources = append(sources, path)
		}
	}
	for _, source := range sources {
		if _, err := readIdentity(source); err != nil && !errors.Is(err, fs.ErrNotExist) {
			bad = append(bad, BadFile{filepath.Join(source, identityName), err})
		}
		err := walkDates(source, func(k key, _ fs.DirEntry) {
			if Temporary(k.file) {
				return
			}
			path := filepath.Join(source, k.date, k.file)
			if err := verifyFile(path, k); err != nil && !errors.Is(err, fs.ErrNotExist) { // a server may have removed it meanwhile
				bad = append(bad, BadFile{path, err})
			}
			files++
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return files, bad, err
		}
	}
	return files, bad, nil
}

func verifyFile(path string, k key) error {
	h, payload, err := readStored(path, k)
	if err != nil || strings.HasPrefix(h.Product, stateProduct) {
		return err
	}
	f, err := decodeFile(h, payload)
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
			return fmt.Errorf("%v body differs from the uncompressed body", Coding(c))
		}
	}
	return nil
}
