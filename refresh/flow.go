package refresh

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"strikecache/compute"
	"strikecache/refresh/archive"
	"strikecache/refresh/upstream"
)

// flowJob merges the unusual flow of many chains. SPX arrives with its own job, the others one a run, in turn.
type flowJob struct {
	symbols []string // beside SPX
	next    int
	first   bool // the first run, which fetches them all, is over
	last    map[string]*upstream.Document
	epoch   int64

	mu         sync.Mutex // held from a change of parts to its publication
	parts      map[string]flowPart
	volatility map[string]previousVolatility
}

// flowPart is what one chain contributes.
type flowPart struct {
	flow   compute.ChainFlow
	source flowSource
	// input and previousIV are the bytes behind the source, until they are archived; nil after a restart.
	input, previousIV *archive.Document
}

// flowSource says of which document a part is.
type flowSource struct {
	AsOf       time.Time `json:"as_of"`
	CapturedAt time.Time `json:"captured_at"`
	Arrived    time.Time `json:"arrived"`
	SHA256     string    `json:"sha256"`
	Content    string    `json:"content"`
	Listed     int       `json:"listed"`
	Skipped    int       `json:"skipped"`
	IVHistory  bool      `json:"previous_session_iv"`
	// Name is the document's. PreviousIV is the digest of the state that holds the previous session's volatilities; "" without.
	Name       upstream.Name `json:"name"`
	PreviousIV string        `json:"previous_iv_sha256"`
}

func (f *flowJob) init(cfg Config) {
	f.parts = map[string]flowPart{}
	f.last = map[string]*upstream.Document{}
	f.volatility = map[string]previousVolatility{}
	for _, s := range cfg.FlowSymbols {
		if cfg.Source.Offers(upstream.Options(s)) && upstream.Options(s) != spxChain {
			f.symbols = append(f.symbols, s)
		}
	}
}

