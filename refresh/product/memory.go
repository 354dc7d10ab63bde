package product

import (
	"errors"
	"log/slog"
	"slices"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/snapshots"
)

// Stored is what a [snapshots.Store] has of earlier answers.
type Stored interface {
	Current(product string) *snapshots.Edition
	DatesOf(product string) []string
	Summaries(product string) []snapshots.Summary
	Load(product, date string) (snapshots.File, error)
	LoadCurrent(product string) (snapshots.File, error)
	Object(sha256 string) ([]byte, error)
}

// Memory is what answers need from earlier answers: the chains of the session before, the rows of series, the history of
// the VIX curve, and the closes of indices that wait for their settlement file. It reads them from the store. One goroutine at a time uses
// it.
type Memory struct {
	store    Stored
	calendar *compute.Calendar
	log      *slog.Logger
	before   map[previousKey]previousChain
	closes   map[closeKey]*feed.Document // quotes of VIX and VIX3M; nil: those of the stored curve are not looked at yet
}

// previousKey names a chain of the session before, by its underlying, and the product that needs it.
type previousKey struct{ product, symbol string }

// previousChain is the chain that the gex/{u} stored under a date names.
type previousChain struct {
	date  compute.Date
	chain *feed.Document // nil: gone or damaged
}

// NewMemory returns the memory of a store.
func NewMemory(store Stored, cal *compute.Calendar, log *slog.Logger) *Memory {
	return &Memory{store: store, calendar: cal, log: log, before: map[previousKey]previousChain{}}
}

// previous returns the chain of an underlying that the answer of gex/{u} stored under the date of the session before names, after
// read has taken from it what the product needs. It returns nil if the answer or the chain is not stored or not readable.
func (m *Memory) previous(p *Product, symbol string, session compute.Date, read func(*feed.Document) error) *feed.Document {
	k, date := previousKey{p.Name, symbol}, m.calendar.Previous(session)
	if known := m.before[k]; known.date == date {
		return known.chain
	}
	f, err := m.store.Load(gammaOfUnderlying(symbol), date.String())
	i := slices.IndexFunc(f.Inputs, func(in snapshots.StoredInput) bool { return in.Name == string(feed.ChainOf(symbol)) })
	if errors.Is(err, snapshots.ErrNoSnapshot) || err == nil && i < 0 {
		return nil
	}
	var d *feed.Document
	if err == nil {
		d = m.asPrevious(f.Inputs[i])
		err = read(d)
	}
	if err != nil {
		m.log.Error("chain of the previous session not readable", "document", feed.ChainOf(symbol), "date", date, "err", err)
		if !errors.Is(err, snapshots.ErrGone) && !errors.Is(err, snapshots.ErrTorn) {
			return nil // the next answer tries again
		}
		d = nil
	} else {
		d.Release()
	}
	m.before[k] = previousChain{date, d}
	return d
}

func (m *Memory) asPrevious(in snapshots.StoredInput) *feed.Document {
	in.Name = feed.PreviousDir + in.Name
	return feed.Stored(in, m.store.Object)
}

// KeepReference keeps what the next session's gex/{u} would compute again from the chain of a stored answer.
func (m *Memory) KeepReference(a *Answer) {
	if in := a.Inputs; in.gamma != nil {
		d := m.asPrevious(in.newest()[0].StoredInput)
		d.Derived = &reference{state: in.gamma.State}
		m.before[previousKey{a.Product.Name, a.Product.Underlying}] = previousChain{a.Date(), d}
	}
}

// closeKey names the close of an index on a date.
type closeKey struct {
	index string
	date  compute.Date
}
