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
// disk is writable again. The store logs the outage itself, once.
var ErrPending = errors.New("file pending")

// Save stores a product's answer of a UTC date (YYYY-MM-DD) durably, and replaces the older answer of that date. If the
// disk refuses, Save returns why, and the file is pending: the answer is served from memory, and the store tries the write
// again after every later write that succeeds, every few seconds, and at Close. The store logs the first refusal of an
// outage and the end of the outage, so the caller need not log the error.
func (s *Store) Save(product, date string, f File) error {
	body, err := encodeFile(product, date, f)
	if err != nil {
		return fmt.Errorf("save %s of %s: %w", product, date, err)
	}
	return s.save(key{date, FileName(product)}, body, f.Edition.Default)
}

// SaveLate is [Store.Save] for an answer that arrived after its date closed. A restart serves this answer. The history
// never does.
func (s *Store) SaveLate(product, date string, f File) error {
	body, err := encodeFile(product, date, f)
	if err != nil {
		return fmt.Errorf("save late %s of %s: %w", product, date, err)
	}
	return s.save(key{date, FileName(product) + lateSuffix}, body, nil)
}

// SaveState stores, as [Store.Save] does, data of a date that a later session needs besides the snapshots.
func (s *Store) SaveState(name, date string, state []byte) error {
	body, err := frame(fileHeader{Product: stateProduct + name, Date: date}, state)
	if err != nil {
		return fmt.Errorf("save state %s of %s: %w", name, date, err)
	}
	return s.save(key{date, FileName(stateProduct + name)}, body, nil)
}

// save writes a file and makes later reads find it. past is the answer in the file, nil if the history never serves it.
func (s *Store) save(k key, body []byte, past *Snapshot) error {
	s.disk.Lock()
	defer s.disk.Unlock()
	err := s.write(k, body)
	s.reads.Lock()
	s.remember(k)
	if past != nil {
		s.keepPast(k, past)
	}
	s.reads.Unlock()
	s.changed(k)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPending, err)
	}
	s.writePending()
	return nil
}

func (s *Store) changed(k key) {
	if s.opts.Changed != nil {
		s.opts.Changed(k.String())
	}
}

// write writes a file, or makes it pending. It logs the beginning and the end of an outage. s.disk is held.
//
// The last failed write of each file is pending. So the files of a date that ends during an outage are written after the
// outage. [Store.Expire] also removes pending writes. So a disk that stays broken costs only the memory of the dates that
// are kept.
func (s *Store) write(k key, body []byte) error {
	err := s.writer.write(filepath.Join(s.dir, k.date), k.file, body)
	s.mu.Lock()
	before := len(s.pending)
	if before == 0 {
		s.refused = 0
	}
	if err != nil {
		s.pending[k], s.diskErr = body, err
		s.refused++
	} else {
		delete(s.pending, k)
		delete(s.loggedBad, k)
	}
	pending, refused := len(s.pending), s.refused
	s.mu.Unlock()
	if before == 0 && pending > 0 {
		s.opts.Log.Error("disk refuses writes: answers are served from memory until it is writable again", "file", s.path(k), "err", err)
	}
	if before > 0 && pending == 0 {
		s.opts.Log.Info("disk writable again, all pending files saved", "refused_writes", refused)
	}
	return err
}

// writePending tries to write the pending files. s.disk is held.
func (s *Store) writePending() {
	s.mu.Lock()
	pending := maps.Clone(s.pending)
	s.mu.Unlock()
	for k, body := range pending {
		_ = s.write(k, body) // the write stays pending if it fails
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
