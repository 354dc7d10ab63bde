package product

import (
	"slices"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/refresh/upstream"
)

// Settings are what answers depend on besides documents and earlier answers.
type Settings struct {
	Calendar     *compute.Calendar
	RiskFreeRate float64  // per year, continuously compounded, where the quotes give none
	Source       string   // as in meta.source
	Underlyings  []string // symbols
	Recorded     bool     // every document is of the past, and its answers belong to its date
}

// Batch is new documents on their way to answers. If it has no document of a name, the accepted document of that name is used.
type Batch struct {
	Settings
	At        time.Time                          // of the computation, in market time
	Documents map[upstream.Name]*feed.Document   // by [feed.Document.Key]
	Accepted  func(upstream.Name) *feed.Document // returns the accepted document of a name; nil: of a past session, no other document is used
	Memory    *Memory                            // what earlier answers left
	Answers   map[string]*Answer                 // of the products above, while the products are computed in the order of the table
	TrackRows []json.RawMessage                  // rows before the newest, of a track that is made again; nil: the stored track goes on
}

// Add puts a document into the batch.
func (b *Batch) Add(d *feed.Document) { b.Documents[d.Key()] = d }

// Document returns the document of a name from the batch, else the accepted one, nil when there is neither.
func (b *Batch) Document(name upstream.Name) *feed.Document {
	if d := b.Documents[name]; d != nil || b.Accepted == nil {
		return d
	}
	return b.Accepted(name)
}

// Settlement returns the settlement file of the batch, else the accepted one, nil when there is neither or when it cannot be read.
func (b *Batch) Settlement() *feed.Settlement {
	d := b.Document(feed.LatestSettlement)
	if d == nil || d.Open() != nil {
		return nil
	}
	return d.Settlement
}

// Dated says whether an answer belongs to the file of its date: it was computed on that UTC date, or is the first of a daily product, or
// is of the past: history or a recorded market is played.
func (b *Batch) Dated(a *Answer) bool {
	return b.Accepted == nil || b.Recorded || a.Date() == compute.DateOf(b.At.UTC()) ||
		a.Product.Daily() && !slices.Contains(b.Memory.store.DatesOf(a.Product.Name), a.Date().String())
}
