package snapshots

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// DCZ is the coding of a [Delta] (RFC 9842). No snapshot is sealed in it, and no file has it.
const DCZ = Codings

// Delta is a snapshot for a client that has an earlier answer of the same kind: the snapshot's identity body, compressed
// with zstd and the earlier identity body as the dictionary. It is immutable.
type Delta struct {
	// Base names the earlier answer as Available-Dictionary does: the SHA-256 of its identity body in base64, between colons.
	Base string
	// ETag is the strong entity tag, with its quotes. It depends on the base, because the bytes do. The encoder is
	// deterministic, so servers of one build that make the same delta make the same bytes.
	ETag string
	// Body is the response body in the coding dcz. It must not be changed.
	Body []byte
}

// IsDictionary says whether later answers of the same kind come with a delta against this one. Only an answer in
// [Options.Deltas] that [Store.Current] returns is a dictionary.
func (s *Snapshot) IsDictionary() bool { return s.dictionary }

// Variant returns the parameter value of a dictionary, "" for the default.
func (s *Snapshot) Variant() string { return s.variant }

// Delta returns the delta for a client that sends available as Available-Dictionary, nil when there is none. It does not
// allocate.
func (s *Snapshot) Delta(available []byte) *Delta {
	for i := range s.deltas {
		if string(available) == s.deltas[i].Base {
			return &s.deltas[i]
		}
	}
	return nil
}

const (
	// maxBases is against how many earlier answers of a kind there are deltas: a client that misses three refreshes still gets
	// one. Measured on six answers of the simulated market (2026-11): their 24 deltas take 1.9 ms of CPU and about 20 KB, and
	// their bases take 1 MB.
	maxBases = 4
	// deltaWindow has room for a base and a body. Browsers accept windows up to 8 MB.
	deltaWindow = 2 * zstdWindow
	// deltaMark stands in the tag of a delta between the stem and the first digits of the digest of the base.
	deltaMark = "-dcz-"
	// deltaDigits is how many bytes of the digest of the base are in the tag of a delta.
	deltaDigits = 8
)

// deltaMagic begins a body in the coding dcz: a skippable frame of zstd, which has the digest of the dictionary.
var deltaMagic = []byte{0x5e, 0x2a, 0x4d, 0x18, 0x20, 0, 0, 0}

// kind is what an answer and its bases have in common.
type kind struct{ resource, variant string }

// base is an earlier answer.
type base struct {
	digest [sha256.Size]byte // of body
	body   []byte            // in Identity; no part of other memory
}

// deltas makes the deltas of current answers. Calls must not overlap.
type deltas struct {
	kinds map[string][]string // [Options.Deltas]
	bases map[kind][]base     // last answers of each kind, newest first
}

// withDeltas returns an edition with dictionaries in place of the answers in Options.Deltas. A dictionary is a copy of the answer
// that has the deltas against the bases of its kind.
func (d *deltas) withDeltas(resource string, e *Edition) (*Edition, error) {
	if d.kinds[resource] == nil {
		return e, nil
	}
	out := &Edition{Default: e.Default, Variants: maps.Clone(e.Variants)}
	for _, variant := range d.kinds[resource] {
		answer := e.answer(variant)
		if answer == nil {
			continue
		}
		dict := *answer
		dict.dictionary, dict.variant, dict.deltas = true, variant, nil
		for _, b := range d.bases[kind{resource, variant}] {
			delta, err := newDelta(&dict, b)
			if err != nil {
				return nil, fmt.Errorf("delta of %s: %w", resource, err)
			}
			dict.deltas = append(dict.deltas, delta)
		}
		if variant != "" {
			out.Variants[variant] = &dict
			continue
		}
		out.Default = &dict
		for name, other := range e.Variants {
			if other == answer { // the default is also the answer to its parameter value
				out.Variants[name] = &dict
			}
		}
	}
	return out, nil
}

// keepBases makes the dictionaries of a published edition the newest bases of their kinds.
func (d *deltas) keepBases(resource string, e *Edition) {
	for _, variant := range d.kinds[resource] {
		answer, k := e.answer(variant), kind{resource, variant}
		if answer == nil {
			continue
		}
		b := base{body: bytes.Clone(answer.bodies[Identity])} // the body may be part of a whole file
		b.digest = sha256.Sum256(b.body)
		others := slices.DeleteFunc(d.bases[k], func(other base) bool { return other.digest == b.digest })
		d.bases[k] = append([]base{b}, others[:min(len(others), maxBases-1)]...)
	}
}

// A new encoder takes 3 MB.
var deltaEncoders = sync.Pool{New: func() any { return newZstd(deltaWindow) }}

func newDelta(s *Snapshot, b base) (d Delta, err error) {
	z := deltaEncoders.Get().(*zstd.Encoder)
	defer deltaEncoders.Put(z)
	out := bytes.NewBuffer(slices.Concat(deltaMagic, b.digest[:]))
	if err := z.ResetWithOptions(out, zstd.WithEncoderDictRaw(0, b.body)); err != nil {
		return d, err
	}
	z.ResetContentSize(out, int64(len(s.bodies[Identity])))
	if _, err = z.Write(s.bodies[Identity]); err == nil {
		err = z.Close()
	}
	d.Base = ":" + base64.StdEncoding.EncodeToString(b.digest[:]) + ":"
	d.ETag = s.stem() + deltaMark + hex.EncodeToString(b.digest[:deltaDigits]) + `"`
	d.Body = bytes.Clone(out.Bytes()) // out has room for more
	return d, err
}
