package refresh

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"time"

	"strikecache/compute"
	"strikecache/refresh/cboe"
	"strikecache/refresh/feed"
	"strikecache/refresh/product"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// Config configures a [Refresher]. Source, Store, Calendar and Log must be set.
type Config struct {
	Source       *feed.Polite // see [Config.ask]
	SourceName   string       // simulated, cboe, replay, folder or the name of a vendor, as in meta.source of every answer
	Identity     string       // of the market, such as "simulated market, seed 1"; "" for the other sources
	Store        *snapshots.Store
	Clock        feed.Clock
	Recorded     bool // the source has the documents of a past market
	Calendar     *compute.Calendar
	RiskFreeRate float64 // per year, continuously compounded

	// The intervals in the refresh window.
	ChainEvery time.Duration // of the chain of the first underlying
	TurnEvery  time.Duration // from the chain of one other underlying to that of the next
	// Underlyings are the symbols, such as SPX and AAPL, whose chains are fetched. There is at least one.
	Underlyings []string
	products    product.List // of the underlyings

	// Past, unless nil, has the documents of past sessions. Those whose dates are not stored are played.
	Past Past
	Kept bool // Past is what a user has kept: sessions and documents may be missing, and it has one document of each a day

	ArchiveMaxAge time.Duration // how long the documents of stored answers are kept; 0 means for ever

	// Lease, unless nil, says whether this process may ask the upstream and publish.
	Lease func() bool
	Log   *slog.Logger
	// Observe, unless nil, is called after every run of a job, with the outcome, the reason of each refused document, and
	// the duration. The code is ok, panic or an [upstream.Reason]. Jobs run at the same time, so Observe must be safe for
	// concurrent use. It is not called for a run that the end of the process interrupted.
	Observe func(job, code string, refused []string, took time.Duration)
}

// Past has the documents of past instants.
type Past interface {
	// Sessions returns the sessions before an instant of market time that are to be stored, rising.
	Sessions(before time.Time) []compute.Date
	// At returns the document that the upstream had at an instant. The caller owns the document. The error is an [*upstream.Error]
	// with the reason missing if the document is not there any more.
	At(name upstream.Name, at time.Time) (*upstream.Document, error)
}

// ask makes a source the one of cfg. The clock, the calendar and the underlyings must be set before.
func (c *Config) ask(source upstream.Source) {
	c.Source = feed.NewPolite(source, c.Clock, c.Calendar, feed.ChainOf(c.first()))
}

// dial connects for a request whose turn has come, unless this process has lost the lease while it waited.
func (c *Config) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if c.Lease != nil && !c.Lease() {
		return nil, errNoLease
	}
	return cboe.Dialer.DialContext(ctx, network, address)
}

// hasPast says whether the documents of a past date, by its settlements, will be played or have been.
func (c *Config) hasPast(d compute.Date) bool {
	if c.Past == nil || !c.Kept {
		return c.Past != nil
	}
	_, err := c.Past.At(upstream.Settlement(d.String()), d.At(18, 45, 0, compute.NewYork))
	return err == nil
}

// first returns the underlying whose chain has an interval of its own. The chains of the others take turns.
func (c *Config) first() string { return c.Underlyings[0] }

// roundEvery is the interval of the chain of an underlying besides the first.
func (c *Config) roundEvery() time.Duration { return c.TurnEvery * time.Duration(len(c.Underlyings)-1) }

// every returns the interval of a product in the refresh window.
func (c *Config) every(p *product.Product) time.Duration {
	switch {
	case p.Feed == product.Funds:
		return quotesEvery
	case p.Feed == product.Settlements:
		return outsideEvery
	case p.Underlying == c.first() || len(c.Underlyings) == 1:
		return c.ChainEvery
	case p.EveryChain():
		return min(c.TurnEvery, c.ChainEvery)
	}
	return c.roundEvery()
}

// withoutChain returns the underlyings whose chains the source does not have.
func (c *Config) withoutChain() []string {
	return slices.DeleteFunc(slices.Clone(c.Underlyings), func(u string) bool { return c.Source.Offers(feed.ChainOf(u)) })
}

// fundDocuments returns the names of the quotes and histories of all funds.
func fundDocuments() (names []upstream.Name) {
	for _, symbol := range compute.FundSymbols() {
		names = append(names, upstream.Quotes(symbol), upstream.History(symbol))
	}
	return names
}

// vixDocuments returns the names of the settlement file of a date and of the quotes of the volatility indices.
func vixDocuments(d compute.Date) []upstream.Name {
	return append([]upstream.Name{upstream.Settlement(d.String())}, product.IndexQuotes()...)
}

// closeHistories returns the names of the histories of the indices whose closes the curve compares with.
func closeHistories() (names []upstream.Name) {
	for _, index := range product.CloseIndices {
		names = append(names, upstream.History(index))
	}
	return names
}
