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
	"strikecache/refresh/fleet"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// The resources, by the canonical form of their keys.
const (
	GammaResource   = "gex/spx"
	TrackResource   = "gex/spx/intraday"
	SeriesResource  = "gex/spx/series"
	MatrixResource  = "gex/spx/matrix"
	PainResource    = "spx-max-pain"
	FlowResource    = "options/flow/unusual"
	SectorsResource = "sectors/rotation"
	VIXResource     = "vix-term-structure"
)

// The feeds. A feed is a group of products that rest on the same kind of documents. The answers of one feed become
// current at the same instant.
const (
	optionsFeed = "options"
	sectorsFeed = "sectors"
	vixFeed     = "vix"
)

// product is one row of the table [products]: how the refresher makes the answers of one resource.
type product struct {
	name   string // canonical name, meta.endpoint
	feed   string
	method string // in the receipt
	notice string
	every  func(*Config) time.Duration // interval of its refreshes in session

	overnight    bool // rests on option quotes, which also move at night
	everyChain   bool // rests on every chain of the flow universe; the other products of the options feed rest on SPX alone
	daily        bool // the upstream makes one document a day
	finalAtClose bool // the file of a UTC date never changes after [dateClosed]
	accumulates  bool // the answer adds to the answer before, and rests on the last document that added to it
	expires      bool // files of dates older than Config.SnapshotMaxAge are removed

	// deltas are the parameter values whose answers come with deltas against the last answers; "" stands for the default.
	deltas []string

	// offered says whether the source has the documents of the product.
	offered func(*Config) bool
	// gather returns the inputs of the product's next answer, nil while a document is missing or when the documents change
	// nothing. above holds the answers
	// that the same batch gave for the products above this one in the table, by name.
	gather func(b *batch, above map[string]*answer) (*inputs, error)
	// compute turns inputs into an answer. It depends on the inputs alone. Live refresh, start, back-fill and recompute
	// all call this function, so that the same inputs always give the same answer.
	compute func(in *inputs) (*answer, error)

	// The following functions may be nil.

	// remember keeps the state that later answers need from a published answer.
	remember func(r *Refresher, a *answer)
	// resume restores the state that a stored answer was computed with, so that a restarted process computes the same
	// answer again.
	resume func(b *batch, in *inputs) error
	// past returns, for back-fill, the names of the documents of a past session and the instant at which they are final.
	past func(cal *compute.Calendar, d compute.Date) ([]upstream.Name, time.Time)

	data, quality any // zero values of `data` and `meta.quality`, for the API description
}

// answer computes the product's answer and encodes it.
func (p *product) answer(in *inputs) (*answer, error) {
	a, err := p.compute(in)
	if err != nil {
		return nil, fmt.Errorf("compute %s: %w", p.name, err)
	}
	a.product, a.inputs = p, in
	a.late = dateClosed(a.date(), in.arrived())
	if a.parameters, err = json.Marshal(in.parameters); err != nil {
		return nil, fmt.Errorf("encode parameters of %s: %w", p.name, err)
	}
	if err := a.encode(); err != nil {
		return nil, fmt.Errorf("encode %s: %w", p.name, err)
	}
	return a, nil
}

func (p *product) refreshSeconds(cfg *Config) int { return int(p.every(cfg).Seconds()) }

// answer is one result of a product. It is computed, encoded and sealed in this order. Only the goroutine that publishes
// the answer uses it; while it seals, a second one archives the inputs and encodes states.
type answer struct {
	product *product
	inputs  *inputs

	asOf     time.Time
	captured *time.Time // nil when no document has a timestamp of its own
	quality  any
	data     any // a pointer, set when the resource has no parameter
	// variants holds a pointer for each value of the resource's parameter; nil without a parameter. byDefault is the
	// value that a request without the parameter gets. storedVariant is the only value that the file stores; "" stores
	// all values.
	variants                 map[string]any
	byDefault, storedVariant string
	// rare says whether clients seldom ask for a variant. To save time, rare variants are sealed in identity and gzip only.
	// If rare is nil, no variant is rare.
	rare func(variant string) bool
	// restsOn are the symbols whose failed fetches can make the answer stale; nil: every failure of the product counts.
	restsOn []string

	summary []byte                     // short form stored in the same file; may be nil
	carry   map[compute.Series]float64 // of a gamma answer: carry per year, an input of the next gamma answer
	late    bool                       // its UTC date had closed when its last document arrived
	hasFile bool                       // it is the answer in its date's file
	file    fleet.File                 // that has the answer

	parameters json.RawMessage    // [inputs.parameters]
	encoded    map[any][]byte     // JSON of data and variants, by their pointers
	edition    *snapshots.Edition // nil before seal
}

// answerOf returns an answer with as_of and captured_at of the only chain that it rests on.
func answerOf(chain *compute.Chain) *answer {
	return &answer{asOf: chain.AsOf, captured: new(chain.CapturedAt)}
}

// describes raises the answer's as_of and captured_at to those of a document that it rests on, if the document's are
// later.
func (a *answer) describes(asOf, captured time.Time) {
	a.asOf = later(a.asOf, asOf)
	if a.captured == nil || captured.After(*a.captured) {
		a.captured = new(captured)
	}
}

