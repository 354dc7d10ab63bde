package snapshots

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"github.com/goccy/go-json"
)

// Meta is where the numbers come from, how old they are and how they were computed. `meta` does not change while the inputs do
// not change. Instants are UTC, in whole seconds.
type Meta struct {
	// A historical answer has `gex/spx`, because it is byte for byte the stored answer of gex/spx.
	Endpoint string `json:"endpoint" jsonschema:"oneof_ref=#/components/schemas/Endpoint"`
	// Every answer with simulated numbers says `simulated`.
	Source string `json:"source" jsonschema:"oneof_ref=#/components/schemas/Source"`
	// Time of the last trade of the underlying, the latest of several; for VIX futures 16:00 New York of the settlement date.
	AsOf time.Time `json:"as_of"`
	// Time at which the upstream made its document. `null` when the document does not have this time.
	CapturedAt  *time.Time `json:"captured_at"`
	ComputedAt  time.Time  `json:"computed_at"`                           // Time at which this answer was computed.
	SessionDate string     `json:"session_date" jsonschema:"format=date"` // Exchange session of `as_of`, by New York time.
	// Delay of the upstream's quotes, by design. `null` for settlements, which are not delayed.
	DelayMinutes *int `json:"delay_minutes" unit:"minutes"`
	// Refresh interval in the refresh window: from 15 minutes after the open of the exchange to 32 minutes after its close.
	RefreshSeconds int       `json:"refresh_seconds" jsonschema:"minimum=0" unit:"seconds"`
	Freshness      Freshness `json:"freshness"`
	Receipt        Receipt   `json:"receipt"`
	// Which inputs were used, and how good they are. Each resource has its own fields here. `not_finite` lists the figures that would be
	// infinite or no number, and are `null`. It is absent where every figure is finite.
	Quality json.RawMessage `json:"quality"`
	// One line. It says that the data is delayed and derived, what is modelled, and that the data is not investment advice.
	Notice string `json:"notice"`
}

// Freshness is whether the answer is as recent as it should be.
type Freshness struct {
	// `stale`: 3 refreshes in a row have failed or, in the refresh window, `as_of` is over 32 minutes old (VIX futures: before
	// the close of the previous session), or in a fleet no server refreshes. `closed`: the time is outside the refresh window.
	// `fresh`: otherwise. A stale answer is the last good answer.
	State string `json:"state" jsonschema:"enum=fresh,enum=stale,enum=closed"`
	// `null` when fresh.
	Reason *string   `json:"reason" jsonschema:"oneof_ref=#/components/schemas/Reason"`
	Since  time.Time `json:"since"` // First instant of this state and reason.
}

// Equal compares state and reason, not the instant.
func (f Freshness) Equal(g Freshness) bool {
	if (f.Reason == nil) != (g.Reason == nil) || f.Reason != nil && *f.Reason != *g.Reason {
		return false
	}
	return f.State == g.State
}

// Stale says whether the answer is the last good answer and too old.
func (f Freshness) Stale() bool { return f.State == "stale" }

// Receipt is what makes the numbers reproducible: equal receipts of a resource mean equal `data`.
type Receipt struct {
	Method string `json:"method" jsonschema:"pattern=^[a-z]+/[0-9]+$"` // Name and version of the method.
	// Settings that the numbers depend on.
	Parameters json.RawMessage `json:"parameters" jsonschema:"oneof_ref=#/components/schemas/Parameters"`
	// Every document from which the answer was computed: first the upstream's documents, then those of the session before, then
	// states of earlier answers and of the configuration. A quote of vix-term-structure can be there twice: the one with the close of
	// the settlement date, and the newest.
	Inputs []Input `json:"inputs"`
	// The digests of `inputs`, in the same order.
	InputSHA256 []string `json:"input_sha256" jsonschema:"pattern=^[0-9a-f]{64}$"`
	// SHA-256 of the bytes of `data` as sent, hexadecimal.
	DataSHA256 string `json:"data_sha256" jsonschema:"pattern=^[0-9a-f]{64}$"`
}

