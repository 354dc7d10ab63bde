package refresh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"strikecache/compute"
	"strikecache/refresh/archive"
	"strikecache/refresh/cboe"
	"strikecache/refresh/upstream"
)

// sectorsJob holds the quotes and histories of the sector funds. Only that job uses it.
type sectorsJob struct {
	funds   map[string]*fund
	content string
}

// fund is the last accepted documents of one fund.
type fund struct {
	quote, history         fundDocument
	underlying             compute.Underlying
	closes                 []compute.Close
	historyTried           time.Time
	quoteLast, historyLast *upstream.Document // validators
}

// fundDocument says what was read.
type fundDocument struct {
	content string // "" before the first
	arrived time.Time
	input   *archive.Document // with its body, until that is archived; nil before the first
}

// historyRetry is how long the job waits before it asks again for a history that is not complete yet.
const historyRetry = time.Hour

func (s *sectorsJob) init() {
	s.funds = map[string]*fund{}
	for _, symbol := range compute.FundSymbols() {
		s.funds[symbol] = &fund{}
	}
}

// sectorsOffered says whether the source has the least that a rotation rests on: quote and history of one sector.
func (r *Refresher) sectorsOffered() bool {
	return slices.ContainsFunc(compute.Sectors, func(s compute.Sector) bool {
		return r.cfg.Source.Offers(upstream.Quotes(s.Symbol)) && r.cfg.Source.Offers(upstream.History(s.Symbol))
	})
}

// refreshSectors fetches the quotes of all funds, and the histories that lack the previous session, and
// publishes the rotation. It fails when most funds fail; one fund more or less is not the upstream's failure.
func (r *Refresher) refreshSectors(ctx context.Context) error {
	if !r.sectorsOffered() {
		return nil
	}
	watch := newStopwatch()
	symbols := compute.FundSymbols()
	var errs []error
	for _, symbol := range symbols {
		if err := r.fetchQuote(ctx, symbol); err != nil {
			errs = append(errs, err)
		}
	}
	for _, symbol := range symbols {
		if err := r.fetchHistory(ctx, symbol); err != nil {
			r.log.Warn("history not refreshed", "symbol", symbol, "err", err)
		}
	}
	if len(errs) > len(symbols)/2 {
		r.fail(errs[0], SectorsResource)
		return errors.Join(errs...)
	}
	watch.lap("fetch_ms")
	if err := r.publishSectors(watch, len(errs)); err != nil {
		r.fail(err, SectorsResource)
		return err
	}
	return errors.Join(errs...)
}

func (r *Refresher) fetchQuote(ctx context.Context, symbol string) error {
	f := r.sectors.funds[symbol]
	name := upstream.Quotes(symbol)
	if !r.cfg.Source.Offers(name) {
		return nil
	}
	doc, err := r.cfg.Source.Fetch(ctx, name, f.quoteLast)
	if errors.Is(err, upstream.ErrNotModified) {
		return nil
	}
	if err != nil {
		return err
	}
	q, err := cboe.DecodeQuote(doc.Body)
	if err != nil {
		return decodeError(name, err)
	}
	f.quoteLast, f.underlying = validators(doc), q.Underlying
	f.quote = fundDocument{hexOf(q.Content), doc.Received, inputOf(doc)}
	return nil
}

// fetchHistory fetches a history that lacks the session before the quote's.
func (r *Refresher) fetchHistory(ctx context.Context, symbol string) error {
	f := r.sectors.funds[symbol]
	name := upstream.History(symbol)
	now := r.cfg.Clock.Now()
	if f.quote.content == "" || !r.cfg.Source.Offers(name) || f.complete(r.cal) || now.Before(f.historyTried.Add(historyRetry)) {
		return nil
	}
	f.historyTried = now
	doc, err := r.cfg.Source.Fetch(ctx, name, f.historyLast)
	if errors.Is(err, upstream.ErrNotModified) {
		return nil
	}
	if err != nil {
		return err
	}
	closes, err := cboe.DecodeHistory(doc.Body)
	if err != nil {
		return decodeError(name, err)
	}
	f.historyLast, f.closes = validators(doc), closes
	f.history = historyDocument(doc)
	return nil
}

