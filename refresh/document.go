package refresh

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"strikecache/compute"
	"strikecache/refresh/cboe"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// document is one input of an answer: an upstream document or a state, with the decoded content. A state is data from
// the answers before or from the configuration. Only the goroutine that takes the document through [publisher.accept]
// changes it.
type document struct {
	snapshots.StoredInput
	Body   []byte                              // nil once it is decoded and kept elsewhere
	Gzip   []byte                              // the body as the upstream sent it, in gzip; nil if it sent none, or once it is stored
	load   func(sha256 string) ([]byte, error) // reads Body again; nil: it cannot be read again
	origin *upstream.Document                  // without Body, for the next conditional request; nil for a stored document
	failed bool                                // a product could not be computed from it: the next request asks for it again

	// The decoded content. One of these is set, by the kind of the document.
	chain      *compute.Chain // nil again once all answers are computed
	quote      *cboe.Quote
	closes     []compute.Close
	settlement *settlement

	bad  int       // numbers of a quote or a history that count as absent because they are outside the range of their kind
	mark mark      // for the guard
	part *flowPart // of a chain: its part of the flow; nil before it is computed

	// Of a chain of the session before; nil before they are asked for.
	before     *compute.ChainBefore // see [chainBefore]
	reference  *compute.GammaState  // see [gammaReference]
	rateSource compute.RateSource   // of the reference
}

// newDocument returns the decoded document that the upstream sent. It keeps the bytes of doc. The error is an
// [*upstream.Error] with the reason truncated, too_large, malformed, html, empty or too_many_expirations.
func newDocument(doc *upstream.Document) (*document, error) {
	d := &document{
		StoredInput: snapshots.StoredInput{
			Input: snapshots.Input{Name: string(doc.Name)}, Received: doc.Received, Generated: doc.Generated, FileDate: doc.FileDate,
		},
		Body: doc.Body, Gzip: doc.Gzip,
	}
	without := *doc
	without.Body, without.Gzip = nil, nil
	d.origin = &without
	if d.Body == nil && d.Gzip != nil {
		var err error
		if d.Body, err = cboe.Unpack(doc); err != nil {
			return nil, err
		}
		if len(d.Gzip) > len(d.Body) { // gzip with empty blocks
			d.Gzip = nil
		}
	}
	d.SHA256 = sha256Hex(d.Body)
	err := d.decode()
	if d.chain != nil && d.Gzip != nil { // the decoded chain has all that is needed of its 12 MB
		d.Body = nil
	}
	return d, err
}

// storedDocument returns an input of a stored answer. load reads its bytes when they are needed.
func storedDocument(in snapshots.StoredInput, load func(sha256 string) ([]byte, error)) *document {
	return &document{StoredInput: in, load: load}
}

// previousDir begins the names of documents of the session before.
const previousDir = "previous/"

// stateDir begins the names of states.
const stateDir = "state/"

// stateDocument returns a state as an input. It keeps the bytes of state.
func stateDocument(name string, state []byte) *document {
	return &document{
		StoredInput: snapshots.StoredInput{Input: snapshots.Input{Name: stateDir + name, SHA256: sha256Hex(state)}}, Body: state,
	}
}

// newest says whether the document is an upstream document of the answer's own session: neither a state nor a document of
// the session before.
func (d *document) newest() bool { return isNewest(d.Name) }

func isNewest(name string) bool {
	return !strings.HasPrefix(name, stateDir) && !strings.HasPrefix(name, previousDir)
}

// open decodes the document if it is not decoded, and reads its bytes again if they are not in memory. Of a state, it only
// reads the bytes.
func (d *document) open() (err error) {
	if d.chain != nil || d.quote != nil || d.closes != nil || d.settlement != nil {
		return nil
	}
	if d.Body == nil && d.load != nil {
		if d.Body, err = d.load(d.SHA256); err != nil {
			return err
		}
	}
	if strings.HasPrefix(d.Name, stateDir) {
		return nil
	}
	return d.decode()
}

// release drops what can be read again, and what later answers do not need.
func (d *document) release() {
	if d.load != nil || d.part != nil {
		d.chain = nil
	}
	if d.load != nil {
		d.Body = nil
	}
}