// Input is a document from which the answer was computed.
type Input struct {
	// Path of the document at the upstream. `previous/` before a path: the document of the last snapshot of the session before.
	// `state/` and a name: a state. `state/track-rows`: the rows of the track before the newest. `state/series-rows`: the rows
	// of a series, those of gex/spx/series each with the `data_sha256` of its gamma snapshot. `state/vix-history`: values of the VIX curves of earlier
	// dates. `state/flow/` and a symbol: an answer of options/flow/{u}. `state/closed-dates`: closures of the exchange that the operator added.
	Name string `json:"name"`
	// SHA-256 of the decoded, uncompressed bytes, hexadecimal.
	SHA256 string `json:"sha256" jsonschema:"pattern=^[0-9a-f]{64}$"`
}

// The envelope around data, meta and usage.
const (
	envelopeData  = `{"success":true,"data":`
	envelopeMeta  = `,"meta":`
	envelopeUsage = `,"usage":`
	envelopeEnd   = `}`

	anonymousUsage = `{"tier":"anonymous"}`
)

// Seal builds the snapshot of data, one JSON value, and meta, in Identity, Gzip and the given codings. It fills in the receipt's digest of
// data, and InputSHA256 from Inputs. It keeps meta.Quality and the slices of the receipt, which the caller must not change afterwards. It
// keeps no other memory of the caller. Gzip alone, for answers that clients seldom ask for, takes an eighth of the time of all codings
// together.
func Seal(data []byte, meta Meta, codings ...Coding) (*Snapshot, error) {
	if len(data) == 0 || !json.Valid(data) || data[0] <= ' ' || data[len(data)-1] <= ' ' || bytes.IndexByte(data, '\n') >= 0 {
		return nil, errors.New("seal snapshot: data is not JSON on one line")
	}
	meta.Receipt.DataSHA256 = Digest(data)
	if inputs := meta.Receipt.Inputs; inputs != nil {
		meta.Receipt.InputSHA256 = make([]string, len(inputs))
		for i, in := range inputs {
			meta.Receipt.InputSHA256[i] = in.SHA256
		}
	}
	encoded, err := json.Marshal(&meta)
	if err != nil {
		return nil, fmt.Errorf("seal snapshot: %w", err)
	}
	prefix := make([]byte, 0, len(data)+len(encoded)+len(envelopeData+envelopeMeta+envelopeUsage+anonymousUsage)+MaxTail)
	prefix = append(append(prefix, envelopeData...), data...)
	prefix = append(append(prefix, envelopeMeta...), encoded...)
	prefix = append(prefix, envelopeUsage...)
	s := newSnapshot(meta, len(data))
	if err := s.seal(prefix, []byte(anonymousUsage+envelopeEnd), codings...); err != nil {
		return nil, fmt.Errorf("seal snapshot: %w", err)
	}
	return s, nil
}

// Reseal returns the snapshot with other meta around the same data, in the same codings and forms.
func (s *Snapshot) Reseal(meta Meta) (*Snapshot, error) {
	if s.head != nil {
		return cutOf(s.head, s.bodies[Identity][:s.data[1]-len(s.head)], meta)
	}
	again, err := Seal(s.Data(), meta, s.codings()...)
	if err != nil {
		return nil, err
	}
	for _, f := range s.forms {
		again.forms = append(again.forms, again.formOf(f))
	}
	return again, nil
}

// SealPage seals bytes that are not an envelope, such as a web page, in every coding. LastModified returns modified. The
// result has no data or meta, only bodies and their tags. best takes longer for a smaller body in Brotli. SealPage does not keep the body.
func SealPage(body []byte, modified time.Time, best bool) (*Snapshot, error) {
	if len(body) < 2 {
		return nil, errors.New("seal page: body has less than two bytes") // one in the prefix, one in the tail
	}
	s := &Snapshot{changed: modified.Truncate(time.Second), modified: modified.UTC().Format(httpTime)}
	n := len(body) - 1
	err := s.seal(body[:n:n], body[n:], Brotli, Zstd)
	if best && err == nil {
		var coded []byte
		coded, err = bestBrotli(body[:n], 1+MaxTail)
		s.prefix[Brotli] = len(coded)
		s.bodies[Brotli] = s.appendTail(coded, Brotli, body[n:], "")
	}
	if err != nil {
		return nil, fmt.Errorf("seal page: %w", err)
	}
	return s, nil
}

