package snapshots

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ErrPending says that the disk refused a file. The answer is served from memory, and the store writes the file when the
// disk is back. The store logs the outage itself, once.
var ErrPending = errors.New("file pending")

// Save stores a product's answer of a UTC date (YYYY-MM-DD) durably, in place of the date's older one. If the disk refuses,
// Save returns why, and the file is pending: the answer is served from memory, and the store tries the write again after
// every later one that succeeds, every few seconds and at Close. The store logs the first refusal of an outage and the end
// of the outage, so the caller need not log the error.
func (s *Store) Save(product, date string, f File) error {
	body, err := encodeFile(product, date, f)
	if err != nil {
		return fmt.Errorf("save %s of %s: %w", product, date, err)
	}
	s.disk.Lock()
	defer s.disk.Unlock()
	err = s.write(write{date, FileName(product), body})
	if product == s.opts.HistoricalProduct {
		s.saved(date, f.Edition.Default)
	}
	return err
}

// SaveLate is [Store.Save] for an answer that arrived after its date closed. A restart serves it, the history never does.
func (s *Store) SaveLate(product, date string, f File) error {
	body, err := encodeFile(product, date, f)
	return s.saveBeside(FileName(product)+lateSuffix, date, body, err)
}

// SaveState stores, as [Store.Save] does, what a later session needs of a date beside its snapshots.
func (s *Store) SaveState(name, date string, state []byte) error {
	body, err := frame(fileHeader{Product: stateProduct + name, Date: date}, state)
	return s.saveBeside(FileName(stateProduct+name), date, body, err)
}

// saveBeside saves an encoded file that is no answer of the history, unless encoding it failed.
func (s *Store) saveBeside(file, date string, body []byte, err error) error {
	if err != nil {
		return fmt.Errorf("save %s of %s: %w", file, date, err)
	}
	s.disk.Lock()
	defer s.disk.Unlock()
	return s.write(write{date, file, body})
}

// Expire removes the files of the products that expired names and that are dated before the given date; products
// are named as in the index, with - for /, states as state-<name>. The newest file of a product always stays,
// for a restart to serve. It returns how many files it removed, and the first error of those it could not.
func (s *Store) Expire(before string, expired func(file string) bool) (removed int, first error) {
	s.disk.Lock()
	defer s.disk.Unlock()
	s.mu.Lock()
	var old []write
	for file, dates := range s.index {
		if !expired(strings.TrimSuffix(file, lateSuffix)) {
			continue
		}
		for _, date := range dates[:max(len(dates)-1, 0)] {
			if date < before {
				old = append(old, write{date: date, file: file})
			}
		}
	}
	s.mu.Unlock()
	for _, w := range old {
		if err := os.Remove(s.path(w.date, w.file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			if first == nil {
				first = fmt.Errorf("expire old files: %w", err)
			}
			continue
		}
		removed++
		s.mu.Lock()
		s.forget(w.file, w.date)
		delete(s.pending, s.path(w.date, w.file))
		s.mu.Unlock()
	}
	return removed, first
}

// DiskError returns why files are pending, nil if none is.
func (s *Store) DiskError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) == 0 {
		return nil
	}
	return fmt.Errorf("disk refuses writes, %d files pending: %w", len(s.pending), s.diskErr)
}

// write is a file to be written.
type write struct {
	date, file string
	body       []byte
}

// write writes a file and indexes it in any case. After a success it also writes the pending files. s.disk is held.
//
// Pending are the last writes of each file that failed. So a date that ends during an outage is written after it. What
// Expire removes is no longer pending: a disk that stays broken costs the memory of the dates that are kept.
func (s *Store) write(w write) error {
	path := s.path(w.date, w.file)
	err := s.tryWrite(path, w)
	s.mu.Lock()
	s.remember(w.file, w.date)
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%w: write %s: %w", ErrPending, path, err)
	}
	s.writePending()
	return nil
}

// tryWrite writes a file, or makes it pending. It logs when an outage begins and when it is over. s.disk is held.
func (s *Store) tryWrite(path string, w write) error {
	err := s.writer.write(filepath.Dir(path), w.file, w.body)
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.pending)
	if err != nil {
		s.pending[path], s.diskErr = w, err
		if before == 0 {
			s.opts.Log.Error("disk refuses writes: answers are served from memory until it is writable again", "file", path, "err", err)
		}
		return err
	}
	delete(s.named, path)
	delete(s.pending, path)
	if before > 0 && len(s.pending) == 0 {
		s.opts.Log.Info("disk writable again, all pending files saved")
	}
	return nil
}

// writePending tries to write the pending files. s.disk is held.
func (s *Store) writePending() {
	s.mu.Lock()
	pending := maps.Clone(s.pending)
	s.mu.Unlock()
	for path, w := range pending {
		_ = s.tryWrite(path, w) // stays pending if it fails
	}
}

// retryEvery is the pause between two attempts to write pending files, if nothing else is written meanwhile.
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
