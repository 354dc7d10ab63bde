package refresh

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/archive"
	"strikecache/refresh/cboe"
	"strikecache/refresh/upstream"
)

// document is one input of an answer: an upstream document or a dated state of ours, with the decoded content. Only the
// goroutine that takes the document through [Refresher.accept] changes it.
type document struct {
	archive.Document                    // Body is nil once the document is archived
	load             func() error       // reads Body from the archive; nil: Body cannot be read again
	origin           *upstream.Document // without Body, for the next conditional request; nil for a document from the archive
	content          string             // digest of the document without its own timestamps

	// The decoded content. One of these is set, by the kind of the document.
	chain      *compute.Chain // nil again once all answers are computed
	quote      *cboe.Quote
	closes     []compute.Close
	settlement *settlement
	volatility map[string]float64 // of a dated state: published volatility by contract symbol

	captured time.Time // of a chain: the timestamp of the document that answers name
	mark     chainMark // of a chain, for the guard
	part     *flowPart // of a chain: its part of the flow; nil before it is computed
}

// newDocument returns the decoded document that the upstream sent. It keeps the bytes of doc.Body. The error is an
// [*upstream.Error] with the reason malformed, html or empty.
func newDocument(doc *upstream.Document) (*document, error) {
	d := &document{Document: archive.Document{
		Input: archive.Input{
			Name: string(doc.Name), SHA256: sha256Hex(doc.Body), Received: doc.Received, Generated: doc.Generated, FileDate: doc.FileDate,
		},
		Body: doc.Body,
	}}
	without := *doc
	without.Body = nil
	d.origin = &without
	return d, d.decode()
}

// archivedDocument returns an archived input. The function body reads its bytes when they are needed.
func archivedDocument(in archive.Input, body func(archive.Input) ([]byte, error)) *document {
	d := &document{Document: archive.Document{Input: in}}
	d.load = func() (err error) {
		d.Body, err = body(in)
		return err
	}
	return d
}

// stateDocument returns a dated state as an input. It keeps the bytes of state.
func stateDocument(name, date string, state []byte) *document {
	return &document{Document: archive.Document{
		Input: archive.Input{Name: stateDir + name, SHA256: sha256Hex(state), FileDate: date}, Body: state,
	}}
}

// open decodes the document if it is not decoded, and reads its bytes from the archive if they are not in memory.
func (d *document) open() error {
	if d.chain != nil || d.quote != nil || d.closes != nil || d.settlement != nil {
		return nil
	}
	if d.Body == nil && d.load != nil {
		if err := d.load(); err != nil {
			return err
		}
	}
	return d.decode()
}

func (d *document) decode() (err error) {
	name := upstream.Name(d.Name)
	kind, key := name.Split()
	d.content = d.SHA256
	switch kind {
	case upstream.OptionsKind:
		err = d.decodeChain(key)
	case upstream.QuotesKind:
		if d.quote, err = cboe.DecodeQuote(d.Body); err == nil {
			d.content = d.quote.Content
		}
	case upstream.HistoryKind:
		d.closes, err = cboe.DecodeHistory(d.Body)
	case upstream.SettlementKind:
		d.settlement, err = decodeSettlement(d, key)
	}
	if err == nil {
		return nil
	}
	reason := upstream.Malformed
	switch {
	case errors.Is(err, cboe.ErrHTML):
		reason = upstream.HTML
	case errors.Is(err, compute.ErrEmptyChain), errors.Is(err, compute.ErrNoSpot), errors.Is(err, cboe.ErrNoRows):
		reason = upstream.Empty
	}
	return &upstream.Error{Name: name, Reason: reason, Err: err}
}

func (d *document) decodeChain(symbol string) error {
	chain, content, err := cboe.DecodeChain(d.Body)
	if err != nil {
		return err
	}
	if chain.Symbol != withoutUnderscore(symbol) {
		return fmt.Errorf("%w: document of %s has the chain of %.10q", cboe.ErrMalformed, symbol, chain.Symbol)
	}
	d.chain, d.content = chain, content
	d.captured = chain.CapturedAt
	d.mark = chainMark{rows: chain.Listed - chain.Skipped.Total(), captured: chain.CapturedAt, content: d.content}
	return nil
}

