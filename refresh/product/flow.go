package product

import (
	"cmp"
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

// flowPart is the unusual flow of one chain, before the parts of all chains are merged.
type flowPart struct {
	flow            compute.ChainFlow
	asOf, captured  time.Time
	listed, skipped int            // rows of the chain
	bad             int            // numbers of the chain that count as absent
	sessionBefore   *feed.Document // published volatilities of the session before; nil: not known
}

// gatherFlow returns the chains of the newest session, sorted by symbol, and for each chain the chain of the session before.
func gatherFlow(p *Product, b *Batch) (*Inputs, error) {
	sessions := map[*feed.Document]compute.Date{}
	var chains []*feed.Document
	var newest compute.Date
	for _, u := range b.Underlyings {
		d := b.Document(feed.ChainOf(u))
		if d == nil {
			continue
		}
		session, err := d.Session(b.Calendar)
		if err != nil {
			return nil, err
		}
		chains, sessions[d], newest = append(chains, d), session, max(newest, session)
	}
	chains = slices.DeleteFunc(chains, func(d *feed.Document) bool { return sessions[d] != newest })
	slices.SortFunc(chains, func(a, b *feed.Document) int { return cmp.Compare(a.Symbol(), b.Symbol()) })
	in := b.inputs(chains...)
	for _, d := range chains {
		part, scored := d.Derived.(*flowPart)
		if scored && part.sessionBefore != nil {
			in.add(part.sessionBefore) // the part was scored with this one
			continue
		}
		before := b.Memory.previous(p, d.Symbol(), newest, func(before *feed.Document) error {
			_, err := chainBefore(before)
			return err
		})
		if before != nil {
			d.Derived = nil // it was scored before this document was stored
			in.add(before)
		}
	}
	return in, nil
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
	a := &Answer{byDefault: defaultFlow, storedVariant: allFlow, rare: rareFlow, RestsOn: []string{}}
	q := flowQuality{Chains: []flowChainQuality{}}
	var flows []compute.ChainFlow
	var notes []string
	for _, d := range in.newest() {
		p, err := scoreFlow(d, in)
		if err != nil {
			return nil, err
		}
		flows = append(flows, p.flow)
		a.RestsOn = append(a.RestsOn, d.Symbol())
		a.describes(p.asOf, p.captured)
		q.Chains = append(q.Chains, flowChainQuality{
			Symbol: d.Symbol(), AsOf: p.asOf, Listed: p.listed, Skipped: p.skipped,
			Eligible: p.flow.Eligible, Served: len(p.flow.Items), IVHistory: p.sessionBefore != nil, BadNumbers: p.bad,
		})
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
	a.quality = q
	a.variants = flowVariants(compute.MergeFlow(flows))
	return a, nil
}

// scoreFlow returns the flow of a chain, scored with the volatilities of the session before that are among the inputs. It does so once per
// document.
func scoreFlow(d *feed.Document, in *Inputs) (*flowPart, error) {
	if p, scored := d.Derived.(*flowPart); scored {
		return p, nil
	}
	if err := d.Open(); err != nil {
		return nil, err
	}
	c := d.Chain
	p := &flowPart{asOf: c.AsOf, captured: c.CapturedAt, listed: c.Listed, skipped: c.Skipped.Total(), bad: c.BadNumbers}
	var before *compute.ChainBefore
	if p.sessionBefore = in.named(feed.PreviousDir + d.Name); p.sessionBefore != nil {
		var err error
		if before, err = chainBefore(p.sessionBefore); err != nil {
			return nil, err
		}
		p.sessionBefore.Release()
	}
	p.flow = compute.UnusualFlow(compute.FlowInput{Chain: c, Calendar: in.calendar, Before: before})
	d.Derived = p
	d.Release() // all chains of a day together take a hundred megabytes
	return p, nil
}

const (
	defaultFlow = "20"  // the limit of a request that gives no limit
	allFlow     = "100" // the stored limit: its rows include those of every other limit
)

// rareFlow says whether clients seldom ask for a limit.
func rareFlow(limit string) bool { return limit != defaultFlow && limit != allFlow }

// flowVariants returns the flow for every limit from 1 to 100. All limits that reach the number of items share one value.
func flowVariants(f compute.Flow) map[string]any {
	out, whole := make(map[string]any, compute.MaxFlowItems), &f
	for n := 1; n <= compute.MaxFlowItems; n++ {
		limited := whole
		if n < len(f.Items) {
			limited = new(f.Limit(n))
		}
		out[strconv.Itoa(n)] = limited
	}
	return out
}

// reopenFlow seals an answer for every limit from the stored answer, which has all rows, and returns the symbols of its chains.
func reopenFlow(p *Product, stored *snapshots.Snapshot) (*snapshots.Edition, []string, error) {
	var flow compute.Flow
	if err := json.Unmarshal(stored.Data(), &flow); err != nil {
		return nil, nil, err
	}
	var q flowQuality
	if err := json.Unmarshal(stored.Meta.Quality, &q); err != nil {
		return nil, nil, err
	}
	a := &Answer{Product: p, Inputs: &Inputs{}, byDefault: defaultFlow, rare: rareFlow, RestsOn: []string{}, variants: flowVariants(flow)}
	for _, c := range q.Chains {
		a.RestsOn = append(a.RestsOn, c.Symbol)
	}
	if err := a.encode(); err != nil {
		return nil, nil, err
	}
	e, err := a.sealVariants(stored.Meta)
	return e, a.RestsOn, err
}
