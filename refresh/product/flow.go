package product

import (
	"bytes"
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

// flowQuality is `meta.quality` of options/flow/{u} and options/flow/unusual.
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
	// Best of the scored contracts. In options/flow/unusual, they were merged with the best contracts of the other chains.
	Served    int  `json:"considered" jsonschema:"minimum=0,maximum=100" unit:"contracts"`
	IVHistory bool `json:"previous_session_iv"` // Whether the chain of the previous session is stored.
	// Numbers of the document that count as absent because no market has them. Absent when every number is usable.
	BadNumbers int `json:"bad_numbers,omitempty" jsonschema:"minimum=1,example=1" unit:"numbers"`
}

const noIVHistory = "chains without previous_session_iv have no stored snapshot of the previous session: their iv_change is null and scores 0"

func computeChainFlow(a *Answer, in *Inputs, d *feed.Document) error {
	input := compute.FlowInput{Chain: d.Chain, Calendar: in.calendar}
	q := flowQuality{}
	if before := in.named(feed.PreviousDir + d.Name); before == nil {
		q.IVChange = new(noIVHistory)
	} else if r, err := referenceOf(before); err != nil {
		return err
	} else {
		input.Before = r.chain
	}
	flow := compute.UnusualFlow(input)
	if flow.Split {
		q.IVChange = new(fmt.Sprintf("split of %s since the previous session: its iv_change is null and scores 0", d.Symbol()))
	}
	q.Chains = []flowChainQuality{{
		Symbol: d.Symbol(), AsOf: d.Chain.AsOf, Listed: d.Chain.Listed, Skipped: d.Chain.Skipped.Total(),
		Eligible: flow.Eligible, Served: flow.Count, IVHistory: input.Before != nil, BadNumbers: d.Chain.BadNumbers,
	}}
	a.quality = q
	whole, err := json.Marshal(&flow.Flow)
	if err != nil {
		return err
	}
	return a.setFlow(whole)
}

// flowState begins the names of the states of options/flow/unusual; the symbol of a chain follows.
const flowState = "flow/"

// chainFlow is such a state: of the answer of options/flow/{u}, what the merged flow takes. Its items stay as they are encoded.
type chainFlow struct {
	Captured time.Time   `json:"captured_at"`
	Quality  flowQuality `json:"quality"`
	Data     struct {
		Items    []json.RawMessage    `json:"items"`
		Universe []string             `json:"universe"`
		Rejected compute.FlowRejected `json:"rejected"`
		Session  compute.Date         `json:"session_date"`
	} `json:"data"`
	next flowRank // of the first item
}

// flowRank is what the order of items depends on.
type flowRank struct {
	Score, Premium float64
	Contract       string
}

// gatherFlow adds the answers of options/flow/{u} of the newest session, sorted by symbol.
func gatherFlow(_ *Product, b *Batch, in *Inputs) error {
	var newest compute.Date
	for _, u := range slices.Sorted(slices.Values(b.Underlyings)) {
		if b.Accepted != nil && b.Offers != nil && !b.Offers(feed.ChainOf(u)) {
			continue
		}
		a := b.answered("options/flow/" + compute.PathOf(u))
		if a.err != nil { // the flow of all would lack a chain that was there
			return a.err
		}
		if a.digest == nil || a.asOf.After(b.At.Add(feed.MaxAhead)) { // of a clock that was ahead
			continue
		}
		session := b.Calendar.SessionDate(a.asOf)
		if session > newest {
			in.Documents, newest = nil, session
		}
		if session == newest {
			in.Documents = append(in.Documents, flowStateOf(u, a))
		}
	}
	return nil
}

func flowStateOf(symbol string, a answered) *feed.Document {
	captured, _ := json.Marshal(a.captured) // never fails
	return feed.State(flowState+symbol, slices.Concat(
		[]byte(`{"captured_at":`), captured, []byte(`,"quality":`), a.quality, []byte(`,"data_sha256":"`+*a.digest+`","data":`), a.data, []byte(`}`)))
}

