// Package feed takes documents in and decides which ones are valid.
//
// A [Document] is decoded once, where it arrives. The [Intake] holds the document of each name that was accepted last, and its
// guards compare a new document with it. [Polite] spares an upstream over a network. A [Clock] tells the market's time.
package feed

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/cboe"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// Document is one input of an answer: an upstream document or a state, with the decoded content. A state is data from
// the answers before or from the configuration. One goroutine at a time uses a document.
type Document struct {
	snapshots.StoredInput
	Body   []byte                              // nil while it can be read again
	Gzip   []byte                              // the body as the upstream sent it, in gzip; nil if it sent none, or once it is stored
	load   func(sha256 string) ([]byte, error) // reads the body of a stored document
	origin *upstream.Document                  // without its bytes, for the next conditional request; nil for a stored document
	Failed bool                                // a product could not be computed from it: the next request asks for it again

	// The decoded content. One of these is set, by the kind of the document, unless the document is still to be opened.
	Chain      *compute.Chain // nil again once it is released
	Quote      *cboe.Quote
	Closes     []compute.Close
	Settlement *Settlement

	Underlying compute.UnderlyingQuote // what a chain or a quote says of its underlying; it stays when the chain is released
	Bad        int                     // numbers that count as absent because they are outside the range of their kind
	Derived    any                     // what products have computed from a chain of the session before and need again
	mark       mark                    // for the guard
}

// Settlement is a decoded settlement file.
type Settlement struct {
	Date compute.Date // the date that the file states, else the date that was asked for
	Rows []compute.FuturesSettlement
	Bad  int // number of unreadable rows
}

// LatestSettlement is the name under which the newest settlement file is kept. The upstream names each file by its date.
const LatestSettlement = upstream.Name("settlement/")

// ChainOf returns the name of the chain of an underlying. The upstream writes an underscore before the symbol of an index.
func ChainOf(symbol string) upstream.Name {
	if compute.UnderlyingOf(symbol).Kind == compute.KindIndex {
		symbol = "_" + symbol
	}
	return upstream.Options(symbol)
}

// New returns the decoded document that the upstream sent. It keeps the bytes of doc. The error is an
// [*upstream.Error] with the reason truncated, too_large, malformed, html or empty.
func New(doc *upstream.Document) (*Document, error) {
	d := &Document{
		StoredInput: snapshots.StoredInput{
			Input: snapshots.Input{Name: string(doc.Name)}, Received: doc.Received, Generated: doc.Generated, FileDate: doc.FileDate,
		},
		Body: doc.Body, Gzip: doc.Gzip, origin: new(*doc),
	}
	d.origin.Body, d.origin.Gzip = nil, nil
	if err := d.read(); err != nil {
		return nil, err
	}
	if len(d.Gzip) > len(d.Body) { // gzip with empty blocks
		d.Gzip = nil
	}
	d.SHA256 = snapshots.Digest(d.Body)
	if err := d.decode(); err != nil {
		return nil, err
	}
	if d.Settlement != nil {
		d.origin.FileDate = d.Settlement.Date.String()
	} else {
		d.origin.Generated = d.captured()
	}
	if d.Chain != nil && d.Gzip != nil { // the decoded chain has all that is needed of its 12 MB
		d.Body = nil
	}
	return d, nil
}

// Stored returns an input of a stored answer. load reads its bytes when they are needed.
func Stored(in snapshots.StoredInput, load func(sha256 string) ([]byte, error)) *Document {
	return &Document{StoredInput: in, load: load}
}

const (
	// PreviousDir begins the names of documents of the session before.
	PreviousDir = "previous/"
	// StateDir begins the names of states.
	StateDir = "state/"
)

// State returns a state as an input. It keeps the bytes of state.
func State(name string, state []byte) *Document {
	return &Document{
		StoredInput: snapshots.StoredInput{Input: snapshots.Input{Name: StateDir + name, SHA256: snapshots.Digest(state)}}, Body: state,
	}
}

// Newest says whether the document is an upstream document of the answer's own session: neither a state nor a document of
// the session before.
func (d *Document) Newest() bool {
	return !strings.HasPrefix(d.Name, StateDir) && !strings.HasPrefix(d.Name, PreviousDir)
}

// Open decodes the document if it is not decoded, and reads its bytes again if they are not in memory. Of a state, it only
// reads the bytes.
func (d *Document) Open() error {
	if d.Chain != nil || d.Quote != nil || d.Closes != nil || d.Settlement != nil {
		return nil
	}
	if err := d.read(); err != nil || strings.HasPrefix(d.Name, StateDir) {
		return err
	}
	return d.decode()
}

// read sets the body if it is not in memory.
func (d *Document) read() (err error) {
	switch {
	case d.Body != nil:
	case d.Gzip != nil:
		d.Body, err = cboe.Unpack(&upstream.Document{Name: d.UpstreamName(), Gzip: d.Gzip})
	case d.load != nil:
		d.Body, err = d.load(d.SHA256)
	}
	return err
}

// Release frees the memory of a chain and of bytes; Open loads them again.
func (d *Document) Release() {
	d.Chain = nil
	if d.load != nil || d.Gzip != nil {
		d.Body = nil
	}
}

// Detached returns a copy that keeps its bytes, whatever becomes of the document in the store.
func (d *Document) Detached() (*Document, error) {
	c := *d
	err := c.read()
	c.load, c.Gzip = nil, nil
	return &c, err
}

// InStore drops the bytes of a document that the store has. load reads them again.
func (d *Document) InStore(load func(sha256 string) ([]byte, error)) {
	d.Body, d.Gzip, d.load = nil, nil, load
}

