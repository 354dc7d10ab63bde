package product

import (
	"fmt"
	"slices"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/feed"
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

// addState adds a state to the inputs, as JSON.
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
