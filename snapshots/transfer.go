package snapshots

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The functions of this file carry whole files from one store to another. A path is that of a file in the directory of the
// source, such as current/gex-spx, 2026-11-20/gex-spx or objects/<sha256>.gz.

// Errors of [Store.Accept], besides ErrTorn and ErrNewerFormat.
var (
	// ErrPath is a path that no file of a store can have, such as one that leaves the directory.
	ErrPath = errors.New("not the path of a stored file")
	// ErrForeign is a file of another source or of the future, or of a product that this store does not have.
	ErrForeign = errors.New("file is foreign")
	// ErrOlder is an answer older than the one stored under its path.
	ErrOlder = errors.New("answer is older than the stored one")
)

// parsePath returns the key of a path. It accepts only the spelling that [Store] writes.
func parsePath(path string) (k key, err error) {
	dir, name, _ := strings.Cut(path, "/")
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	}
	switch {
	case dir == objectsDir && digestOfObject(name) != "":
	case dir != currentDir && !isDate(dir), name == "", name[0] == '.', len(name) > 100, strings.ContainsFunc(name, odd):
		return k, fmt.Errorf("%w: %.200q", ErrPath, path)
	}
	return key{dir, name}, nil
}

// CheckPath returns an [ErrPath] if a path is not the path that a file of a store has.
func CheckPath(path string) error {
	_, err := parsePath(path)
	return err
}

// IsObject says whether a path is that of an object.
func IsObject(path string) bool { return strings.HasPrefix(path, objectsDir+"/") }

// Paths returns the paths of all files and objects of the store, sorted.
func (s *Store) Paths() (paths []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.index {
		paths = append(paths, k.String())
	}
	slices.Sort(paths)
	return paths
}

// Digest returns the digest in the header of a stored file, or the digest in the name of a stored object, and "" if the file
// is not stored. It does not read the disk.
func (s *Store) Digest(path string) string {
	k, err := parsePath(path)
	if err != nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.index[k]; e != nil {
		return e.digest
	}
	return ""
}

// Bytes returns a whole stored file, verified, and its [Store.Digest]. The bytes must not be changed. The error is
// ErrNoSnapshot if the file is not stored.
func (s *Store) Bytes(path string) (file []byte, digest string, err error) {
	k, err := parsePath(path)
	if err != nil {
		return nil, "", err
	}
	if file, _, err = s.raw(k); err == nil {
		digest, err = checkFile(k, file)
	}
	if err != nil {
		return nil, "", fmt.Errorf("read %s: %w", path, err)
	}
	return file, digest, nil
}

// checkFile checks that the bytes of a file or an object are whole and belong at k, and returns their digest.
func checkFile(k key, file []byte) (digest string, err error) {
	if sum := digestOfObject(k.name); k.dir == objectsDir {
		_, err = unpackObject(file, sum)
		return sum, err
	}
	h, _, err := unframe(file, k)
	return h.SHA256, err
}

// Accept stores a file or an object that another store has written, durably, as [Store.Save] does. It keeps the bytes. It
// first checks that the file is whole, has the given digest, belongs at the path, is of this source, is an answer of one of
// the products, is not older than the file that is stored there, and has no as_of after notAfter. The errors are those above,
// ErrTorn and ErrNewerFormat. An object must come before the files that name it.
func (s *Store) Accept(path, digest string, file []byte, products []string, notAfter time.Time) error {
	k, err := parsePath(path)
	if err != nil {
		return err
	}
	if len(file) > MaxTransfer {
		return fmt.Errorf("%w: over %d bytes", ErrForeign, MaxTransfer)
	}
	if k.dir == objectsDir {
		return s.acceptObject(k, digest, file)
	}
	f, err := decodeFile(file, k)
	if err != nil {
		return err
	}
	if f.entry.digest != digest {
		return fmt.Errorf("%w: it is whole, but not the announced file", ErrTorn)
	}
	if err := s.vet(k, &f, products, notAfter); err != nil {
		return err
	}
	s.disk.Lock()
	defer s.disk.Unlock()
	s.place([]Packed{packed(k, file, f.entry, f.Edition.Default)})
	return nil
}

// acceptObject stores an object that waits for the file that names it.
func (s *Store) acceptObject(k key, digest string, file []byte) error {
	if k != objectKey(digest) {
		return fmt.Errorf("%w: another object is announced", ErrTorn)
	}
	if _, err := unpackObject(file, digest); err != nil {
		return err
	}
	s.disk.Lock()
	defer s.disk.Unlock()
	s.mu.Lock()
	s.waiting[digest] = time.Now().Add(unnamedFor)
	s.mu.Unlock()
	s.place([]Packed{packed(k, file, &entry{digest: digest}, nil)})
	return nil
}

// vet checks the answer of a file that another store has written.
func (s *Store) vet(k key, f *File, products []string, notAfter time.Time) error {
	if !slices.Contains(products, f.Product) {
		return fmt.Errorf("%w: product %.40q is not known", ErrForeign, f.Product)
	}
	asOf := f.Edition.Default.Meta.AsOf
	if asOf.After(notAfter) {
		return fmt.Errorf("%w: as_of %s is in the future", ErrForeign, asOf)
	}
	for _, one := range f.Edition.snapshots {
		if one.Meta.Source != s.opts.Source || one.Meta.Endpoint != f.Product {
			return fmt.Errorf("%w: an answer of %.40q from source %.40q", ErrForeign, one.Meta.Endpoint, one.Meta.Source)
		}
	}
	if stored, err := s.load(k); err == nil && stored.Edition.Default.Newer(f.Edition.Default) {
		return fmt.Errorf("%w: as_of %s, stored is %s", ErrOlder, asOf, stored.Edition.Default.Meta.AsOf)
	}
	return nil // also if the stored file cannot be served
}
