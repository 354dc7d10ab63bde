package refresh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"strikecache/compute"
	"strikecache/refresh/cboe"
	"strikecache/refresh/feed"
	"strikecache/refresh/product"
	"strikecache/refresh/upstream"
)

// settlementFailure is the document name under which failures of settlement files are counted.
const settlementFailure = "settlements"

// settlementDue returns the newest date whose settlements should be published at now. The exchange publishes the file of a
// session at 18:30 New York.
func settlementDue(now time.Time, cal *compute.Calendar) compute.Date {
	d := cal.SessionDate(now)
	if now.Before(d.At(18, 30, 0, compute.NewYork)) {
		return cal.Previous(d)
	}
	return d
}

// refreshVIX fetches the settlement file that is due, and the closes of VIX and VIX3M on its date, and publishes the curve. Then it
// fetches the quotes of the other volatility indices. The error joins the refused documents of closes and quotes.
func (j *jobs) refreshVIX(ctx context.Context) error {
	b, products := j.newBatch(), j.cfg.products.Of(product.Settlements)
	due := settlementDue(b.At, j.cal)
	if !j.cfg.Source.Offers(upstream.Settlement(due.String())) {
		return nil
	}
	failure := j.fetchSettlement(ctx, b, due)
	errs := j.fetchCloses(ctx, b)
	var succeeded []string
	if failure == nil {
		succeeded = []string{settlementFailure}
	}
	switch {
	case b.Settlement() != nil:
		if err := j.accept("vix", b, products, succeeded...); partial(err) {
			errs = append(errs, err)
		} else {
			failure = errors.Join(failure, err)
		}
	case failure == nil && j.board.edition(product.VIXResource) != nil:
		j.board.succeed(products, succeeded...)
	case failure == nil:
		failure = fmt.Errorf("%w: no settlement file yet", product.ErrNoInput)
	}
	if failure != nil {
		failure = j.board.fail(settlementFailure, failure, products)
	}
	errs = append(errs, j.refreshIndices(ctx)...)
	if failure != nil {
		return errors.Join(failure, errors.Join(errs...))
	}
	return refusedAmong(errs...)
}

// earlierSettlements is how many sessions before the one that is due are asked for a settlement file, while there is no curve.
const earlierSettlements = 5

// fetchSettlement fetches the settlement file of the date due, as [jobs.fetchSettlementOf] does. While there is no curve, it then asks for
// the files of the sessions before, up to the first that can be used, unless the source does not answer. The error is that of the date due.
func (j *jobs) fetchSettlement(ctx context.Context, b *product.Batch, due compute.Date) error {
	failure := j.fetchSettlementOf(ctx, b, due)
	d, err := due, failure
	for range earlierSettlements {
		reason := upstream.ReasonOf(err)
		if b.Settlement() != nil || j.board.edition(product.VIXResource) != nil || err != nil && reason != upstream.Missing && !reason.Refuses() {
			break
		}
		d = j.cal.Previous(d)
		err = j.fetchSettlementOf(ctx, b, d)
	}
	return failure
}

// fetchSettlementOf fetches the settlement file of a date, and puts it into the batch unless it is older than that of the curve. An older, an empty
// and a missing file are a failure only from 11:00 New York of the next session on, when the file has always been there.
func (j *jobs) fetchSettlementOf(ctx context.Context, b *product.Batch, due compute.Date) error {
	overdue := b.At.After(j.cal.Next(due).At(11, 0, 0, compute.NewYork))
	d, err := j.fetch(ctx, upstream.Settlement(due.String()))
	var f *feed.Settlement
	switch reason := upstream.ReasonOf(err); {
	case err == nil:
		if f = d.Settlement; f.Date > due {
			return upstream.Refuse(upstream.Malformed, "asked for %s, got a file of %s", due, f.Date)
		}
		if err := checkMonths(f, j.cal, b.At); err != nil {
			return err
		}
		if curve := j.board.edition(product.VIXResource); curve == nil || !j.cal.FuturesSettlement(f.Date).Before(curve.Default.Meta.AsOf) {
			b.Add(d)
		}
	case errors.Is(err, upstream.ErrNotModified):
		f = b.Settlement()
	case !overdue && (reason == upstream.Missing || reason == upstream.Refused || errors.Is(err, cboe.ErrNoRows)):
		return nil
	default:
		return err
	}
	if f != nil && f.Date < due && overdue { // it is used all the same
		return upstream.Refuse(upstream.Older, "asked for %s, got the file of %s", due, f.Date)
	}
	return nil
}

