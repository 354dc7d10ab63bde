// Package snapshots keeps answers as the exact bytes that clients receive.
//
// A result enters as JSON. [Seal] turns it, once, into an immutable [Snapshot]: the envelope in its content codings, with
// entity tags. [Snapshot.WithForms] adds other forms of the same answer, such as CSV, which have no envelope. An [Edition] is
// what one resource serves at one time: a default snapshot, and one for each value of the resource's parameter. A [Store] keeps
// editions twice. In memory, editions that are published together switch at the same instant. On disk there is a current file
// of each product and one for each UTC date, and the documents that they were computed from. They are written so that a crash
// at any instant leaves the old file or the new one. The bytes of a snapshot must never be changed: they are shared, and sent
// without a copy.
//
// If the disk refuses a file, the answer is served from memory, and the store writes the file when the disk is writable
// again. A damaged file is logged and counted when the store opens, and is never served.
//
// The package does not know what the bytes mean and imports nothing else of this program.
package snapshots

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Snapshot is one sealed answer. It is immutable and may be shared by any number of goroutines.
type Snapshot struct {
	// Meta is what the envelope says about the data.
	Meta Meta
	// ContentType is that of a form, and "" of an envelope or a page. Lines are the header field lines of a form that stand for Meta,
	// each with its line end.
	ContentType, Lines string

	head     []byte          // of a cut, the begin of the identity body, which it shares; nil of others
	bodies   [Codings][]byte // nil: not sealed in this coding; the identity body without head
	prefix   [Codings]int    // bytes of a body, without head, before its coded usage
	crc      uint32          // of the identity prefix
	tags     [Codings]string
	changed  time.Time // see ModifiedAfter
	modified string    // see LastModified
	date     string    // see Date
	data     [2]int    // where data stands in the identity body

	dictionary bool    // see IsDictionary
	variant    string  // see Variant
	deltas     []Delta // against earlier answers, newest first

	forms []*Snapshot // see WithForms
	form  string      // name of a form; "" of an envelope
}

// Body returns the whole response body in a coding, with the usage of an anonymous caller, or nil if the snapshot is not
// sealed in the coding. Every snapshot is sealed in Identity and, but for a cut, in Gzip. The bytes must not be changed.
// That of a cut is a copy; see [Snapshot.Parts].
func (s *Snapshot) Body(c Coding) []byte {
	head, rest := s.Parts(c)
	if rest == nil {
		return head
	}
	return slices.Concat(head, rest)
}

// Parts returns [Snapshot.Body] in two parts without a copy. The second is nil but for a cut.
func (s *Snapshot) Parts(c Coding) (body, rest []byte) {
	if s.head != nil && c == Identity {
		return s.head, s.bodies[Identity]
	}
	return s.bodies[c], nil
}

// Size returns the length of [Snapshot.Body], 0 if the snapshot is not sealed in the coding.
func (s *Snapshot) Size(c Coding) int {
	body, rest := s.Parts(c)
	return len(body) + len(rest)
}

// Has says whether the snapshot is sealed in a coding.
func (s *Snapshot) Has(c Coding) bool { return s.bodies[c] != nil }

// Prefix returns the part of [Snapshot.Body] before the coded value of usage, of a cut only the part that it shares, or nil if the
// snapshot is not sealed in the coding. It shares the body's memory and must not be changed or appended to.
func (s *Snapshot) Prefix(c Coding) []byte {
	if s.head != nil && c == Identity {
		return s.head
	}
	return s.bodies[c][:s.prefix[c]:s.prefix[c]]
}

// ETag returns the strong entity tag of a coding, with its quotes, even of a coding that the snapshot is not sealed in.
func (s *Snapshot) ETag(c Coding) string { return s.tags[c] }

// Matches says whether an opaque tag, with its quotes and without W/, is the snapshot's in any coding, even in a coding
// that the snapshot is not sealed in, or of a delta against any answer. A proxy that compresses or decompresses an answer appends the
// name of a coding to its tag, and passes If-None-Match on as it is: mod_deflate, mod_brotli, Caddy and lighttpd append "-gzip",
// Jetty "--gzip", LiteSpeed ";gz", Traffic Server "-df". So names may follow the tag. Matches does not allocate.
func (s *Snapshot) Matches(tag []byte) bool {
	rest, ok := bytes.CutPrefix(tag, []byte(s.stem()))
	if delta, found := bytes.CutPrefix(rest, []byte(deltaMark)); found && len(delta) > 2*deltaDigits {
		rest = delta[2*deltaDigits:]
	}
	for ok && string(rest) != `"` {
		name := bytes.TrimLeft(rest, "-;")
		end := max(bytes.IndexAny(name, `-;"`), 0)
		switch string(name[:end]) {
		case "gzip", "gz", "gunzip", "br", "zstd", "zs", "deflate", "df":
		default:
			return false
		}
		ok, rest = len(name) < len(rest), name[end:]
	}
	return ok
}

