package snapshots

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrForeign is a file of another source or of the future, or of a product that this store does not have.
var ErrForeign = errors.New("file is foreign")

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

// Named returns the digests of the objects that a file names, which belongs at a path. It checks that the file is whole.
func Named(path string, file []byte) (objects []string, err error) {
	k, err := parsePath(path)
	if err == nil {
		var e *entry
		if _, e, err = readEntry(file, k); err == nil {
			objects = e.objects
		}
	}
	return objects, err
}

// Accept stores a file or an object that another store has written, durably, as [Store.Save] does. It keeps the bytes. It
// first checks that the file is whole, has the given digest, belongs at the path, is of this source, is an answer of one of
// the products, has no as_of after notAfter, is not older than the file that is stored there, and does not lose what that has. The errors are ErrPath,
// ErrForeign, ErrOlder, ErrTorn and ErrNewerFormat. An object must come before the files that name it, and waits for them.
func (s *Store) Accept(path, digest string, file []byte, products []string, notAfter time.Time) error {
	k, err := parsePath(path)
	if err != nil {
		return err
	}
	if len(file) > MaxTransfer {
		return fmt.Errorf("%w: over %d bytes", ErrForeign, MaxTransfer)
	}
	has, err := checkFile(k, file)
	if err == nil && has != digest {
		err = fmt.Errorf("%w: it is whole, but not what was announced", ErrTorn)
	}
	p := packed(k, file, &entry{digest: digest, until: time.Now().Add(unnamedFor)}, nil)
	if err == nil && k.dir != objectsDir {
		p, err = s.vet(k, file, products, notAfter)
	}
	if err != nil {
		return err
	}
	s.disk.Lock()
	batch, err := s.admit([]Packed{p})
	s.enqueue(batch)
	s.disk.Unlock()
	if err == nil {
		s.write(batch[0].replaces != "") // a file that replaces none makes no object superfluous, and a new edge gets thousands
		s.keep(batch)
	}
	return err
}

// vet decodes and checks the answer of a file that another store has written.
func (s *Store) vet(k key, file []byte, products []string, notAfter time.Time) (p Packed, err error) {
	f, err := decodeFile(file, k)
	if err != nil {
		return p, err
	}
	if !slices.Contains(products, f.Product) {
		return p, fmt.Errorf("%w: product %.40q is not known", ErrForeign, f.Product)
	}
	if asOf := f.Edition.Default.Meta.AsOf; asOf.After(notAfter) {
		return p, fmt.Errorf("%w: as_of %s is in the future", ErrForeign, asOf)
	}
	if stored, missing := s.load(k); missing == nil && s.opts.Loses != nil && s.opts.Loses(stored.Edition.Default, f.Edition.Default) {
		return p, fmt.Errorf("%w: it lacks rows of the stored one", ErrOlder)
	}
	for _, one := range f.Edition.snapshots {
		if one.Meta.Source != s.opts.Source || one.Meta.Endpoint != f.Product {
			return p, fmt.Errorf("%w: an answer of %.40q from source %.40q", ErrForeign, one.Meta.Endpoint, one.Meta.Source)
		}
	}
	return packed(k, file, f.entry, s.served(&f)), nil
}
