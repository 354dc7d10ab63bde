package refresh

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"strikecache/compute"
	"strikecache/refresh/upstream"
)

// flowPart is the unusual flow of one chain, before the parts of all chains are merged.
type flowPart struct {
	flow            compute.ChainFlow
	asOf, captured  time.Time
	listed, skipped int       // rows of the chain
	bad             int       // numbers of the chain that count as absent
	sessionBefore   *document // published volatilities of the session before; nil: not known
}

// flowNames returns the names of the chains of the flow universe, without SPX, that the source has.
func flowNames(c *Config) (names []upstream.Name) {
	for _, s := range c.FlowSymbols {
		if name := upstream.Options(s); name != spxChain && c.Source.Offers(name) {
			names = append(names, name)
		}
	}
	return names
}

// session returns the session that a decoded chain describes.
func (d *document) session(cal *compute.Calendar) compute.Date {
	if d.part != nil {
		return d.part.flow.Session
	}
	return d.chain.Session(cal)
}

// gatherFlow returns the chains of the newest session, sorted by symbol, and for each chain the volatilities of the session
// before. After a restart it returns nil until the flow job has asked for every chain once: an answer of fewer chains would
// have fewer rows than the stored answer that it replaces.
func gatherFlow(b *batch, _ map[string]*answer) (*inputs, error) {
	if b.flowWaits() {
		return nil, nil
	}
	var chains []*document
	var newest compute.Date
	for _, name := range append(flowNames(&b.r.cfg), spxChain) {
		if d := b.document(name); d != nil {
			chains = append(chains, d)
			newest = max(newest, d.session(b.r.cal))
		}
	}
	chains = slices.DeleteFunc(chains, func(d *document) bool { return d.session(b.r.cal) != newest })
	slices.SortFunc(chains, func(a, b *document) int { return cmp.Compare(a.symbol(), b.symbol()) })
	in := b.inputs(chains...)
	for _, d := range chains {
		before := b.r.states.before(volatilityState+d.symbol(), newest)
		if d.part != nil {
			before = d.part.sessionBefore // the part was scored with these, and the chain is no longer in memory
		}
		if before != nil {
			in.documents = append(in.documents, before)
		}
	}
	return in, nil
}

// flowWaits says whether a restored flow rests on a chain of the universe that has not been accepted since the start. A
// flow without this chain would lose rows. After three failures of the chain, the flow is published without it.
func (b *batch) flowWaits() bool {
	b.r.mu.Lock()
	h := b.r.current[FlowResource]
	waits := h.restored && b.job != resumeJob && !h.asOf().After(b.r.cfg.Clock.Now())
	var missing []upstream.Name
	for _, name := range append(flowNames(&b.r.cfg), spxChain) {
		symbol := symbolOf(name)
		if slices.Contains(h.restsOn, symbol) && h.health[symbol].failures < failuresToStale {
			missing = append(missing, name)
		}
	}
	b.r.mu.Unlock()
	return waits && slices.ContainsFunc(missing, func(name upstream.Name) bool { return b.document(name) == nil })
}

// flowQuality is `meta.quality` of options/flow/unusual.
type flowQuality struct {
	Chains   []flowChainQuality `json:"chains"`
	IVChange *string            `json:"iv_change"`
}

type flowChainQuality struct {
	Symbol     string    `json:"symbol"`
	AsOf       time.Time `json:"as_of"`
	Listed     int       `json:"listed"`
	Skipped    int       `json:"skipped"`
	Eligible   int       `json:"eligible"`
	Served     int       `json:"considered"`
	IVHistory  bool      `json:"previous_session_iv"`
	BadNumbers int       `json:"bad_numbers,omitempty"`
}

const noIVHistory = "chains without previous_session_iv have no stored snapshot of the previous session: their iv_change is null and scores 0"

func computeFlow(in *inputs) (*answer, error) {
	a := &answer{byDefault: defaultFlow, storedVariant: allFlow, rare: rareFlow, restsOn: []string{}}
	q := flowQuality{Chains: []flowChainQuality{}}
	var flows []compute.ChainFlow
	for _, d := range in.upstream() {
		if err := d.contribute(in); err != nil {
			return nil, err
		}
		p := d.part
		flows = append(flows, p.flow)
		a.restsOn = append(a.restsOn, d.symbol())
		a.describes(p.asOf, p.captured)
		q.Chains = append(q.Chains, flowChainQuality{
			Symbol: d.symbol(), AsOf: p.asOf, Listed: p.listed, Skipped: p.skipped,
			Eligible: p.flow.Eligible, Served: len(p.flow.Items), IVHistory: p.sessionBefore != nil, BadNumbers: p.bad,
		})
		if p.sessionBefore == nil {
			q.IVChange = new(noIVHistory)
		}
	}
	a.quality = q
	a.variants = flowVariants(compute.MergeFlow(flows))
	return a, nil
}

// contribute sets d.part: the flow of the chain, scored with the volatilities of the session before that are among the
// inputs. It does so once per document.
func (d *document) contribute(in *inputs) error {
	if d.part != nil {
		return nil
	}
	if err := d.open(); err != nil {
		return err
	}
	p := &flowPart{asOf: d.chain.AsOf, captured: d.chain.CapturedAt, listed: d.chain.Listed, skipped: d.chain.Skipped.Total(), bad: d.chain.BadNumbers}
	var iv map[string]float64
	for _, s := range in.documents {
		if s.Name == stateDir+volatilityState+d.symbol() {
			var err error
			if iv, err = s.volatilities(); err != nil {
				return err
			}
			p.sessionBefore = s
		}
	}
	p.flow = compute.UnusualFlow(compute.FlowInput{Chain: d.chain, Calendar: in.calendar, PreviousIV: iv})
	d.part = p
	if d.load != nil {
		d.chain, d.Body = nil, nil // all chains of a day together take a hundred megabytes
	}
	return nil
}

const (
	defaultFlow = "20"  // the limit of a request that gives no limit
	allFlow     = "100" // the stored limit: its rows include those of every other limit
)

// rareFlow says whether clients seldom ask for a limit.
func rareFlow(limit string) bool { return limit != defaultFlow && limit != allFlow }

// flowVariants returns the flow for every limit from 1 to 100. All limits that reach the number of items share one value.
func flowVariants(f compute.Flow) map[string]any {
	out, whole := make(map[string]any, compute.MaxFlowItems), new(f.Limit(len(f.Items)))
	for n := 1; n <= compute.MaxFlowItems; n++ {
		limit := whole
		if n < len(f.Items) {
			limit = new(f.Limit(n))
		}
		out[strconv.Itoa(n)] = limit
	}
	return out
}
