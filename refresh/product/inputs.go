package product

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/snapshots"
)

// Inputs is everything that one answer is computed from. A live refresh, a played session and a stored answer give inputs of the
// same form.
type Inputs struct {
	at         time.Time // of the computation, in market time
	calendar   *compute.Calendar
	parameters parameters
	source     string               // name of the upstream
	Documents  []*feed.Document     // in the order of the receipt: documents, those of the session before, states
	gamma      *compute.GammaResult // of gammaOf; nil before its first call
}

// parameters are the settings of the receipt. Each product sets those that its data depends on.
type parameters struct {
	RiskFreeRate *float64 `json:"risk_free_rate,omitempty"` // per year, continuously compounded; before [gammaOf], the configured rate
	// RateSource says where the rate comes from, "" before [gammaOf].
	RateSource compute.RateSource `json:"risk_free_rate_source,omitempty"`
	// Exercise says how the exercise of the options is treated, "" for options that are exercised at expiration alone.
	Exercise string `json:"exercise,omitempty"`
	// StaleSessionsTo is the session up to which stale_sessions counts.
	StaleSessionsTo *compute.Date `json:"stale_sessions_to,omitempty"`
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

// receipt returns the inputs as the receipt names them.
func (in *Inputs) receipt() (receipt []snapshots.Input) {
	for _, d := range in.Documents {
		receipt = append(receipt, d.Input)
	}
	return receipt
}

// add adds the documents that are not nil.
func (in *Inputs) add(documents ...*feed.Document) {
	for _, d := range documents {
		if d != nil {
			in.Documents = append(in.Documents, d)
		}
	}
}

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

// closedDates names the state of the exchange's closures that are not in the calendar's rules.
const closedDates = "closed-dates"

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

// described returns the decoded chain or settlement file that the answer describes, and an answer with its as_of and captured_at.
func (in *Inputs) described() (*feed.Document, *Answer, error) {
	documents := in.newest()
	if len(documents) == 0 {
		return nil, nil, errors.New("inputs lack a document")
	}
	d := documents[0]
	if err := d.Open(); err != nil {
		return nil, nil, err
	}
	a := &Answer{}
	switch {
	case d.Chain != nil:
		a.describes(d.Chain.AsOf, d.Chain.CapturedAt)
	case d.Settlement != nil:
		a.AsOf = in.calendar.FuturesSettlement(d.Settlement.Date).UTC()
		if !d.Generated.IsZero() {
			a.Captured = new(d.Generated)
		}
	default:
		return nil, nil, fmt.Errorf("%s is neither a chain nor a settlement file", d.Name)
	}
	return d, a, nil
}

// gammaOf returns the gamma exposure of the chain among the inputs, and sets the rate of the receipt. The products of one batch share
// the result.
func gammaOf(in *Inputs) (*compute.GammaResult, error) {
	if in.gamma != nil {
		return in.gamma, nil
	}
	d, _, err := in.described()
	if err != nil {
		return nil, err
	}
	if in.parameters.RiskFreeRate == nil {
		return nil, errors.New("inputs lack the rate")
	}
	rate, source := compute.RateOf(d.Chain, in.calendar, *in.parameters.RiskFreeRate)
	in.parameters.RiskFreeRate, in.parameters.RateSource = &rate, source
	input := compute.GammaInput{Chain: d.Chain, Calendar: in.calendar, RiskFreeRate: rate}
	if before := in.named(feed.PreviousDir + d.Name); before != nil {
		if input.Reference, err = gammaReference(before, in.calendar, input.RiskFreeRate); err != nil {
			return nil, err
		}
	}
	result := compute.GammaExposure(input)
	in.gamma = &result
	return in.gamma, nil
}

// reference is the state of the chain of the session before, with which the changes of an answer compare.
type reference struct {
	state *compute.GammaState
	rate  compute.RateSource
}

// gammaReference returns the reference of a chain. One that gives no rate takes the given rate. It is computed once for a rate.
func gammaReference(d *feed.Document, cal *compute.Calendar, rate float64) (*compute.GammaState, error) {
	r, _ := d.Derived.(*reference)
	if r == nil || r.rate == compute.RateConfigured && r.state.Rate != rate {
		if err := d.Open(); err != nil {
			return nil, err
		}
		r = &reference{}
		rate, r.rate = compute.RateOf(d.Chain, cal, rate)
		r.state = compute.GammaExposure(compute.GammaInput{Chain: d.Chain, Calendar: cal, RiskFreeRate: rate}).State
		d.Derived = r
	}
	return r.state, nil
}

// chainBefore returns what the flow needs of a chain of the session before. It is made once.
func chainBefore(d *feed.Document) (*compute.ChainBefore, error) {
	if before, made := d.Derived.(*compute.ChainBefore); made {
		return before, nil
	}
	if err := d.Open(); err != nil {
		return nil, err
	}
	before := compute.NewChainBefore(d.Chain)
	d.Derived = before
	return before, nil
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
