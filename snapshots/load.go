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
	// ErrBusy says that too many files are being read at this moment, or that no file can be read.
	ErrBusy = errors.New("too many historical reads at once")
)

// DatesOf returns the dates on which a product has a stored answer, rising. The caller owns the slice.
func (s *Store) DatesOf(product string) []string { return s.datesOf(FileName(product)) }

// StateDates returns the dates on which a state is stored, rising. The caller owns the slice.
func (s *Store) StateDates(name string) []string { return s.datesOf(FileName(stateProduct + name)) }

// Load reads and verifies a product's file of a date. It returns ErrNoSnapshot if there is none.
func (s *Store) Load(product, date string) (File, error) {
	return s.load(product, date, FileName(product))
}

// State returns the newest intact state of a name on or before a date, and its date; nil if there is none.
func (s *Store) State(name, notAfter string) (state []byte, date string) {
	product := stateProduct + name
	for _, date := range slices.Backward(s.datesOf(FileName(product))) {
		if date > notAfter {
			continue
		}
		b, err := s.read(date, FileName(product))
		if err == nil {
			_, b, err = unframeAs(b, product, date)
		}
		if err == nil {
			return b, date
		}
		s.passOver(FileName(product), date, err)
	}
	return nil, ""
}

// Newest reads a product's newest intact answer on or before a date, and returns its date. An answer that came too late
// for the history counts. An imported answer does not: it is history, and never what a resource serves now. Bad files are
// logged once and passed over. Newest returns ErrNoSnapshot if nothing is left.
func (s *Store) Newest(product, notAfter string) (File, string, error) {
	file := FileName(product)
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

// pastAnswer reads the stored answer of a date of the historical product.
func (s *Store) pastAnswer(date string) (*Snapshot, error) {
	f, err := s.Load(s.opts.HistoricalProduct, date)
	if err != nil {
		s.passOver(FileName(s.opts.HistoricalProduct), date, err)
		return nil, err
	}
	return f.Edition.Default, nil
}

func (s *Store) datesOf(file string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.index[file])
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

// read returns the bytes of a file as last written, also while they are pending.
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

// passOver logs once that a file cannot be used. If the file can never be used, passOver counts it and takes it out of the
// index. A read that failed for another reason may succeed the next time. Nothing happens if err is nil.
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
