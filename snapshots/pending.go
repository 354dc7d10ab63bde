package snapshots

import (
	"fmt"
	"maps"
	"path/filepath"
	"time"
)

// write is a file to be written.
type write struct {
	date, file string
	body       []byte
}

// retryEvery is how long what waits for the disk waits when nothing else is written meanwhile.
const retryEvery = 5 * time.Second

// write writes a file, and what earlier failures left, and indexes it in any case. s.disk is held.
//
// A write that fails is kept and served from memory, the last one of each file: a date that ends while the disk is
// gone is written when it is back. What Expire removes is dropped here too, so that a disk that never comes back
// costs the memory of the dates that are kept.
func (s *Store) write(w write) error {
	path := s.path(w.date, w.file)
	err := s.store(path, w)
	s.mu.Lock()
	s.remember(w.file, w.date)
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	s.retry()
	return nil
}

// store writes a file or lets it wait. s.disk is held.
func (s *Store) store(path string, w write) error {
	err := s.writer.write(filepath.Dir(path), w.file, w.body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		delete(s.named, path)
		if _, waited := s.pending[path]; waited {
			if w.file == fileName(s.opts.HistoricalProduct) {
				s.opts.Follower.Written(w.date)
			}
			if delete(s.pending, path); len(s.pending) == 0 {
				s.opts.Log.Info("the disk takes files again: none waits for it")
			}
		}
		return nil
	}
	s.pending[path], s.diskErr = w, err
	if s.again == nil && !s.closed {
		s.again = time.AfterFunc(retryEvery, s.retryLater)
	}
	return err
}

// retry writes what waits for the disk. s.disk is held.
func (s *Store) retry() {
	s.mu.Lock()
	waiting := maps.Clone(s.pending)
	s.mu.Unlock()
	for path, w := range waiting {
		_ = s.store(path, w) // kept when it fails
	}
}

func (s *Store) retryLater() {
	s.disk.Lock()
	defer s.disk.Unlock()
	s.mu.Lock()
	s.again = nil
	closed := s.closed
	s.mu.Unlock()
	if !closed {
		s.retry()
	}
}

// DiskError returns why something still waits for the disk, nil when nothing does.
func (s *Store) DiskError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) == 0 {
		return nil
	}
	return fmt.Errorf("%d files wait for the disk: %w", len(s.pending), s.diskErr)
}
