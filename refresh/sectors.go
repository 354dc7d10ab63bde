package refresh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"strikecache/compute"
	"strikecache/refresh/upstream"
)

// historyRetry is how long a job waits before it asks again for a history that is not complete yet, and firstHistoryRetry for
// one of which nothing is known: without any history there is no rotation.
const (
	historyRetry      = time.Hour
	firstHistoryRetry = 5 * time.Minute
)

// quotesFailure is the document name under which failures of the sector quotes are counted.
const quotesFailure = "quotes"

// sectorsOffered says whether the source has the quote and the history of at least one sector, which a rotation needs.
func sectorsOffered(_ *product, c *Config) bool {
	return slices.ContainsFunc(compute.Sectors, func(s compute.Sector) bool {
		return c.Source.Offers(upstream.Quotes(s.Symbol)) && c.Source.Offers(upstream.History(s.Symbol))
	})
}

// refreshSectors fetches the quotes of all funds and the histories that lack the previous session, and publishes the
// rotation. The refresh fails as soon as the quotes of more than half of the funds have failed. Fewer failures are only
// logged: the funds concerned keep their accepted quotes. The error joins the refused documents.
func (j *jobs) refreshSectors(ctx context.Context) error {
	if !sectorsOffered(nil, j.cfg) {
		return nil
	}
	symbols := compute.FundSymbols()
	b := j.newBatch("sectors")
	var errs []error
	for _, symbol := range symbols {
		if err := j.fetchInto(ctx, b, upstream.Quotes(symbol)); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", symbol, err))
			j.log.Warn("quote not fetched", "symbol", symbol, "err", err)
		}
		if len(errs) > len(symbols)/2 {
			return j.board.fail(quotesFailure, errors.Join(errs...), j.cfg.products.ofFeed(sectorsFeed))
		}
	}
	for _, symbol := range symbols {
		if !j.historyDue(b, symbol) {
			continue
		}
		j.historyAsked[upstream.History(symbol)] = b.at
		if err := j.fetchInto(ctx, b, upstream.History(symbol)); err != nil {
			errs = append(errs, fmt.Errorf("history of %s: %w", symbol, err))
			j.log.Warn("history not fetched", "symbol", symbol, "err", err)
		}
	}
	if err := j.accept(b, j.cfg.products.ofFeed(sectorsFeed), quotesFailure); err != nil {
		for name := range b.documents {
			delete(j.historyAsked, name) // the histories of this run were not accepted: ask again
		}
		return j.board.fail(quotesFailure, errors.Join(append(errs, err)...), j.cfg.products.ofFeed(sectorsFeed))
	}
	return refusedAmong(errs...)
}

// fetchInto fetches a document into the batch. It does nothing when the source does not have the document, or when the
// accepted one is still the newest.
func (j *jobs) fetchInto(ctx context.Context, b *batch, name upstream.Name) error {
	if !j.cfg.Source.Offers(name) {
		return nil
	}
	d, err := j.intake.fetch(ctx, name)
	if errors.Is(err, upstream.ErrNotModified) {
		return nil
	}
	if err != nil {
		return err
	}
	b.documents[name] = d
	return nil
}

// historyDue says whether to ask for the history of a fund: the history lacks the session before the quote's session, and
// the last request is long enough ago. To look at a watched file costs nothing.
func (j *jobs) historyDue(b *batch, symbol string) bool {
	quote, history := b.document(upstream.Quotes(symbol)), b.document(upstream.History(symbol))
	interval, known := firstHistoryRetry, []compute.Close(nil)
	if history != nil {
		interval, known = historyRetry, history.closes
	}
	return quote != nil && (j.cfg.Version != nil || !complete(&quote.quote.UnderlyingQuote, known, j.cal) && isOver(j.historyAsked[upstream.History(symbol)], b.at, interval))
}

// complete says whether a history reaches the session before the quote's session.
func complete(quote *compute.UnderlyingQuote, closes []compute.Close, cal *compute.Calendar) bool {
	before := cal.Previous(quote.Session(cal))
	return slices.ContainsFunc(closes, func(c compute.Close) bool { return c.Date >= before && cal.IsSession(c.Date) })
}

// fundDocuments returns the names of the quotes and histories of all funds.
func fundDocuments() (names []upstream.Name) {
	for _, symbol := range compute.FundSymbols() {
		names = append(names, upstream.Quotes(symbol), upstream.History(symbol))
	}
	return names
}

// pastFunds returns the names of [fundDocuments], and the instant after the close of session d at which they are final.
func pastFunds(_ *product, c *Config, d compute.Date) ([]upstream.Name, time.Time) {
	return fundDocuments(), c.Calendar.Close(d).Add(afterClose)
}

