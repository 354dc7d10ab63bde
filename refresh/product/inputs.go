package product

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// Inputs is everything that one answer is computed from, in the same form for a live refresh, a played session and a stored answer.
type Inputs struct {
	at         time.Time // of the computation, in market time
	calendar   *compute.Calendar
	parameters parameters
	source     string               // name of the upstream
	Documents  []*feed.Document     // in the order of the receipt: documents, those of the session before, states
	gamma      *compute.GammaResult // of gammaOf; nil before its first call
	pains      []*compute.MaxPain   // of painsOf; nil before its first call
}

// parameters are the settings of the receipt. Each product sets those that its data depends on.
type parameters struct {
	RiskFreeRate    *float64           `json:"risk_free_rate,omitempty"`        // per year, continuously compounded; before [gammaOf], the configured rate
	RateSource      compute.RateSource `json:"risk_free_rate_source,omitempty"` // where the rate comes from, "" before [gammaOf]
	Exercise        string             `json:"exercise,omitempty"`              // how it is treated, "" for options that are exercised at expiration alone
	StaleSessionsTo *compute.Date      `json:"stale_sessions_to,omitempty"`     // the session up to which stale_sessions counts
}

// newest returns the upstream documents of the answer's own session.
func (in *Inputs) newest() (documents []*feed.Document) {
	for _, d := range in.Documents {
		if d.Newest() {
			documents = append(documents, d)
		}
	}
	return documents
}

func (in *Inputs) receipt() (receipt []snapshots.Input) {
	for _, d := range in.Documents {
		receipt = append(receipt, d.Input)
	}
	return receipt
}

// add adds the documents that are not nil and not there yet.
func (in *Inputs) add(documents ...*feed.Document) {
	for _, d := range documents {
		if d != nil && !slices.ContainsFunc(in.Documents, func(other *feed.Document) bool { return other.Input == d.Input }) {
			in.Documents = append(in.Documents, d)
		}
	}
}

// The names of states.
const (
	closedDates       = "closed-dates"       // closures of the exchange that are not in the calendar's rules
	rowsState         = "series-rows"        // what stored answers left to a series, dates rising
	trackRowsState    = "track-rows"         // rows of the track before the newest
	volatilityHistory = "volatility-history" // earlier sessions of volatility/{u}
	vixHistory        = "vix-history"        // summaries of earlier stored dates, dates rising; only the last has its settlements
	underlyingsState  = "underlyings"        // rows
)

func (in *Inputs) addState(name string, state any) error {
	body, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("encode state %s: %w", name, err)
	}
	in.Documents = append(in.Documents, feed.State(name, body))
	return nil
}

// named returns the input of a name, nil when there is none.
func (in *Inputs) named(name string) *feed.Document {
	if i := slices.IndexFunc(in.Documents, func(d *feed.Document) bool { return d.Name == name }); i >= 0 {
		return in.Documents[i]
	}
	return nil
}

// stateOf decodes a state. Inputs without it are an error.
func stateOf[T any](in *Inputs, name string) (state T, err error) {
	d := in.named(feed.StateDir + name)
	if d == nil {
		return state, fmt.Errorf("inputs lack %s", feed.StateDir+name)
	}
	if err = d.Open(); err == nil {
		err = json.Unmarshal(d.Body, &state)
	}
	if err != nil {
		err = fmt.Errorf("decode %s: %w", d.Name, err)
	}
	return state, err
}

type closures struct {
	Closed []compute.Date `json:"closed"`
	Early  []compute.Date `json:"early"`
}

// addClosures adds the closures of the configuration to the inputs, if there are any.
func (in *Inputs) addClosures() error {
	var c closures
	c.Closed, c.Early = in.calendar.Closures()
	if known, _ := compute.NewCalendar(nil, nil).Closures(); len(c.Early) == 0 && slices.Equal(c.Closed, known) {
		return nil
	}
	return in.addState(closedDates, c)
}

// Calendar returns the calendar of the exchange with which the answer is computed.
func (in *Inputs) Calendar() *compute.Calendar { return in.calendar }

