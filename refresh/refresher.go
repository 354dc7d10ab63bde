// Package refresh says when documents are fetched, and what is served.
//
// A job fetches documents at an interval. Package feed decodes them and refuses what is not valid, and package product makes answers
// of them. [publisher.accept] is the one way from documents to answers: it computes the products that rest on them, drops answers that equal
// the current ones, and seals, stores and publishes the others on the board. If a product fails, its last answer stays current. If all fail,
// or a later step, all last answers stay and the job backs off. After three failures in a row for one document, the answers that rest on it
// are stale.
//
// A start serves the stored answers as they are, and computes nothing. The first documents are then fetched whole, and replace what differs.
// History is played: the past sessions that a source still has go the same way, into their dated files. Then the current answers, which compare with
// them, are computed once more.
//
// In a fleet, the jobs run only while this process holds the lease. Otherwise [follower.Apply] makes current what the
// refresher of the fleet has published.
package refresh

import (
	"context"
	"fmt"
	"time"

	"strikecache/refresh/fleet"
	"strikecache/refresh/product"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// Refresher keeps the answers in the store current. Create it with [Flags.Open]. Store, Now, ClockError,
// Stuck, Offers and LastFailure are safe for concurrent use.
type Refresher struct {
	*jobs
	member   *fleet.Member // nil outside a fleet
	follower *follower
}

// Fleet returns this process in a fleet, nil if it is in none.
func (r *Refresher) Fleet() *fleet.Member { return r.member }

// Resources returns the names of all resources, in the order of the table.
func (r *Refresher) Resources() []string { return r.cfg.products.Names() }

// Store returns the store that the refresher fills.
func (r *Refresher) Store() *snapshots.Store { return r.cfg.Store }

// Now returns the market's time.
func (r *Refresher) Now() time.Time { return r.cfg.Clock.Now() }

// Observable returns the names of the jobs, and the reasons to refuse a document, that [Config.Observe] may get.
func (r *Refresher) Observable() (jobs, refusals []string) {
	for _, one := range r.list() {
		jobs = append(jobs, one.name)
	}
	for _, reason := range upstream.Refusals {
		refusals = append(refusals, string(reason))
	}
	return append(jobs, "backfill", "track"), refusals
}

// LastFailure returns the reason of the last failure of a resource whose refreshes fail, and "" for other resources.
func (r *Refresher) LastFailure(name string) string {
	return string(r.board.now(name).health.worst(nil, nil).reason)
}

// Offers returns the resources that the source has documents for. The value says whether the resource has an answer now.
func (r *Refresher) Offers() map[string]bool {
	offers := r.offers
	if f := r.follower; f != nil && (f.edge || r.cfg.Lease != nil && !r.cfg.Lease()) {
		offers = f.offers
	}
	offered := map[string]bool{}
	for _, p := range r.cfg.products {
		if offers(p) {
			offered[p.Name] = r.cfg.Store.Current(p.Name) != nil
		}
	}
	return offered
}

// endWait is how long stop waits. A dead disk could block a use of it for ever, and other programs a refresh of low priority.
const endWait = 30 * time.Second

// Start runs [Refresher.Run], or takes part in the fleet, in a goroutine until ctx ends or stop is called. The caller must call stop
// once: it calls each function of first, which close other uses of the disk, waits until Run has returned, and closes the refresher.
// After 30 seconds it returns an error and gives up; files stay crash-consistent.
func (r *Refresher) Start(ctx context.Context, first ...func()) (stop func() error) {
	run := r.Run
	if r.member != nil {
		run = r.member.Run
	}
	ctx, cancel := context.WithCancel(ctx)
	ended, closed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(ended)
		run(ctx)
	}()
	return func() error {
		cancel()
		go func() {
			for _, f := range first {
				f()
			}
			<-ended
			closed <- r.Close()
		}()
		select {
		case err := <-closed:
			return err
		case <-time.After(endWait):
			return fmt.Errorf("a refresh, or another use of the disk, has not ended within %s: the disk does not answer, or the machine is overloaded", endWait)
		}
	}
}

// Close writes the files that wait for the disk and releases the store. [Refresher.Run] must have returned.
func (r *Refresher) Close() error { return r.cfg.Store.Close() }

// Resources returns the names of all resources of the underlyings, which are symbols such as SPX.
func Resources(underlyings []string) []string { return product.All(underlyings).Names() }

// DatedResources returns the resources whose past dates are served.
func DatedResources(underlyings []string) []string {
	return product.All(underlyings).Where(func(p *product.Product) bool { return p.Dated }).Names()
}
