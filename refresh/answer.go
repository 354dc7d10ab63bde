package refresh

import (
	"bytes"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/archive"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// The resources, by the canonical form of their keys.
const (
	GammaResource   = "gex/spx"
	SeriesResource  = "gex/spx/series"
	PainResource    = "spx-max-pain"
	FlowResource    = "options/flow/unusual"
	SectorsResource = "sectors/rotation"
	VIXResource     = "vix-term-structure"
)

// The feeds. The products of one feed become current at the same instant.
const (
	optionsFeed = "options"
	sectorsFeed = "sectors"
	vixFeed     = "vix"
)

// product is one row of the table: all that the refresher knows of a resource.
type product struct {
	name   string // canonical name, meta.endpoint
	feed   string
	method string // in the receipt
	notice string
	every  func(*Config) time.Duration // between refreshes in session

	overnight    bool // rests on option quotes, which also move at night
	everyChain   bool // rests on every chain of the flow universe; the other products of the options feed rest on SPX alone
	daily        bool // the upstream makes one document a day
	stored       bool // has dated files
	finalAtClose bool // the file of a UTC date never changes once that date has closed
	expires      bool // dated files are removed after Config.SnapshotMaxAge

	// offered says whether the source could ever feed the product.
	offered func(*Config) bool
	// gather returns the inputs of the answer that describes now, nil while they are not complete. done has the answers
	// of the products above it in the table that the same documents feed.
	gather func(b *batch, above map[string]*answer) (*inputs, error)
	// compute turns inputs into an answer. It is the only way to an answer of the product: live refresh, start,
	// back-fill and recompute call it. It depends on nothing but the inputs.
	compute func(in *inputs) (*answer, error)

	// The following may be nil.

	// remember takes up what later answers need of a published one.
	remember func(r *Refresher, a *answer)
	// resume takes up the state that a stored answer was computed with, so that a start computes from the same.
	resume func(r *Refresher, in *inputs) error
	// past names the documents of a past session and when they are final, for back-fill.
	past func(cal *compute.Calendar, d compute.Date) ([]upstream.Name, time.Time)

	data, quality any // zero values of what the answer holds, for the API description
}

// answer computes the product's answer and encodes it.
func (p *product) answer(in *inputs) (*answer, error) {
	a, err := p.compute(in)
	if err != nil {
		return nil, fmt.Errorf("compute %s: %w", p.name, err)
	}
	a.product, a.inputs = p, in
	a.late = dateClosed(a.date(), in.arrived())
	if err := a.encode(); err != nil {
		return nil, fmt.Errorf("encode %s: %w", p.name, err)
	}
	return a, nil
}

func (p *product) refreshSeconds(cfg *Config) int { return int(p.every(cfg).Seconds()) }

// answer is a computed product before it is sealed.
type answer struct {
	product *product
	inputs  *inputs

	asOf     time.Time
	captured *time.Time // nil when no document says
	quality  any
	data     any // a pointer to the default's, when there are no variants
	// variants points to all answers by parameter value, the default's among them; nil without a parameter.
	// storedVariant is the value whose answer alone is kept in the file; "" keeps all.
	variants                 map[string]any
	byDefault, storedVariant string
	// rare says which variants few ask for: they are sealed in identity and gzip alone. nil: none.
	rare func(variant string) bool
	// restsOn are the symbols whose failures make the answer stale, nil for all it ever failed for.
	restsOn []string

	summary []byte                     // kept beside the answer in its file; may be nil
	carry   map[compute.Series]float64 // of gamma: for the next one
	late    bool                       // its date had closed when the last document arrived
	hasFile bool                       // it has a file that the archived inputs belong to

	encoded map[any][]byte // JSON of data and variants, by pointer
	edition *snapshots.Edition
}

// answerOf starts an answer that rests on one chain.
func answerOf(chain *compute.Chain) *answer {
	return &answer{asOf: chain.AsOf, captured: new(chain.CapturedAt)}
}

// describes moves the answer's clocks up to those of one of its documents.
func (a *answer) describes(asOf, captured time.Time) {
	a.asOf = later(a.asOf, asOf)
	if a.captured == nil || captured.After(*a.captured) {
		a.captured = new(captured)
	}
}

// date returns the UTC date under which the answer is stored.
func (a *answer) date() compute.Date { return compute.DateOf(a.asOf.UTC()) }

// closesAfter is how long after its end, in UTC, a date still accepts snapshots.
const closesAfter = 10 * time.Minute

// dateClosed says whether a UTC date accepts no more snapshots.
func dateClosed(date compute.Date, now time.Time) bool {
	return now.After((date + 1).Midnight().Add(closesAfter))
}

func (a *answer) encode() (err error) {
	a.encoded = map[any][]byte{}
	each := a.variants
	if each == nil {
		each = map[string]any{"": a.data}
	} else if each[a.byDefault] == nil {
		return fmt.Errorf("no variant %q to answer by default", a.byDefault)
	}
	for name, data := range each {
		if a.encoded[data] == nil {
			if a.encoded[data], err = json.Marshal(data); err != nil {
				return fmt.Errorf("variant %q: %w", name, err)
			}
		}
	}
	return nil
}

func (a *answer) seal(r *Refresher, fresh snapshots.Freshness) error {
	quality, err := json.Marshal(a.quality)
	if err != nil {
		return fmt.Errorf("encode quality: %w", err)
	}
	meta := snapshots.Meta{
		Endpoint: a.product.name, Source: r.cfg.SourceName,
		AsOf: a.asOf, CapturedAt: a.captured, ComputedAt: a.inputs.at.UTC().Truncate(time.Second),
		SessionDate: r.cal.SessionDate(a.asOf).String(), DelayMinutes: delayMinutes,
		RefreshSeconds: a.product.refreshSeconds(&r.cfg), Freshness: fresh,
		Receipt: snapshots.Receipt{Method: a.product.method, InputSHA256: a.inputs.digests()},
		Quality: quality, Notice: a.product.notice,
	}
	if a.variants == nil {
		s, err := snapshots.Seal(a.encoded[a.data], meta)
		a.edition = &snapshots.Edition{Default: s}
		return err
	}
	a.edition, err = a.sealVariants(meta)
	return err
}

// sealVariants seals data by parameter value. Variants that share a pointer share a snapshot, which is sealed in all
// codings unless all of them are rare.
func (a *answer) sealVariants(meta snapshots.Meta) (*snapshots.Edition, error) {
	common := map[any]bool{}
	for name, data := range a.variants {
		if a.rare == nil || !a.rare(name) {
			common[data] = true
		}
	}
	sealed := make(map[any]*snapshots.Snapshot, len(a.encoded))
	e := &snapshots.Edition{Variants: make(map[string]*snapshots.Snapshot, len(a.variants))}
	for _, name := range slices.Sorted(maps.Keys(a.variants)) {
		data := a.variants[name]
		if sealed[data] == nil {
			seal := snapshots.Seal
			if !common[data] {
				seal = func(data []byte, meta snapshots.Meta) (*snapshots.Snapshot, error) {
					return snapshots.SealIn(data, meta)
				}
			}
			s, err := seal(a.encoded[data], meta)
			if err != nil {
				return nil, fmt.Errorf("variant %s: %w", name, err)
			}
			sealed[data] = s
		}
		e.Variants[name] = sealed[data]
	}
	e.Default = e.Variants[a.byDefault]
	return e, nil
}

// storedData returns the bytes of data by parameter value, as the file has them: the one that is kept under "", or all.
func (a *answer) storedData() map[string][]byte {
	switch {
	case a.variants == nil:
		return map[string][]byte{"": a.encoded[a.data]}
	case a.storedVariant != "":
		return map[string][]byte{"": a.encoded[a.variants[a.storedVariant]]}
	}
	all := map[string][]byte{}
	for name, data := range a.variants {
		all[name] = a.encoded[data]
	}
	return all
}

// recipe describes the inputs of an answer for the archive.
func (a *answer) recipe() archive.Recipe {
	in := a.inputs
	closed, early := in.calendar.Closures()
	out := archive.Recipe{
		Product: a.product.name, Date: a.date().String(), Method: a.product.method, Build: Build(),
		ComputedAt: in.at.UTC(), RiskFreeRate: in.riskFreeRate, Closed: closed, Early: early, State: in.state,
	}
	for _, d := range in.documents {
		out.Inputs = append(out.Inputs, d.Input)
	}
	for _, d := range in.states {
		out.States = append(out.States, d.Input)
	}
	return out
}

// Build names the toolchain and the architecture, on which the last digits of numbers may depend.
func Build() string { return runtime.Version() + " " + runtime.GOARCH }

// holding is the current answer of a product, and how its refreshes go.
type currentAnswer struct {
	edition  *snapshots.Edition // nil before the first
	content  string             // of its inputs
	restored bool               // read from its file at the start, and not computed again since
	restsOn  []string           // as of the answer
	health   healths
}

func (h *currentAnswer) asOf() time.Time { return h.edition.Default.Meta.AsOf }

// says whether the held answer is what the computed one would be: by the same method, of the same inputs but for their
// clocks, with the same data.
func (h *currentAnswer) matches(a *answer, cfg *Config) bool {
	if h.edition == nil || h.content != a.inputs.content() {
		return false
	}
	meta := h.edition.Default.Meta
	if meta.Receipt.Method != a.product.method || meta.Notice != a.product.notice || meta.RefreshSeconds != a.product.refreshSeconds(cfg) {
		return false
	}
	if a.variants == nil {
		return bytes.Equal(h.edition.Default.Data(), a.encoded[a.data])
	}
	if len(a.variants) != len(h.edition.Variants) || h.edition.Default != h.edition.Variants[a.byDefault] {
		return false
	}
	for name, data := range a.variants {
		if s := h.edition.Variants[name]; s == nil || !bytes.Equal(s.Data(), a.encoded[data]) {
			return false
		}
	}
	return true
}
