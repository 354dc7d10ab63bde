package refresh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"strikecache/compute"
	"strikecache/refresh/upstream"
)

var spxChain = upstream.Options("_SPX")

func chainEvery(c *Config) time.Duration { return c.ChainEvery }

func spxOffered(c *Config) bool { return c.Source.Offers(spxChain) }

// gatherChain returns the SPX chain as the only input.
func gatherChain(b *batch, _ map[string]*answer) (*inputs, error) {
	return b.inputs(b.document(spxChain)), nil
}

// pastChain returns the name of the SPX chain and the instant after the close of session d at which its quotes are final.
func pastChain(cal *compute.Calendar, d compute.Date) ([]upstream.Name, time.Time) {
	return []upstream.Name{spxChain}, cal.Close(d).Add(afterClose)
}

// refreshSPX fetches the SPX chain and publishes the products of the options feed.
func (r *Refresher) refreshSPX(ctx context.Context) error {
	if !spxOffered(&r.cfg) {
		return nil
	}
	r.spxTurn.Lock()
	defer r.spxTurn.Unlock()
	return r.refreshChains(ctx, "spx", r.ofFeed(optionsFeed), spxChain)
}

// refreshFlow fetches the chain of the next symbol of the flow universe. The first run fetches the chains of all symbols.
func (r *Refresher) refreshFlow(ctx context.Context) error {
	names := flowNames(&r.cfg)
	if len(names) == 0 {
		return nil
	}
	if r.flowTurn >= 0 {
		names = names[r.flowTurn : r.flowTurn+1]
	}
	r.flowTurn = (r.flowTurn + 1) % len(flowNames(&r.cfg))
	products := slices.DeleteFunc(r.ofFeed(optionsFeed), func(p *product) bool { return !p.everyChain })
	return r.refreshChains(ctx, "flow", products, names...)
}

// refreshChains fetches the named chains and publishes the products that rest on them. If a chain fails, the other chains
// are still published. The error joins the failures of all chains. It is partial if the run refused a chain and another
// chain is good.
func (r *Refresher) refreshChains(ctx context.Context, job string, products []*product, names ...upstream.Name) error {
	b := r.newBatch(job)
	var errs []error
	var good []string
	for _, name := range names {
		d, err := r.fetch(ctx, name)
		switch _, key := name.Split(); {
		case err == nil:
			b.documents[name] = d
			good = append(good, withoutUnderscore(key))
		case errors.Is(err, upstream.ErrNotModified):
			r.succeed(products, withoutUnderscore(key))
		default:
			errs = append(errs, r.fail(withoutUnderscore(key), fmt.Errorf("%s: %w", name, err), products))
		}
	}
	if good != nil {
		b.at = r.cfg.Clock.Now()
		if err := r.accept(b, products, good...); err != nil {
			for _, symbol := range good {
				err = r.fail(symbol, err, products)
			}
			return errors.Join(append(errs, err)...)
		}
	}
	err := errors.Join(errs...)
	if len(errs) < len(names) && refusals(err) != nil {
		return &partialFailure{err}
	}
	return err
}
