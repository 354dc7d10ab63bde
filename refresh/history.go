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
			b, err := j.pastOf(ctx, missing[0], d, memory)
			if ctx.Err() != nil {
				return nil // the next start goes on with it
			}
			if err == nil && len(b.Documents) > 0 {
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

// pastOf returns the documents that the upstream had of a product after the close of a session, without those that it does not have any more.
func (j *jobs) pastOf(ctx context.Context, p *product.Product, d compute.Date, memory *product.Memory) (*product.Batch, error) {
	names, at := []upstream.Name{feed.ChainOf(p.Underlying)}, j.cal.Close(d).Add(afterClose)
	switch p.Feed {
	case product.Funds:
		names = fundDocuments()
	case product.Settlements:
		names, at = vixDocuments(d), d.At(18, 45, 0, compute.NewYork)
	}
	b := j.pastBatch(at, memory)
	for _, name := range names {
		past, err := j.past(ctx, name, at)
		if err != nil {
			return nil, err
		}
		if past != nil {
			b.Add(past)
		}
	}
	return b, nil
}

// past returns the decoded document that the upstream had at an instant, nil if it does not have it any more. Others may own the state
// before.
func (j *jobs) past(ctx context.Context, name upstream.Name, at time.Time) (*feed.Document, error) {
	var doc *upstream.Document
	var err error
	j.leave(func() { doc, err = j.cfg.Past.At(name, at) })
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		if feed.IsUnknown(err) {
			return nil, nil
		}
		return nil, err
	}
	return feed.New(doc)
}

// playTrack puts rows in front of a served track that is of today's session and begins later: one row for every 5 minutes,
// from the documents that the upstream had.
func (j *jobs) playTrack(ctx context.Context, p *product.Product) error {
	today := j.cal.SessionDate(j.cfg.Clock.Now())
	_, _, first, err := j.servedTrack(p)
	if err != nil || !first.After(j.cal.Open(today).Add(pastEvery)) || !product.InTrack(first, j.cal) {
		return err
	}
	rows, memory := []json.RawMessage{}, product.NewMemory(j.store, j.cal, j.log)
	for at := j.cal.Open(today).Add(firstPast); at.Before(j.cal.Close(today).Add(afterClose)); at = at.Add(pastEvery) {
		d, err := j.past(ctx, feed.ChainOf(p.Underlying), at)
		if err != nil || ctx.Err() != nil {
			return err
		}
		if d == nil {
			continue
		}
		if !d.Underlying.AsOf.Before(first) {
			break
		}
		b := j.pastBatch(at, memory)
		b.Add(d)
		if rows, err = p.Rows(b, rows); err != nil {
			return err
		}
	}
	served, chain, now, err := j.servedTrack(p)
	if err != nil || !now.Equal(first) || len(rows) == 0 {
		return err // the next session has begun
	}
	b := j.newBatch()
	b.TrackRows = append(rows, served[:len(served)-1]...)
	b.Accepted = func(upstream.Name) *feed.Document { return chain }
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
