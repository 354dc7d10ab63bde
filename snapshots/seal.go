package snapshots

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/goccy/go-json"
	"github.com/klauspost/compress/gzip"
)

// Meta is the envelope's `meta`. Instants are UTC, in whole seconds.
type Meta struct {
	Endpoint       string          `json:"endpoint"`
	Source         string          `json:"source"`
	AsOf           time.Time       `json:"as_of"`       // the instant the quotes describe
	CapturedAt     *time.Time      `json:"captured_at"` // the document's own generation time; nil when it has none
	ComputedAt     time.Time       `json:"computed_at"`
	SessionDate    string          `json:"session_date"`
	DelayMinutes   int             `json:"delay_minutes"`
	RefreshSeconds int             `json:"refresh_seconds"`
	Freshness      Freshness       `json:"freshness"`
	Receipt        Receipt         `json:"receipt"`
	Quality        json.RawMessage `json:"quality"`
	Notice         string          `json:"notice"`
}

// Freshness says whether the answer is as new as it should be.
type Freshness struct {
	State  string    `json:"state"`  // fresh, stale or closed
	Reason *string   `json:"reason"` // a code; nil when fresh
	Since  time.Time `json:"since"`
}

// Equal compares state and reason, not the instant.
func (f Freshness) Equal(g Freshness) bool {
	if (f.Reason == nil) != (g.Reason == nil) || f.Reason != nil && *f.Reason != *g.Reason {
		return false
	}
	return f.State == g.State
}

// Receipt makes the numbers reproducible.
type Receipt struct {
	Method      string   `json:"method"`
	InputSHA256 []string `json:"input_sha256"` // of the upstream documents
	DataSHA256  string   `json:"data_sha256"`  // of the bytes of data as sent
}

// The envelope around data, meta and usage.
const (
	envelopeData  = `{"success":true,"data":`
	envelopeMeta  = `,"meta":`
	envelopeUsage = `,"usage":`
	envelopeEnd   = `}`

	anonymousUsage = `{"tier":"anonymous"}`
)

// gzipLevel trades the refresher's time for every client's bandwidth: level 6 takes 60 ms for the 7.5 MB of
// one chain's documents.
const gzipLevel = 6

// Seal builds the snapshot of data, one JSON value, and meta. It fills in the receipt's digest of data. It keeps
// neither argument's memory but quality and the receipt's slice, which the caller must not change afterwards.
func Seal(data []byte, meta Meta) (*Snapshot, error) {
	if len(data) == 0 || !json.Valid(data) || data[0] <= ' ' || data[len(data)-1] <= ' ' || bytes.IndexByte(data, '\n') >= 0 {
		return nil, errors.New("seal snapshot: data is not JSON on one line")
	}
	meta.Receipt.DataSHA256 = digest(data)
	encoded, err := json.Marshal(meta)
	if err != nil {
		return nil, fmt.Errorf("seal snapshot: %w", err)
	}
	body := make([]byte, 0, len(data)+len(encoded)+len(envelopeData+envelopeMeta+envelopeUsage+anonymousUsage+envelopeEnd))
	body = append(append(body, envelopeData...), data...)
	body = append(append(body, envelopeMeta...), encoded...)
	body = append(append(append(body, envelopeUsage...), anonymousUsage...), envelopeEnd...)
	compressed, err := compress(body)
	if err != nil {
		return nil, fmt.Errorf("seal snapshot: %w", err)
	}
	return newSnapshot(body, compressed, len(data), meta), nil
}

// Reseal returns the snapshot with other meta around the same data.
func (s *Snapshot) Reseal(meta Meta) (*Snapshot, error) { return Seal(s.Data(), meta) }

func newSnapshot(identity, compressed []byte, dataLen int, meta Meta) *Snapshot {
	s := &Snapshot{Meta: meta, bodies: [Codings][]byte{Identity: identity, Gzip: compressed}}
	s.data = [2]int{len(envelopeData), len(envelopeData) + dataLen}
	stem := digest(identity)[:32]
	for c := range Codings {
		s.tags[c] = `"` + stem + c.tagSuffix() + `"`
	}
	return s
}

// writers are idle compressors: a new one costs 800 KB.
var writers = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzipLevel)
	if err != nil {
		panic("gzip level is a constant: " + err.Error())
	}
	return w
}}

func compress(body []byte) ([]byte, error) {
	w := writers.Get().(*gzip.Writer)
	defer writers.Put(w)
	var b bytes.Buffer
	b.Grow(len(body) / 4)
	w.Reset(&b)
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return bytes.Clone(b.Bytes()), nil
}

// maxBody bounds one decompressed body. The largest real one is under 1 MB.
const maxBody = 64 << 20

func decompress(body []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(r, maxBody+1))
	if err == nil && len(out) > maxBody {
		err = fmt.Errorf("body is over %d bytes", maxBody)
	}
	return out, err
}

// parse rebuilds a snapshot from its stored bodies, of which identity may be nil. It keeps their memory.
func parse(identity, compressed []byte) (*Snapshot, error) {
	if identity == nil {
		var err error
		if identity, err = decompress(compressed); err != nil {
			return nil, err
		}
	}
	var envelope struct {
		Data json.RawMessage `json:"data"`
		Meta Meta            `json:"meta"`
	}
	if err := json.Unmarshal(identity, &envelope); err != nil {
		return nil, err
	}
	n := len(envelope.Data)
	if !bytes.HasPrefix(identity, []byte(envelopeData)) || len(identity) < len(envelopeData)+n ||
		digest(identity[len(envelopeData):len(envelopeData)+n]) != envelope.Meta.Receipt.DataSHA256 {
		return nil, errors.New("body is not a sealed envelope")
	}
	return newSnapshot(identity, compressed, n, envelope.Meta), nil
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