// stored drops the bytes of a document that the store has.
func (d *document) stored(load func(sha256 string) ([]byte, error)) {
	d.Body, d.Gzip, d.load = nil, nil, load
}

func (d *document) decode() (err error) {
	name := d.upstreamName()
	kind, key := name.Split()
	switch kind {
	case upstream.OptionsKind:
		err = d.decodeChain(key)
	case upstream.QuotesKind:
		err = d.decodeQuote(key)
	case upstream.HistoryKind:
		d.closes, d.bad, err = cboe.DecodeHistory(d.Body, cboe.PriceKind(withoutUnderscore(key)))
	case upstream.SettlementKind:
		d.settlement, err = decodeSettlement(d, key)
	}
	if err == nil {
		return nil
	}
	reason := upstream.Malformed
	switch {
	case errors.Is(err, errTooMany):
		reason = upstream.TooMany
	case errors.Is(err, cboe.ErrHTML):
		reason = upstream.HTML
	case errors.Is(err, compute.ErrEmptyChain), errors.Is(err, compute.ErrNoSpot), errors.Is(err, cboe.ErrNoRows):
		reason = upstream.Empty
	}
	return &upstream.Error{Name: name, Reason: reason, Err: err}
}

func (d *document) decodeChain(symbol string) error {
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
	if err := checkSize(chain); err != nil {
		return err
	}
	d.chain = chain
	d.mark.captured, d.mark.rows = chain.CapturedAt, chain.Listed-chain.Skipped.Total()
	return nil
}

func (d *document) decodeQuote(symbol string) error {
	quote, err := cboe.DecodeQuote(d.Body)
	if err != nil {
		return err
	}
	if err := checkSymbol(quote.Symbol, symbol); err != nil {
		return err
	}
	d.quote, d.bad = quote, quote.BadNumbers
	d.mark.captured = quote.CapturedAt
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

// errTooMany is the error of a chain that has more expirations or strikes than are served.
var errTooMany = errors.New("chain is too large to serve")

// checkSize returns errTooMany for a chain beyond [maxExpirations] or [maxStrikeRows]. It takes one pass.
func checkSize(chain *compute.Chain) error {
	expirations, rows := map[compute.Date]bool{}, 0
	var last *compute.Contract
	for i := range len(chain.Contracts) + len(chain.Unread) {
		some, at := chain.Contracts, i
		if i >= len(some) {
			some, at = chain.Unread, i-len(some)
		}
		c := &some[at]
		if last == nil || c.Expiration != last.Expiration || c.Root != last.Root {
			expirations[c.Expiration] = true
			rows++
		} else if c.Strike != last.Strike {
			rows++
		}
		last = c
	}
	if len(expirations) > maxExpirations || rows > maxStrikeRows {
		return fmt.Errorf("%w: %d expirations and %d strike rows, at most %d and %d are served",
			errTooMany, len(expirations), rows, maxExpirations, maxStrikeRows)
	}
	return nil
}

// decodeSettlement decodes a settlement file. asked is the date in its name, used if the file states no date.
func decodeSettlement(d *document, asked string) (f *settlement, err error) {
	f = &settlement{}
	if f.rows, f.bad, err = cboe.DecodeSettlement(d.Body); err != nil {
		return nil, err
	}
	if f.date, err = compute.ParseDate(cmp.Or(d.FileDate, asked)); err != nil {
		return nil, fmt.Errorf("%w: %w", cboe.ErrMalformed, err)
	}
	d.Name = string(upstream.Settlement(f.date.String())) // the receipt must say of which date the file is
	return f, nil
}

// upstreamName returns the name that the upstream gives to the document.
func (d *document) upstreamName() upstream.Name {
	return upstream.Name(strings.TrimPrefix(d.Name, previousDir))
}

// symbol returns the symbol of the document without the underscore of indices.
func (d *document) symbol() string {
	_, key := d.upstreamName().Split()
	return withoutUnderscore(key)
}

// withoutUnderscore returns the symbol as the chain itself spells it: the upstream names the document of an index with an
// underscore before the symbol.
func withoutUnderscore(symbol string) string { return strings.TrimPrefix(symbol, "_") }

func sha256Hex(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
