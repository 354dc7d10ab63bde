package refresh

import (
	"context"
	"fmt"
	"sync"
	"time"

	"strikecache/refresh/fleet"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// follower is [fleet.Process]: what this process does in a fleet.
type follower struct {
	r       *Refresher
	edge    bool      // this process never refreshes
	expired time.Time // when it last removed old files; of Judge alone

	mu      sync.Mutex
	offered map[string]bool // the resources that the refresher of the fleet can feed; nil: not known
}

// noSource is the source of an edge: it has no documents.
type noSource struct{}

func (noSource) Fetch(context.Context, upstream.Name, *upstream.Document) (*upstream.Document, error) {
	return nil, &upstream.Error{Reason: upstream.Missing, Err: errNoLease}
}

func (noSource) Offers(upstream.Name) bool { return false }

// Origin implements [fleet.Process].
func (f *follower) Origin() fleet.Origin {
	o := fleet.Origin{Identity: f.r.cfg.Identity}
	if c := f.r.cfg.Clock; c.hands != nil {
		h := c.hands.Load()
		o.Market, o.Wall, o.Speed = h.market, h.wall.UTC(), h.speed
	}
	return o
}

// Join implements [fleet.Process]. All members show the market's time of the first refresher.
func (f *follower) Join(o fleet.Origin) error {
	if o.Identity != "" {
		if err := f.r.store.Bind(o.Identity); err != nil {
			return fmt.Errorf("the fleet serves the %s: %w", o.Identity, err)
		}
	}
	if o.Market.IsZero() != (f.r.cfg.Clock.hands == nil) {
		return fmt.Errorf("the fleet serves another kind of market than source %s", f.r.cfg.SourceName)
	}
	if !o.Market.IsZero() {
		f.r.cfg.Clock.set(hands{o.Market, o.Wall, o.Speed})
	}
	return nil
}

// Doubt implements [fleet.Process].
func (f *follower) Doubt() error { return f.r.ClockError() }

// Failing implements [fleet.Process]. It looks at the chain of the first underlying.
func (f *follower) Failing() error { return f.r.board.failing(f.r.cfg.products[0].name) }

// Accept implements [fleet.Process].
func (f *follower) Accept(path, digest string, file []byte) error {
	// No newer answer would ever replace one of the far future. The clock of this machine may be some hours wrong.
	notAfter := f.r.cfg.Clock.Now().Add(48 * time.Hour)
	return f.r.store.Accept(path, digest, file, f.r.Resources(), notAfter)
}

// Refresh implements [fleet.Process]. It begins as a start does, from the stored files.
func (f *follower) Refresh(ctx context.Context) {
	f.r.reset()
	if err := f.r.Restore(); err != nil {
		f.r.log.Error("stored answers not restored", "err", err)
	}
	f.r.cfg.published()
	f.r.Run(ctx)
}

// Serving implements [fleet.Process].
func (f *follower) Serving() map[string]fleet.Served {
	b := f.r.board
	b.mu.Lock()
	defer b.mu.Unlock()
	serving := map[string]fleet.Served{}
	for _, p := range f.r.cfg.products {
		h, s := b.current[p.name], fleet.Served{}
		if h.edition == nil && !f.r.offers(p) {
			continue
		}
		if h.edition != nil {
			s = fleet.Served{SHA256: h.digest, Freshness: h.edition.Default.Meta.Freshness}
		}
		serving[p.name] = s
	}
	return serving
}

// Follow implements [fleet.Process]. An answer that is older than the current one is passed over: this process has
// refreshed, and its last answers have not reached the fleet.
func (f *follower) Follow(served map[string]fleet.Served) error {
	next, offered := map[string]*currentAnswer{}, map[string]bool{}
	for _, p := range f.r.cfg.products {
		var s fleet.Served
		if s, offered[p.name] = served[p.name]; s.SHA256 == "" {
			continue // there is no answer yet
		}
		h, err := f.followed(p, s)
		if err != nil {
			f.r.log.Error("answer of the fleet not readable", "resource", p.name, "err", err)
			continue
		}
		if h != nil {
			next[p.name] = h
		}
	}
	f.mu.Lock()
	f.offered = offered
	f.mu.Unlock()
	return f.r.board.put(next)
}

// followed returns the answer of the fleet, or nil if it is the current one or older.
func (f *follower) followed(p *product, s fleet.Served) (*currentAnswer, error) {
	h := f.r.board.now(p.name)
	if h.digest != s.SHA256 {
		file, err := f.r.store.LoadCurrent(p.name)
		if err != nil {
			return nil, err
		}
		stored, err := f.r.board.stored(file)
		if err != nil {
			return nil, err
		}
		if h.edition != nil && h.edition.Default.Newer(stored.edition.Default) {
			return nil, nil
		}
		h, h.digest = *stored, s.SHA256
	} else if same(h.edition.Default.Meta.Freshness, s.Freshness) {
		return nil, nil
	}
	if !same(h.edition.Default.Meta.Freshness, s.Freshness) {
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

// Judge implements [fleet.Process]. While no refresher is heard of, it judges the answers by their age, and makes them all
// stale after two minutes. It also removes old files once a day.
func (f *follower) Judge(since time.Time) error {
	r := f.r
	if now := time.Now(); now.Sub(f.expired) > 24*time.Hour {
		f.expired = now
		if err := r.expire(context.Background()); err != nil {
			r.log.Error("old files not removed", "err", err)
		}
	}
	if since.IsZero() {
		return nil
	}
	now := r.cfg.Clock.Now()
	return r.board.resealAs(func(p *product, h *currentAnswer) snapshots.Freshness {
		meta := &h.edition.Default.Meta
		switch {
		case time.Since(since) > aloneAfter:
			return because(stateStale, reasonAlone, r.cfg.Clock.At(since).Truncate(time.Second))
		case meta.Freshness.Stale():
			return meta.Freshness
		}
		night := p.night(meta.AsOf, meta.CapturedAt, h.restsOn, r.cal)
		return r.board.freshness(p, health{}, now, meta.AsOf, night)
	})
}

// offers is [jobs.offers] of a member that does not refresh: it knows from the fleet. Before that, it asks its source, and an edge, which
// has none, waits for every product.
func (f *follower) offers(p *product) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.offered == nil {
		return f.edge || f.r.offers(p)
	}
	return f.offered[p.name]
}