// date returns the UTC date under which the answer is stored.
func (a *answer) date() compute.Date { return compute.DateOf(a.asOf.UTC()) }

// closesAfter is the time from the end of a UTC date until the date closes. Documents of the last minutes of a date may
// arrive that much later.
const closesAfter = 10 * time.Minute

// dateClosed says whether a UTC date has closed: at 00:10 UTC of the next day.
func dateClosed(date compute.Date, now time.Time) bool {
	return now.After((date + 1).Midnight().Add(closesAfter))
}

// encode fills in the JSON.
func (a *answer) encode() error {
	a.encoded = map[any][]byte{}
	each := a.variants
	if each == nil {
		each = map[string]any{"": a.data}
	} else if each[a.byDefault] == nil {
		return fmt.Errorf("the default variant %q is missing", a.byDefault)
	}
	for name, data := range each {
		if a.encoded[data] == nil {
			encoded, err := json.Marshal(data)
			if err != nil {
				return fmt.Errorf("variant %q: %w", name, err)
			}
			a.encoded[data] = encoded
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
		Receipt: snapshots.Receipt{Method: a.product.method, Parameters: a.parameters},
		Quality: quality, Notice: a.product.notice,
	}
	for _, d := range a.inputs.documents {
		meta.Receipt.Inputs = append(meta.Receipt.Inputs, snapshots.Input{Name: d.Name, SHA256: d.SHA256})
	}
	if a.variants == nil {
		s, err := snapshots.Seal(a.encoded[a.data], meta)
		a.edition = &snapshots.Edition{Default: s}
		return err
	}
	a.edition, err = a.sealVariants(meta)
	return err
}

// sealVariants seals a snapshot for each parameter value. Variants with the same pointer share one snapshot. The shared
// snapshot has br and zstd unless all of its variants are rare.
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
			codings := []snapshots.Coding{snapshots.Brotli, snapshots.Zstd}
			if !common[data] {
				codings = nil
			}
			s, err := snapshots.SealIn(a.encoded[data], meta, codings...)
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

// storedData returns the JSON that the file stores, by parameter value. The key is "" when the file stores one value. The
// caller must not change the bytes.
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

// besideFile ends the product in the recipe of an answer that is served but is not in the file of its date: a late answer,
// or an answer that a start computed again for a past date.
const besideFile = "@served"

// recipe returns what the archive needs to compute the answer again.
func (a *answer) recipe() archive.Recipe {
	out := archive.Recipe{
		Product: a.product.name, Date: a.date().String(), Method: a.product.method, Build: Build(),
		ComputedAt: a.inputs.at.UTC(), Parameters: a.parameters,
	}
	if !a.hasFile {
		out.Product += besideFile
	}
	for _, d := range a.inputs.documents {
		out.Inputs = append(out.Inputs, d.Input)
	}
	return out
}

// Build returns the Go version and the architecture, such as "go1.26.0 amd64". The last digits of numbers may depend on
// both.
func Build() string { return runtime.Version() + " " + runtime.GOARCH }

// currentAnswer is the answer that a product serves now, and the failures of its refreshes. Refresher.mu guards it.
type currentAnswer struct {
	edition  *snapshots.Edition // nil before the first answer
	content  string             // [inputs.content] of the answer
	restored bool               // read from a file at the start, and not computed since
	restsOn  []string           // [answer.restsOn] of the answer
	summary  []byte             // [answer.summary] of the answer
	file     fleet.File         // [answer.file] of the answer
	unsaved  bool               // its file still has an older freshness
	health   healths
}

// restsOnAll says whether the receipt of the current answer names all these documents.
func (h *currentAnswer) restsOnAll(documents []*document) bool {
	named := h.edition.Default.Meta.Receipt.InputSHA256
	return !slices.ContainsFunc(documents, func(d *document) bool { return !slices.Contains(named, d.SHA256) })
}

func (h *currentAnswer) asOf() time.Time { return h.edition.Default.Meta.AsOf }

// matches says whether publishing a would change nothing: the current answer has the same method, parameters, notice,
// interval and data, and inputs that differ at most in their own timestamps. With exact, all inputs must be the same.
func (h *currentAnswer) matches(a *answer, cfg *Config, exact bool) bool {
	if h.edition == nil {
		return false
	}
	meta := h.edition.Default.Meta
	same := h.content == a.inputs.content()
	if exact { // another version may have digested the content in another way
		same = slices.Equal(meta.Receipt.InputSHA256, a.inputs.digests())
	}
	if !same || !bytes.Equal(meta.Receipt.Parameters, a.parameters) {
		return false
	}
	if meta.Receipt.Method != a.product.method || meta.Notice != a.product.notice || meta.RefreshSeconds != a.product.refreshSeconds(cfg) {
		return false
	}
	if a.variants == nil {
		return bytes.Equal(a.encoded[a.data], h.edition.Default.Data())
	}
	if len(a.variants) != len(h.edition.Variants) || h.edition.Default != h.edition.Variants[a.byDefault] {
		return false
	}
	for name, data := range a.variants {
		if s := h.edition.Variants[name]; s == nil || !bytes.Equal(a.encoded[data], s.Data()) {
			return false
		}
	}
	return true
}
