package refresh

import (
	"context"
	"errors"

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
	b := j.newBatch()
	var quotes, histories []upstream.Name
	for _, symbol := range compute.FundSymbols() {
		quotes = append(quotes, upstream.Quotes(symbol))
	}
	errs := j.fetchInto(ctx, b, quotes...)
	if len(errs) > len(quotes)/2 {
		return j.board.fail(quotesFailure, errors.Join(errs...), products)
	}
	for _, symbol := range compute.FundSymbols() {
		if b.Document(upstream.Quotes(symbol)) != nil {
			histories = append(histories, upstream.History(symbol))
		}
	}
	errs = append(errs, j.fetchInto(ctx, b, histories...)...)
	if err := j.accept("sectors", b, products, quotesFailure); err != nil {
		return j.board.fail(quotesFailure, errors.Join(append(errs, err)...), products)
	}
	return refusedAmong(errs...)
}
