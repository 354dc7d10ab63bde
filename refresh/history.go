package refresh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/refresh/product"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

const (
	// afterClose is the time from the close of a session until its last quotes are final. The refresh window has ended by then.
	afterClose = feed.WindowAfterClose + 4*time.Minute
	// firstPast is the time after the open at which the first document of a session with its own as_of is there.
	firstPast = feed.WindowAfterOpen + time.Minute
	// pastEvery is the time between two rows of a track that is played.
	pastEvery = 5 * time.Minute
)

// playHistory plays what the source still has, beside the schedule: the track of today of the first underlying, the past sessions, and the
// tracks of today of the others.
func (j *jobs) playHistory(ctx context.Context) {
	tracks := j.cfg.products.Where(func(p *product.Product) bool { return p.Accumulates })
	track := func(some product.List) job {
		return job{name: "track", run: func(ctx context.Context) error {
			for _, p := range some {
				if err := j.playTrack(ctx, p); err != nil {
					return fmt.Errorf("play %s: %w", p.Name, err)
				}
			}
			return nil
		}}
	}
	for _, one := range []job{track(tracks[:1]), {name: "backfill", run: j.playSessions}, track(tracks[1:])} {
		j.runJob(ctx, one)
	}
	j.log.Info("history filled in")
}

// playSessions computes and stores the answers of past sessions whose dates have no file, oldest session first, from the
// documents that the upstream had after each close. It then computes the current answers again:
// the same documents give other answers now, because the answers compare with earlier dates. A session that fails stops no other.
func (j *jobs) playSessions(ctx context.Context) error {
	var errs []error
	began, stored, memory := time.Now(), 0, product.NewMemory(j.store, j.cal, j.log)
	dated := j.cfg.products.Where(func(p *product.Product) bool { return p.Dated && !p.Accumulates })
	for _, d := range j.cfg.Past.Sessions(j.cfg.Clock.Now()) {
		for _, group := range dated.Groups() {
			missing := group.Where(func(p *product.Product) bool { return !slices.Contains(j.store.DatesOf(p.Name), d.String()) })
			if len(missing) == 0 {
				continue
			}
			names, at := j.closing(missing[0], d)
			b, err := j.past(ctx, memory, names, at)
			if ctx.Err() != nil {
				return nil // the next start goes on with it
			}
			if err == nil && (len(b.Documents) > 0 || missing[0].EveryChain()) {
				err = j.accept("backfill", b, missing)
				stored += len(b.Answers)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("play %s of %s: %w", missing[0].Name, d, err))
			}
		}
	}
	if stored == 0 {
		return errors.Join(errs...)
	}
	j.log.Info("back-filled", "snapshots", stored, "took", time.Since(began).Round(time.Millisecond))
	for _, group := range j.cfg.products.Groups() {
		errs = append(errs, j.accept("backfill", j.newBatch(), group))
	}
	return errors.Join(errs...)
}

// closing returns the names of the documents of a product, and when the upstream has those of a session.
func (j *jobs) closing(p *product.Product, d compute.Date) (names []upstream.Name, at time.Time) {
	switch p.Feed {
	case product.Funds:
		return fundDocuments(), j.cal.Close(d).Add(afterClose)
	case product.Settlements:
		return vixDocuments(d), d.At(18, 45, 0, compute.NewYork)
	}
	if !p.EveryChain() { // else the answers to each chain are enough
		names = []upstream.Name{feed.ChainOf(p.Underlying)}
	}
	return names, j.cal.Close(d).Add(afterClose)
}

// past returns the documents that the upstream had at an instant, without those that it does not have any more. No other documents than these
// are used, and the answers are not served. Others may own the state before.
func (j *jobs) past(ctx context.Context, memory *product.Memory, names []upstream.Name, at time.Time) (*product.Batch, error) {
	b := j.newBatch()
	b.At, b.Accepted, b.Memory = at, nil, memory
	documents, errs := make([]*upstream.Document, len(names)), make([]error, len(names))
	j.leave(func() { // once: a refresh comes each time
		for i, name := range names {
			documents[i], errs[i] = j.cfg.Past.At(name, at)
		}
	})
	for i, doc := range documents {
		if feed.IsUnknown(errs[i]) {
			continue
		}
		if err := errors.Join(errs[i], ctx.Err()); err != nil {
			return nil, err
		}
		d, err := feed.New(doc)
		if err != nil {
			return nil, err
		}
		b.Add(d)
	}
	return b, nil
}

// playTrack puts rows in front of a served track that is of today's session and begins later: one row for every 5 minutes,
// from the documents that the upstream had.
func (j *jobs) playTrack(ctx context.Context, p *product.Product) error {
	today := j.cal.SessionDate(j.cfg.Clock.Now())
	_, _, first, err := j.servedTrack(p)
	if err != nil || !first.After(j.cal.Open(today).Add(pastEvery)) || !product.InTrack(first, j.cal) {
		return err
	}
	rows, memory, chain := []json.RawMessage{}, product.NewMemory(j.store, j.cal, j.log), feed.ChainOf(p.Underlying)
	for at := j.cal.Open(today).Add(firstPast); at.Before(j.cal.Close(today).Add(afterClose)); at = at.Add(pastEvery) {
		b, err := j.past(ctx, memory, []upstream.Name{chain}, at)
		if err != nil {
			return err
		}
		if d := b.Document(chain); d == nil {
			continue
		} else if !d.Underlying.AsOf.Before(first) {
			break
		}
		if rows, err = p.Rows(b, rows); err != nil {
			return err
		}
	}
	served, newest, now, err := j.servedTrack(p)
	if err != nil || !now.Equal(first) || len(rows) == 0 {
		return err // the next session has begun
	}
	b := j.newBatch()
	b.TrackRows = append(rows, served[:len(served)-1]...)
	b.Accepted = func(upstream.Name) *feed.Document { return newest }
	j.log.Info("track of today back-filled", "underlying", p.Underlying, "rows", len(rows))
	return j.accept("track", b, product.List{p})
}

// servedTrack returns the rows of a served track, the chain of its newest row, and the as_of of its first; none if there is no row.
func (j *jobs) servedTrack(p *product.Product) (rows []json.RawMessage, chain *feed.Document, first time.Time, err error) {
	f, err := j.store.LoadCurrent(p.Name)
	if errors.Is(err, snapshots.ErrNoSnapshot) {
		return nil, nil, first, nil
	}
	if err == nil {
		rows, err = product.TrackRows(f.Edition.Default)
	}
	if err != nil || len(rows) == 0 {
		return nil, nil, first, err
	}
	first, err = product.RowInstant(rows[0])
	i := slices.IndexFunc(f.Inputs, func(in snapshots.StoredInput) bool { return in.Name == string(feed.ChainOf(p.Underlying)) })
	if i < 0 {
		return nil, nil, time.Time{}, nil
	}
	return rows, feed.Stored(f.Inputs[i], j.store.Object), first, err
}
