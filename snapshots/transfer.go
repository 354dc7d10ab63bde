package snapshots

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The functions of this file carry whole files from one store to another. A path is that of a file in the directory of the
// source, such as current/gex-spx, 2026-11-20/gex-spx or objects/<sha256>.gz.

// MaxTransfer is the largest file that [Store.Accept] takes, in bytes. The largest real file is under 2 MB.
const MaxTransfer = 64 << 20

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
	for sum := range s.objects {
		paths = append(paths, objectKey(sum).String())
	}
	slices.Sort(paths)
	return paths
}

// ObjectPaths returns the paths of the objects that the file of a path names, nil if it is not stored or its objects are too
// old to be kept.
func (s *Store) ObjectPaths(path string) (paths []string) {
	k, err := parsePath(path)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.index[k]; e != nil {
		for _, sum := range e.objects {
			paths = append(paths, objectKey(sum).String())
		}
	}
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
	if sum := digestOfObject(k.name); k.dir == objectsDir {
		if _, ok := s.objects[sum]; ok || s.queue[k] != nil {
			return sum
		}
		return ""
	}
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
	s.reads.RLock()
	defer s.reads.RUnlock()
	if file, err = s.raw(k); err == nil {
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
	_, _, err = unframe(file, k)
	return bodyDigest(file), err
}

// LoadPath reads and verifies the answer of a path. It returns ErrNoSnapshot if there is none.
func (s *Store) LoadPath(path string) (File, error) {
	k, err := parsePath(path)
	if err != nil {
		return File{}, err
	}
	s.reads.RLock()
	defer s.reads.RUnlock()
	return s.load(k)
}

// Packed is a file or an object as it is to be written. The bytes must not be changed.
type Packed struct {
	Path      string
	SHA256    string // what [Store.Digest] will return
	Body      []byte
	Product   string    // of a file in current/; "" for others
	Freshness Freshness // of a file in current/
}

// packed returns what a publication is to write, in the order in which it is written.
func packed(files []placed, objects map[key][]byte) (all []Packed) {
	for k, body := range objects {
		all = append(all, Packed{Path: k.String(), SHA256: digestOfObject(k.name), Body: body})
	}
	for _, p := range files {
		one := Packed{Path: p.key.String(), SHA256: p.entry.digest, Body: p.body}
		if p.key.dir == currentDir {
			one.Product, one.Freshness = p.past.Meta.Endpoint, p.past.Meta.Freshness
		}
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b Packed) int {
		return cmp.Or(cmp.Compare(rankOf(a.Path), rankOf(b.Path)), strings.Compare(a.Path, b.Path))
	})
	return all
}

// rankOf returns [key.rank] of a path.
func rankOf(path string) int {
	dir, _, _ := strings.Cut(path, "/")
	return key{dir: dir}.rank()
}

// Accept stores a file or an object that another store has written, durably, as [Store.Save] does. It keeps the bytes. It
// first checks that the file is whole, has the given digest, belongs at the path, is of this source, is an answer of one of
// the products, is not older than the file that is stored there, and has no as_of after notAfter. It returns the answer, the zero File for an object. The
// errors are those above, ErrTorn and ErrNewerFormat. An object must come before the files that name it.
func (s *Store) Accept(path, digest string, file []byte, products []string, notAfter time.Time) (f File, err error) {
	k, err := parsePath(path)
	if err != nil {
		return f, err
	}
	if len(file) > MaxTransfer {
		return f, fmt.Errorf("%w: over %d bytes", ErrForeign, MaxTransfer)
	}
	has, err := checkFile(k, file)
	if err != nil {
		return f, err
	}
	if has != digest {
		return f, fmt.Errorf("%w: it is whole, but not the announced file", ErrTorn)
	}
	if k.dir == objectsDir {
		s.disk.Lock()
		defer s.disk.Unlock()
		s.flush(map[key][]byte{k: file})
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, ok := s.objects[digest]; ok {
			s.objects[digest] = time.Now().Add(unnamedFor)
		}
		return f, nil
	}
	h, payload, err := unframe(file, k)
	if err != nil {
		return f, err
	}
	if f, err = decodeFile(h, payload); err != nil {
		return File{}, err
	}
	if err := s.vet(k, &f, products, notAfter); err != nil {
		return File{}, err
	}
	s.disk.Lock()
	defer s.disk.Unlock()
	s.place([]placed{{key: k, body: file, entry: entryOf(&f, digest), past: f.Edition.Default}}, nil)
	return f, nil
}

// vet checks the answer of a file that another store has written.
func (s *Store) vet(k key, f *File, products []string, notAfter time.Time) error {
	if !slices.Contains(products, f.Product) {
		return fmt.Errorf("%w: product %.40q is not known", ErrForeign, f.Product)
	}
	if asOf := f.Edition.Default.Meta.AsOf; asOf.After(notAfter) {
		return fmt.Errorf("%w: as_of %s is in the future", ErrForeign, asOf)
	}
	for _, one := range f.Edition.snapshots {
		if one.Meta.Source != s.opts.Source || one.Meta.Endpoint != f.Product {
			return fmt.Errorf("%w: an answer of %.40q from source %.40q", ErrForeign, one.Meta.Endpoint, one.Meta.Source)
		}
	}
	s.reads.RLock()
	h, payload, err := s.read(k)
	s.reads.RUnlock()
	if err != nil {
		return nil // none is stored that can be served
	}
	stored, err := decodeFile(h, payload)
	if err == nil && stored.Edition.Default.Newer(f.Edition.Default) {
		return fmt.Errorf("%w: as_of %s, stored is %s", ErrOlder, f.Edition.Default.Meta.AsOf, stored.Edition.Default.Meta.AsOf)
	}
	return nil
}
