package snapshots

import (
	"maps"
	"slices"
	"time"
)

// Coding is a content coding in which every snapshot is sealed.
type Coding uint8

// The codings, in the order in which files keep them.
const (
	Identity Coding = iota
	Gzip
	Codings // how many
)

// String returns the coding's name in Content-Encoding.
func (c Coding) String() string { return [...]string{"identity", "gzip"}[c] }

// tagSuffix keeps the entity tags of the codings apart.
func (c Coding) tagSuffix() string { return [...]string{"", "-gz"}[c] }

// Snapshot is one sealed answer. It is immutable and may be shared by any number of goroutines.
type Snapshot struct {
	// Meta is what the envelope says about the data.
	Meta   Meta
	bodies [Codings][]byte
	tags   [Codings]string
	data   [2]int // where data stands in the identity body
}

// Body returns the whole response body in a coding. The bytes are the snapshot's own: they must not be changed.
func (s *Snapshot) Body(c Coding) []byte { return s.bodies[c] }

// ETag returns the strong entity tag of a coding, with its quotes.
func (s *Snapshot) ETag(c Coding) string { return s.tags[c] }

// Data returns the bytes of the envelope's data. They must not be changed.
func (s *Snapshot) Data() []byte { return s.bodies[Identity][s.data[0]:s.data[1]] }

// Cost returns how many bytes of memory the bodies take.
func (s *Snapshot) Cost() int64 {
	n := 0
	for _, b := range s.bodies {
		n += len(b)
	}
	return int64(n)
}

// newer says whether s describes a later instant than t, or the same instant from a later document.
func (s *Snapshot) newer(t *Snapshot) bool {
	if c := s.Meta.AsOf.Compare(t.Meta.AsOf); c != 0 {
		return c > 0
	}
	return capturedAt(s).After(capturedAt(t))
}

func capturedAt(s *Snapshot) time.Time {
	if s.Meta.CapturedAt == nil {
		return time.Time{}
	}
	return *s.Meta.CapturedAt
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

// snapshots yields every snapshot of the edition once, with its variant name; the default comes first.
func (e *Edition) snapshots(yield func(name string, s *Snapshot) bool) {
	names := e.Names()
	first := "" // the name of the default
	for _, name := range names {
		if e.Variants[name] == e.Default {
			first = name
			break
		}
	}
	if !yield(first, e.Default) {
		return
	}
	for _, name := range names {
		if name != first && !yield(name, e.Variants[name]) {
			return
		}
	}
}
