package snapshots

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-json"
)

// A file is one line of header and a payload. For a product the payload starts with the identity body of its default
// snapshot and a newline, so that
//
//	sed -n 2p FILE
//
// prints that body. The compressed bodies of all snapshots, each in every coding it is sealed in, and the summary follow
// without separators. The header begins with the format and the digest. The digest covers everything after it, including
// the rest of the header.

// key is the place of a file in the directory of a source.
type key struct{ date, file string }

func (k key) String() string { return k.date + "/" + k.file }

// lateSuffix ends the name of an answer that came after its date had closed: its file is beside the file of the date.
// stateProduct begins the product of a state, which is not an answer.
const (
	lateSuffix   = "@late"
	stateProduct = "state/"
)

// FileName returns the name of a product's file in the directory of a date.
func FileName(product string) string { return strings.ReplaceAll(product, "/", "-") }

// Path returns the path of a product's file of a date, or of the late answer beside it.
func Path(product, date string, late bool) string {
	k := key{date, FileName(product)}
	if late {
		k.file += lateSuffix
	}
	return k.String()
}

// fileFormat is the format version that this program writes. It reads lower versions. A higher version gives
// ErrNewerFormat.
const fileFormat = 1

// Errors of files that are never served.
var (
	// ErrTorn is a file that is cut off, altered, misplaced or foreign.
	ErrTorn = errors.New("file is torn or altered")
	// ErrNewerFormat is a file that a newer version wrote.
	ErrNewerFormat = errors.New("file has a newer format")
)

const (
	// maxFile bounds each file that is written or read. The largest real file is under 2 MB.
	maxFile = 256 << 20
	// maxHeader bounds the first line. A header with 200 entries takes 10 KB.
	maxHeader = 1 << 20
)

type fileHeader struct {
	Format  int    `json:"format"`
	SHA256  string `json:"sha256"` // of every byte after it
	Product string `json:"product"`
	Date    string `json:"date"`
	// Content identifies the inputs without their clocks.
	Content string      `json:"content,omitempty"`
	Entries []fileEntry `json:"entries,omitempty"`
	Summary int         `json:"summary,omitempty"` // bytes at the end of the payload
}

// fileEntry is one snapshot and the lengths of its bodies. A body of length 0 is not stored.
type fileEntry struct {
	Name    string       `json:"name"`
	Lengths [Codings]int `json:"lengths"` // identity, gzip, br, zstd
}

// File is the stored form of a product: what a restart, or a request for a past date, reads.
type File struct {
	Edition *Edition
	// Content identifies the inputs without their clocks.
	Content string
	// Summary is an opaque value beside the answer, such as the row of a series. It may be nil.
	Summary []byte
}

func encodeFile(product, date string, f File) ([]byte, error) {
	if f.Edition == nil || f.Edition.Default == nil {
		return nil, errors.New("there is no default snapshot")
	}
	h := fileHeader{Product: product, Date: date, Content: f.Content, Summary: len(f.Summary)}
	var payload [][]byte
	f.Edition.snapshots(func(name string, s *Snapshot) bool {
		e := fileEntry{Name: name}
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
		return true
	})
	return frame(h, append(payload, f.Summary)...)
}

// digestMark stands before the digest in a header, and digestLen is the digest's length.
const (
	digestMark = `"sha256":"`
	digestLen  = 64
)

// frame puts a header before a payload, which comes in parts.
func frame(h fileHeader, payload ...[]byte) ([]byte, error) {
	h.Format, h.SHA256 = fileFormat, strings.Repeat("0", digestLen)
	line, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("encode header of %s: %w", h.Product, err)
	}
	b := slices.Concat(append([][]byte{line, {'\n'}}, payload...)...)
	if len(b) > maxFile || len(line) > maxHeader {
		return nil, fmt.Errorf("%s takes %d bytes, over the limit of %d", h.Product, len(b), maxFile)
	}
	at := bytes.Index(b, []byte(digestMark)) + len(digestMark)
	copy(b[at:], digest(b[at+digestLen:]))
	return b, nil
}

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
	if !ok || len(rest) < digestLen || digest(rest[digestLen:]) != string(rest[:digestLen]) {
		return h, nil, fmt.Errorf("%w: digest differs", ErrTorn)
	}
	if FileName(h.Product) != strings.TrimSuffix(k.file, lateSuffix) || h.Date != k.date {
		return h, nil, fmt.Errorf("%w: the file is of %.40q, date %.20q", ErrTorn, h.Product, h.Date)
	}
	return h, payload, nil
}

// readStored reads a stored file and checks that it is whole and belongs at k.
func readStored(path string, k key) (h fileHeader, payload []byte, err error) {
	b, err := readFile(path)
	if err != nil {
		return h, nil, err
	}
	return unframe(b, k)
}

// decodeFile rebuilds what encodeFile wrote. The result shares the memory of payload.
func decodeFile(h fileHeader, payload []byte) (File, error) {
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
	f := File{Edition: &Edition{}, Content: h.Content}
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
		s, err := parse(bodies)
		if err != nil {
			return File{}, fmt.Errorf("%w: entry %.40q: %w", ErrTorn, e.Name, err)
		}
		f.Edition.add(e.Name, s)
	}
	if f.Summary = take(h.Summary); short || len(payload) > 0 || f.Edition.Default == nil {
		return File{}, fmt.Errorf("%w: the lengths in the header do not match the payload", ErrTorn)
	}
	return f, nil
}

// decodeDefault rebuilds the default snapshot alone.
func decodeDefault(h fileHeader, payload []byte) (*Snapshot, error) {
	h.Entries, h.Summary = h.Entries[:min(1, len(h.Entries))], 0
	n := 1 // the newline
	for _, e := range h.Entries {
		for _, length := range e.Lengths {
			n += max(0, length)
		}
	}
	f, err := decodeFile(h, payload[:min(n, len(payload))])
	if err != nil {
		return nil, err
	}
	return f.Edition.Default, nil
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

// readFile reads a stored file. It follows no symbolic link: the store indexes only regular files.
func readFile(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("%w: not a regular file of at most %d bytes", ErrTorn, maxFile)
	}
	return os.ReadFile(path)
}