// InputsOf returns the inputs of a stored answer. load reads the bytes of one input.
func InputsOf(f *snapshots.File, load func(sha256 string) ([]byte, error)) (*Inputs, error) {
	meta := &f.Edition.Default.Meta
	in := &Inputs{at: meta.ComputedAt, calendar: compute.NewCalendar(nil, nil), source: meta.Source}
	if meta.Receipt.Parameters != nil {
		if err := json.Unmarshal(meta.Receipt.Parameters, &in.parameters); err != nil {
			return nil, fmt.Errorf("decode parameters: %w", err)
		}
	}
	for _, stored := range f.Inputs {
		in.Documents = append(in.Documents, feed.Stored(stored, load))
	}
	if in.named(feed.StateDir+closedDates) != nil {
		c, err := stateOf[closures](in, closedDates)
		if err != nil {
			return nil, err
		}
		in.calendar = compute.NewCalendar(c.Closed, c.Early)
	}
	return in, nil
}

// Settings are what answers depend on besides documents and earlier answers.
type Settings struct {
	Calendar     *compute.Calendar
	RiskFreeRate float64  // per year, continuously compounded, where the quotes give none
	Source       string   // as in meta.source
	Underlyings  []string // symbols
	Recorded     bool     // every document is of the past, and its answers belong to its date
	// History says whether the documents of a past date are there, which give the date its answers. It may read a small file; nil: none are.
	History func(compute.Date) bool
	Offers  func(upstream.Name) bool // says whether the source has a document now; nil: it has all
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

// Dated says whether an answer belongs to the file of its date: it was computed on that UTC date, or is the first of a daily product whose
// past nobody plays, or is of the past itself: history or a recorded market is played.
func (b *Batch) Dated(a *Answer) bool {
	return b.Accepted == nil || b.Recorded || a.Date() == compute.DateOf(b.At.UTC()) ||
		a.Product.Daily() && !slices.Contains(b.Memory.store.DatesOf(a.Product.Name), a.Date().String()) && (b.History == nil || !b.History(a.Date()))
}

// Stored is what a [snapshots.Store] has of earlier answers.
type Stored interface {
	Current(product string) *snapshots.Edition
	DatesOf(product string) []string
	Summaries(product string) []snapshots.Summary
	Load(product, date string) (snapshots.File, error)
	LoadCurrent(product string) (snapshots.File, error)
	Object(sha256 string) ([]byte, error)
}

// Memory is what answers need from earlier answers: the chains of the session before, rows of series and tracks, histories, and closes of
// indices that wait for their settlement file. It reads them from the store. One goroutine at a time uses it.
type Memory struct {
	store    Stored
	calendar *compute.Calendar
	log      *slog.Logger
	before   map[string]previousChain    // by underlying
	closes   map[closeKey]*feed.Document // quotes of VIX and VIX3M; nil: those of the stored curve are not looked at yet
}

// previousChain is the chain that the gex/{u} stored under a date names.
type previousChain struct {
	date  compute.Date
	chain *feed.Document // nil: gone or damaged
}

type closeKey struct {
	index string
	date  compute.Date
}

// NewMemory returns the memory of a store.
func NewMemory(store Stored, cal *compute.Calendar, log *slog.Logger) *Memory {
	return &Memory{store: store, calendar: cal, log: log, before: map[string]previousChain{}}
}

// gatherPrevious adds the chain of the session before, if it is stored.
func gatherPrevious(p *Product, b *Batch, in *Inputs) error {
	session, err := in.Documents[0].Session(b.Calendar)
	if err == nil {
		in.add(b.Memory.previous(p.Underlying, session))
	}
	return err
}

// previous returns the chain of an underlying that the answer of gex/{u} stored under the date of the session before names, with its
// [reference]. It returns nil if the answer or the chain is not stored or not readable.
func (m *Memory) previous(symbol string, session compute.Date) *feed.Document {
	date := m.calendar.Previous(session)
	if known := m.before[symbol]; known.date == date {
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
		_, err = referenceOf(d)
	}
	if err != nil {
		m.log.Error("chain of the previous session not readable", "document", feed.ChainOf(symbol), "date", date, "err", err)
		if !errors.Is(err, snapshots.ErrGone) && !errors.Is(err, snapshots.ErrTorn) {
			return nil // the next answer tries again
		}
		d = nil
	}
	m.before[symbol] = previousChain{date, d}
	return d
}

func (m *Memory) asPrevious(in snapshots.StoredInput) *feed.Document {
	in.Name = feed.PreviousDir + in.Name
	return feed.Stored(in, m.store.Object)
}
