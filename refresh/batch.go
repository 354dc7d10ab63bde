package refresh

import (
	"time"

	"github.com/goccy/go-json"

	"strikecache/refresh/upstream"
)

// batch is the new documents of one run of a job, on their way through [publisher.accept]. If it has no document of a name,
// the accepted document of that name is used.
type batch struct {
	cfg       *Config
	job       string    // the job that makes the batch
	at        time.Time // of the computation, in market time
	documents map[upstream.Name]*document
	accepted  func(upstream.Name) *document // returns the accepted document of a name; nil: of a past session, no other document is used
	answers   map[string]*answer            // of the products above, while the products are computed in the order of the table
	trackRows []json.RawMessage             // rows before the newest, of a track that is made again; nil: the served track goes on
}

// document returns the document of a name from the batch, else the accepted one, nil when there is neither.
func (b *batch) document(name upstream.Name) *document {
	if d := b.documents[name]; d != nil || b.accepted == nil {
		return d
	}
	return b.accepted(name)
}

// dates says whether an answer of the batch is stored under its date. A late answer, and an answer of a closed date that a start computes
// again, are in current/ alone.
func (b *batch) dates(a *answer) bool {
	return !a.late && (b.job != resumeJob || !dateClosed(a.date(), b.at))
}

// inputs returns inputs with the documents that are not nil. It returns nil when all documents are nil.
func (b *batch) inputs(documents ...*document) *inputs {
	in := &inputs{at: b.at, calendar: b.cfg.Calendar, source: b.cfg.SourceName}
	for _, d := range documents {
		in.add(d)
	}
	if in.documents == nil {
		return nil
	}
	return in
}

// settlement returns the settlement file of the batch, else the accepted one, nil when there is neither.
func (b *batch) settlement() *settlement {
	if d := b.document(latestSettlement); d != nil {
		return d.settlement
	}
	return nil
}
