package refresh

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// The resources that do not rest on one chain.
const (
	UnderlyingsResource = "underlyings"
	FlowResource        = "options/flow/unusual"
	SectorsResource     = "sectors/rotation"
	VIXResource         = "vix-term-structure"
	VIXSeriesResource   = "vix-term-structure/series"
)

// The resources of the first underlying, by the canonical form of their keys.
const (
	GammaResource  = "gex/spx"
	TrackResource  = "gex/spx/intraday"
	SeriesResource = "gex/spx/series"
	MatrixResource = "gex/spx/matrix"
	PainResource   = "spx-max-pain"
)

// feed is a group of products that rest on the same kind of documents. The answers of one feed that rest on the same chain become
// current at the same instant.
type feed struct {
	every   func(*product, *Config) time.Duration // interval of refreshes in the refresh window
	offered func(*product, *Config) bool          // whether the source has the documents of the product
	// past returns, for back-fill, the names of the product's documents of a past session and the instant at which they are final.
	past   func(*product, *Config, compute.Date) ([]upstream.Name, time.Time)
	chains bool // its products rest on chains
	daily  bool // the upstream makes one document a day
}

var (
	optionsFeed = &feed{every: chainEvery, offered: chainOffered, past: pastChains, chains: true}
	sectorsFeed = &feed{every: func(_ *product, c *Config) time.Duration { return c.QuotesEvery }, offered: sectorsOffered, past: pastFunds}
	vixFeed     = &feed{every: func(*product, *Config) time.Duration { return outsideEvery }, offered: settlementsOffered, past: pastSettlement, daily: true}
)

// productRow is one row of the table of products, [table]: how the refresher makes the answers of one resource. The first argument of its
// functions is the product that is asked for.
type productRow struct {
	pattern string // the canonical name of the resource, with {u} in place of the underlying, if it rests on the chain of one
	*feed
	method string // in the receipt
	notice string

	// dated says that past dates are served, and kept for ever. The dated files of other products are removed when they are older than
	// Config.SnapshotMaxAge. A late answer changes no dated file.
	dated       bool
	accumulates bool // the answer adds to the answer before, and rests on the last document that added to it
	backfilled  bool // back-fill gives past sessions their answers

	// deltas are the parameter values whose answers come with deltas against the last answers; "" stands for the default.
	deltas []string
	// forms are the forms of its answers besides JSON. Rare variants ([answer.rare]) have none.
	forms []Form

	// gather returns the inputs of the product's next answer from the documents of the batch and from what earlier answers
	// left. It returns nil while a document is missing or when the documents change nothing.
	gather func(p *product, b *batch, m *memory) (*inputs, error)
	// compute turns inputs into an answer. It depends on the inputs alone. Live refresh, start, back-fill and recompute
	// all call this function, so that the same inputs always give the same answer.
	compute func(in *inputs) (*answer, error)

	// reopen returns what is served of a stored answer, and its [answer.restsOn]. If it is nil, the stored edition is served.
	reopen func(p *product, stored *snapshots.Snapshot) (*snapshots.Edition, []string, error)

	data, quality any // zero values of `data` and `meta.quality`, for the API description
}

// product is a row for one underlying, or for none.
type product struct {
	*productRow
	name       string // canonical name, meta.endpoint
	underlying string // symbol, such as SPX; "" if the answer does not rest on one chain
}

// everyChain says whether the product rests on the chains of all underlyings.
func (p *product) everyChain() bool { return p.chains && p.underlying == "" }

// next computes the product's answer from the documents of a batch. It returns nil when the product has no inputs or nothing to
// add.
func (p *product) next(b *batch, m *memory) (a *answer, err error) {
	defer p.recovered(&err)
	in, err := p.gather(p, b, m)
	if err != nil || in == nil {
		return nil, err
	}
	if err := in.addClosures(); err != nil {
		return nil, err
	}
	a, err = p.answer(in)
	if err == nil && p.daily { // the document may be published after its date has closed
		leftToBackfill := p.backfilled && b.cfg.BackfillSessions > 0 && dateClosed(a.date(), m.since)
		isStored := slices.Contains(m.cfg.Store.DatesOf(p.name), a.date().String())
		a.late = dateClosed(a.date(), later(b.at, in.arrived())) && (leftToBackfill || isStored)
	}
	return a, err
}

// answer computes the product's answer and encodes it.
func (p *product) answer(in *inputs) (a *answer, err error) {
	defer p.recovered(&err)
	if a, err = p.compute(in); err != nil {
		return nil, fmt.Errorf("compute %s: %w", p.name, err)
	}
	a.product, a.inputs = p, in
	a.late = dateClosed(a.date(), in.arrived())
	if err := a.encode(); err != nil {
		return nil, fmt.Errorf("encode %s: %w", p.name, err)
	}
	return a, nil
}

