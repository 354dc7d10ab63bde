package refresh

import (
	"context"
	"errors"
	"fmt"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/refresh/product"
	"strikecache/refresh/upstream"
)

// refreshChain fetches the chain of an underlying and publishes the products that rest on it.
func (j *jobs) refreshChain(ctx context.Context, symbol string) error {
	name, products := feed.ChainOf(symbol), j.cfg.products.OfChain(symbol)
	if !j.source.Offers(name) {
		return nil
	}
	d, err := j.fetch(ctx, name)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		b := j.newBatch()
		b.Add(d)
		if err = j.accept(compute.PathOf(symbol), b, products, symbol); partial(err) {
			return err
		}
	case errors.Is(err, upstream.ErrNotModified):
		j.board.succeed(products, symbol)
		return nil
	case !j.source.Offers(name): // no more, by this answer
		err = fmt.Errorf("not asked again for %s: %w", feed.UnknownRetry, err)
		j.board.succeed(products.Where((*product.Product).EveryChain), symbol) // a delisted stock makes nothing else stale
		products = products.Where(func(p *product.Product) bool { return !p.EveryChain() })
	}
	if err != nil {
		return j.board.fail(symbol, fmt.Errorf("%s: %w", name, err), products)
	}
	return nil
}