// newSnapshot returns a snapshot without bodies.
func newSnapshot(meta Meta, dataLen int) *Snapshot {
	changed := meta.ComputedAt
	if since := meta.Freshness.Since; since.After(changed) {
		changed = since
	}
	changed = changed.Truncate(time.Second)
	return &Snapshot{
		Meta: meta, changed: changed, modified: changed.UTC().Format(httpTime), date: meta.AsOf.UTC().Format(time.DateOnly),
		data: [2]int{len(envelopeData), len(envelopeData) + dataLen},
	}
}

// seal builds the body, which is prefix and then tail, in Identity, Gzip and the given codings. It keeps prefix.
func (s *Snapshot) seal(prefix, tail []byte, codings ...Coding) (err error) {
	s.setIdentity(prefix)
	for c := range Codings {
		coded, by := prefix, &compressors[c]
		if c == Gzip && !slices.Contains(codings, Brotli) && !slices.Contains(codings, Zstd) {
			by = &rareGzip
		}
		switch {
		case c == Identity:
		case c == Gzip || slices.Contains(codings, c):
			if coded, err = compress(c, by, prefix, len(tail), len(tail)+MaxTail); err != nil {
				return fmt.Errorf("%v: %w", c, err)
			}
		default:
			continue
		}
		s.prefix[c] = len(coded)
		s.bodies[c] = s.appendTail(coded, c, tail, "")
	}
	s.setTags()
	return nil
}

// setIdentity stores the checksum and the length of the identity prefix, which every tail needs.
func (s *Snapshot) setIdentity(prefix []byte) {
	s.crc, s.prefix[Identity] = crc32.ChecksumIEEE(prefix), len(prefix)
}

// setTags derives the entity tags from the bytes after data in the identity body. These bytes contain the digest of data, so
// the tags depend on every byte of the body. The tags of a page are derived from the whole body, and those of a form also from its
// header fields: a client that polls a form learns of another freshness.
func (s *Snapshot) setTags() {
	stem := Digest(append([]byte(s.Lines), s.bodies[Identity][s.data[1]-len(s.head):]...))[:32]
	for c := range Codings {
		s.tags[c] = `"` + stem + c.tagSuffix() + `"`
	}
}

const (
	// MaxUsage bounds the usage of a tail, in bytes.
	MaxUsage = 4096
	// MaxTail is the most bytes that a start and a tail have besides the usage. A gzip tail has 5 bytes before it, and the closing
	// brace and 8 bytes after it.
	MaxTail = 14
)

// AppendStart appends to dst the bytes that replace the first bytes of [Snapshot.Prefix], as many, in a body with the given usage: of
// zstd the header of the frame, which says the size of the body. It appends nothing in another coding. See [Snapshot.AppendTail].
func (s *Snapshot) AppendStart(dst []byte, c Coding, usage []byte) []byte {
	if c != Zstd || !s.Has(c) {
		return dst
	}
	return appendZstdStart(dst, s.bodies[c][5], s.prefix[Identity]+len(usageOrNull(usage))+len(envelopeEnd))
}

// AppendTail appends to dst the bytes that complete [Snapshot.Prefix] to a whole body with the given usage, one JSON value.
// It returns the extended buffer. It keeps neither argument, allocates nothing when dst has room for len(usage) + [MaxTail]
// bytes and the bytes of a cut that it does not share, and may be called by any number of goroutines. A usage that is empty or over MaxUsage bytes becomes null.
// AppendTail appends nothing if the snapshot is not sealed in the coding.
func (s *Snapshot) AppendTail(dst []byte, c Coding, usage []byte) []byte {
	if !s.Has(c) {
		return dst
	}
	if s.head != nil {
		dst = append(dst, s.bodies[c][:s.prefix[c]]...)
	}
	return s.appendTail(dst, c, usageOrNull(usage), envelopeEnd)
}

