package snapshots

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// The functions of this file carry whole files from one store to another. A path is that of a file in the directory of the
// source, such as 2026-11-20/gex-spx.

// MaxTransfer is the largest file that [Store.Accept] takes, in bytes. The largest real file is under 2 MB.
const MaxTransfer = 64 << 20

// Errors of [Store.Accept], besides ErrTorn and ErrNewerFormat.
var (
	// ErrPath is a path that no file of a store can have, such as one that leaves the directory.
	ErrPath = errors.New("not the path of a stored file")
	// ErrForeign is a file of another source, or of a product that this store does not have.
	ErrForeign = errors.New("file is foreign")
	// ErrOlder is an answer older than the one stored under its path.
	ErrOlder = errors.New("answer is older than the stored one")
)

// parsePath returns the key of a path. It accepts only the spelling that [Store] writes.
func parsePath(path string) (k key, err error) {
	date, file, _ := strings.Cut(path, "/")
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	}
	name := strings.TrimSuffix(file, lateSuffix)
	if !isDate(date) || name == "" || name[0] == '.' || len(name) > 100 || strings.ContainsFunc(name, odd) {
		return k, fmt.Errorf("%w: %.200q", ErrPath, path)
	}
	return key{date, file}, nil
}

// CheckPath returns an [ErrPath] if a path is not the path that a file of a store has.
func CheckPath(path string) error {
	_, err := parsePath(path)
	return err
}

// Paths returns the paths of all files of the store, the newest dates first.
func (s *Store) Paths() (paths []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for file, dates := range s.index {
		for _, date := range dates {
			paths = append(paths, key{date, file}.String())
		}
	}
	slices.SortFunc(paths, func(a, b string) int { return strings.Compare(b, a) })
	return paths
}

// Digest returns the digest in the header of a stored file, and "" if the file is not stored or has no header. It reads only
// the beginning of the file.
func (s *Store) Digest(path string) string {
	k, err := parsePath(path)
	if err != nil {
		return ""
	}
	s.reads.RLock()
	defer s.reads.RUnlock()
	s.mu.Lock()
	head, pending := s.pending[k]
	_, indexed := slices.BinarySearch(s.index[k.file], k.date)
	s.mu.Unlock()
	if !pending && indexed {
		f, err := os.Open(s.path(k))
		if err != nil {
			return ""
		}
		defer f.Close()
		head = make([]byte, 256)
		n, _ := io.ReadFull(f, head) // a file may be shorter
		head = head[:n]
	}
	return digestOf(head)
}

// digestOf returns the digest in a header, "" if there is none.
func digestOf(file []byte) string {
	line, _, _ := bytes.Cut(file, []byte{'\n'})
	_, rest, found := bytes.Cut(line, []byte(digestMark))
	if !found || len(rest) < digestLen {
		return ""
	}
	return string(rest[:digestLen])
}

// Bytes returns a whole stored file, verified, and the digest in its header. The bytes must not be changed. The error is
// ErrNoSnapshot if the file is not stored.
func (s *Store) Bytes(path string) (file []byte, digest string, err error) {
	k, err := parsePath(path)
	if err != nil {
		return nil, "", err
	}
	s.reads.RLock()
	defer s.reads.RUnlock()
	if file, err = s.raw(k); err == nil {
		_, _, err = unframe(file, k)
	}
	if err != nil {
		return nil, "", fmt.Errorf("read %s: %w", path, err)
	}
	return file, digestOf(file), nil
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

// Accept stores a file that another store has written, durably, as [Store.Save] does. It keeps the bytes. It first checks
// that the file is whole, has the digest in its header, belongs at the path, is of this source, is an answer of one of the products or a state, and is
// not older than the file that is stored there. It returns the answer, the zero File for a state. The errors are those above; of
// [ErrPending] the file is served, too.
func (s *Store) Accept(path, digest string, file []byte, products []string) (f File, err error) {
	k, err := parsePath(path)
	if err != nil {
		return f, err
	}
	if len(file) > MaxTransfer {
		return f, fmt.Errorf("%w: over %d bytes", ErrForeign, MaxTransfer)
	}
	h, payload, err := unframe(file, k)
	if err != nil {
		return f, err
	}
	if digestOf(file) != digest {
		return f, fmt.Errorf("%w: it is whole, but not the announced file", ErrTorn)
	}
	var past *Snapshot
	if !strings.HasPrefix(h.Product, stateProduct) {
		if f, err = decodeFile(h, payload); err != nil {
			return File{}, err
		}
		if past, err = s.vet(k, h.Product, f.Edition, products); err != nil {
			return File{}, err
		}
	}
	return f, s.SaveAll(Saved{k, file, past})[0]
}

// vet checks the answer of a file that another store has written. It returns the answer that the history serves, nil for a
// late one.
func (s *Store) vet(k key, product string, e *Edition, products []string) (*Snapshot, error) {
	if !slices.Contains(products, product) {
		return nil, fmt.Errorf("%w: product %.40q is not known", ErrForeign, product)
	}
	for _, one := range e.snapshots {
		if one.Meta.Source != s.opts.Source || one.Meta.Endpoint != product {
			return nil, fmt.Errorf("%w: an answer of %.40q from source %.40q", ErrForeign, one.Meta.Endpoint, one.Meta.Source)
		}
	}
	s.reads.RLock()
	h, payload, err := s.read(k)
	s.reads.RUnlock()
	if err == nil {
		if stored, err := decodeDefault(h, payload); err == nil && stored.Newer(e.Default) {
			return nil, fmt.Errorf("%w: as_of %s, stored is %s", ErrOlder, e.Default.Meta.AsOf, stored.Meta.AsOf)
		}
	}
	if k.file != FileName(product) {
		return nil, nil
	}
	return e.Default, nil
}
