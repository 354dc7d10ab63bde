package refresh

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// memory is what answers need from earlier answers: the documents of the session before, the rows of series, the history of
// the VIX curve, and the closes of indices that wait for their settlement file. It reads them from the store. Only the goroutine
// that publishes uses it. The closes are changed by the vix job alone, with the lock of a publication, and by a start before any job
// runs.
type memory struct {
	cfg    *Config
	before map[previousKey]*document // documents of the session before, by what names them; nil: gone or damaged
	closes map[closeKey]*document    // of VIX and VIX3M
	since  time.Time                 // the start: a back-fill gives answers to dates that had closed by then
}

// previousKey names a document that a stored answer names.
type previousKey struct {
	product string
	date    compute.Date
	name    upstream.Name
}

// closeKey names the close of an index on a date.
type closeKey struct {
	index string
	date  compute.Date
}

func newMemory(cfg *Config) *memory {
	return &memory{cfg, map[previousKey]*document{}, map[closeKey]*document{}, cfg.Clock.Now()}
}

// previous returns the document of a name that the answer of a product stored under the date of the session before names, after
// read has taken from it what the product needs. It returns nil if the answer or the document is not stored or not readable.
func (m *memory) previous(product string, name upstream.Name, session compute.Date, read func(*document) error) *document {
	k := previousKey{product, m.cfg.Calendar.Previous(session), name}
	if d, known := m.before[k]; known {
		return d
	}
	f, err := m.cfg.Store.Load(product, k.date.String())
	if errors.Is(err, snapshots.ErrNoSnapshot) {
		return nil
	}
	var d *document
	if err == nil {
		i := slices.IndexFunc(f.Inputs, func(in snapshots.StoredInput) bool { return in.Name == string(name) })
		if i < 0 {
			return nil
		}
		in := f.Inputs[i]
		in.Name = previousDir + in.Name
		d = storedDocument(in, m.cfg.Store.Object)
		err = read(d)
	}
	if err != nil {
		m.cfg.Log.Error("document of the previous session not readable", "document", name, "named_by", product, "date", k.date, "err", err)
		if !errors.Is(err, snapshots.ErrGone) && !errors.Is(err, snapshots.ErrTorn) {
			return nil // the next answer tries again
		}
		d = nil
	} else {
		d.release()
	}
	maps.DeleteFunc(m.before, func(other previousKey, _ *document) bool { return other.date < k.date })
	m.before[k] = d
	return d
}

// keepReference keeps what [memory.previous] would read of the chain of a stored answer: the state that was computed from it.
func (m *memory) keepReference(product string, date compute.Date, chain *document, state *compute.GammaState) {
	in := chain.StoredInput
	k := previousKey{product, date, upstream.Name(in.Name)}
	in.Name = previousDir + in.Name
	m.before[k] = storedDocument(in, m.cfg.Store.Object)
	m.before[k].reference = state
}

// rows returns the rows of the newest 400 stored dates of a resource, oldest first. The row of its answer a, unless nil, replaces that of
// its date.
func (m *memory) rows(name string, a *answer) []json.RawMessage {
	rows := map[string]json.RawMessage{}
	for _, s := range m.cfg.Store.Summaries(name) {
		rows[s.Date] = s.Body
	}
	if a != nil {
		rows[a.date().String()] = a.summary
	}
	dates := slices.Sorted(maps.Keys(rows))
	newest := []json.RawMessage{}
	for _, d := range dates[max(0, len(dates)-maxSeriesRows):] {
		newest = append(newest, rows[d])
	}
	return newest
}

// keepClose keeps a document that has the close of a date: of a quote and a history, the quote.
func (m *memory) keepClose(d *document, date compute.Date) {
	_, index := upstream.Name(d.Name).Split()
	if k := (closeKey{index, date}); m.closes[k] == nil || d.quote != nil {
		m.closes[k] = d
	}
	maps.DeleteFunc(m.closes, func(old closeKey, _ *document) bool { return old.date < date-closesKept })
}

// closesKept is for how many days a close waits for the settlement file of its date.
const closesKept = 14

// closesOf returns a document with the close of the date for each index. An index whose close is unknown has no document.
func (m *memory) closesOf(date compute.Date) (documents []*document) {
	for _, index := range vixIndices {
		if d := m.closes[closeKey{index, date}]; d != nil {
			documents = append(documents, d)
		}
	}
	return documents
}