// recovered makes an error of a panic: it ends the computation of this product alone.
func (p *product) recovered(err *error) {
	if panicked := recover(); panicked != nil {
		*err = fmt.Errorf("compute %s: panic: %v", p.name, panicked)
	}
}

// delayMinutes is by how much the upstream delays the quotes behind the answer, nil for settlements: they are not delayed.
func (p *product) delayMinutes() *int {
	if p.daily {
		return nil
	}
	return new(delayMinutes)
}

func (p *product) refreshSeconds(cfg *Config) int { return int(p.every(p, cfg).Seconds()) }

// answer is one result of a product. It is computed, encoded and sealed in this order. Only the goroutine that publishes
// the answer uses it.
type answer struct {
	product *product
	inputs  *inputs

	// unusable says why the answer has no figure; "" if it has one. Such an answer is never the first of a resource.
	unusable string

	asOf     time.Time
	captured *time.Time // nil when no document has a timestamp of its own
	quality  any
	// variants holds a pointer to the data for each value of the resource's parameter; see [only] for a resource without one.
	// byDefault is the value that a request without the parameter gets. storedVariant is the only value that the file stores;
	// "" stores all values.
	variants                 map[string]any
	byDefault, storedVariant string
	// rare says whether clients seldom ask for a variant. To save time, rare variants are sealed in identity and gzip only.
	// If rare is nil, no variant is rare.
	rare func(variant string) bool
	// restsOn are the symbols whose failed fetches can make the answer stale; nil: every failure of the product counts.
	restsOn []string

	// row has the values of the answer's row in its series but for the method, which is the last, and summarise returns what the file stores beside the answer, the row
	// included; both nil without a series. summary is the JSON of that.
	row       []any
	summarise func(seriesRow) any
	summary   []byte
	// late says that its UTC date had closed when its last document arrived. If the document is a daily one, the first answer of a date
	// is not late, unless the date had closed at the start and a back-fill gives it its answer. An answer without documents is never late.
	late bool

	parameters, qualityJSON json.RawMessage          // of parameters and quality
	encoded                 map[any][]byte           // JSON of data and variants, by their pointers
	forms                   map[any][]snapshots.Form // of data and variants, by their pointers
	edition                 *snapshots.Edition       // nil before seal
}

// only returns the variants of a resource without a parameter.
func only(data any) map[string]any { return map[string]any{"": data} }

// answerOf returns an answer with as_of and captured_at of the only chain that it rests on.
func answerOf(chain *compute.Chain) *answer {
	return &answer{asOf: chain.AsOf, captured: new(chain.CapturedAt)}
}

// usable returns the refusal of an answer without a figure.
func (a *answer) usable() error {
	if a.unusable == "" {
		return nil
	}
	return upstream.Refuse(upstream.Empty, "%s: %s", a.product.name, a.unusable)
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

// encode fills in the JSON and the other forms. A figure that is not finite is null, and quality.not_finite names it.
func (a *answer) encode() (err error) {
	if a.parameters, err = json.Marshal(a.inputs.parameters); err != nil {
		return fmt.Errorf("parameters: %w", err)
	}
	if a.qualityJSON, err = json.Marshal(a.quality); err != nil {
		return fmt.Errorf("quality: %w", err)
	}
	unknown := notFinite(reflect.ValueOf(a.quality))
	a.encoded = map[any][]byte{}
	if a.variants[a.byDefault] == nil {
		return fmt.Errorf("the default variant %q is missing", a.byDefault)
	}
	for name, data := range a.variants {
		if a.encoded[data] != nil {
			continue
		}
		if a.encoded[data], err = json.Marshal(data); err != nil {
			return fmt.Errorf("variant %q: %w", name, err)
		}
		unknown = append(unknown, notFinite(reflect.ValueOf(data))...)
	}
	if unknown != nil {
		slices.Sort(unknown)
		a.qualityJSON = fmt.Appendf(nil, `{"not_finite":["%s"],%s`, strings.Join(slices.Compact(unknown), `","`), a.qualityJSON[1:])
	}
	if a.row != nil {
		values, err := json.Marshal(append(a.row, a.product.method)) // a series says by which method each row was made
		if err == nil {
			a.summary, err = json.Marshal(a.summarise(seriesRow{sha256Hex(a.encoded[a.variants[""]]), values}))
		}
		if err != nil {
			return fmt.Errorf("row: %w", err)
		}
	}
	return a.renderForms()
}

// seal seals the answer with the given freshness.
func (a *answer) seal(cfg *Config, fresh snapshots.Freshness) error {
	meta := snapshots.Meta{
		Endpoint: a.product.name, Source: cfg.SourceName,
		AsOf: a.asOf, CapturedAt: a.captured, ComputedAt: a.inputs.at.UTC().Truncate(time.Second),
		SessionDate: cfg.Calendar.SessionDate(a.asOf).String(), DelayMinutes: a.product.delayMinutes(),
		RefreshSeconds: a.product.refreshSeconds(cfg), Freshness: fresh,
		Receipt: snapshots.Receipt{Method: a.product.method, Parameters: a.parameters},
		Quality: a.qualityJSON, Notice: a.product.notice,
	}
	meta.Receipt.Inputs = a.inputs.receipt()
	var err error
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
			var err error
			if sealed[data], err = snapshots.SealIn(a.encoded[data], meta, codings...); err == nil && a.forms[data] != nil {
				sealed[data], err = sealed[data].WithForms(a.forms[data]...)
			}
			if err != nil {
				return nil, fmt.Errorf("variant %s: %w", name, err)
			}
		}
		e.Variants[name] = sealed[data]
	}
	e.Default = e.Variants[a.byDefault]
	if a.byDefault == "" {
		e.Variants = nil // the resource has no parameter
	}
	return e, nil
}

