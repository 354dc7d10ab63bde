package snapshots

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// The functions of this file are for processes that do not own the data directory. They take no lock and change nothing,
// and a running server may keep writing.

// ReadFile reads and verifies a product's file of a date in a data directory, or its current file if date is "current". It
// returns ErrNoSnapshot if there is none.
func ReadFile(dir, source, product, date string) (File, error) {
	k := key{date, FileName(product)}
	path := filepath.Join(dir, source, k.dir, k.name)
	file, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNoSnapshot
	}
	var f File
	if err == nil {
		f, err = decodeFile(file, k)
	}
	if err != nil {
		return File{}, fmt.Errorf("read %s: %w", path, err)
	}
	return f, nil
}

// FileNames returns the names of the files of a date, or of the current ones for current, sorted. [ReadFile] takes a name in place of the
// product. The error is [fs.ErrNotExist] when nothing of the date is stored.
func FileNames(dir, source, date string) (names []string, err error) {
	files, err := os.ReadDir(filepath.Join(dir, source, date))
	for _, f := range files {
		if !f.IsDir() && stored(date+"/"+f.Name()) {
			names = append(names, f.Name())
		}
	}
	return names, err
}

// BadFile is a bad file that [Verify] found.
type BadFile struct {
	Path string
	Err  error
}

// Verify checks every file and every object of all sources in a data directory. It returns how many files it
// read, and the bad ones. The server passes over the same files.
func Verify(dir string) (files int, bad []BadFile, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, nil, err
	}
	for _, e := range entries {
		source := filepath.Join(dir, e.Name())
		if info, err := os.Stat(source); err != nil || !info.IsDir() {
			continue
		}
		err := walk(os.DirFS(source), func(k key) error {
			path := filepath.Join(source, k.dir, k.name)
			if Temporary(k.name) {
				return nil
			}
			files++
			if err := verifyFile(path, k); err != nil && !errors.Is(err, fs.ErrNotExist) { // a server may have removed it meanwhile
				bad = append(bad, BadFile{path, err})
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return files, bad, err
		}
	}
	return files, bad, nil
}

func verifyFile(path string, k key) error {
	file, err := readFile(path)
	if err != nil {
		return err
	}
	if k.dir == objectsDir {
		_, err := unpackObject(file, digestOfObject(k.name))
		return err
	}
	f, err := decodeFile(file, k)
	if err != nil {
		return err
	}
	for name, s := range f.Edition.snapshots {
		for _, one := range append([]*Snapshot{s}, s.forms...) {
			if err := one.verify(); err != nil {
				return fmt.Errorf("%w: entry %.40q %s: %w", ErrTorn, name, one.form, err)
			}
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
