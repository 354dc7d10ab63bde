// Package upstream is the seam between the refresher and where its documents come from.
//
// A [Source] hands out documents by [Name]. The names are the paths of the real upstream and are the same for
// every source: the real one over HTTP, a simulated market, and recorded files. All three return the bytes that
// the real upstream would, so one decoder reads them all.
package upstream

import (
	"context"
	"errors"
	"fmt"
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

// Split returns the kind of a name and its symbol or date; Unknown for a name that is no document's.
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
		return 40 << 20 // SPX: 14 MB; 40,000 strikes, the most that are served: 35 MB
	case HistoryKind:
		return 8 << 20 // 50 years: 1.5 MB
	case SettlementKind:
		return 1 << 20 // 2 KB
	}
	return 64 << 10 // a quote: 505 bytes
}

// Document is one document as it was received. It is immutable: the body is shared.
type Document struct {
	Name Name
	Body []byte // decompressed
	// Received is when it arrived, by the source's clock; of a recorded document, when it was captured.
	Received time.Time
	// Generated is when the upstream says it made the document, zero where it does not say.
	Generated time.Time
	// FileDate is the date, YYYY-MM-DD, that a settlement file says it is of; "" where it does not say.
	FileDate string
	// ETag and LastModified are the upstream's validators, "" where it has none.
	ETag, LastModified string
}

// Source hands out documents. Implementations are safe for concurrent use.
type Source interface {
	// Fetch returns the document of a name. With since, an earlier result for the same name, it may return
	// ErrNotModified instead. Every other error is an *Error. It may wait for its turn, up to ctx's end.
	Fetch(ctx context.Context, name Name, since *Document) (*Document, error)
	// Offers says whether the source could ever have the document.
	Offers(name Name) bool
}

// ErrNotModified says that the upstream still has the document that the caller has.
var ErrNotModified = errors.New("document is not modified")

// Reason is why a document could not be had, as a short code that clients may see.
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
	Empty       Reason = "upstream_empty"     // decoded, but says nothing
	Older       Reason = "upstream_older"     // an earlier day's document

	// The document arrived and can be decoded, and is not believed.

	ClockAhead    Reason = "clock_ahead"          // it is of an instant that has not come yet
	Backwards     Reason = "clock_backwards"      // a chain or quote made before the last accepted one
	Shrunk        Reason = "shrunk"               // a chain under half of the last accepted one
	QuotesMissing Reason = "quotes_missing"       // a chain whose two-sided quotes are under a quarter of the last accepted one's
	PriceJump     Reason = "price_jump"           // the price differs by over 20 % from the last accepted one
	TooMany       Reason = "too_many_expirations" // a chain with more expirations or strikes than are served
)

// Error is why a document could not be had.
type Error struct {
	Name       Name
	Reason     Reason
	RetryAfter time.Duration // what the upstream asked for, 0 if nothing
	Err        error
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("fetch %s: %s: %v", e.Name, e.Reason, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ReasonOf returns the reason of an error from a source, or Malformed for any other error.
func ReasonOf(err error) Reason {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return Malformed
}
