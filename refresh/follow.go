package refresh

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"strikecache/refresh/feed"
	"strikecache/refresh/fleet"
	"strikecache/refresh/product"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// follower is [fleet.Process]: what this process does in a fleet.
type follower struct {
	*jobs
	edge    bool      // this process never refreshes
	expired time.Time // when it last removed old files; of Apply alone

	offered atomic.Pointer[map[string]bool] // the resources that the refresher of the fleet can feed; nil: not known
}

// noSource is the source of an edge: it has no documents.
type noSource struct{}

func (noSource) Fetch(context.Context, upstream.Name, *upstream.Document) (*upstream.Document, error) {
	return nil, &upstream.Error{Reason: upstream.Missing, Err: errNoLease}
}

func (noSource) Offers(upstream.Name) bool { return false }

// noFolder is the source of an edge whose fleet reads a folder.
type noFolder struct{ noSource }

func (noFolder) Version(upstream.Name) string { return "" }

// Origin implements [fleet.Process].
func (f *follower) Origin() fleet.Origin {
	o := fleet.Origin{Identity: f.cfg.Identity}
	if h := f.cfg.Clock.Hands(); h != nil {
		o.Market, o.Wall, o.Speed = h.Market, h.Wall.UTC(), h.Speed
	}
	return o
}

// Join implements [fleet.Process]. All members show the market's time of the first refresher.
func (f *follower) Join(o fleet.Origin) error {
	if o.Identity != "" {
		if err := f.store.Bind(o.Identity); err != nil {
			return fmt.Errorf("the fleet serves the %s: %w", o.Identity, err)
		}
	}
	if o.Market.IsZero() != (f.cfg.Clock.Hands() == nil) {
		return fmt.Errorf("the fleet serves another kind of market than source %s", f.cfg.SourceName)
	}
	if !o.Market.IsZero() {
		f.cfg.Clock.Set(feed.Hands{Market: o.Market, Wall: o.Wall, Speed: o.Speed})
	}
	return nil
}

// Failing implements [fleet.Process]. It looks at the chain of the first underlying, and whether refreshes stand still.
func (f *follower) Failing() error {
	first := f.cfg.products[0].Name
	if h := f.board.now(first).health.worst(nil, nil); h.failures >= failuresToStale {
		return fmt.Errorf("%d refreshes of %s in a row have failed, the last with %s", h.failures, first, h.reason)
	}
	return f.Stuck()
}

// Behind implements [fleet.Process].
func (f *follower) Behind() time.Duration {
	return f.cfg.Clock.Now().Sub(time.Unix(f.board.lastAnswer.Load(), 0))
}

// Accept implements [fleet.Process].
func (f *follower) Accept(path, digest string, file []byte) error {
	// No newer answer would ever replace one of the far future. The clock of this machine may be some hours wrong.
	notAfter := f.cfg.Clock.Now().Add(48 * time.Hour)
	return f.store.Accept(path, digest, file, f.cfg.products.Names(), notAfter)
}

// Refresh implements [fleet.Process]. It begins as a start does, from the stored files.
func (f *follower) Refresh(ctx context.Context) {
	_ = f.own(func() error { f.forget(); return nil })
	f.cfg.Source.Forget()
	if err := f.Restore(); err != nil {
		f.log.Error("stored answers not restored", "err", err)
	}
	f.Run(ctx)
}

// Serving implements [fleet.Process].
func (f *follower) Serving() map[string]fleet.Served {
	serving := map[string]fleet.Served{}
	for _, p := range f.cfg.products {
		v := f.board.now(p.Name)
		if v.edition != nil {
			serving[p.Name] = fleet.Served{SHA256: v.digest, Freshness: v.edition.Default.Meta.Freshness}
		} else if f.jobs.offers(p) {
			serving[p.Name] = fleet.Served{}
		}
	}
	return serving
}

// Apply implements [fleet.Process]. An answer that is older than the current one is passed over: this process has
// refreshed, and its last answers have not reached the fleet. Apply also removes old files once a day.
func (f *follower) Apply(served map[string]fleet.Served) error {
	if now := time.Now(); now.Sub(f.expired) > 24*time.Hour {
		f.expired = now
		if err := f.expire(context.Background()); err != nil {
			f.log.Error("old files not removed", "err", err)
		}
	}
	next, offered := map[string]*currentAnswer{}, map[string]bool{}
	for _, p := range f.cfg.products {
		var s fleet.Served
		if s, offered[p.Name] = served[p.Name]; s.SHA256 == "" {
			continue // there is no answer yet
		}
		h, err := f.followed(p, s)
		if err != nil {
			f.log.Error("answer of the fleet not readable", "resource", p.Name, "err", err)
			continue
		}
		if h != nil {
			next[p.Name] = h
		}
	}
	f.offered.Store(&offered)
	return f.board.setStored(next)
}

// followed returns the answer of the fleet, or nil if it is the current one.
func (f *follower) followed(p *product.Product, s fleet.Served) (*currentAnswer, error) {
	h := *f.board.now(p.Name)
	if h.digest != s.SHA256 {
		stored, _, err := f.board.stored(p)
		if err != nil {
			return nil, err
		}
		h, h.digest = *stored, s.SHA256
	}
	meta := &h.edition.Default.Meta
	s.Freshness = f.worse(&product.Answer{Product: p, AsOf: meta.AsOf, Captured: meta.CapturedAt, RestsOn: h.restsOn}, s.Freshness)
	if same(meta.Freshness, s.Freshness) && f.board.now(p.Name).digest == s.SHA256 {
		return nil, nil
	}
	if !same(meta.Freshness, s.Freshness) {
		var err error
		if h.edition, err = withFreshness(h.edition, s.Freshness); err != nil {
			return nil, err
		}
	}
	return &h, nil
}

func same(f, g snapshots.Freshness) bool { return f.Equal(g) && f.Since.Equal(g.Since) }

// aloneAfter is how long no refresher may be heard of before all answers are stale.
const aloneAfter = 2 * time.Minute

// UpdateFreshness implements [fleet.Process]. This process judges the age of each answer by itself. While no refresher is heard of, the answers
// have the freshness of their age, and all are stale after two minutes.
func (f *follower) UpdateFreshness(since time.Time) error {
	return f.board.resealAs(func(a *product.Answer, served snapshots.Freshness) snapshots.Freshness {
		switch {
		case !since.IsZero() && time.Since(since) > aloneAfter:
			return because(stateStale, reasonAlone, f.cfg.Clock.At(since).Truncate(time.Second))
		case since.IsZero():
			return f.worse(a, served)
		case served.Stale():
			return served
		}
		return f.board.freshness(a, f.cfg.Clock.Now(), health{})
	})
}

// worse returns the freshness that the fleet gives an answer, or that of its age, if this is stale and the refresher should have said it two
// minutes ago.
func (f *follower) worse(a *product.Answer, served snapshots.Freshness) snapshots.Freshness {
	if own := f.board.freshness(a, f.cfg.Clock.Now().Add(-aloneAfter), health{}); own.Stale() && !served.Stale() {
		return own
	}
	return served
}

// offers is [jobs.offers] of a member that does not refresh: it knows from the fleet. Before that, it asks its source, and an edge, which
// has none, waits for every product.
func (f *follower) offers(p *product.Product) bool {
	offered := f.offered.Load()
	if offered == nil {
		return f.edge || f.jobs.offers(p)
	}
	return (*offered)[p.Name]
}
