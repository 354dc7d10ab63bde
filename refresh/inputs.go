package refresh

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/archive"
	"strikecache/refresh/cboe"
	"strikecache/refresh/upstream"
)

// document is one input of an answer: an upstream document or a state, with the decoded content. A state is data from
// earlier answers or from the configuration. Only the goroutine that takes the document through [Refresher.accept] changes
// it.
type document struct {
	archive.Document                    // dropped once the document is archived
	load             func() error       // reads Body from the archive; nil: Body cannot be read again
	origin           *upstream.Document // without Body, for the next conditional request; nil for a document from the archive
	content          string             // digest of the document without its own timestamps; "" for a small state

	// The decoded content. One of these is set, by the kind of the document.
	chain      *compute.Chain // nil again once all answers are computed
	quote      *cboe.Quote
	closes     []compute.Close
	settlement *settlement
	volatility map[string]float64  // of a state: published volatility by contract symbol
	reference  *compute.GammaState // of a state

	bad      int       // numbers of a quote or a history that count as absent because they are outside the range of their kind
	captured time.Time // of a chain: the timestamp of the document that answers name
	mark     mark      // of a chain or a quote, for the guard
	part     *flowPart // of a chain: its part of the flow; nil before it is computed
}

// newDocument returns the decoded document that the upstream sent. It keeps the bytes of doc, but not the body of a chain that
// has gzip. The error is an [*upstream.Error] with the reason truncated, too_large, malformed, html, empty or
// too_many_expirations.
func newDocument(doc *upstream.Document) (*document, error) {
	d := &document{Document: archive.Document{
		Input: archive.Input{Name: string(doc.Name), Received: doc.Received, Generated: doc.Generated, FileDate: doc.FileDate},
		Body:  doc.Body, Gzip: doc.Gzip,
	}}
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
	err := d.decode()
	d.SHA256 = sha256Hex(d.Body)
	d.content = cmp.Or(d.content, d.SHA256)
	if d.chain != nil && d.Gzip != nil { // the decoded chain has all that is needed of its 12 MB
		d.Body = nil
	}
	return d, err
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

// stateDir begins the names of states.
const stateDir = "state/"

// stateDocument returns a state as an input. It keeps the bytes of state. date may be "".
func stateDocument(name, date string, state []byte) *document {
	return &document{Document: archive.Document{
		Input: archive.Input{Name: stateDir + name, SHA256: sha256Hex(state), FileDate: date}, Body: state,
	}}
}

func (d *document) isState() bool { return isState(d.Name) }

func isState(name string) bool { return strings.HasPrefix(name, stateDir) }

// open decodes the document if it is not decoded, and reads its bytes from the archive if they are not in memory. Of a
// state, it only reads the bytes.
func (d *document) open() error {
	if d.chain != nil || d.quote != nil || d.closes != nil || d.settlement != nil {
		return nil
	}
	if d.Body == nil && d.load != nil {
		if err := d.load(); err != nil {
			return err
		}
	}
	if d.isState() {
		return nil
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
	chain, content, err := cboe.DecodeChain(d.Body)
	if err != nil {
		return err
	}
	if err := checkSymbol(chain.Symbol, symbol); err != nil {
		return err
	}
	if err := checkSize(chain); err != nil {
		return err
	}
	d.chain, d.content = chain, content
	d.captured = chain.CapturedAt
	d.mark.captured, d.mark.content, d.mark.rows = chain.CapturedAt, content, chain.Listed-chain.Skipped.Total()
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
	d.quote, d.content, d.bad = quote, quote.Content, quote.BadNumbers
	d.mark.captured, d.mark.content = quote.CapturedAt, quote.Content
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
const maxExpirations = 128

var maxStrikeRows = 40_000 // a benchmark raises it

// errTooMany is the error of a chain that has more expirations or strikes than are served.
var errTooMany = errors.New("chain is too large to serve")

// checkSize returns errTooMany for a chain beyond [maxExpirations] or [maxStrikeRows]. It takes one pass.
func checkSize(chain *compute.Chain) error {
	expirations, rows := map[compute.Date]bool{}, 0
	var last *compute.Contract
	for i := range chain.Contracts {
		c := &chain.Contracts[i]
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

// standFor puts a fetched chain in the place of an accepted one with the same content: answers name the accepted document
// and have its captured_at. So all answers of a feed keep one instant, although only some of them change.
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
	at         time.Time // of the computation, in market time
	calendar   *compute.Calendar
	parameters parameters
	source     string               // name of the upstream
	documents  []*document          // upstream documents, then states, in the order of the receipt
	gamma      *compute.GammaResult // of gammaOf; nil before its first call
}

// parameters are the settings of the receipt. Each product sets those that its data depends on.
type parameters struct {
	RiskFreeRate *float64 `json:"risk_free_rate,omitempty"` // per year, continuously compounded
	// StaleSessionsTo is the session up to which stale_sessions counts.
	StaleSessionsTo *compute.Date `json:"stale_sessions_to,omitempty"`
}

// upstream returns the documents that are not states.
func (in *inputs) upstream() (documents []*document) {
	for _, d := range in.documents {
		if !d.isState() {
			documents = append(documents, d)
		}
	}
	return documents
}

// arrived returns the time at which the last document arrived.
func (in *inputs) arrived() (at time.Time) {
	for _, d := range in.documents {
		at = later(at, d.Received)
	}
	return at
}

// digests returns the SHA-256 of each document, in hexadecimal, in the order of the receipt.
func (in *inputs) digests() (sums []string) {
	for _, d := range in.documents {
		sums = append(sums, d.SHA256)
	}
	return sums
}

// content returns a digest of all inputs but small states. It stays the same when only the documents' own timestamps
// change. A small state that matters changes the data.
func (in *inputs) content() string {
	var all strings.Builder
	for _, d := range in.documents {
		all.WriteString(d.content)
	}
	return sha256Hex([]byte(all.String()))
}

// addState adds a small state to the inputs, as JSON.
func (in *inputs) addState(name string, state any) error {
	body, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("encode state %s: %w", name, err)
	}
	in.documents = append(in.documents, stateDocument(name, "", body))
	return nil
}

// named returns the input of a name, nil when there is none.
func (in *inputs) named(name string) *document {
	if i := slices.IndexFunc(in.documents, func(d *document) bool { return d.Name == name }); i >= 0 {
		return in.documents[i]
	}
	return nil
}

// decodeState decodes a small state, and says whether the inputs have it.
func (in *inputs) decodeState(name string, into any) (bool, error) {
	d := in.named(stateDir + name)
	if d == nil {
		return false, nil
	}
	if err := d.open(); err != nil {
		return true, err
	}
	if err := json.Unmarshal(d.Body, into); err != nil {
		return true, fmt.Errorf("decode %s: %w", d.Name, err)
	}
	return true, nil
}

// closedDates names the state of the exchange's closures that are not in the calendar's rules.
const closedDates = "closed-dates"

type closures struct {
	Closed []compute.Date `json:"closed"`
	Early  []compute.Date `json:"early"`
}

// addClosures adds the closures of the configuration to the inputs, if there are any.
func (in *inputs) addClosures() error {
	var c closures
	c.Closed, c.Early = in.calendar.Closures()
	if known, _ := compute.NewCalendar(nil, nil).Closures(); len(c.Early) == 0 && slices.Equal(c.Closed, known) {
		return nil
	}
	return in.addState(closedDates, c)
}

// chain returns the decoded chain of inputs that have one upstream document. Any other document is an error.
func (in *inputs) chain() (*compute.Chain, error) {
	documents := in.upstream()
	if len(documents) != 1 {
		return nil, fmt.Errorf("%d documents instead of one chain", len(documents))
	}
	d := documents[0]
	if err := d.open(); err != nil {
		return nil, err
	}
	if d.chain == nil {
		return nil, fmt.Errorf("%s is not a chain", d.Name)
	}
	return d.chain, nil
}

// inputsOf returns the inputs that a recipe describes. The function body reads the bytes of one input.
func inputsOf(r *archive.Recipe, body func(archive.Input) ([]byte, error)) (*inputs, error) {
	in := &inputs{at: r.ComputedAt, calendar: compute.NewCalendar(r.Closed, r.Early)}
	if r.Parameters != nil {
		if err := json.Unmarshal(r.Parameters, &in.parameters); err != nil {
			return nil, fmt.Errorf("decode parameters: %w", err)
		}
	}
	for _, d := range r.Inputs {
		in.documents = append(in.documents, archivedDocument(d, body))
	}
	var c closures
	if found, err := in.decodeState(closedDates, &c); err != nil {
		return nil, err
	} else if found {
		in.calendar = compute.NewCalendar(c.Closed, c.Early)
	}
	return in, nil
}