// ModifiedAfter says whether the last change of the answer, see [Snapshot.LastModified], is after an instant.
func (s *Snapshot) ModifiedAfter(at time.Time) bool { return s.changed.After(at) }

// stem returns what all entity tags of the snapshot begin with.
func (s *Snapshot) stem() string { return s.tags[Identity][:len(s.tags[Identity])-1] }

// LastModified returns the instant of the last change of the answer, in the format of HTTP. That is when the answer was
// computed or when its freshness began, whichever is later. A later answer may have an earlier LastModified, since its
// freshness may begin in the past. So compare it only for equality, never by order.
func (s *Snapshot) LastModified() string { return s.modified }

// Date returns the UTC date of Meta.AsOf, YYYY-MM-DD, which is the date of the stored file. It is "" for a page.
func (s *Snapshot) Date() string { return s.date }

const httpTime = "Mon, 02 Jan 2006 15:04:05 GMT"

// Data returns the bytes of the envelope's data. They must not be changed. Those of a cut are a copy.
func (s *Snapshot) Data() []byte { return s.Body(Identity)[s.data[0]:s.data[1]] }

// cost returns how many bytes of memory the bodies take, with those of the forms, without what a cut shares.
func (s *Snapshot) cost() int64 {
	n := 0
	for _, b := range s.bodies {
		n += len(b)
	}
	cost := int64(n)
	for _, f := range s.forms {
		cost += f.cost()
	}
	return cost
}

// age is what decides whether an answer may replace another.
type age struct{ asOf, captured, computed time.Time }

// newer says whether a describes a later instant than b, or the same instant from a later document, and was also computed later. What was computed
// last is never older: a market may correct itself.
func (a age) newer(b age) bool {
	return cmp.Or(a.asOf.Compare(b.asOf), a.captured.Compare(b.captured)) > 0 && a.computed.After(b.computed)
}

func (a age) String() string {
	return fmt.Sprintf("as_of %s, captured_at %s, computed_at %s", a.asOf.UTC().Format(time.RFC3339), a.captured.UTC().Format(time.RFC3339), a.computed.UTC().Format(time.RFC3339))
}

func (m *Meta) age() age {
	a := age{asOf: m.AsOf, computed: m.ComputedAt}
	if m.CapturedAt != nil {
		a.captured = *m.CapturedAt
	}
	return a
}

// Edition is what one resource serves at one time. It is immutable.
type Edition struct {
	// Default answers a request without a parameter. It is one of the variants, or the only snapshot.
	Default *Snapshot
	// Variants answers by parameter value, such as 2026-12-18 or 20; nil for a resource without parameters.
	Variants map[string]*Snapshot
}

// Names returns the parameter values of the variants, sorted.
func (e *Edition) Names() []string { return slices.Sorted(maps.Keys(e.Variants)) }

// answer returns the answer to a parameter value, the default for "", nil for a value without an answer.
func (e *Edition) answer(variant string) *Snapshot {
	if variant == "" {
		return e.Default
	}
	return e.Variants[variant]
}

// cost returns how many bytes of memory the snapshots take.
func (e *Edition) cost() (n int64) {
	counted := map[*Snapshot]bool{}
	for _, s := range e.snapshots {
		if !counted[s] {
			n += s.cost()
		}
		counted[s] = true
	}
	return n
}

// snapshots yields every snapshot of the edition once, with its variant name; the default comes first.
func (e *Edition) snapshots(yield func(name string, s *Snapshot) bool) {
	names := e.Names()
	if i := slices.IndexFunc(names, func(name string) bool { return e.Variants[name] == e.Default }); i >= 0 {
		names = slices.Concat(names[i:i+1], names[:i], names[i+1:])
	} else {
		names = slices.Insert(names, 0, "")
	}
	for _, name := range names {
		if !yield(name, e.answer(name)) {
			return
		}
	}
}
