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
	// pastEvery is the time between two rows of a track of today that is played, and closedEvery between those of the tracks of the
	// pastTracks last sessions: a row of SPX takes 0.2 s of a core.
	pastEvery   = 5 * time.Minute
	closedEvery = 15 * time.Minute
	pastTracks  = 5
)

// playHistory plays the past that there is, beside the schedule. What is looked at first comes first: the track of today of the first
// underlying, the past sessions, its tracks of the last of them, and the tracks of today of the others. What a user has kept has no tracks.
func (j *jobs) playHistory(ctx context.Context) {
	tracks := j.cfg.products.Where(func(p *product.Product) bool { return p.Accumulates && !j.cfg.Kept })
	groups := tracks.Groups() // by underlying
	first := min(1, len(groups))
	track := func(groups []product.List, play func(context.Context, product.List) error) job {
		return job{name: "track", run: func(ctx context.Context) error {
			for _, some := range groups {
				if err := play(ctx, some); err != nil {
					return fmt.Errorf("play %s: %w", some[0].Name, err)
				}
			}
			return nil
		}}
	}
	for _, one := range []job{
		track(groups[:first], j.playTrack), {name: "backfill", run: j.playSessions}, track(groups[:first], j.playTracks), track(groups[first:], j.playTrack),
	} {
		j.runJob(ctx, one)
	}
	if ctx.Err() == nil {
		j.log.Info("history filled in")
	}
}

// History returns how many of the past sessions have been played, or need not be, such as "41 of 250"; "" if there is no past. It is safe for
// concurrent use.
func (j *jobs) History() string {
	if p := j.played.Load(); p != nil {
		return *p
	}
	return ""
}

// countSessions sets [jobs.History] before the first session is played, so that a client that waits for all answers sees that there is a past.
func (j *jobs) countSessions() {
	j.played.CompareAndSwap(nil, new(fmt.Sprintf("0 of %d", len(j.cfg.Past.Sessions(j.cfg.Clock.Now())))))
}

// sayEvery is the time between two lines of the log about the progress of history.
const sayEvery = 10 * time.Second

// sessions returns the past sessions. Others may own the state before.
func (j *jobs) sessions() (sessions []compute.Date) {
	j.leave(func() { sessions = j.cfg.Past.Sessions(j.cfg.Clock.Now()) }) // the folder may not answer
	return sessions
}