func usageOrNull(usage []byte) []byte {
	if len(usage) == 0 || len(usage) > MaxUsage {
		return null
	}
	return usage
}

// appendTail completes a body whose prefix is already coded. It appends usage and end, which have 1 to 65,535 bytes
// together, uncompressed: in gzip as a stored final block, before the checksum and the length of the whole; in br as an
// uncompressed metablock, before an empty last one; in zstd as a raw last block.
func (s *Snapshot) appendTail(dst []byte, c Coding, usage []byte, end string) []byte {
	n := len(usage) + len(end)
	switch c {
	case Gzip:
		dst = append(dst, 1, byte(n), byte(n>>8), ^byte(n), ^byte(n>>8)) // final, stored; length and its complement
	case Brotli:
		// From the lowest bit: not the last (1 bit), length in 16 bits (2 bits), length - 1, uncompressed (1 bit).
		h := uint32(n-1)<<3 | 1<<19
		dst = append(dst, byte(h), byte(h>>8), byte(h>>16))
	case Zstd:
		h := uint32(n)<<3 | 1 // from the lowest bit: last (1 bit), raw (2 bits), length
		dst = append(dst, byte(h), byte(h>>8), byte(h>>16))
	}
	start := len(dst)
	dst = append(append(dst, usage...), end...)
	switch c {
	case Gzip:
		crc := crc32.Update(s.crc, crc32.IEEETable, dst[start:])
		dst = binary.LittleEndian.AppendUint32(dst, crc)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(s.prefix[Identity]+n))
	case Brotli:
		dst = append(dst, 3) // last, empty
	}
	return dst
}

var null = []byte("null")

// parse rebuilds a snapshot from its stored bodies. A body that is not stored is nil, but identity or gzip must be stored.
// The snapshot keeps the memory of the bodies. Coded bodies are not decoded, but each must end in the tail that belongs to
// the identity body.
func parse(bodies [Codings][]byte) (*Snapshot, error) {
	if bodies[Identity] == nil {
		var err error
		if bodies[Identity], err = decompress(Gzip, bodies[Gzip], MaxTransfer); err != nil {
			return nil, err
		}
	}
	var envelope struct {
		Data  json.RawMessage `json:"data"`
		Meta  Meta            `json:"meta"`
		Usage json.RawMessage `json:"usage"`
	}
	identity := bodies[Identity]
	if err := json.Unmarshal(identity, &envelope); err != nil {
		return nil, err
	}
	prefix, ok := bytes.CutSuffix(identity, slices.Concat([]byte(envelopeUsage), envelope.Usage, []byte(envelopeEnd)))
	n := len(envelope.Data)
	if !ok || !bytes.HasPrefix(prefix, []byte(envelopeData)) || len(prefix) < len(envelopeData)+n ||
		Digest(prefix[len(envelopeData):len(envelopeData)+n]) != envelope.Meta.Receipt.DataSHA256 {
		return nil, errors.New("body is not a sealed envelope")
	}
	s := newSnapshot(envelope.Meta, n)
	return s, s.adopt(bodies, len(prefix)+len(envelopeUsage), envelope.Usage, envelopeEnd)
}

// adopt gives a snapshot its stored bodies. The identity body is a prefix of n bytes, then tail, then end.
func (s *Snapshot) adopt(bodies [Codings][]byte, n int, tail []byte, end string) error {
	s.bodies = bodies
	s.setIdentity(bodies[Identity][:n])
	for c, body := range bodies {
		c := Coding(c)
		if body == nil && c > Gzip {
			continue
		}
		coded, ok := bytes.CutSuffix(body, s.appendTail(nil, c, tail, end))
		if ok = ok && (c != Zstd || len(coded) >= zstdStart); ok && c == Zstd {
			ok = bytes.HasPrefix(coded, appendZstdStart(nil, coded[5], n+len(tail)+len(end)))
		}
		if !ok {
			return fmt.Errorf("%v body does not end as the identity body does", c)
		}
		s.prefix[c] = len(coded)
	}
	s.setTags()
	return nil
}

// Digest returns the SHA-256 of bytes in hexadecimal.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
