package snapshots

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-json"
)

// The file of an answer is one line of header and a payload. The payload starts with the identity body of the default
// snapshot and a newline, so that
//
//	sed -n 2p FILE
//
// prints that body. The compressed bodies of all snapshots, each in every coding it is sealed in and followed by those of its
// forms, and the summary follow without separators. The header begins with the format and the digest. The digest covers
// everything after it, including the rest of the header. The header names every document that the answer was computed from.

// key is the place of a file in the directory of a source: currentDir, objectsDir or a date, and a name.
type key struct{ dir, name string }

func (k key) String() string { return k.dir + "/" + k.name }

// The directories of a source beside those of the dates.
const (
	currentDir = "current"
	objectsDir = "objects"
)

// FileName returns the name of a product's file.
func FileName(product string) string { return strings.ReplaceAll(product, "/", "-") }

// CurrentPath returns the path of a product's current file in the directory of the source.
func CurrentPath(product string) string { return key{currentDir, FileName(product)}.String() }

// ErrPath is a path that no file of a store can have, such as one that leaves the directory.
var ErrPath = errors.New("not the path of a stored file")

// parsePath returns the key of a path, such as current/gex-spx, 2026-11-20/gex-spx or objects/<sha256>.gz. It accepts only the
// spelling that [Store] writes.
func parsePath(path string) (k key, err error) {
	dir, name, _ := strings.Cut(path, "/")
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	}
	switch {
	case dir == objectsDir && digestOfObject(name) != "":
	case dir != currentDir && !isDate(dir), name == "", name[0] == '.', len(name) > 100, strings.ContainsFunc(name, odd):
		return k, fmt.Errorf("%w: %.200q", ErrPath, path)
	}
	return key{dir, name}, nil
}

// stored says whether a path may be that of a stored file.
func stored(path string) bool {
	_, err := parsePath(path)
	return err == nil
}

// IsDated says whether a path is that of a file of a date.
func IsDated(path string) bool {
	k, err := parsePath(path)
	return err == nil && k.rank() == rankDated
}

// SameCurrent returns the path of the current file of the product whose file of a date has this path.
func SameCurrent(path string) string {
	k, _ := parsePath(path)
	return key{currentDir, k.name}.String()
}

// fileFormat is the format that this program writes. A higher one gives ErrNewerFormat.
const fileFormat = 1

// Errors of files that are never served.
var (
	// ErrTorn is a file that is cut off, altered, misplaced or foreign.
	ErrTorn = errors.New("file is torn or altered")
	// ErrNewerFormat is a file that a newer version wrote.
	ErrNewerFormat = errors.New("file has a newer format")
)

const (
	// MaxTransfer bounds each file that is written, read or taken from another store, and each body and document unpacked from
	// it, in bytes. The largest real document has 14 MB, the largest real answer under 2 MB.
	MaxTransfer = 64 << 20
	// maxHeader bounds the first line. A header with 200 entries takes 10 KB, one with 100 inputs 25 KB.
	maxHeader = 1 << 20
)

// StoredInput is a document or a state that a stored answer was computed from.
type StoredInput struct {
	Input
	Received time.Time `json:"received,omitzero"`
	// Generated and FileDate are what the upstream said about the document; zero if it did not say.
	Generated time.Time `json:"generated,omitzero"`
	FileDate  string    `json:"file_date,omitempty"`
}

type fileHeader struct {
	Format     int           `json:"format"`
	SHA256     string        `json:"sha256"` // of every byte after it
	Product    string        `json:"product"`
	Date       string        `json:"date"`            // UTC date of as_of
	Dated      bool          `json:"dated,omitempty"` // it is also the file of its date
	ComputedAt time.Time     `json:"computed_at"`
	Build      string        `json:"build,omitempty"`
	Inputs     []StoredInput `json:"inputs"`
	Entries    []fileEntry   `json:"entries"`
	Summary    int           `json:"summary,omitempty"` // bytes at the end of the payload
}

// fileEntry is one snapshot and the lengths of its bodies. A body of length 0 is not stored. An entry with a form is a form of the
// snapshot before.
type fileEntry struct {
	Name    string       `json:"name"`
	Form    string       `json:"form,omitempty"`
	Type    string       `json:"type,omitempty"` // content type of a form
	Lengths [Codings]int `json:"lengths"`        // identity, gzip, br, zstd
}

// File is an answer in its stored form: what a restart, a request for a past date, or a recomputation reads.
type File struct {
	Product string
	Edition *Edition
	// Served is what [Options.Reopen] would return, of a product that it has; nil: the first request for the date makes it. It is not stored.
	Served *Edition
	// Inputs are the documents and states of the receipt, in its order.
	Inputs []StoredInput
	// Build is the toolchain and the architecture that computed the answer.
	Build string
	// Summary is an opaque value beside the answer, such as the row of a series. It may be nil.
	Summary []byte
	// Current and Dated say where the file belongs: in current/, under the UTC date of as_of, or in both.
	Current, Dated bool

	entry *entry // of a file that was read
}

// Date returns the UTC date of the answer, YYYY-MM-DD.
func (f *File) Date() string { return f.Edition.Default.Date() }

