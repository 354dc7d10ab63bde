package snapshots

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// Errors of historical lookups.
var (
	// ErrNoSnapshot says that no snapshot of that date is stored.
	ErrNoSnapshot = errors.New("no snapshot of that date")
	// ErrBusy says that too many files are being read at this moment, or that none can be.
	ErrBusy = errors.New("too many historical reads at once")
)

// read returns a file as written last, also while the write still waits for the disk.
func (s *Store) read(date, file string) ([]byte, error) {
	path := s.path(date, file)
	s.mu.Lock()
	w, ok := s.pending[path]
	s.mu.Unlock()
	if ok {
		return w.body, nil
	}
	b, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoSnapshot
	}
	return b, err
}

func (s *Store) load(product, date, file string) (File, error) {
	b, err := s.read(date, file)
	if err != nil {
		return File{}, err
	}
	f, err := decodeFile(b, product, date)
	if err != nil {
		return File{}, fmt.Errorf("load %s of %s: %w", file, date, err)
	}
	return f, nil
}

// Load reads and verifies a product's file of a date. It returns ErrNoSnapshot when there is none.
func (s *Store) Load(product, date string) (File, error) {
	return s.load(product, date, fileName(product))
}

// State returns the newest intact state of a name on or before a date, and its date; nil when there is none.
func (s *Store) State(name, notAfter string) (state []byte, date string) {
	product := stateProduct + name
	for _, date := range slices.Backward(s.datesOf(fileName(product))) {
		if date > notAfter {
			continue
		}
		b, err := s.read(date, fileName(product))
		if err == nil {
			_, b, err = unframeAs(b, product, date)
		}
		if err == nil {
			return b, date
		}
		s.passOver(fileName(product), date, err)
	}
	return nil, ""
}

// Newest reads a product's newest intact answer on or before a date, one that came too late for the history
// included. It returns ErrNoSnapshot when there is none; bad files are logged once and passed over. Imported answers
// are passed over too: they are history, and never what a resource serves now.
func (s *Store) Newest(product, notAfter string) (File, string, error) {
	file := fileName(product)
	dates := append(s.datesOf(file), s.datesOf(file+lateSuffix)...)
	slices.Sort(dates)
	for _, date := range slices.Backward(slices.Compact(dates)) {
		if date > notAfter {
			continue
		}
		f, err := s.load(product, date, file)
		s.passOver(file, date, err)
		if err == nil && f.Edition.Default.Meta.ImportedFrom != "" {
			err = ErrNoSnapshot
		}
		late, lateErr := s.load(product, date, file+lateSuffix)
		s.passOver(file+lateSuffix, date, lateErr)
		if lateErr == nil && (err != nil || late.Edition.Default.newer(f.Edition.Default)) {
			f, err = late, nil
		}
		if err == nil {
			return f, date, nil
		}
	}
	return File{}, "", ErrNoSnapshot
}

// passOver takes a file that can never be served out of the index, and logs it, once. A read that failed for
// another reason may succeed the next time.
func (s *Store) passOver(file, date string, err error) {
	if err == nil {
		return
	}
	bad := errors.Is(err, ErrTorn) || errors.Is(err, ErrNewerFormat)
	s.mu.Lock()
	defer s.mu.Unlock()
	path := s.path(date, file)
	if _, waits := s.pending[path]; !waits && (bad || errors.Is(err, ErrNoSnapshot)) {
		s.forget(file, date)
	}
	if !errors.Is(err, ErrNoSnapshot) && !s.named[path] {
		s.named[path] = true
		if bad {
			s.bad.Add(1)
		}
		s.opts.Log.Error("stored file passed over", "file", path, "err", err)
	}
}

func (s *Store) datesOf(file string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.index[file])
}

// DatesOf returns the dates on which a product has a stored answer, rising.
func (s *Store) DatesOf(product string) []string { return s.datesOf(fileName(product)) }

// StateDates returns the dates on which a state is stored, rising.
func (s *Store) StateDates(name string) []string { return s.datesOf(fileName(stateProduct + name)) }

// pastAnswer reads the stored answer of a date of the historical product.
func (s *Store) pastAnswer(date string) (*Snapshot, error) {
	f, err := s.Load(s.opts.HistoricalProduct, date)
	if err != nil {
		s.passOver(fileName(s.opts.HistoricalProduct), date, err)
		return nil, err
	}
	return f.Edition.Default, nil
}
