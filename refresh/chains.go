package refresh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"strikecache/compute"
	"strikecache/refresh/upstream"
)

// chainOf returns the name of the chain of an underlying. The upstream writes an underscore before the symbol of an index.
func chainOf(symbol string) upstream.Name {
	if compute.UnderlyingOf(symbol).Kind == compute.KindIndex {
		symbol = "_" + symbol
	}
	return upstream.Options(symbol)
}

// first returns the underlying whose chain has an interval of its own. The chains of the others take turns.
func (c *Config) first() string { return c.Underlyings[0] }

// roundEvery is the interval of the chain of an underlying besides the first.
func (c *Config) roundEvery() time.Duration { return c.TurnEvery * time.Duration(len(c.Underlyings)-1) }

// chainEvery returns the interval of a product of one chain, or of the chains of all underlyings.
func chainEvery(p *product, c *Config) time.Duration {
	switch {
	case p.underlying == c.first() || len(c.Underlyings) == 1:
		return c.ChainEvery
	case p.everyChain():
		return min(c.TurnEvery, c.ChainEvery)
	}
	return c.roundEvery()
}

func chainOffered(p *product, c *Config) bool {
	if p.everyChain() {
		return len(offeredChains(c)) > 0
	}
	return c.Source.Offers(chainOf(p.underlying))
}

// offeredChains returns the names of the chains that the source has.
func offeredChains(c *Config) (names []upstream.Name) {
	for _, u := range c.Underlyings {
		if name := chainOf(u); c.Source.Offers(name) {
			names = append(names, name)
		}
	}
	return names
}

// withoutChain returns the underlyings whose chains the source does not have.
func (c *Config) withoutChain() (symbols []string) {
	for _, u := range c.Underlyings {
		if !c.Source.Offers(chainOf(u)) {
			symbols = append(symbols, u)
		}
	}
	return symbols
}

// gatherChain returns the chain of the product's underlying as the only input.
func gatherChain(p *product, b *batch, _ *memory) (*inputs, error) {
	return b.inputs(b.document(chainOf(p.underlying))), nil
}

// pastChains returns the names of the chains of the product and the instant after the close of session d at which their quotes are
// final.
func pastChains(p *product, c *Config, d compute.Date) ([]upstream.Name, time.Time) {
	at := c.Calendar.Close(d).Add(afterClose)
	if p.everyChain() {
		return offeredChains(c), at
	}
	return []upstream.Name{chainOf(p.underlying)}, at
}

// chainJobs returns the jobs that fetch the chains, one for each underlying.
func (j *jobs) chainJobs() (all []job) {
	for i, u := range j.cfg.Underlyings {
		one := job{
			name: compute.PathOf(u), every: j.cfg.ChainEvery, chain: u,
			run:   func(ctx context.Context) error { return j.refreshChain(ctx, u) },
			reads: func(time.Time) []upstream.Name { return []upstream.Name{chainOf(u)} },
		}
		if i > 0 {
			one.every, one.offset, one.last = j.cfg.roundEvery(), j.cfg.TurnEvery*time.Duration(i-1), true
		}
		all = append(all, one)
	}
	return all
}

// refreshChain fetches the chain of an underlying and publishes the products that rest on it. It does not ask for a chain whose
// quotes of the session are final, nor for an hour for one that the upstream says it does not have.
func (j *jobs) refreshChain(ctx context.Context, symbol string) error {
	name, products := chainOf(symbol), j.cfg.products.ofChain(symbol)
	if !j.cfg.Source.Offers(name) || j.cfg.Version == nil && j.final(symbol) || !j.known(symbol) {
		return nil
	}
	turn := sync.OnceFunc(j.turn.Lock)
	if j.cfg.Version != nil {
		turn() // to read a file takes no time, and its bytes would wait in memory
	}
	doc, err := j.intake.ask(ctx, name)
	turn()
	defer j.turn.Unlock()
	if ctx.Err() != nil {
		return ctx.Err() // many may have waited for their turn
	}
	var d *document
	if err == nil {
		d, err = j.intake.take(doc)
	}
	switch {
	case err == nil:
		j.unknown.Delete(symbol)
		b := j.newBatch(compute.PathOf(symbol))
		b.documents[name] = d
		if err = j.accept(b, products, symbol); partial(err) {
			return err
		}
	case errors.Is(err, upstream.ErrNotModified):
		j.unknown.Delete(symbol)
		j.board.succeed(products, symbol)
		return nil
	case symbol != j.cfg.first() && slices.Contains([]upstream.Reason{upstream.Missing, upstream.Refused}, upstream.ReasonOf(err)):
		j.unknown.Store(symbol, j.cfg.Clock.Now())
		err = fmt.Errorf("not asked again for %s: %w", unknownRetry, err)
		j.board.succeed(products.where((*product).everyChain), symbol) // a delisted stock makes nothing else stale
		products = products.where(func(p *product) bool { return !p.everyChain() })
	}
	if err != nil {
		return j.board.fail(symbol, fmt.Errorf("%s: %w", name, err), products)
	}
	return nil
}

// known says whether to ask for the chain of an underlying: the upstream has not said in the last hour that it does not have it. To look
// at a watched file costs nothing.
func (j *jobs) known(symbol string) bool {
	at, unknown := j.unknown.Load(symbol)
	return !unknown || j.cfg.Version != nil || isOver(at.(time.Time), j.cfg.Clock.Now(), unknownRetry)
}

// offers says whether the upstream has the documents of a product, as far as is known.
func (j *jobs) offers(p *product) bool {
	_, unknown := j.unknown.Load(p.underlying)
	return !unknown && p.offered(p, j.cfg)
}

// unknownRetry is how long a job waits before it asks again for a chain that the upstream says it does not have.
const unknownRetry = time.Hour

// final says whether the accepted chain was made after the last refresh window, and the next one has not begun. Until then, options
// that do not trade at night have the same quotes. But a trade of a fund before the open would make the chain one of the next session.
func (j *jobs) final(symbol string) bool {
	now, d := j.cfg.Clock.Now(), j.intake.document(chainOf(symbol))
	if _, _, moves := compute.UnderlyingOf(symbol).Night(j.cal.Next(j.cal.SessionDate(now)), j.cal); moves || d == nil || d.failed || inWindow(now, j.cal) {
		return false
	}
	return !d.mark.captured.Before(lastWindowEnd(now, j.cal))
}