// serialMonths is how many months in a row the futures exchange lists at any time; those after them are of February, May, August and November.
//
// Source: Cboe Futures Exchange, contract specifications of VX: "up to nine near-term serial months". The ninth is listed some days
// after an expiration.
const serialMonths = 8

// checkMonths refuses a file without a month of the curve, one that lacks a serial month, one whose unreadable rows include a month, and one in
// which a month is over twice the month before, or under half of it. Without a month, each later month would move one rank forward, so that M2
// would be taken for M1. A price twice its neighbour's is of another scale, such as that of before 2007-03-26.
func checkMonths(f *feed.Settlement, cal *compute.Calendar, now time.Time) error {
	curve, _, ok := compute.VIXTermStructure(compute.VIXInput{Date: f.Date, Rows: f.Rows, Calendar: cal, Today: cal.SessionDate(now)})
	if !ok {
		return upstream.Refuse(upstream.Empty, "settlement file of %s has no monthly VIX future", f.Date)
	}
	month := compute.NewDate(f.Date.Year(), f.Date.Month(), 1)
	if curve.FinalSettlement != nil || cal.VIXExpiration(month.Year(), month.Month()) <= f.Date {
		month = month.AddMonths(1)
	}
	for i, c := range curve.Curve {
		if want := month.String()[:len("2006-01")]; c.Month != want && (i < serialMonths || f.Bad > 0) {
			return upstream.Refuse(upstream.Malformed, "settlement file of %s lacks %s and has %d unreadable rows", f.Date, want, f.Bad)
		}
		if i > 0 && max(c.Settlement/curve.Curve[i-1].Settlement, curve.Curve[i-1].Settlement/c.Settlement) > 2 {
			return upstream.Refuse(upstream.Malformed, "settlement file of %s has %v for %s beside %v", f.Date, c.Settlement, c.Month, curve.Curve[i-1].Settlement)
		}
		month = month.AddMonths(1)
	}
	return nil
}

// fetchCloses fetches the quotes of VIX and VIX3M, and the histories of those whose close on the date of the settlement file is unknown.
// It returns an error for each document that it could not use, and goes on with the others.
func (j *jobs) fetchCloses(ctx context.Context, b *product.Batch) (errs []error) {
	for _, index := range product.CloseIndices {
		errs = append(errs, j.fetchQuote(ctx, b, upstream.Quotes(index)))
	}
	if f := b.Settlement(); f != nil {
		for _, index := range product.CloseIndices {
			if b.Close(index, f.Date) == nil {
				errs = append(errs, j.fetchInto(ctx, b, upstream.History(index))...)
			}
		}
	}
	return errs
}

// fetchQuote fetches the quote of a volatility index into the batch, unless one that was made later is known: servers of an upstream may differ
// by minutes.
func (j *jobs) fetchQuote(ctx context.Context, b *product.Batch, name upstream.Name) error {
	last := b.Document(name)
	if err := errors.Join(j.fetchInto(ctx, b, name)...); err != nil {
		return err
	}
	d := b.Documents[name]
	switch {
	case d == nil:
	case last != nil && last.Open() == nil && d.Quote.CapturedAt.Before(last.Quote.CapturedAt):
		delete(b.Documents, name)
	default:
		j.memory.KeepClose(d, b.At)
	}
	return nil
}

// indicesTime bounds the fetching of the volatility indices, so that the next run can ask for settlements.
const indicesTime = 2 * time.Minute

// refreshIndices fetches the quotes of the volatility indices that are not asked for yet, and publishes them. It comes after the settlements, so that
// it never delays them. No failure makes an answer stale: a quote that cannot be fetched stays the last one.
func (j *jobs) refreshIndices(ctx context.Context) (errs []error) {
	b := j.newBatch()
	if b.Settlement() == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, indicesTime)
	defer cancel()
	for _, name := range product.IndexQuotes() {
		err := j.fetchQuote(ctx, b, name)
		errs = append(errs, err)
		if err != nil && slices.Contains([]upstream.Reason{upstream.Unreachable, upstream.TimedOut, upstream.Throttled}, upstream.ReasonOf(err)) {
			break // the others would fail, too
		}
	}
	if len(b.Documents) > 0 {
		if err := j.accept("vix", b, j.cfg.products.Of(product.Settlements)); err != nil {
			j.log.Warn("index quotes not published", "err", err)
		}
	}
	return errs
}