func historyDocument(doc *upstream.Document) fundDocument {
	in := inputOf(doc)
	return fundDocument{in.SHA256, doc.Received, in}
}

// complete says whether the history reaches the session before the quote's.
func (f *fund) complete(cal *compute.Calendar) bool {
	return len(f.closes) > 0 && f.closes[len(f.closes)-1].Date >= cal.Previous(f.underlying.Session(cal))
}

// sectorsQuality is `meta.quality` of sectors/rotation.
type sectorsQuality struct {
	Funds    []fundQuality `json:"funds"`
	Calendar *string       `json:"calendar"`
}

type fundQuality struct {
	Symbol      string        `json:"symbol"`
	AsOf        time.Time     `json:"as_of"`
	HistoryRows int           `json:"history_rows"`
	HistoryTo   *compute.Date `json:"history_to"`
	// Note says why returns or rrg are null.
	Note *string `json:"note"`
}

func (r *Refresher) publishSectors(watch *stopwatch, failed int) error {
	a, ok := r.sectorsAnswer(r.sectors.funds, r.cfg.Clock.Now())
	if !ok {
		return &refusal{upstream.Empty, errors.New("no fund has a price history")}
	}
	if a.content == r.sectors.content {
		r.succeed(SectorsResource)
		return nil
	}
	content := a.content
	if err := r.publish(sectorsFeed, a); err != nil {
		return err
	}
	r.sectors.content = content
	watch.lap("publish_ms")
	r.keepInputs(a)
	watch.lap("archive_ms")
	r.log.Info("refreshed", watch.with("feed", "sectors", "as_of", a.asOf, "documents", len(a.inputs), "failed", failed)...)
	return nil
}

// sectorsAnswer computes the rotation of the funds that have a quote. It says false without any sector, or
// without any price history.
func (r *Refresher) sectorsAnswer(funds map[string]*fund, now time.Time) (answer, bool) {
	a := answer{resource: SectorsResource, computed: now}
	in := compute.SectorsInput{Funds: map[string]compute.Fund{}, Calendar: r.cal}
	q := sectorsQuality{Funds: []fundQuality{}}
	var dates []compute.Date
	history := false
	for _, symbol := range compute.FundSymbols() {
		f := funds[symbol]
		if f == nil || f.quote.content == "" {
			continue
		}
		in.Funds[symbol] = compute.Fund{Quote: f.underlying, Closes: f.closes}
		a.content += f.quote.content + f.history.content
		for _, d := range []fundDocument{f.quote, f.history} {
			if d.input != nil {
				a.inputs, a.documents = append(a.inputs, d.input.SHA256), append(a.documents, d.input)
			}
		}
		a.asOf, a.arrived = later(a.asOf, f.underlying.AsOf), later(a.arrived, f.quote.arrived)
		if a.captured == nil || f.underlying.CapturedAt.After(*a.captured) {
			a.captured = new(f.underlying.CapturedAt)
		}
		q.Funds = append(q.Funds, f.quality(symbol, r.cal))
		dates = append(dates, f.underlying.Session(r.cal))
		history = history || len(f.closes) > 0
	}
	if !history {
		return a, false
	}
	rotation, ok := compute.SectorRotation(in)
	q.Calendar = r.noted(compute.CalendarNote(r.cal, dates...))
	a.content, a.data, a.quality = sha256Hex([]byte(a.content)), &rotation, q
	return a, ok
}

func (f *fund) quality(symbol string, cal *compute.Calendar) fundQuality {
	q := fundQuality{Symbol: symbol, AsOf: f.underlying.AsOf, HistoryRows: len(f.closes)}
	if n := len(f.closes); n > 0 {
		q.HistoryTo = new(f.closes[n-1].Date)
	}
	switch {
	case len(f.closes) == 0:
		q.Note = new("no price history: returns but the day's, and rrg, are null")
	case !f.complete(cal):
		q.Note = new(fmt.Sprintf("price history ends on %s: returns from later base days are null", f.closes[len(f.closes)-1].Date))
	}
	return q
}