// gatherSectors returns the quotes and the histories of the funds that have a quote. If there is no history at all, it
// returns errNoInput.
func gatherSectors(_ *product, b *batch, _ *memory) (*inputs, error) {
	var documents []*document
	histories := 0
	for _, symbol := range compute.FundSymbols() {
		quote, history := b.document(upstream.Quotes(symbol)), b.document(upstream.History(symbol))
		if quote == nil {
			continue
		}
		documents = append(documents, quote)
		if history != nil {
			documents = append(documents, history)
			histories++
		}
	}
	if histories == 0 {
		return nil, fmt.Errorf("%w: no fund has a price history", errNoInput)
	}
	return b.inputs(documents...), nil
}

// sectorsQuality is `meta.quality` of sectors/rotation.
type sectorsQuality struct {
	Funds []fundQuality `json:"funds" jsonschema:"maxItems=12"` // The funds with a quote, SPY first.
	// A note that some dates lie outside the verified exchange calendar of 2014 to 2030. `null` when none does.
	Calendar *string `json:"calendar" jsonschema:"example=some dates lie outside the verified exchange calendar (2014-2030); its rules were applied to them"`
}

// fundQuality is the documents of one fund.
type fundQuality struct {
	Symbol      string        `json:"symbol" jsonschema:"oneof_ref=#/components/schemas/Fund"`
	AsOf        time.Time     `json:"as_of"`                                           // Instant that the fund's quote describes.
	HistoryRows int           `json:"history_rows" jsonschema:"minimum=0" unit:"rows"` // Closes in the fund's price history, of sessions that have ended.
	HistoryTo   *compute.Date `json:"history_to"`                                      // Last date of these closes. `null` without one.
	// Why returns, ranks or `rrg` are `null`, and how many numbers of the documents count as absent because they are outside the
	// range of their kind. `null` when the price history is complete and every number is usable.
	Note *string `json:"note" jsonschema:"example=no price history: returns but the day's\\, and rrg\\, are null"`
}

func computeSectors(in *inputs) (*answer, error) {
	quotes, histories := map[string]*document{}, map[string]*document{}
	for _, d := range in.newest() {
		if err := d.open(); err != nil {
			return nil, err
		}
		if d.quote != nil {
			quotes[d.symbol()] = d
		} else {
			histories[d.symbol()] = d
		}
	}
	all := compute.SectorsInput{Funds: map[string]compute.Fund{}, Calendar: in.calendar}
	for symbol, quote := range quotes {
		fund := compute.Fund{Quote: quote.quote.UnderlyingQuote}
		if history := histories[symbol]; history != nil {
			fund.Closes = history.closes
		}
		all.Funds[symbol] = fund
	}
	rotation, funds := compute.SectorRotation(all)
	if funds == nil {
		return nil, fmt.Errorf("%w: no sector fund has a quote", errNoInput)
	}
	a, q := &answer{}, sectorsQuality{Funds: []fundQuality{}}
	var dates []compute.Date
	for _, symbol := range compute.FundSymbols() {
		quote := quotes[symbol]
		if quote == nil {
			continue
		}
		bad := quote.bad
		if history := histories[symbol]; history != nil {
			bad += history.bad
		}
		a.describes(quote.quote.AsOf, quote.quote.CapturedAt)
		q.Funds = append(q.Funds, qualityOf(symbol, funds[symbol], rotation.SessionDate, in.calendar, bad))
		dates = append(dates, quote.quote.Session(in.calendar))
	}
	q.Calendar = compute.CalendarNote(dates...)
	a.variants, a.quality = only(&rotation), q
	return a, nil
}

// qualityOf describes the documents of a fund. newest is the newest session of all funds.
func qualityOf(symbol string, f compute.Fund, newest compute.Date, cal *compute.Calendar, bad int) fundQuality {
	q := fundQuality{Symbol: symbol, AsOf: f.Quote.AsOf, HistoryRows: len(f.Closes)}
	if n := len(f.Closes); n > 0 {
		q.HistoryTo = new(f.Closes[n-1].Date)
	}
	var notes []string
	switch {
	case len(f.Closes) == 0:
		notes = append(notes, "no price history: returns but the day's, and rrg, are null")
	case !complete(&f.Quote, f.Closes, cal):
		notes = append(notes, fmt.Sprintf("price history ends on %s: returns from later base days are null", f.Closes[len(f.Closes)-1].Date))
	}
	if f.Jump != 0 {
		notes = append(notes, fmt.Sprintf("price_jump after %s, as of a split: figures that rest on prices up to it are null", f.Jump))
	}
	if session := f.Quote.Session(cal); session != newest {
		notes = append(notes, fmt.Sprintf("the quote is of %s: no rank, and no part in what compares the funds", session))
	}
	if bad > 0 {
		notes = append(notes, fmt.Sprintf("%d numbers count as absent: they are outside the range of their kind", bad))
	}
	if notes != nil {
		q.Note = new(strings.Join(notes, "; "))
	}
	return q
}
