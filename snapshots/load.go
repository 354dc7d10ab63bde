package snapshots

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"
)

// ErrNoSnapshot says that no answer of that product and date is stored.
var ErrNoSnapshot = errors.New("no snapshot of that date")

// entry is what the store knows of the last write of a file or an object without reading it. It is immutable but for logged. An
// object has only id and digest.
type entry struct {
	id       int       // in the history
	digest   string    // in its header, or of the object
	computed time.Time // computed_at
	objects  []string  // digests of the objects that it names
	summary  []byte    // [File.Summary]
	logged   bool      // a read of the file has failed, and the log says so; guarded by Store.mu
}

// newEntry returns the entry of a file. It does not keep the file.
func newEntry(h fileHeader, file []byte) *entry {
	e := &entry{digest: h.SHA256, computed: h.ComputedAt, summary: bytes.Clone(file[len(file)-h.Summary:])}
	for _, in := range h.Inputs {
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
func (s *Store) Load(product, date string) (File, error) { return s.load(key{date, FileName(product)}) }

// LoadCurrent reads and verifies the current answer of a product, as it was published last. It returns ErrNoSnapshot if there
// is none.
func (s *Store) LoadCurrent(product string) (File, error) { return s.Load(product, currentDir) }

// load reads and verifies a file. It passes over a bad file.
func (s *Store) load(k key) (f File, err error) {
	file, e, err := s.raw(k)
	if err == nil {
		f, err = decodeFile(file, k)
	}
	if err != nil {
		s.passOver(k, e, err)
		return File{}, fmt.Errorf("load %s: %w", k, err)
	}
	return f, nil
}

// raw returns the last write of a file or an object, from memory while the write is pending, and its entry.
func (s *Store) raw(k key) (file []byte, e *entry, err error) {
	s.mu.Lock()
	e = s.index[k]
	file, pending := s.queue[k]
	s.mu.Unlock()
	switch {
	case pending:
		return file, e, nil
	case e == nil:
		return nil, nil, ErrNoSnapshot
	}
	if file, err = readFile(s.path(k)); errors.Is(err, fs.ErrNotExist) {
		err = ErrNoSnapshot
	}
	return file, e, err
}

// passOver logs once that a file cannot be used. If the file can never be used, passOver counts it and takes it out of the
// index, unless another file has replaced it since. A read that failed for another reason may succeed the next time. e is nil
// for a file that is not indexed.
func (s *Store) passOver(k key, e *entry, err error) {
	missing, bad := errors.Is(err, ErrNoSnapshot), errors.Is(err, ErrTorn) || errors.Is(err, ErrNewerFormat)
	s.mu.Lock()
	if e == nil {
		e = &entry{}
	}
	if (missing || bad) && s.index[k] == e {
		s.forget(k)
	}
	logged := e.logged || missing
	e.logged = logged
	s.mu.Unlock()
	if logged {
		return
	}
	if bad {
		s.bad.Add(1)
	}
	s.opts.Log.Error("stored file passed over", "file", s.path(k), "err", err)
}

// remember indexes the last write of a file or an object.
func (s *Store) remember(k key, e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(k)
	s.lastID++
	e.id = s.lastID
	s.index[k] = e
	dates := s.dates[k.name]
	if i, _ := slices.BinarySearch(dates, k.dir); k.dir != currentDir && k.dir != objectsDir {
		s.dates[k.name] = slices.Concat(dates[:i], []string{k.dir}, dates[i:])
	}
}

// forget takes a file out of the index, and its answer out of the history. s.mu is held.
func (s *Store) forget(k key) {
	if e := s.index[k]; e != nil {
		s.history.Del(e.id)
	}
	delete(s.index, k)
	dates := s.dates[k.name]
	if i, found := slices.BinarySearch(dates, k.dir); found {
		s.dates[k.name] = slices.Concat(dates[:i], dates[i+1:])
	}
}

func (s *Store) path(k key) string { return filepath.Join(s.dir, k.dir, k.name) }
