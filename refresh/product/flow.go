package product

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/snapshots"
)

const (
	defaultFlow = "20"  // the limit of a request that gives no limit
	allFlow     = "100" // the stored limit: its rows include those of every other limit
)

// flowPart is the unusual flow of one chain, before the parts of all chains are merged.
type flowPart struct {
	flow          compute.ChainFlow
	quality       flowChainQuality
	sessionBefore *feed.Document // published volatilities of the session before; nil: not known
}

// gatherFlow adds the chains of the newest session, sorted by symbol, and for each chain the chain of the session before.
func gatherFlow(p *Product, b *Batch, in *Inputs) error {
	var chains []*feed.Document
	var newest compute.Date
	for _, u := range b.Underlyings {
		d := b.Document(feed.ChainOf(u))
		if d == nil {
			continue
		}
		session, err := d.Session(b.Calendar)
		if err != nil {
			return err
		}
		if session > newest {
			chains, newest = nil, session
		}
		if session == newest {
			chains = append(chains, d)
		}
	}
	slices.SortFunc(chains, func(a, b *feed.Document) int { return cmp.Compare(a.Symbol(), b.Symbol()) })
	in.add(chains...)
	for _, d := range chains {
		before := b.Memory.previous(p, d.Symbol(), newest, readBefore)
		if part, scored := d.Derived.(*flowPart); scored && part.sessionBefore != before {
			d.Derived = nil // it was scored before this document was stored
		}
		in.add(before)
	}
	return nil
}

// flowQuality is `meta.quality` of options/flow/unusual.
type flowQuality struct {
	Chains []flowChainQuality `json:"chains"` // The chains, by symbol.
	// Why `iv_change` of some items is `null`. `null` when every chain has the previous session's volatilities, and none was split.
	IVChange *string `json:"iv_change"`
}

// flowChainQuality is the rows and contracts of one chain.
type flowChainQuality struct {
	Symbol   string    `json:"symbol"`                                           // Symbol of the underlying.
	AsOf     time.Time `json:"as_of"`                                            // Last trade of the underlying.
	Listed   int       `json:"listed" jsonschema:"minimum=0" unit:"rows"`        // Rows of the document.
	Skipped  int       `json:"skipped" jsonschema:"minimum=0" unit:"rows"`       // Rows that cannot be read.
	Eligible int       `json:"eligible" jsonschema:"minimum=0" unit:"contracts"` // Contracts that were scored.
	// Best of the scored contracts. They were merged with the best contracts of the other chains.
	Served    int  `json:"considered" jsonschema:"minimum=0,maximum=100" unit:"contracts"`
	IVHistory bool `json:"previous_session_iv"` // Whether the chain of the previous session is stored.
	// Numbers of the document that count as absent because no market has them. Absent when every number is usable.
	BadNumbers int `json:"bad_numbers,omitempty" jsonschema:"minimum=1,example=1" unit:"numbers"`
}

const noIVHistory = "chains without previous_session_iv have no stored snapshot of the previous session: their iv_change is null and scores 0"

func computeFlow(in *Inputs) (*Answer, error) {
	a, q := &Answer{}, flowQuality{Chains: []flowChainQuality{}}
	var flows []compute.ChainFlow
	var notes []string
	for _, d := range in.newest() {
		p, err := scoreFlow(d, in)
		if err != nil {
			return nil, err
		}
		flows = append(flows, p.flow)
		a.describes(d.Underlying.AsOf, d.Underlying.CapturedAt)
		q.Chains = append(q.Chains, p.quality)
		if p.sessionBefore == nil && !slices.Contains(notes, noIVHistory) {
			notes = append(notes, noIVHistory)
		}
		if p.flow.Split {
			notes = append(notes, fmt.Sprintf("split of %s since the previous session: its iv_change is null and scores 0", d.Symbol()))
		}
	}
	if notes != nil {
		q.IVChange = new(strings.Join(notes, "; "))
	}
	a.setFlow(compute.MergeFlow(flows), q)
	return a, nil
}

// setFlow sets the variants of an answer: a limit of 1 to 100 items each. The limits that reach the number of items share one.
func (a *Answer) setFlow(f compute.Flow, q flowQuality) {
	a.quality, a.byDefault, a.storedVariant = q, defaultFlow, allFlow
	a.RestsOn = []string{}
	for _, c := range q.Chains {
		a.RestsOn = append(a.RestsOn, c.Symbol)
	}
	a.variants = map[string]*Variant{}
	whole := &Variant{data: &f}
	for n := 1; n <= compute.MaxFlowItems; n++ {
		limit, v := strconv.Itoa(n), whole
		if n < len(f.Items) {
			v = &Variant{data: new(f.Limit(n)), rare: limit != defaultFlow}
		}
		a.variants[limit] = v
	}
}

// scoreFlow scores a chain, once per document, with the volatilities of the session before that are among the inputs.
func scoreFlow(d *feed.Document, in *Inputs) (*flowPart, error) {
	if p, scored := d.Derived.(*flowPart); scored {
		return p, nil
	}
	if err := d.Open(); err != nil {
		return nil, err
	}
	var before *compute.ChainBefore
	sessionBefore := in.named(feed.PreviousDir + d.Name)
	if sessionBefore != nil {
		if err := readBefore(sessionBefore); err != nil {
			return nil, err
		}
		before = sessionBefore.Derived.(*compute.ChainBefore)
	}
	c := d.Chain
	flow := compute.UnusualFlow(compute.FlowInput{Chain: c, Calendar: in.calendar, Before: before})
	p := &flowPart{flow, flowChainQuality{
		Symbol: d.Symbol(), AsOf: c.AsOf, Listed: c.Listed, Skipped: c.Skipped.Total(),
		Eligible: flow.Eligible, Served: len(flow.Items), IVHistory: before != nil, BadNumbers: c.BadNumbers,
	}, sessionBefore}
	d.Derived = p
	d.Release() // all chains of a day together take a hundred megabytes
	return p, nil
}

// readBefore takes from a chain of the session before what the flow needs of it: a [*compute.ChainBefore]. It does so once per document.
func readBefore(d *feed.Document) error {
	if _, made := d.Derived.(*compute.ChainBefore); made {
		return nil
	}
	if err := d.Open(); err != nil {
		return err
	}
	d.Derived = compute.NewChainBefore(d.Chain)
	d.Release()
	return nil
}

// reopenFlow seals an answer for every limit from the stored answer, which has all rows, and returns the symbols of its chains.
func reopenFlow(p *Product, stored *snapshots.Snapshot) (*snapshots.Edition, []string, error) {
	var flow compute.Flow
	var q flowQuality
	if err := errors.Join(json.Unmarshal(stored.Data(), &flow), json.Unmarshal(stored.Meta.Quality, &q)); err != nil {
		return nil, nil, err
	}
	a := &Answer{Product: p, Inputs: &Inputs{}}
	a.setFlow(flow, q)
	if err := a.encode(); err != nil {
		return nil, nil, err
	}
	e, err := a.sealVariants(stored.Meta)
	return e, a.RestsOn, err
}
