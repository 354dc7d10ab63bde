package refresh

import (
	"context"
	"errors"
	"fmt"

	"strikecache/compute"
	"strikecache/refresh/product"
	"strikecache/refresh/upstream"
)

// quotesFailure is the document name under which failures of the sector quotes are counted.
const quotesFailure = "quotes"

// refreshSectors fetches the quotes of all funds and the histories of those that have a quote, and publishes the
// rotation. The refresh fails as soon as the quotes of more than half of the funds have failed. Fewer failures are only
// logged: the funds concerned keep their accepted quotes. The error joins the refused documents.
func (j *jobs) refreshSectors(ctx context.Context) error {
	products := j.cfg.products.Of(product.Funds)
	if !j.offers(products[0]) {
		return nil
	}
	symbols := compute.FundSymbols()
	b := j.newBatch()
	var errs []error
	for _, symbol := range symbols {
		if err := j.fetchInto(ctx, b, upstream.Quotes(symbol)); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", symbol, err))
			j.log.Warn("quote not fetched", "symbol", symbol, "err", err)
		}
		if len(errs) > len(symbols)/2 {
			return j.board.fail(quotesFailure, errors.Join(errs...), products)
		}
	}
	for _, symbol := range symbols {
		if b.Document(upstream.Quotes(symbol)) == nil {
			continue
		}
		if err := j.fetchInto(ctx, b, upstream.History(symbol)); err != nil {
			errs = append(errs, fmt.Errorf("history of %s: %w", symbol, err))
			j.log.Warn("history not fetched", "symbol", symbol, "err", err)
		}
	}
	if err := j.accept("sectors", b, products, quotesFailure); err != nil {
		return j.board.fail(quotesFailure, errors.Join(append(errs, err)...), products)
	}
	return refusedAmong(errs...)
}
