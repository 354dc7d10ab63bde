package snapshots

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"
)

// ErrNoSnapshot says that no answer of that product and date is stored.
var ErrNoSnapshot = errors.New("no snapshot of that date")

// entry is what the store knows of a stored file without reading it.
type entry struct {
	digest   string    // in its header
	computed time.Time // computed_at
	objects  []string  // digests of the objects that it names; none if they are too old to be kept
	summary  []byte    // [File.Summary]
}

func entryOf(f *File, digest string) *entry {
	e := &entry{digest: digest, computed: f.Edition.Default.Meta.ComputedAt, summary: f.Summary}
	for _, in := range f.Inputs {
		e.objects = append(e.objects, in.SHA256)
	}
	return e
}

// DatesOf returns the dates on which a product has a stored answer, rising. The slice is shared and must not be changed. For
// a dated product, DatesOf does not allocate.
func (s *Store) DatesOf(product string) []string {
	if i := slices.Index(s.opts.DatedProducts, product); i >= 0 {
		return s.datesOf(s.dated[i])
	}
	return s.datesOf(FileName(product))
}

func (s *Store) datesOf(name string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dates[name]
}

// Summary is the summary of a stored answer.
type Summary struct {
	Date string // YYYY-MM-DD
	Body []byte // must not be changed
}

// Summaries returns the summaries of a product's stored dates, dates rising. It reads no file.
func (s *Store) Summaries(product string) (all []Summary) {
	name := FileName(product)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, date := range s.dates[name] {
		if e := s.index[key{date, name}]; len(e.summary) > 0 {
			all = append(all, Summary{date, e.summary})
		}
	}
	return all
}

// Load reads and verifies a product's file of a date. It returns ErrNoSnapshot if there is none.
func (s *Store) Load(product, date string) (File, error) {
	s.reads.RLock()
	defer s.reads.RUnlock()
	return s.load(key{date, FileName(product)})
}

// LoadCurrent reads and verifies the current answer of a product, as it was published last. It returns ErrNoSnapshot if there
// is none.
func (s *Store) LoadCurrent(product string) (File, error) { return s.Load(product, currentDir) }

// load reads and verifies a file. It passes over a bad file. s.reads is held.
func (s *Store) load(k key) (f File, err error) {
	h, payload, err := s.read(k)
	if err == nil {
		f, err = decodeFile(h, payload)
	}
	if err != nil {
		s.passOver(k, err)
		return File{}, fmt.Errorf("load %s: %w", k, err)
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
	file, pending := s.queue[k]
	indexed := s.index[k] != nil || k.dir == objectsDir
	s.mu.Unlock()
	switch {
	case pending:
		return file, nil
	case !indexed:
		return nil, ErrNoSnapshot
	}
	if file, err = readFile(s.path(k), maxFile); errors.Is(err, fs.ErrNotExist) {
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

// remember indexes a file.
func (s *Store) remember(k key, e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index[k] = e
	dates := s.dates[k.name]
	if i, found := slices.BinarySearch(dates, k.dir); !found && k.dir != currentDir {
		s.dates[k.name] = slices.Concat(dates[:i], []string{k.dir}, dates[i:])
	}
}

// forget takes a file out of the index.
func (s *Store) forget(k key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.index, k)
	dates := s.dates[k.name]
	if i, found := slices.BinarySearch(dates, k.dir); found {
		s.dates[k.name] = slices.Concat(dates[:i], dates[i+1:])
	}
}

func (s *Store) path(k key) string { return filepath.Join(s.dir, k.dir, k.name) }
