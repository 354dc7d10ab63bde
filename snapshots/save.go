package snapshots

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ErrPending says that the disk refused a file. The answer is served from memory, and the store writes the file when the
// disk is writable again. The store logs the outage itself, once.
var ErrPending = errors.New("file pending")

// Saved is a file for [Store.SaveAll]. Make it with [NewSaved], [NewSavedLate] or [NewSavedState].
type Saved struct {
	key  key
	body []byte
	past *Snapshot // the answer in the file, nil if the history never serves it
}

// NewSaved returns the file of a product's answer of a UTC date (YYYY-MM-DD). It replaces the older answer of that date.
func NewSaved(product, date string, f File) (Saved, error) {
	body, err := encodeFile(product, date, f)
	if err != nil {
		return Saved{}, fmt.Errorf("save %s of %s: %w", product, date, err)
	}
	return Saved{key{date, FileName(product)}, body, f.Edition.Default}, nil
}

// NewSavedLate is [NewSaved] for an answer that arrived after its date closed. A restart serves this answer. The history
// never does.
func NewSavedLate(product, date string, f File) (Saved, error) {
	w, err := NewSaved(product, date, f)
	w.key.file, w.past = w.key.file+lateSuffix, nil
	return w, err
}

// NewSavedState returns the file of data of a date that a later session needs besides the snapshots.
func NewSavedState(name, date string, state []byte) (Saved, error) {
	body, err := frame(fileHeader{Product: stateProduct + name, Date: date}, state)
	if err != nil {
		return Saved{}, fmt.Errorf("save state %s of %s: %w", name, date, err)
	}
	return Saved{key{date, FileName(stateProduct + name)}, body, nil}, nil
}

// SaveAll stores files durably. If the disk refuses one, its error says why, and the file is pending: the answer is served
// from memory, and the store tries the write again after every later write that succeeds, every few seconds, and at Close. The
// store logs the first refusal of an outage and the end of the outage, so the caller need not log the error. The error of
// a file has its index; the file may have been written since. A crash may leave some of the files stored and the others not.
func (s *Store) SaveAll(files ...Saved) (errs []error) {
	if len(files) == 0 {
		return nil
	}
	s.disk.Lock()
	defer s.disk.Unlock()
	errs = s.write(files)
	s.reads.Lock()
	for _, f := range files {
		s.remember(f.key)
		if f.past != nil {
			s.keepPast(f.key, f.past)
		}
	}
	s.reads.Unlock()
	for _, f := range files {
		s.changed(f.key)
	}
	if slices.Contains(errs, nil) {
		s.writePending()
	}
	for i, err := range errs {
		if err != nil {
			errs[i] = fmt.Errorf("%w: %w", ErrPending, err)
		}
	}
	return errs
}

// Save is [Store.SaveAll] for one file of [NewSaved].
func (s *Store) Save(product, date string, f File) error { return s.save(NewSaved(product, date, f)) }

// SaveLate is [Store.SaveAll] for one file of [NewSavedLate].
func (s *Store) SaveLate(product, date string, f File) error {
	return s.save(NewSavedLate(product, date, f))
}

// SaveState is [Store.SaveAll] for one file of [NewSavedState].
func (s *Store) SaveState(name, date string, state []byte) error {
	return s.save(NewSavedState(name, date, state))
}

func (s *Store) save(f Saved, err error) error {
	if err != nil {
		return err
	}
	return s.SaveAll(f)[0]
}

func (s *Store) changed(k key) {
	if s.opts.Changed != nil {
		s.opts.Changed(k.String())
	}
}

// write writes files; those that the disk refuses become pending. It logs the beginning and the end of an outage. s.disk is held.
//
// The last failed write of each file is pending. So the files of a date that ends during an outage are written after the
// outage. [Store.Expire] also removes pending writes. So a disk that stays broken costs only the memory of the dates that
// are kept.
func (s *Store) write(files []Saved) []error {
	var batch []Write
	for _, f := range files {
		batch = append(batch, Write{filepath.Join(s.dir, f.key.date), f.key.file, f.body})
	}
	errs := s.writer.write(batch)
	s.mu.Lock()
	before := len(s.pending)
	if before == 0 {
		s.refused = 0
	}
	var failed error
	for i, f := range files {
		if errs[i] != nil {
			s.pending[f.key], s.diskErr, failed = f.body, errs[i], errs[i]
			s.refused++
		} else {
			delete(s.pending, f.key)
			delete(s.loggedBad, f.key)
		}
	}
	pending, refused := len(s.pending), s.refused
	s.mu.Unlock()
	if before == 0 && pending > 0 {
		s.opts.Log.Error("disk refuses writes: answers are served from memory until it is writable again", "err", failed)
	}
	if before > 0 && pending == 0 {
		s.opts.Log.Info("disk writable again, all pending files saved", "refused_writes", refused)
	}
	return errs
}

// writePending tries to write the pending files. A file that the disk refuses again stays pending. s.disk is held.
func (s *Store) writePending() {
	s.mu.Lock()
	var files []Saved
	for k, body := range s.pending {
		files = append(files, Saved{key: k, body: body})
	}
	s.mu.Unlock()
	if files != nil {
		s.write(files)
	}
}

// retryEvery is the pause between two attempts to write pending files.
const retryEvery = 5 * time.Second

// retryPending writes the pending files every few seconds until ctx ends.
func (s *Store) retryPending(ctx context.Context) {
	tick := time.NewTicker(retryEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.disk.Lock()
		s.writePending()
		s.disk.Unlock()
	}
}

// DiskError returns why files are pending, or nil if no file is.
func (s *Store) DiskError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) == 0 {
		return nil
	}
	return fmt.Errorf("disk refuses writes, %d files pending: %w", len(s.pending), s.diskErr)
}

// Expire removes each file that is dated before the given date and for which expired returns true. It calls expired with
// the product, with - for /, or with state-<name>. The newest file of a product always stays, so that a restart can serve
// it. Expire returns how many files it removed, and the first error.
func (s *Store) Expire(before string, expired func(file string) bool) (removed int, first error) {
	s.disk.Lock()
	defer s.disk.Unlock()
	s.mu.Lock()
	index := maps.Clone(s.index)
	s.mu.Unlock()
	for file, dates := range index {
		if len(dates) == 0 || !expired(strings.TrimSuffix(file, lateSuffix)) {
			continue
		}
		for _, date := range dates[:len(dates)-1] {
			if date >= before {
				break
			}
			k := key{date, file}
			if err := os.Remove(s.path(k)); err == nil || errors.Is(err, fs.ErrNotExist) {
				s.forget(k)
				s.mu.Lock()
				delete(s.pending, k)
				s.mu.Unlock()
				s.changed(k)
				removed++
			} else if first == nil {
				first = fmt.Errorf("expire old files: %w", err)
			}
		}
	}
	return removed, first
}
