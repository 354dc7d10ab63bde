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
func gatherChain(b *batch, _ *memory) (*inputs, error) {
	return b.inputs(b.document(spxChain)), nil
}

// pastChain returns the name of the SPX chain and the instant after the close of session d at which its quotes are final.
func pastChain(c *Config, d compute.Date) ([]upstream.Name, time.Time) {
	return []upstream.Name{spxChain}, c.Calendar.Close(d).Add(afterClose)
}

// pastChains is [pastChain] for the chains of the flow universe and SPX.
func pastChains(c *Config, d compute.Date) ([]upstream.Name, time.Time) {
	return append(flowNames(c), spxChain), c.Calendar.Close(d).Add(afterClose)
}

// refreshSPX fetches the SPX chain and publishes the products of the options feed.
func (j *jobs) refreshSPX(ctx context.Context) error {
	if !spxOffered(j.cfg) {
		return nil
	}
	j.spxTurn.Lock()
	defer j.spxTurn.Unlock()
	return j.refreshChains(ctx, "spx", ofFeed(optionsFeed), spxChain)
}

// refreshFlow fetches the chains that have changed, if the source tells it. Else it fetches the chain of the next symbol of the
// flow universe. Until a chain has come, it fetches the chains of all symbols. It leaves out the chains whose quotes of the
// session are final.
func (j *jobs) refreshFlow(ctx context.Context) error {
	names, changed := flowNames(j.cfg), j.flowChanged.Swap(nil)
	if changed != nil {
		names = slices.DeleteFunc(*changed, func(name upstream.Name) bool { return name == spxChain })
	} else {
		names = slices.DeleteFunc(names, j.final)
	}
	if len(names) == 0 {
		return nil
	}
	if changed == nil && slices.ContainsFunc(names, j.intake.fetched) {
		j.flowTurn %= len(names)
		names = names[j.flowTurn : j.flowTurn+1]
		j.flowTurn++
	}
	products := slices.DeleteFunc(ofFeed(optionsFeed), func(p *product) bool { return !p.everyChain })
	return j.refreshChains(ctx, flowJob, products, names...)
}

// final says whether the accepted chain was made after the last refresh window, and the next one has not begun. Until then, the
// options of funds and stocks do not trade. But a trade of the fund before the open would make the chain one of the next session.
func (j *jobs) final(name upstream.Name) bool {
	now, d := j.cfg.Clock.Now(), j.intake.document(name)
	if d == nil || inWindow(now, j.cal) {
		return false
	}
	session := j.cal.SessionDate(now)
	start, end := window(session, j.cal)
	if now.Before(start) {
		_, end = window(j.cal.Previous(session), j.cal)
	}
	return !d.mark.captured.Before(end)
}

// refreshChains fetches the named chains and publishes the products that rest on them. If a chain fails, the other chains
// are still published. The error joins the failures of all chains. It is partial if the run refused a chain and another
// chain is good.
func (j *jobs) refreshChains(ctx context.Context, job string, products []*product, names ...upstream.Name) error {
	b := j.newBatch(job)
	var errs []error
	var good []string
	for _, name := range names {
		d, err := j.intake.fetch(ctx, name)
		switch {
		case err == nil:
			b.documents[name] = d
			good = append(good, symbolOf(name))
		case errors.Is(err, upstream.ErrNotModified):
			j.board.succeed(products, symbolOf(name))
		default:
			errs = append(errs, j.board.fail(symbolOf(name), fmt.Errorf("%s: %w", name, err), products))
		}
	}
	if good != nil {
		if err := j.accept(b, products, good...); err != nil {
			for _, symbol := range good {
				err = j.board.fail(symbol, err, products)
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