// playSessions computes and stores the answers of past sessions whose dates have no file, oldest session first, from the
// documents that the upstream had after each close. It then computes the current answers again:
// the same documents give other answers now, because the answers compare with earlier dates. A session that fails stops no other.
// The next start goes on where this one was interrupted: at the first date without a file.
func (j *jobs) playSessions(ctx context.Context) error {
	began, stored, unused, memory := time.Now(), 0, 0, product.NewMemory(j.store, j.cal, j.log)
	sessions := j.sessions()
	j.log.Info("history begins", "sessions", len(sessions))
	said := began
	for i, d := range sessions {
		j.played.Store(new(fmt.Sprintf("%d of %d", i, len(sessions))))
		if time.Since(said) >= sayEvery {
			said = time.Now()
			j.log.Info("history goes on", "played", j.History())
		}
		answers, errs := j.playSession(ctx, memory, d)
		if ctx.Err() != nil {
			return nil
		}
		stored += answers
		unused += len(errs)
		for _, err := range errs {
			j.log.Warn("past session not played whole", "date", d, "err", err)
		}
	}
	j.played.Store(new(fmt.Sprintf("%d of %d", len(sessions), len(sessions))))
	j.playedAll.Store(true)
	var errs []error
	if unused > 0 {
		errs = append(errs, fmt.Errorf("%d documents or answers of past sessions cannot be used: the lines above name them", unused))
	}
	if stored == 0 {
		return errors.Join(errs...)
	}
	j.log.Info("back-filled", "snapshots", stored, "took", time.Since(began).Round(time.Millisecond))
	for _, group := range j.cfg.products.Groups() {
		j.leave(func() {}) // a refresh that waits comes first
		if err := j.accept("backfill", j.newBatch(), group); !errors.Is(err, product.ErrNoInput) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// playSession stores the answers of a session that have no file, and returns how many they are. Its errors name each document and answer that
// cannot be used.
func (j *jobs) playSession(ctx context.Context, memory *product.Memory, d compute.Date) (stored int, errs []error) {
	dated := j.cfg.products.Where(func(p *product.Product) bool { return p.Dated && !p.Accumulates })
	for _, group := range dated.Groups() {
		missing := group.Where(func(p *product.Product) bool { return !slices.Contains(j.store.DatesOf(p.Name), d.String()) })
		if len(missing) == 0 {
			continue
		}
		names, at := j.closing(missing[0], d)
		b, refused := j.past(ctx, memory, names, at)
		if ctx.Err() != nil {
			return stored, nil
		}
		errs = append(errs, refused...)
		if len(b.Documents) == 0 && !missing[0].EveryChain() {
			continue
		}
		err := j.accept("backfill", b, missing)
		if stored += len(b.Answers); err != nil {
			errs = append(errs, err)
		}
	}
	return stored, errs
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

// past returns the documents that the upstream had at an instant, without those that it does not have any more, and an error for each that
// cannot be used. No other documents than these are used, and the answers are not served. They are computed at that instant, or when the last
// document was made: people save chains in the evening. Others may own the state before.
func (j *jobs) past(ctx context.Context, memory *product.Memory, names []upstream.Name, at time.Time) (b *product.Batch, refused []error) {
	b = j.newBatch()
	b.At, b.Accepted, b.Memory = at, nil, memory
	d := compute.DateOf(at.In(compute.NewYork))
	add := func(names ...upstream.Name) {
		sent, errs := make([]*upstream.Document, len(names)), make([]error, len(names))
		j.leave(func() { // once: a refresh comes each time
			for i, name := range names {
				sent[i], errs[i] = j.cfg.Past.At(name, at)
			}
		})
		for i, err := range errs {
			if feed.IsUnknown(err) || ctx.Err() != nil {
				continue
			}
			var doc *feed.Document
			if err == nil {
				doc, err = takePast(feed.NewIntake(j.cfg.Clock, j.cal, j.log), sent[i], d)
			}
			if err != nil {
				refused = append(refused, fmt.Errorf("%s: %w", names[i], err))
				continue
			}
			doc.Received = compute.Later(doc.Received, doc.Underlying.CapturedAt)
			b.At = compute.Later(b.At, doc.Received)
			b.Add(doc)
		}
	}
	add(names...)
	for _, index := range product.CloseIndices {
		if b.Settlement() != nil && b.Close(index, d) == nil {
			add(upstream.History(index))
		}
	}
	return b, refused
}

// takePast takes a document of a past session as any other, but compares it with none: days lie between two. A chain or a quote must be of
// that session and of its UTC date, under which its answer is stored.
func takePast(in *feed.Intake, sent *upstream.Document, d compute.Date) (*feed.Document, error) {
	doc, err := in.Take(sent)
	if err != nil {
		return nil, err
	}
	switch asOf := doc.Underlying.AsOf; {
	case doc.Settlement != nil:
		err = checkMonths(doc.Settlement, in.Calendar, in.Clock.Now())
	case asOf.IsZero():
	case in.Calendar.SessionDate(asOf) < d:
		err = upstream.Refuse(upstream.Older, "its last trade, %s, is of a session before %s", asOf.Format(time.RFC3339), d)
	case compute.DateOf(asOf) != d:
		err = upstream.Refuse(upstream.ClockAhead, "its last trade, %s, is not of the UTC date %s", asOf.Format(time.RFC3339), d)
	}
	return doc, err
}

// playTrack puts rows in front of the served tracks of an underlying that are of today's session and begin later: one row for every 5
// minutes, from the documents that the upstream had.
func (j *jobs) playTrack(ctx context.Context, tracks product.List) error {
	today := j.cal.SessionDate(j.cfg.Clock.Now())
	first := map[*product.Product]time.Time{}
	tracks = tracks.Where(func(p *product.Product) bool {
		_, _, asOf, err := j.servedTrack(p)
		first[p] = asOf
		return err != nil || asOf.After(j.cal.Open(today).Add(pastEvery)) && product.InTrack(asOf, j.cal)
	})
	rows, err := j.playRows(ctx, tracks, today, pastEvery, first)
	if err != nil {
		return err
	}
	for _, p := range tracks {
		served, newest, now, err := j.servedTrack(p)
		if err != nil || !now.Equal(first[p]) || len(rows[p]) == 0 {
			return err // the next session has begun
		}
		b := j.newBatch()
		b.TrackRows = append(rows[p], served[:len(served)-1]...)
		b.Accepted = func(upstream.Name) *feed.Document { return newest }
		j.log.Info("track of today back-filled", "resource", p.Name, "rows", len(rows[p]))
		if err := j.accept("track", b, product.List{p}); err != nil {
			return err
		}
	}
	return nil
}

// playRows returns the rows of tracks of an underlying, of a session, that come before an as_of each, at an interval.
func (j *jobs) playRows(ctx context.Context, tracks product.List, session compute.Date, every time.Duration, until map[*product.Product]time.Time) (map[*product.Product][]json.RawMessage, error) {
	memory, rows := product.NewMemory(j.store, j.cal, j.log), map[*product.Product][]json.RawMessage{}
	for _, p := range tracks {
		rows[p] = []json.RawMessage{}
	}
	for at := j.cal.Open(session).Add(firstPast); at.Before(j.cal.Close(session).Add(afterClose)) && len(tracks) > 0; at = at.Add(every) {
		chain := feed.ChainOf(tracks[0].Underlying)
		b, refused := j.past(ctx, memory, []upstream.Name{chain}, at)
		if err := errors.Join(append(refused, ctx.Err())...); err != nil {
			return nil, err
		}
		d := b.Document(chain)
		if d == nil {
			continue
		}
		tracks = tracks.Where(func(p *product.Product) bool { return p.Apart(d.Underlying.AsOf, until[p]) })
		for _, p := range tracks {
			var err error
			if rows[p], err = p.Rows(b, rows[p]); err != nil {
				return nil, err
			}
		}
	}
	return rows, nil
}

// playTracks stores the tracks of an underlying that the last sessions lack, newest first. The last row of each is of the documents of the close.
func (j *jobs) playTracks(ctx context.Context, tracks product.List) error {
	sessions := j.sessions()
	for _, d := range slices.Backward(sessions[max(0, len(sessions)-pastTracks):]) {
		until := map[*product.Product]time.Time{}
		missing := tracks.Where(func(p *product.Product) bool {
			until[p] = j.cal.Close(d)
			return !slices.Contains(j.store.DatesOf(p.Name), d.String())
		})
		if len(missing) == 0 {
			continue
		}
		rows, err := j.playRows(ctx, missing, d, closedEvery, until)
		if err != nil {
			return err
		}
		names, at := j.closing(missing[0], d)
		b, refused := j.past(ctx, product.NewMemory(j.store, j.cal, j.log), names, at)
		if err := errors.Join(append(refused, ctx.Err())...); err != nil {
			return err
		}
		for _, p := range missing {
			if b.TrackRows = rows[p]; len(b.Documents) == 0 {
				continue
			}
			if err := j.accept("track", b, product.List{p}); err != nil {
				return err
			}
			j.log.Info("track back-filled", "resource", p.Name, "date", d, "rows", len(rows[p])+1)
		}
	}
	return nil
}

// servedTrack returns the rows of a served track, the chain of its newest row, and the as_of of its first; none if there is no row.
func (j *jobs) servedTrack(p *product.Product) (rows []json.RawMessage, chain *feed.Document, first time.Time, err error) {
	f, err := j.store.LoadCurrent(p.Name)
	if errors.Is(err, snapshots.ErrNoSnapshot) {
		return nil, nil, first, nil
	}
	if err == nil {
		rows, err = p.TrackRows(f.Edition.Default.Data())
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
