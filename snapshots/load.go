package snapshots

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// ErrNoSnapshot says that no snapshot of that date is stored.
var ErrNoSnapshot = errors.New("no snapshot of that date")

// Load reads and verifies a product's file of a date. It returns ErrNoSnapshot if there is none.
func (s *Store) Load(product, date string) (File, error) {
	s.reads.RLock()
	defer s.reads.RUnlock()
	return s.load(key{date, FileName(product)})
}

// State returns the newest intact state with a name on or before a date, and its date, or nil if there is none.
func (s *Store) State(name, notAfter string) (state []byte, date string) {
	s.reads.RLock()
	defer s.reads.RUnlock()
	file := FileName(stateProduct + name)
	for _, date := range slices.Backward(s.datesOf(file)) {
		if date > notAfter {
			continue
		}
		k := key{date, file}
		_, state, err := s.read(k)
		if err == nil {
			return state, date
		}
		s.passOver(k, err)
	}
	return nil, ""
}

// Newest reads a product's newest intact answer on or before a date, and returns the path of its file, such as
// 2026-11-20/gex-spx. It may return an answer that came too late for the history. It returns ErrNoSnapshot if there is no such answer.
func (s *Store) Newest(product, notAfter string) (File, string, error) {
	s.reads.RLock()
	defer s.reads.RUnlock()
	file := FileName(product)
	dates := slices.Concat(s.datesOf(file), s.datesOf(file+lateSuffix))
	slices.Sort(dates)
	for _, date := range slices.Backward(slices.Compact(dates)) {
		if date > notAfter {
			continue
		}
		k := key{date, file}
		f, err := s.load(k)
		late, lateErr := s.load(key{date, file + lateSuffix})
		if lateErr == nil && (err != nil || !f.Edition.Default.Newer(late.Edition.Default)) {
			k, f, err = key{date, file + lateSuffix}, late, nil
		}
		if err == nil {
			return f, k.String(), nil
		}
	}
	return File{}, "", ErrNoSnapshot
}

// load reads and verifies a file. It passes over a bad file. s.reads is held.
func (s *Store) load(k key) (f File, err error) {
	h, payload, err := s.read(k)
	if err == nil {
		f, err = decodeFile(h, payload)
	}
	if err != nil {
		s.passOver(k, err)
		return File{}, fmt.Errorf("load %s of %s: %w", k.file, k.date, err)
	}
	return f, nil
}

// read returns the last write of an indexed file, from memory while the write is pending. s.reads is held.
func (s *Store) read(k key) (h fileHeader, payload []byte, err error) {
	b, err := s.raw(k)
	if err != nil {
		return h, nil, err
	}
	return unframe(b, k)
}

// raw returns the bytes that read checks.
func (s *Store) raw(k key) (file []byte, err error) {
	s.mu.Lock()
	file, pending := s.pending[k]
	_, indexed := slices.BinarySearch(s.index[k.file], k.date)
	s.mu.Unlock()
	switch {
	case pending:
		return file, nil
	case !indexed:
		return nil, ErrNoSnapshot
	}
	if file, err = readFile(s.path(k)); errors.Is(err, fs.ErrNotExist) {
		err = ErrNoSnapshot
	}
	return file, err
}

// passOver logs once that a file cannot be used. If the file can never be used, passOver counts it and takes it out of the
// index. A read that failed for another reason may succeed the next time. s.reads is held.
func (s *Store) passOver(k key, err error) {
	missing, bad := errors.Is(err, ErrNoSnapshot), errors.Is(err, ErrTorn) || errors.Is(err, ErrNewerFormat)
	if missing || bad {
		s.forget(k)
	}
	s.mu.Lock()
	logged := s.loggedBad[k]
	s.loggedBad[k] = logged || !missing
	s.mu.Unlock()
	if missing || logged {
		return
	}
	if bad {
		s.bad.Add(1)
	}
	s.opts.Log.Error("stored file passed over", "file", s.path(k), "err", err)
}