// computeFlow merges the flows of chains.
func computeFlow(a *Answer, in *Inputs, _ *feed.Document) error {
	q, merged := flowQuality{}, compute.Flow{Items: []compute.FlowItem{}}
	var chains []*chainFlow
	var notes []string
	for _, d := range in.Documents {
		name, is := strings.CutPrefix(d.Name, feed.StateDir)
		if !is || !strings.HasPrefix(name, flowState) {
			continue
		}
		c, err := stateOf[chainFlow](in, name)
		if err != nil {
			return err
		}
		chains = append(chains, &c)
		for _, row := range c.Quality.Chains {
			a.describes(row.AsOf, c.Captured)
		}
		if note := c.Quality.IVChange; note != nil && !slices.Contains(notes, *note) {
			notes = append(notes, *note)
		}
		q.Chains = append(q.Chains, c.Quality.Chains...)
		merged.Universe, merged.SessionDate = append(merged.Universe, c.Data.Universe...), c.Data.Session
		merged.Rejected.Add(c.Data.Rejected)
	}
	if chains == nil {
		return ErrNoInput
	}
	if notes != nil {
		q.IVChange = new(strings.Join(notes, "; "))
	}
	a.RestsOn, a.quality = merged.Universe, q
	items, err := mergeFlow(chains)
	if err != nil {
		return err
	}
	merged.Count = len(items)
	rest, err := json.Marshal(&merged)
	if err != nil {
		return err
	}
	return a.setFlow(slices.Concat([]byte(flowStart), bytes.Join(items, []byte{','}), rest[len(flowStart):]))
}

// mergeFlow returns the best items of all chains, of which each has its own in order.
func mergeFlow(chains []*chainFlow) (items [][]byte, err error) {
	rank := func(c *chainFlow) error {
		if len(c.Data.Items) == 0 {
			return nil
		}
		c.next = flowRank{}
		return json.Unmarshal(c.Data.Items[0], &c.next)
	}
	for _, c := range chains {
		err = errors.Join(err, rank(c))
	}
	for err == nil && len(items) < compute.MaxFlowItems {
		best := slices.MinFunc(chains, func(a, b *chainFlow) int {
			return cmp.Or(cmp.Compare(min(len(b.Data.Items), 1), min(len(a.Data.Items), 1)),
				cmp.Compare(b.next.Score, a.next.Score), cmp.Compare(b.next.Premium, a.next.Premium), cmp.Compare(a.next.Contract, b.next.Contract))
		})
		if len(best.Data.Items) == 0 {
			break
		}
		items, best.Data.Items = append(items, best.Data.Items[0]), best.Data.Items[1:]
		err = rank(best)
	}
	return items, err
}

const flowStart = `{"items":[` // of the JSON of every flow

// flowCut is what a limit has of the JSON of all rows.
type flowCut struct {
	limit string
	snapshots.Cut
}

// setFlow sets the variants of an answer from the JSON of a [compute.Flow]: the limits 20 and 100, and a cut for each other limit. The limits
// that reach the number of items share one variant.
func (a *Answer) setFlow(whole []byte) error {
	var flow struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(whole, &flow); err != nil {
		return err
	}
	a.byDefault, a.storedVariant, a.variants = defaultFlow, allFlow, map[string]*Variant{}
	all, ends, end := &Variant{JSON: whole}, []int{len(flowStart)}, len(flowStart)-1
	for _, item := range flow.Items {
		end += len(",") + len(item)
		ends = append(ends, end)
	}
	count := func(n int) []byte { return fmt.Appendf(nil, `],"count":%d`, n) }
	rest, counted := bytes.CutPrefix(whole[ends[len(flow.Items)]:], count(len(flow.Items)))
	if !counted {
		return fmt.Errorf("flow of %d items says another count", len(flow.Items))
	}
	for n := 1; n <= compute.MaxFlowItems; n++ {
		limit := strconv.Itoa(n)
		if n >= len(flow.Items) {
			a.variants[limit] = all
			continue
		}
		cut := snapshots.Cut{End: ends[n], Rest: append(count(n), rest...)}
		if limit == defaultFlow {
			a.variants[limit] = &Variant{JSON: slices.Concat(whole[:cut.End], cut.Rest)}
		} else {
			a.cuts = append(a.cuts, flowCut{limit, cut})
		}
	}
	return nil
}

// reopenFlow seals an answer for every limit from the stored answer, which has all rows, and returns the symbols of its chains.
func reopenFlow(p *Product, stored *snapshots.Snapshot) (*snapshots.Edition, []string, error) {
	var flow struct {
		Universe []string `json:"universe"`
	}
	a := &Answer{Product: p, Inputs: &Inputs{}}
	if err := errors.Join(json.Unmarshal(stored.Data(), &flow), a.setFlow(stored.Data())); err != nil {
		return nil, nil, err
	}
	if err := a.encode(); err != nil {
		return nil, nil, err
	}
	e, err := a.sealVariants(stored.Meta)
	if p.Underlying != "" {
		flow.Universe = nil // see [Answer.RestsOn]
	}
	return e, flow.Universe, err
}