// encodeFile returns the bytes of a file, and their header.
func encodeFile(f *File) (h fileHeader, b []byte, err error) {
	if f.Edition == nil || f.Edition.Default == nil {
		return h, nil, errors.New("there is no default snapshot")
	}
	h = fileHeader{
		Format: fileFormat, SHA256: strings.Repeat("0", digestLen), Product: f.Product, Date: f.Date(), Dated: f.Dated,
		ComputedAt: f.Edition.Default.Meta.ComputedAt, Build: f.Build, Inputs: f.Inputs, Summary: len(f.Summary),
	}
	payload := [][]byte{nil} // the header's place
	add := func(name string, s *Snapshot) {
		e := fileEntry{Name: name, Form: s.form, Type: s.ContentType}
		for c, body := range s.bodies {
			if Coding(c) == Identity && len(h.Entries) > 0 {
				continue // decodeFile gets it from the gzip body
			}
			e.Lengths[c] = len(body)
			payload = append(payload, body)
			if Coding(c) == Identity {
				payload = append(payload, []byte{'\n'})
			}
		}
		h.Entries = append(h.Entries, e)
	}
	for name, s := range f.Edition.snapshots {
		add(name, s)
		for _, form := range s.forms {
			add(name, form)
		}
	}
	line, err := json.Marshal(h)
	if err != nil {
		return h, nil, fmt.Errorf("encode header: %w", err)
	}
	payload[0] = append(line, '\n')
	b = slices.Concat(append(payload, f.Summary)...)
	if len(b) > MaxTransfer || len(line) > maxHeader {
		return h, nil, fmt.Errorf("file takes %d bytes, its header %d, over the limits of %d and %d", len(b), len(line), MaxTransfer, maxHeader)
	}
	at := bytes.Index(b, []byte(digestMark)) + len(digestMark)
	h.SHA256 = Digest(b[at+digestLen:])
	copy(b[at:], h.SHA256)
	return h, b, nil
}

// digestMark stands before the digest in a header, and digestLen is the digest's length.
const (
	digestMark = `"sha256":"`
	digestLen  = 64
)

// unframe checks that a file is whole and belongs at k, and returns its header and payload.
func unframe(b []byte, k key) (h fileHeader, payload []byte, err error) {
	line, payload, ok := bytes.Cut(b, []byte{'\n'})
	if !ok || len(line) > maxHeader || json.Unmarshal(line, &h) != nil || h.Format < 1 {
		return h, nil, fmt.Errorf("%w: no valid header", ErrTorn)
	}
	if h.Format > fileFormat {
		return h, nil, fmt.Errorf("%w: %d, this version reads up to %d", ErrNewerFormat, h.Format, fileFormat)
	}
	rest, ok := bytes.CutPrefix(b, fmt.Appendf(nil, `{"format":%d,%s`, h.Format, digestMark))
	if !ok || len(rest) < digestLen || Digest(rest[digestLen:]) != string(rest[:digestLen]) {
		return h, nil, fmt.Errorf("%w: digest differs", ErrTorn)
	}
	if FileName(h.Product) != k.name || !isDate(h.Date) || k.dir != currentDir && k.dir != h.Date {
		return h, nil, fmt.Errorf("%w: the file is of %.40q, date %.20q", ErrTorn, h.Product, h.Date)
	}
	if h.Summary < 0 || h.Summary > len(payload) {
		return h, nil, fmt.Errorf("%w: a summary of %d bytes", ErrTorn, h.Summary)
	}
	return h, payload, nil
}

// decodeFile checks that a file is whole and belongs at k, and rebuilds what encodeFile wrote. The bodies of the result share
// the memory of b. The summary does not.
func decodeFile(b []byte, k key) (File, error) {
	h, payload, err := unframe(b, k)
	if err != nil {
		return File{}, err
	}
	short := false
	take := func(n int) []byte {
		if n < 0 || n > len(payload) {
			short = true
			return nil
		}
		out := payload[:n:n]
		payload = payload[n:]
		return out
	}
	f := File{Product: h.Product, Edition: &Edition{}, Inputs: h.Inputs, Build: h.Build, Dated: h.Dated}
	var last *Snapshot
	for i, e := range h.Entries {
		var bodies [Codings][]byte
		for c, n := range e.Lengths {
			if n != 0 {
				bodies[c] = take(n)
			}
			if Coding(c) == Identity && i == 0 {
				take(1) // the newline
			}
		}
		if e.Form != "" && last != nil {
			err = last.parseForm(e.Form, e.Type, bodies)
		} else if last, err = parse(bodies); err == nil {
			f.Edition.add(e.Name, last)
		}
		if err != nil {
			return File{}, fmt.Errorf("%w: entry %.40q: %w", ErrTorn, e.Name, err)
		}
	}
	if f.Summary = bytes.Clone(take(h.Summary)); short || len(payload) > 0 || f.Edition.Default == nil {
		return File{}, fmt.Errorf("%w: the lengths in the header do not match the payload", ErrTorn)
	}
	f.entry = newEntry(h, b, f.Edition.Default.Meta.age())
	return f, nil
}

// add puts the next snapshot of a file into the edition; the first is the default.
func (e *Edition) add(name string, s *Snapshot) {
	if e.Default == nil {
		e.Default = s
	}
	if name == "" {
		return
	}
	if e.Variants == nil {
		e.Variants = map[string]*Snapshot{}
	}
	e.Variants[name] = s
}

// readFile reads a stored file of at most MaxTransfer bytes. It follows no symbolic link: the store indexes only regular files.
func readFile(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() { // of a date; see walk
		if _, err := os.ReadDir(path); err != nil {
			return nil, err
		}
	}
	if !info.Mode().IsRegular() || info.Size() > MaxTransfer {
		return nil, fmt.Errorf("%w: not a regular file of at most %d bytes", ErrTorn, MaxTransfer)
	}
	return os.ReadFile(path)
}

func isDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil && len(s) == len(time.DateOnly)
}