// standFor lets a fetched chain stand for an accepted one of the same content: answers name the accepted document and have
// its captured_at. So all answers of a feed keep one instant, although only some of them change.
func (d *document) standFor(accepted *document) {
	d.Document, d.load, d.captured = accepted.Document, accepted.load, accepted.captured
	d.chain.CapturedAt = accepted.captured
}

func (d *document) symbol() string { return symbolOf(upstream.Name(d.Name)) }

// symbolOf returns the symbol of a document without the underscore of indices.
func symbolOf(name upstream.Name) string {
	_, key := name.Split()
	return withoutUnderscore(key)
}

// withoutUnderscore returns the symbol as the chain itself spells it: the upstream names the document of an index with an
// underscore before the symbol.
func withoutUnderscore(symbol string) string { return strings.TrimPrefix(symbol, "_") }

func sha256Hex(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// inputs is everything that one answer is computed from. A live refresh, a back-fill and a recipe in the archive give
// inputs of the same form.
type inputs struct {
	at           time.Time // of the computation, in market time
	calendar     *compute.Calendar
	riskFreeRate float64         // per year, continuously compounded
	source       string          // name of the upstream
	documents    []*document     // upstream documents, in the order of the receipt
	states       []*document     // dated states, each archived as a document of its own
	state        json.RawMessage // small state, archived inside the recipe; nil: none
}

// arrived returns the time at which the last document arrived.
func (in *inputs) arrived() (at time.Time) {
	for _, d := range in.documents {
		at = later(at, d.Received)
	}
	return at
}

// digests returns the SHA-256 of each document, in hexadecimal, for meta.receipt.input_sha256.
func (in *inputs) digests() (sums []string) {
	for _, d := range in.documents {
		sums = append(sums, d.SHA256)
	}
	return sums
}

// content returns a digest of all inputs. It stays the same when only the documents' own timestamps change.
func (in *inputs) content() string {
	var all strings.Builder
	for _, d := range in.documents {
		all.WriteString(d.content)
	}
	for _, d := range in.states {
		all.WriteString(d.SHA256)
	}
	return sha256Hex([]byte(all.String()))
}

// withState sets the state that is archived inside the recipe. It returns nil when in is nil.
func (in *inputs) withState(state any) (*inputs, error) {
	if in == nil {
		return nil, nil
	}
	var err error
	if in.state, err = json.Marshal(state); err != nil {
		return nil, fmt.Errorf("encode state: %w", err)
	}
	return in, nil
}

func (in *inputs) decodeState(into any) error {
	if err := json.Unmarshal(in.state, into); err != nil {
		return fmt.Errorf("decode state: %w", err)
	}
	return nil
}

// chain returns the decoded chain of inputs that have one document. Any other document is an error.
func (in *inputs) chain() (*compute.Chain, error) {
	if len(in.documents) != 1 {
		return nil, fmt.Errorf("%d documents instead of one chain", len(in.documents))
	}
	d := in.documents[0]
	if err := d.open(); err != nil {
		return nil, err
	}
	if d.chain == nil {
		return nil, fmt.Errorf("%s is not a chain", d.Name)
	}
	return d.chain, nil
}

// inputsOf returns the inputs that a recipe describes. The function body reads the bytes of one input.
func inputsOf(r *archive.Recipe, body func(archive.Input) ([]byte, error)) *inputs {
	in := &inputs{
		at: r.ComputedAt, calendar: compute.NewCalendar(r.Closed, r.Early), riskFreeRate: r.RiskFreeRate, state: r.State,
	}
	for _, d := range r.Inputs {
		in.documents = append(in.documents, archivedDocument(d, body))
	}
	for _, d := range r.States {
		in.states = append(in.states, archivedDocument(d, body))
	}
	return in
}
