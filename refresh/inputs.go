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

// document is an upstream document, or a piece of kept state, and what was decoded of it. Only the goroutine that
// takes it the document's way changes it.
type document struct {
	archive.Document                    // its body is dropped once it is archived
	load             func() error       // reads Body again; nil: there is no other place
	origin           *upstream.Document // without its body: what a conditional request needs; nil for one from the archive
	content          string             // digest without the document's own clocks

	// What was decoded, by kind.
	chain      *compute.Chain // dropped once all answers are computed
	quote      *cboe.Quote
	closes     []compute.Close
	settlement *settlement

	volatility map[string]float64 // of a state

	mark chainMark // of a chain
	part *flowPart // what a chain contributes to the flow, once computed
}

// newDocument decodes what the upstream sent.
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

// archivedDocument returns an input whose bytes body reads when they are needed.
func archivedDocument(in archive.Input, body func(archive.Input) ([]byte, error)) *document {
	d := &document{Document: archive.Document{Input: in}}
	d.load = func() (err error) {
		d.Body, err = body(in)
		return err
	}
	return d
}

// stateDocument returns dated state as an input.
func stateDocument(name, date string, state []byte) *document {
	return &document{Document: archive.Document{
		Input: archive.Input{Name: stateDir + name, SHA256: sha256Hex(state), FileDate: date}, Body: state,
	}}
}

// open has the document decoded. Decoding it again gives the same.
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
			d.content = hex.EncodeToString(d.quote.Content[:])
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
		return fmt.Errorf("%w: it holds the chain of %.10q", cboe.ErrMalformed, chain.Symbol)
	}
	d.chain, d.content = chain, hex.EncodeToString(content[:])
	d.mark = chainMark{rows: chain.Listed - chain.Skipped.Total(), captured: chain.CapturedAt, content: d.content}
	return nil
}

func (d *document) symbol() string { return symbolOf(upstream.Name(d.Name)) }

// symbolOf returns the symbol of a document without the underscore of indices.
func symbolOf(name upstream.Name) string {
	_, key := name.Split()
	return withoutUnderscore(key)
}

// withoutUnderscore returns the symbol of an index as the chain itself spells it.
func withoutUnderscore(symbol string) string { return strings.TrimPrefix(symbol, "_") }

func sha256Hex(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// inputs is everything that one answer is computed from. Inputs of a live refresh, of a past session and of a recipe
// in the archive have the same form.
type inputs struct {
	at           time.Time // of the computation, by the market's clock
	calendar     *compute.Calendar
	riskFreeRate float64
	source       string          // name of the upstream
	documents    []*document     // in the order of the receipt
	states       []*document     // kept state of its own file
	state        json.RawMessage // kept state that stands in the recipe; nil: none
}

// arrived returns when the last document arrived.
func (in *inputs) arrived() (at time.Time) {
	for _, d := range in.documents {
		at = later(at, d.Received)
	}
	return at
}

// digests returns the digests of the documents, as the receipt has them.
func (in *inputs) digests() (sums []string) {
	for _, d := range in.documents {
		sums = append(sums, d.SHA256)
	}
	return sums
}

// content identifies the inputs without the documents' own clocks.
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

// withState encodes the state that stands in the recipe.
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

// chain returns the one chain that the inputs are.
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

// inputsOf returns the inputs that a recipe describes. body reads one of them.
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