// Session returns the session that a chain describes.
func (d *Document) Session(cal *compute.Calendar) (compute.Date, error) {
	if d.Underlying.AsOf.IsZero() {
		if err := d.Open(); err != nil {
			return 0, err
		}
	}
	return d.Underlying.Session(cal), nil
}

// captured returns the document's own timestamp: of a history, the last date, which is no weekend although some histories have rows of a Sunday.
func (d *Document) captured() time.Time {
	for _, c := range slices.Backward(d.Closes) {
		if !c.Date.Weekend() {
			return c.Date.Midnight()
		}
	}
	return d.Underlying.CapturedAt
}

func (d *Document) decode() (err error) {
	name := d.UpstreamName()
	kind, key := name.Split()
	switch kind {
	case upstream.OptionsKind:
		err = d.decodeChain(key)
	case upstream.QuotesKind:
		err = d.decodeQuote(key)
	case upstream.HistoryKind:
		d.Closes, d.Bad, err = cboe.DecodeHistory(d.Body, cboe.PriceKind(withoutUnderscore(key)))
	case upstream.SettlementKind:
		err = d.decodeSettlement(key)
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

func (d *Document) decodeChain(symbol string) error {
	chain, err := cboe.DecodeChain(d.Body)
	if err != nil {
		return err
	}
	if err := checkSymbol(chain.Symbol, symbol); err != nil {
		return err
	}
	if chain.IsIndex && compute.UnderlyingOf(chain.Symbol).Kind != compute.KindIndex {
		return fmt.Errorf("%w: %s is an index whose options are not known here", cboe.ErrMalformed, chain.Symbol)
	}
	d.Chain, d.Underlying, d.Bad = chain, chain.UnderlyingQuote, chain.BadNumbers
	return nil
}

func (d *Document) decodeQuote(symbol string) error {
	quote, err := cboe.DecodeQuote(d.Body)
	if err != nil {
		return err
	}
	if err := checkSymbol(quote.Symbol, symbol); err != nil {
		return err
	}
	d.Quote, d.Underlying, d.Bad = quote, quote.UnderlyingQuote, quote.BadNumbers
	return nil
}

// decodeSettlement decodes a settlement file. asked is the date in its name, used if the file states no date.
func (d *Document) decodeSettlement(asked string) (err error) {
	f := &Settlement{}
	if f.Rows, f.Bad, err = cboe.DecodeSettlement(d.Body); err != nil {
		return err
	}
	if f.Date, err = compute.ParseDate(cmp.Or(d.FileDate, asked)); err != nil {
		return fmt.Errorf("%w: %w", cboe.ErrMalformed, err)
	}
	d.Settlement, d.Name = f, string(upstream.Settlement(f.Date.String())) // the receipt must say of which date the file is
	return nil
}

// checkSymbol returns an error if a document has another symbol than its name.
func checkSymbol(says, symbol string) error {
	if says != withoutUnderscore(symbol) {
		return fmt.Errorf("%w: document of %s has the symbol %.10q", cboe.ErrMalformed, symbol, says)
	}
	return nil
}

// maxExpirations and maxStrikeRows bound a chain that is served. A strike row is a root, an expiration and a strike. SPX
// lists 55 expirations and 15,500 strike rows. A chain of 5,000 expirations took 62 seconds and 1.2 GB to compute.
const (
	maxExpirations = 128
	maxStrikeRows  = 40_000
)

// checkSize refuses a chain beyond [maxExpirations] or [maxStrikeRows]. It takes one pass.
func checkSize(chain *compute.Chain) error {
	expirations, rows := map[compute.Date]bool{}, 0
	var last *compute.Contract
	for _, some := range [][]compute.Contract{chain.Contracts, chain.Unread} {
		for i := range some {
			c := &some[i]
			if last == nil || c.Expiration != last.Expiration || c.Root != last.Root || c.Strike != last.Strike {
				expirations[c.Expiration] = true
				rows++
			}
			last = c
		}
	}
	if len(expirations) > maxExpirations || rows > maxStrikeRows {
		return upstream.Refuse(upstream.TooMany, "%d expirations and %d strike rows, at most %d and %d are served", len(expirations), rows, maxExpirations, maxStrikeRows)
	}
	return nil
}

// UpstreamName returns the name that the upstream gives to the document.
func (d *Document) UpstreamName() upstream.Name {
	return upstream.Name(strings.TrimPrefix(d.Name, PreviousDir))
}

// Key returns the name under which the document is kept as the newest of its name.
func (d *Document) Key() upstream.Name { return keyOf(d.UpstreamName()) }

func keyOf(name upstream.Name) upstream.Name {
	if kind, _ := name.Split(); kind == upstream.SettlementKind {
		return LatestSettlement
	}
	return name
}

// Symbol returns the symbol of the document without the underscore of indices.
func (d *Document) Symbol() string {
	_, key := d.UpstreamName().Split()
	return withoutUnderscore(key)
}

// withoutUnderscore returns the symbol as the chain itself spells it: the upstream names the document of an index with an
// underscore before the symbol.
func withoutUnderscore(symbol string) string { return strings.TrimPrefix(symbol, "_") }

// Counts returns the members of a struct of counts that are not 0, in the order of their names: "3 duplicate, 1 settled".
func Counts(of any) string {
	var members map[string]any
	text, _ := json.Marshal(of) // a struct of numbers and texts
	_ = json.Unmarshal(text, &members)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if n, ok := members[name].(float64); ok && n > 0 {
			out = append(out, fmt.Sprintf("%.0f %s", n, name))
		}
	}
	return cmp.Or(strings.Join(out, ", "), "none")
}
