package refresh

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"time"

	"strikecache/compute"
	"strikecache/refresh/archive"
	"strikecache/refresh/cboe"
	"strikecache/refresh/upstream"
)

// chainDocument is a decoded option chain and where it came from.
type chainDocument struct {
	*compute.Chain
	name    upstream.Name
	content string    // digest without the clocks
	arrived time.Time // at the source
	bytes   int
	input   *archive.Document // with its body, until that is archived
}

// fetchChain fetches and decodes a chain. It keeps the validators in last, and returns
// [upstream.ErrNotModified] when the upstream says so. watch, which may be nil, gets a lap for each step.
func (r *Refresher) fetchChain(ctx context.Context, name upstream.Name, last **upstream.Document, watch *stopwatch) (*chainDocument, error) {
	doc, err := r.cfg.Source.Fetch(ctx, name, *last)
	if err != nil {
		return nil, err
	}
	watch.lap("fetch_ms")
	c, err := decodeChain(doc)
	if err != nil {
		return nil, err
	}
	watch.lap("decode_ms")
	*last = validators(doc)
	return c, nil
}

func decodeChain(doc *upstream.Document) (*chainDocument, error) {
	chain, content, err := cboe.DecodeChain(doc.Body)
	if err != nil {
		return nil, decodeError(doc.Name, err)
	}
	return &chainDocument{
		Chain: chain, name: doc.Name, content: hex.EncodeToString(content[:]),
		arrived: doc.Received, bytes: len(doc.Body), input: inputOf(doc),
	}, nil
}

// validators returns the document without its body: what a conditional request needs.
func validators(doc *upstream.Document) *upstream.Document {
	without := *doc
	without.Body = nil
	return &without
}

// decodeError gives an error of a decoder the code that clients see.
func decodeError(name upstream.Name, err error) error {
	reason := upstream.Malformed
	switch {
	case errors.Is(err, cboe.ErrHTML):
		reason = upstream.HTML
	case errors.Is(err, compute.ErrEmptyChain), errors.Is(err, compute.ErrNoSpot), errors.Is(err, cboe.ErrNoRows):
		reason = upstream.Empty
	}
	return &upstream.Error{Name: name, Reason: reason, Err: err}
}

func sha256Hex(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// stopwatch measures the steps of a refresh for its log line. A nil stopwatch measures nothing.
type stopwatch struct {
	last  time.Time
	attrs []any
}

func newStopwatch() *stopwatch { return &stopwatch{last: time.Now()} }

// lap notes the milliseconds since the last lap.
func (w *stopwatch) lap(name string) {
	if w == nil {
		return
	}
	now := time.Now()
	w.attrs = append(w.attrs, slog.Float64(name, float64(now.Sub(w.last).Microseconds())/1000))
	w.last = now
}

// with returns the given attributes and the laps.
func (w *stopwatch) with(attrs ...any) []any { return append(attrs, w.attrs...) }