// refreshFlow fetches the next chain of the universe; the first run fetches all of them.
func (r *Refresher) refreshFlow(ctx context.Context) error {
	f := &r.flow
	if len(f.symbols) == 0 {
		return nil
	}
	if epoch := r.epoch.Load(); f.epoch != epoch {
		f.epoch = epoch
		clear(f.last) // the same documents may say more now
	}
	symbols := f.symbols
	if f.first {
		symbols = []string{f.symbols[f.next]}
		f.next = (f.next + 1) % len(f.symbols)
	}
	f.first = true
	var errs []error
	changed := false
	watch := newStopwatch()
	for _, symbol := range symbols {
		last := f.last[symbol]
		c, err := r.fetchChain(ctx, upstream.Options(symbol), &last, nil)
		f.last[symbol] = last
		if errors.Is(err, upstream.ErrNotModified) {
			continue
		}
		if err != nil {
			f.last[symbol] = nil
			errs = append(errs, err)
			continue
		}
		changed = r.acceptPart(c) || changed
	}
	watch.lap("fetch_ms")
	if len(errs) == len(symbols) {
		r.fail(errs[0], FlowResource)
		return errors.Join(errs...)
	}
	if !changed {
		r.succeed(FlowResource)
		return errors.Join(errs...)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	a := r.flowAnswer(r.cfg.Clock.Now())
	if err := r.publish(optionsFeed, a); err != nil {
		return err
	}
	watch.lap("publish_ms")
	r.keepInputs(a)
	watch.lap("archive_ms")
	r.log.Info("refreshed", watch.with("feed", "flow", "symbols", len(symbols), "failed", len(errs), "universe", len(f.parts))...)
	return errors.Join(errs...)
}

// acceptPart scores a chain of the universe and says whether it says anything new.
func (r *Refresher) acceptPart(c *chainDocument) bool {
	r.flow.mu.Lock()
	before, ok := r.flow.parts[c.Symbol]
	r.flow.mu.Unlock()
	if ok && before.source.Content == c.content && before.source.IVHistory == (r.previousIV(c) != nil) {
		return false
	}
	part := r.flowPart(c)
	r.saveVolatility(c)
	r.saveChain(c, part, nil)
	r.flow.mu.Lock()
	defer r.flow.mu.Unlock()
	r.flow.parts[c.Symbol] = part
	return true
}

func (c *chainDocument) flowSource() flowSource {
	return flowSource{
		AsOf: c.AsOf, CapturedAt: c.CapturedAt, Arrived: c.arrived, SHA256: c.input.SHA256, Content: c.content,
		Name: c.name, Listed: c.Listed, Skipped: c.Skipped.Total(),
	}
}

func (r *Refresher) flowPart(c *chainDocument) flowPart {
	iv := r.previousIV(c)
	p := r.flowPartOf(c, iv)
	if iv != nil {
		r.flow.mu.Lock()
		defer r.flow.mu.Unlock()
		p.previousIV = r.flow.volatility[c.Symbol].input
		p.source.PreviousIV = p.previousIV.SHA256
	}
	return p
}

// flowPartOf scores a chain beside the published volatilities of the session before, nil when they are not known.
func (r *Refresher) flowPartOf(c *chainDocument, iv map[string]float64) flowPart {
	p := flowPart{source: c.flowSource(), input: c.input}
	p.source.IVHistory = iv != nil
	p.flow = compute.UnusualFlow(compute.FlowInput{Chain: c.Chain, Calendar: r.cal, PreviousIV: iv})
	return p
}

// flowQuality is `meta.quality` of options/flow/unusual.
type flowQuality struct {
	Chains   []flowChainQuality `json:"chains"`
	IVChange *string            `json:"iv_change"`
}

type flowChainQuality struct {
	Symbol    string    `json:"symbol"`
	AsOf      time.Time `json:"as_of"`
	Listed    int       `json:"listed"`
	Skipped   int       `json:"skipped"`
	Eligible  int       `json:"eligible"`
	Served    int       `json:"considered"`
	IVHistory bool      `json:"previous_session_iv"`
}

const noIVHistory = "chains without previous_session_iv have no stored snapshot of the previous session: their iv_change is null and scores 0"

// flowAnswer merges the parts of the newest session. r.flow.mu is held.
func (r *Refresher) flowAnswer(now time.Time) answer {
	a := answer{resource: FlowResource, computed: now, byDefault: defaultFlow, stored: allFlow, rare: rareFlow}
	var flows []compute.ChainFlow
	var newest compute.Date
	for _, p := range r.flow.parts {
		newest = max(newest, p.flow.Session)
	}
	q := flowQuality{Chains: []flowChainQuality{}}
	for _, symbol := range slices.Sorted(maps.Keys(r.flow.parts)) {
		p := r.flow.parts[symbol]
		if p.flow.Session != newest {
			continue
		}
		flows = append(flows, p.flow)
		a.inputs = append(a.inputs, p.source.SHA256)
		a.documents = append(a.documents, p.document())
		if p.source.PreviousIV != "" {
			a.states = append(a.states, p.volatility(symbol))
		}
		a.content += p.source.Content
		a.asOf, a.arrived = later(a.asOf, p.source.AsOf), later(a.arrived, p.source.Arrived)
		if a.captured == nil || p.source.CapturedAt.After(*a.captured) {
			a.captured = new(p.source.CapturedAt)
		}
		q.Chains = append(q.Chains, flowChainQuality{
			Symbol: symbol, AsOf: p.source.AsOf, Listed: p.source.Listed, Skipped: p.source.Skipped,
			Eligible: p.flow.Eligible, Served: len(p.flow.Items), IVHistory: p.source.IVHistory,
		})
		if !p.source.IVHistory {
			q.IVChange = new(noIVHistory)
		}
	}
	a.content = sha256Hex([]byte(a.content))
	a.quality = q
	a.variants = flowVariants(compute.MergeFlow(flows))
	return a
}

// The limits that answer by default, and that is stored: the others are made of it.
const (
	defaultFlow = "20"
	allFlow     = "100"
)

// rareFlow says whether few ask for a limit.
func rareFlow(limit string) bool { return limit != defaultFlow && limit != allFlow }

// flowVariants returns the answers to every limit. Limits of at least the number of items share one.
func flowVariants(f compute.Flow) map[string]any {
	out := make(map[string]any, compute.MaxFlowItems)
	whole := new(f.Limit(compute.MaxFlowItems))
	for n := 1; n <= compute.MaxFlowItems; n++ {
		if n < len(f.Items) {
			out[strconv.Itoa(n)] = new(f.Limit(n))
		} else {
			out[strconv.Itoa(n)] = whole
		}
	}
	return out
}
