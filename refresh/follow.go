package refresh

import (
	"context"
	"errors"
	"fmt"
	"time"

	"strikecache/refresh/fleet"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// The methods of this file are [fleet.Refresher]: what this process does in a fleet.

var errNoLease = errors.New("this member of the fleet does not hold the lease")

// noSource is the source of an edge: it has no documents.
type noSource struct{}

func (noSource) Fetch(context.Context, upstream.Name, *upstream.Document) (*upstream.Document, error) {
	return nil, &upstream.Error{Reason: upstream.Missing, Err: errNoLease}
}

func (noSource) Offers(upstream.Name) bool { return false }

// Origin implements [fleet.Refresher].
func (r *Refresher) Origin() fleet.Origin {
	o := fleet.Origin{Identity: r.cfg.Identity}
	if c := r.cfg.Clock; c.hands != nil {
		h := c.hands.Load()
		o.Market, o.Wall, o.Speed = h.market, h.wall.UTC(), h.speed
	}
	return o
}

// Join implements [fleet.Refresher]. All members show the market's time of the first refresher.
func (r *Refresher) Join(o fleet.Origin) error {
	if o.Identity != "" {
		if err := r.store.Bind(o.Identity); err != nil {
			return fmt.Errorf("the fleet serves the %s: %w", o.Identity, err)
		}
	}
	if o.Market.IsZero() != (r.cfg.Clock.hands == nil) {
		return fmt.Errorf("the fleet serves another kind of market than source %s", r.cfg.SourceName)
	}
	if !o.Market.IsZero() {
		r.cfg.Clock.set(hands{o.Market, o.Wall, o.Speed})
	}
	return nil
}

// Accept implements [fleet.Refresher]. It prepares an answer that is to be made current next.
func (r *Refresher) Accept(path, digest string, file []byte, next bool) error {
	f, err := r.store.Accept(path, digest, file, Resources())
	if err != nil && !errors.Is(err, snapshots.ErrPending) || !next || f.Edition == nil {
		return err
	}
	h, failed := r.stored(f)
	if failed != nil {
		return err // Follow reads the file again, and says why it cannot
	}
	h.file = fleet.File{Path: path, SHA256: digest}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.received[path] = h
	return err
}

// Lead implements [fleet.Refresher]. It begins as a start does, from the stored files.
func (r *Refresher) Lead(ctx context.Context) {
	r.reset()
	if err := r.Restore(); err != nil {
		r.log.Error("stored answers not restored", "err", err)
	}
	r.published()
	r.Run(ctx)
}

// Serving implements [fleet.Refresher].
func (r *Refresher) Serving() map[string]fleet.Served {
	r.mu.Lock()
	defer r.mu.Unlock()
	serving := map[string]fleet.Served{}
	for _, p := range r.products {
		if !p.offered(&r.cfg) {
			continue
		}
		h, s := r.current[p.name], fleet.Served{}
		if h.edition != nil {
			s = fleet.Served{File: h.file, Freshness: h.edition.Default.Meta.Freshness}
		}
		serving[p.name] = s
	}
	return serving
}

// Follow implements [fleet.Refresher]. An answer that is older than the current one is passed over: this process has
// refreshed, and its last answers have not reached the fleet.
func (r *Refresher) Follow(served map[string]fleet.Served) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	next, changed := map[string]*currentAnswer{}, map[string]*snapshots.Edition{}
	r.offered = map[string]bool{}
	for _, p := range r.products {
		s, offered := served[p.name]
		r.offered[p.name] = offered
		if s.Path == "" {
			continue
		}
		h, err := r.followed(p, s)
		if err != nil {
			r.log.Error("answer of the fleet not readable", "resource", p.name, "file", s.Path, "err", err)
			continue
		}
		if h != nil {
			next[p.name], changed[p.name] = h, h.edition
		}
	}
	clear(r.received)
	if len(changed) == 0 {
		return nil
	}
	if err := r.store.Publish(changed); err != nil {
		return err
	}
	for name, h := range next {
		r.current[name] = h
		r.lastAnswer = later(r.lastAnswer, changedAt(h.edition))
	}
	return nil
}

// followed returns the answer of the fleet, or nil if it is the current one or older. r.mu is held.
func (r *Refresher) followed(p *product, s fleet.Served) (*currentAnswer, error) {
	h := *r.current[p.name]
	if h.file != s.File {
		stored := r.received[s.Path]
		if stored == nil || stored.file != s.File {
			f, err := r.store.LoadPath(s.Path)
			if err != nil {
				return nil, err
			}
			if stored, err = r.stored(f); err != nil {
				return nil, err
			}
			stored.file = s.File
		}
		if h.edition != nil && h.edition.Default.Newer(stored.edition.Default) {
			return nil, nil
		}
		h = *stored
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

// Watch implements [fleet.Refresher]. While no refresher is heard of, it judges the answers by their age, and makes them all
// stale after two minutes. It also removes old files once a day.
func (r *Refresher) Watch(since time.Time) error {
	if now := time.Now(); now.Sub(r.expired) > 24*time.Hour {
		r.expired = now
		if err := r.expire(context.Background()); err != nil {
			r.log.Error("old files not removed", "err", err)
		}
	}
	if since.IsZero() {
		return nil
	}
	now := r.cfg.Clock.Now()
	return r.resealAs(func(p *product, h *currentAnswer) snapshots.Freshness {
		before := h.edition.Default.Meta.Freshness
		switch {
		case time.Since(since) > aloneAfter:
			return because(stateStale, reasonAlone, r.cfg.Clock.At(since).Truncate(time.Second))
		case before.Stale():
			return before
		}
		q := p.quoteInstant(h.asOf(), h.edition.Default.Meta.CapturedAt, h.restsOn, r.cal)
		return r.freshness(p, health{}, now, h.asOf(), q)
	})
}