// file returns the sealed answer as it is stored. dated says whether it belongs under its date.
func (a *answer) file(dated bool) snapshots.File {
	f := snapshots.File{
		Product: a.product.name, Edition: a.edition, Inputs: a.storedInputs(), Build: Build(), Summary: a.summary, Current: true, Dated: dated,
	}
	if a.storedVariant != "" {
		f.Edition = &snapshots.Edition{Default: a.edition.Variants[a.storedVariant]}
	}
	return f
}

func (a *answer) storedInputs() (stored []snapshots.StoredInput) {
	for _, d := range a.inputs.documents {
		stored = append(stored, d.StoredInput)
	}
	return stored
}

// objects returns the bytes of the inputs that have them.
func (a *answer) objects() (objects []snapshots.Object) {
	for _, d := range a.inputs.documents {
		objects = append(objects, snapshots.Object{SHA256: d.SHA256, Body: d.Body, Gzip: d.Gzip})
	}
	return objects
}

// storedData returns the data that the file stores, as keys of encoded and forms, by parameter value. The key is "" when the file
// stores one value.
func (a *answer) storedData() map[string]any {
	if a.storedVariant != "" {
		return only(a.variants[a.storedVariant])
	}
	return a.variants
}

// Build returns the Go version and the architecture, such as "go1.26.0 amd64". The last digits of numbers may depend on
// both.
func Build() string { return runtime.Version() + " " + runtime.GOARCH }

// matches says whether publishing the answer in place of an edition would change nothing but its receipt and its clocks: the
// edition has the same data, as_of, quality, method, parameters, notice and interval.
func (a *answer) matches(e *snapshots.Edition, cfg *Config) bool {
	if e == nil {
		return false
	}
	meta := &e.Default.Meta
	if meta.Receipt.Method != a.product.method || meta.Notice != a.product.notice || meta.RefreshSeconds != a.product.refreshSeconds(cfg) ||
		!meta.AsOf.Equal(a.asOf) || !bytes.Equal(meta.Receipt.Parameters, a.parameters) || closuresIn(a.inputs.receipt()) != closuresIn(meta.Receipt.Inputs) ||
		!bytes.Equal(withoutQuoteAge(meta.Quality), withoutQuoteAge(a.qualityJSON)) {
		return false
	}
	served := variantsOf(e)
	if len(a.variants) != len(served) || e.Default != served[a.byDefault] {
		return false
	}
	for name, data := range a.variants {
		if s := served[name]; s == nil || !bytes.Equal(a.encoded[data], s.Data()) || otherForms(s, a.forms[data]) != nil {
			return false
		}
	}
	return true
}

// variantsOf returns the snapshots of an edition by the names that [answer.variants] has.
func variantsOf(e *snapshots.Edition) map[string]*snapshots.Snapshot {
	if e.Variants == nil {
		return map[string]*snapshots.Snapshot{"": e.Default}
	}
	return e.Variants
}

// closuresIn returns the digest of the configured closures among the inputs, "" if there are none.
func closuresIn(receipt []snapshots.Input) string {
	for _, in := range receipt {
		if in.Name == stateDir+closedDates {
			return in.SHA256
		}
	}
	return ""
}

// withoutQuoteAge returns the JSON of a quality without the value of quote_age_seconds: a clock of the document.
func withoutQuoteAge(quality []byte) []byte {
	before, after, found := bytes.Cut(quality, []byte(`"quote_age_seconds":`))
	if !found {
		return quality
	}
	return append(bytes.Clone(before), bytes.TrimLeft(after, "-0123456789")...)
}
