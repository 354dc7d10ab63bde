package snapshots

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/goccy/go-json"
)

// ErrNoSnapshot says that no answer of that product and date is stored.
var ErrNoSnapshot = errors.New("no snapshot of that date")

// entry is what the store knows of the last write of a file or an object without reading it. It is immutable but for the fields that
// files.mu guards. An object has only a digest, a size and perhaps until.
type entry struct {
	digest  string   // in its header, or of the object
	size    int64    // of the file; 0: not known
	age     age      // of the default answer
	objects []string // digests of the objects that it names
	summary []byte   // [File.Summary]

	// Guarded by files.mu.
	logged bool      // a read of the file has failed, and the log says so
	until  time.Time // an accepted object that no file has named yet stays until then
}

// newEntry returns the entry of a file. It does not keep the file.
func newEntry(h fileHeader, file []byte, of age) *entry {
	e := &entry{digest: h.SHA256, age: of, summary: bytes.Clone(file[len(file)-h.Summary:])}
	for _, in := range h.Inputs {
		e.objects = append(e.objects, in.SHA256)
	}
	return e
}

// readEntry returns the header and the entry of a file that belongs at k. Of the answers it reads only the meta of the default.
func readEntry(file []byte, k key) (h fileHeader, e *entry, err error) {
	h, payload, err := unframe(file, k)
	if err != nil {
		return h, nil, err
	}
	answer, _, _ := bytes.Cut(payload, []byte{'\n'})
	var envelope struct {
		Meta Meta `json:"meta"`
	}
	if err := json.Unmarshal(answer, &envelope); err != nil {
		return h, nil, fmt.Errorf("%w: no default answer: %w", ErrTorn, err)
	}
	return h, newEntry(h, file, envelope.Meta.age()), nil
}

func (f *files) datesOf(name string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dates[name]
}

// Summary is the summary of a stored answer.
type Summary struct {
	Date string // YYYY-MM-DD
	Body []byte // must not be changed
}

// Summaries returns the summaries of a product's stored dates, dates rising. It reads no file.
func (f *files) Summaries(product string) (all []Summary) {
	name := FileName(product)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, date := range f.dates[name] {
		if e := f.index[key{date, name}]; len(e.summary) > 0 {
			all = append(all, Summary{date, e.summary})
		}
	}
	return all
}

// Paths returns the paths of all files and objects of the store, sorted.
func (f *files) Paths() (paths []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k := range f.index {
		paths = append(paths, k.String())
	}
	slices.Sort(paths)
	return paths
}

// Digest returns the digest in the header of a stored file, or the digest in the name of a stored object, and "" if the file
// is not stored. It does not read the disk.
func (f *files) Digest(path string) string {
	k, _ := parsePath(path)
	return f.digest(k)
}

// Files returns the digest of each stored file of a date, by path.
func (f *files) Files(date string) map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := map[string]string{}
	for k, e := range f.index {
		if k.dir == date {
			found[k.String()] = e.digest
		}
	}
	return found
}

// Named returns the digests of the objects that a stored file names.
func (f *files) Named(path string) []string {
	k, _ := parsePath(path)
	if e := f.entry(k); e != nil {
		return e.objects
	}
	return nil
}

func (f *files) digest(k key) string {
	if e := f.entry(k); e != nil {
		return e.digest
	}
	return ""
}

func (f *files) entry(k key) *entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.index[k]
}

// last returns the entry of the last write of a file or an object, also while reads do not find it yet. f.mu is held.
func (f *files) last(k key) *entry {
	if p, queued := f.queue[k]; queued {
		return p.entry
	}
	return f.index[k]
}

// look takes the objects out of the index that the files of a batch name and that are gone from the disk, or have another size. It reads none of
// them.
func (f *files) look(batch map[key]Packed) {
	for _, p := range batch {
		for _, sum := range p.entry.objects {
			k := objectKey(sum)
			e := f.entry(k)
			if _, comes := batch[k]; comes || e == nil {
				continue
			}
			if info, err := os.Lstat(f.path(k)); errors.Is(err, fs.ErrNotExist) || err == nil && e.size != 0 && info.Size() != e.size {
				f.passOver(k, e, fmt.Errorf("%w: it is gone or has another size", ErrTorn))
			}
		}
	}
}

// Has says whether an object is on the disk.
func (f *files) Has(sha256 string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := objectKey(sha256)
	_, queued := f.queue[k]
	return f.index[k] != nil && !queued
}

// load reads and verifies a file. It passes over a bad file.
func (f *files) load(k key) (out File, err error) {
	file, e, err := f.raw(k)
	if err == nil {
		out, err = decodeFile(file, k)
	}
	if err != nil {
		f.passOver(k, e, err)
		return File{}, fmt.Errorf("load %s: %w", k, err)
	}
	return out, nil
}

// raw returns the last write of a file or an object, from memory while it is queued, and its entry.
func (f *files) raw(k key) (file []byte, e *entry, err error) {
	f.mu.Lock()
	e = f.index[k]
	queued, found := f.queue[k]
	f.mu.Unlock()
	switch {
	case e == nil:
		return nil, nil, ErrNoSnapshot
	case found && queued.entry == e:
		return queued.Body, e, nil
	}
	if file, err = readFile(f.path(k)); errors.Is(err, fs.ErrNotExist) {
		err = ErrNoSnapshot
	}
	return file, e, err
}

// passOver logs once that a file cannot be used. If the file can never be used, passOver counts it and takes it out of the
// index, unless another file has replaced it since. A read that failed for another reason may succeed the next time. e is nil
// for a file that is not indexed.
func (f *files) passOver(k key, e *entry, err error) {
	missing, bad := errors.Is(err, ErrNoSnapshot), errors.Is(err, ErrTorn) || errors.Is(err, ErrNewerFormat)
	f.mu.Lock()
	if e == nil {
		e = &entry{}
	}
	if (missing || bad) && f.index[k] == e {
		f.forget(k)
	}
	logged := e.logged || missing
	e.logged = true
	f.mu.Unlock()
	if logged {
		return
	}
	if bad {
		f.bad.Add(1)
	}
	f.log.Error("stored file passed over", "file", f.path(k), "err", err)
}

// remember indexes the last write of a file or an object. f.mu is held, but for the start.
func (f *files) remember(k key, e *entry) {
	f.index[k] = e
	dates := f.dates[k.name]
	if i, found := slices.BinarySearch(dates, k.dir); !found && k.rank() == rankDated {
		f.dates[k.name] = slices.Concat(dates[:i], []string{k.dir}, dates[i:])
	}
}

// forget takes a file or an object out of the index. f.mu is held.
func (f *files) forget(k key) {
	delete(f.index, k)
	dates := f.dates[k.name]
	if i, found := slices.BinarySearch(dates, k.dir); found {
		f.dates[k.name] = slices.Concat(dates[:i], dates[i+1:])
	}
}
