// Package upstream defines the documents that the refresher reads and the interface of their sources.
//
// A [Source] returns documents by [Name]. There are four sources: the real upstream over HTTP, a simulated market, recorded
// files, and the files that another program writes. All of them use the paths of the real upstream as names and return
// documents in its format. So one decoder reads the documents of all sources.
package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Name is the path of a document below the upstream's base:
//
//	options/_SPX.json             option chain; indices have a leading underscore, funds and stocks none
//	quotes/XLK.json               quote
//	charts/historical/XLK.json    daily price history
//	settlement/2026-10-05.csv     VIX futures settlements of a date
type Name string

const (
	optionsDir    = "options/"
	quotesDir     = "quotes/"
	historyDir    = "charts/historical/"
	settlementDir = "settlement/"
)

// Options names the option chain of a symbol.
func Options(symbol string) Name { return Name(optionsDir + symbol + ".json") }

// Quotes names the quote of a symbol.
func Quotes(symbol string) Name { return Name(quotesDir + symbol + ".json") }

// History names the daily price history of a symbol.
func History(symbol string) Name { return Name(historyDir + symbol + ".json") }

// Settlement names the futures settlements of a date, YYYY-MM-DD.
func Settlement(date string) Name { return Name(settlementDir + date + ".csv") }

// Kind is what a document holds.
type Kind uint8

// The kinds of documents.
const (
	Unknown Kind = iota
	OptionsKind
	QuotesKind
	HistoryKind
	SettlementKind
)

// Split returns the kind of a document and its symbol or date. The kind is Unknown if no document can have the name.
func (n Name) Split() (Kind, string) {
	for kind, form := range map[Kind][2]string{
		OptionsKind: {optionsDir, ".json"}, QuotesKind: {quotesDir, ".json"},
		HistoryKind: {historyDir, ".json"}, SettlementKind: {settlementDir, ".csv"},
	} {
		rest, ok := strings.CutPrefix(string(n), form[0])
		if !ok {
			continue
		}
		if key, ok := strings.CutSuffix(rest, form[1]); ok && key != "" && !strings.Contains(key, "/") {
			return kind, key
		}
	}
	return Unknown, ""
}

// MaxBody returns the most bytes a document of the kind may have, decompressed.
func (k Kind) MaxBody() int64 {
	switch k {
	case OptionsKind:
		return 40 << 20 // SPX has 14 MB; a chain of 40,000 strikes, the most that are served, has 35 MB
	case HistoryKind:
		return 8 << 20 // 50 years have 1.5 MB
	case SettlementKind:
		return 1 << 20 // a file has 2 KB
	}
	return 64 << 10 // a quote has 505 bytes
}

// Document is one document as it was received. It is immutable: the body is shared.
type Document struct {
	Name Name
	Body []byte // decompressed; nil: only Gzip is set, and it has not been unpacked yet
	Gzip []byte // as the upstream sent it; nil: it sent no gzip, see Fill
	// Received is when the document arrived, by the source's clock. For a recorded document it is when it was captured.
	Received time.Time
	// Generated is when the upstream says that it made the document; zero if the upstream does not say.
	Generated time.Time
	// FileDate is the date, YYYY-MM-DD, that the upstream gives for a settlement file; "" if it gives none.
	FileDate string
	// ETag and LastModified are the upstream's validators; "" if it sent none.
	ETag, LastModified string
}

// Fill sets Gzip if b begins as gzip does, else Body: a field of a head and the name of a file may be wrong. The document keeps b.
func (d *Document) Fill(b []byte) {
	if bytes.HasPrefix(b, []byte("\x1f\x8b")) {
		d.Gzip = b
	} else {
		d.Body = b
	}
}

// Source returns documents. Implementations are safe for concurrent use.
type Source interface {
	// Fetch returns the document of a name. If since, an earlier document of this name, is still current, Fetch may
	// return ErrNotModified. Every other error is an *Error. Fetch may wait for its turn until ctx ends.
	Fetch(ctx context.Context, name Name, since *Document) (*Document, error)
	// Offers says whether the source could ever have the document.
	Offers(name Name) bool
}

// ErrNotModified says that the upstream's document has not changed since the caller fetched it.
var ErrNotModified = errors.New("document is not modified")

// Reason says why there is no usable document, as a short code that clients may see.
type Reason string

// The reasons.
const (
	Unreachable Reason = "upstream_unreachable" // no connection, or it broke
	TimedOut    Reason = "upstream_timeout"
	Refused     Reason = "upstream_refused"   // 403: unknown symbol, or a transient refusal
	Missing     Reason = "upstream_missing"   // 404, or not recorded
	Throttled   Reason = "upstream_throttled" // 429
	BadStatus   Reason = "upstream_status"    // any other status
	Redirects   Reason = "upstream_redirects" // a loop, or too many
	HTML        Reason = "upstream_html"      // a page instead of a document
	Truncated   Reason = "upstream_truncated" // cut off
	TooLarge    Reason = "upstream_too_large"
	Malformed   Reason = "upstream_malformed" // cannot be decoded
	Empty       Reason = "upstream_empty"     // can be decoded, but has no usable data
	Older       Reason = "upstream_older"     // an earlier day's document

	// The reasons to refuse a document that can be decoded and has data.

	ClockAhead    Reason = "clock_ahead"           // a time in the document is in the future
	Backwards     Reason = "clock_backwards"       // a chain or quote made before the last accepted one
	Shrunk        Reason = "shrunk"                // a chain or a history with under half of the rows of the last accepted one
	QuotesMissing Reason = "quotes_missing"        // a chain with under a quarter of the two-sided quotes of the last accepted one
	OIMissing     Reason = "open_interest_missing" // a chain whose open interest is not known, or with under a tenth of the contracts that had some
	PriceJump     Reason = "price_jump"            // the price differs by over 20 % from the last accepted one
	TooMany       Reason = "too_many_expirations"  // a chain with more expirations or strikes than are served
)

// Refusals are the reasons to refuse a document that arrived. For every other reason, no document arrived.
var Refusals = []Reason{HTML, Truncated, TooLarge, Malformed, Empty, Older, ClockAhead, Backwards, Shrunk, QuotesMissing, OIMissing, PriceJump, TooMany}

// Refuses says whether a document arrived and was refused for this reason.
func (r Reason) Refuses() bool { return slices.Contains(Refusals, r) }

// Error says why there is no usable document.
type Error struct {
	Name       Name // "" if the document arrived and is refused: the caller names it
	Reason     Reason
	RetryAfter time.Duration // how long the upstream asks to wait; 0 if it does not ask
	Err        error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("%s: %v", e.Reason, e.Err)
	}
	return fmt.Sprintf("fetch %s: %s: %v", e.Name, e.Reason, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Refuse returns the error of a document that arrived and is refused. The text is that of [fmt.Errorf].
func Refuse(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Err: fmt.Errorf(format, args...)}
}

// ReasonOf returns the reason of an error from a source, or Malformed for any other error.
func ReasonOf(err error) Reason {
	if e, is := errors.AsType[*Error](err); is {
		return e.Reason
	}
	return Malformed
}
