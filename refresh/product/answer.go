package product

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// Answer is one result of a product. It is computed, encoded and sealed in this order. Only the goroutine that publishes
// the answer uses it.
type Answer struct {
	Product *Product
	Inputs  *Inputs
	// unusable says why the answer has no figure; "" if it has one. Such an answer is never the first of a resource.
	unusable string

	// Served says that publishing the answer would change nothing; see [Answer.Matches].
	Served bool

	AsOf     time.Time
	Captured *time.Time // nil when no document has a timestamp of its own
	quality  any

	// variants holds the data for each value of the resource's parameter; see [only] for a resource without one. byDefault is the value that a
	// request without the parameter gets. storedVariant is the only value that the file stores; "" stores all values.
	variants                 map[string]*Variant
	byDefault, storedVariant string
	cuts                     []flowCut // variants that are cut from the stored one
	// RestsOn are the symbols whose failed fetches can make the answer stale; nil: every failure of the product counts.
	RestsOn []string

	row     *seriesRow // of the answer's series; nil without a series
	leaves  any        // what the file stores beside the answer: the row, and what later answers need; nil: the row alone
	summary []byte     // JSON of leaves

	parameters, QualityJSON json.RawMessage    // JSON of the parameters and of quality
	Edition                 *snapshots.Edition // nil before [Answer.Seal]
}

// Variant is the data for one value of a parameter. Values with the same data share it.
type Variant struct {
	data any // a pointer; nil if JSON is there at once, with finite figures
	// rare says that clients seldom ask for the variant. To save time, it is sealed in identity and gzip only, and has no other form than JSON.
	rare    bool
	JSON    []byte // of data
	Forms   []snapshots.Form
	encoded bool
}

// seriesRow is a row of a series with the snapshot that it was taken from.
type seriesRow struct {
	Snapshot string `json:"snapshot"` // data_sha256 of the snapshot
	Values   []any  `json:"row"`      // the last are the method by which the row was made, and when
}

// only returns the variants of a resource without a parameter.
func only(data any) map[string]*Variant { return map[string]*Variant{"": {data: data}} }

// described returns the first of the documents that the answer describes, decoded, and sets as_of and captured_at to theirs.
func (a *Answer) described() (*feed.Document, error) {
	documents := a.Inputs.newest()
	if len(documents) == 0 {
		return nil, ErrNoInput
	}
	d := documents[0]
	if err := d.Open(); err != nil {
		return nil, err
	}
	switch {
	case d.Chain != nil:
		a.describes(d.Chain.AsOf, d.Chain.CapturedAt)
	case d.Settlement != nil:
		a.AsOf = a.Inputs.calendar.FuturesSettlement(d.Settlement.Date).UTC()
		if !d.Generated.IsZero() {
			a.Captured = new(d.Generated)
		}
	default: // the quotes of funds, beside their histories
		for _, d := range documents {
			if err := d.Open(); err != nil {
				return nil, err
			}
			if d.Quote != nil {
				a.describes(d.Quote.AsOf, d.Quote.CapturedAt)
			}
		}
	}
	return d, nil
}

// Usable returns the refusal of an answer without a figure.
func (a *Answer) Usable() error {
	if a.unusable == "" {
		return nil
	}
	return upstream.Refuse(upstream.Empty, "%s: %s", a.Product.Name, a.unusable)
}

// describes raises as_of and captured_at to those of a document that the answer rests on, if they are later.
func (a *Answer) describes(asOf, captured time.Time) {
	a.AsOf = compute.Later(a.AsOf, asOf)
	if a.Captured == nil || captured.After(*a.Captured) {
		a.Captured = new(captured)
	}
}

func (a *Answer) computedAt() time.Time { return a.Inputs.at.UTC().Truncate(time.Second) }

// Date returns the UTC date under which the answer is stored.
func (a *Answer) Date() compute.Date { return compute.DateOf(a.AsOf.UTC()) }

// encode fills in the JSON and the other forms. A figure that is not finite is null, and quality.not_finite names it.
func (a *Answer) encode() (err error) {
	if a.parameters, err = json.Marshal(a.Inputs.parameters); err != nil {
		return fmt.Errorf("parameters: %w", err)
	}
	if a.QualityJSON, err = json.Marshal(a.quality); err != nil {
		return fmt.Errorf("quality: %w", err)
	}
	if a.variants[a.byDefault] == nil {
		return fmt.Errorf("the default variant %q is missing", a.byDefault)
	}
	unknown := notFinite(reflect.ValueOf(a.quality))
	for name, v := range a.variants {
		if v.encoded {
			continue
		}
		if err := v.encode(a.Product.Forms); err != nil {
			return fmt.Errorf("variant %q: %w", name, err)
		}
		unknown = append(unknown, notFinite(reflect.ValueOf(v.data))...)
	}
	if unknown != nil {
		slices.Sort(unknown)
		_, rest, _ := strings.Cut(string(a.QualityJSON), "{")
		if rest = cmp.Or(rest, "}"); rest != "}" {
			rest = "," + rest
		}
		a.QualityJSON = fmt.Appendf(nil, `{"not_finite":["%s"]%s`, strings.Join(slices.Compact(unknown), `","`), rest)
	}
	if a.row != nil {
		a.row.Snapshot = snapshots.Digest(a.variants[a.byDefault].JSON)
		a.row.Values = append(a.row.Values, a.Product.Method, a.computedAt())
		if a.summary, err = json.Marshal(cmp.Or(a.leaves, any(a.row))); err != nil {
			return fmt.Errorf("row: %w", err)
		}
	}
	return nil
}

func (v *Variant) encode(forms []Form) (err error) {
	if v.encoded = true; v.JSON == nil {
		v.JSON, err = json.Marshal(v.data)
	}
	if err != nil || v.rare {
		return err
	}
	for _, f := range forms {
		body, err := f.Render(v.JSON)
		if err != nil {
			return fmt.Errorf("as %s: %w", f.Name, err)
		}
		v.Forms = append(v.Forms, snapshots.Form{Name: f.Name, ContentType: f.ContentType, Body: body})
	}
	return nil
}

// notFinite returns the JSON paths of the numbers of v that are not finite, a path again for each row of a list.
func notFinite(v reflect.Value) (paths []string) {
	switch v.Kind() {
	case reflect.Float64:
		if x := v.Float(); x-x != 0 {
			return []string{""}
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return notFinite(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			paths = append(paths, notFinite(v.Index(i))...)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			for _, path := range notFinite(v.Field(i)) {
				name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
				paths = append(paths, strings.Trim(name+"."+path, "."))
			}
		}
	}
	return paths
}

// Next computes the next answer from the documents of a batch. It returns nil when the product has no inputs or nothing to add.
func (p *Product) Next(b *Batch) (a *Answer, err error) {
	defer p.recovered(&err)
	in := &Inputs{at: b.At, calendar: b.Calendar, source: b.Source}
	if name := p.document(); name != "" {
		if in.add(b.Document(name)); in.Documents == nil {
			return nil, nil
		}
	}
	if p.gather != nil {
		if err := p.gather(p, b, in); err != nil || in.Documents == nil {
			return nil, err
		}
	}
	if err := in.addClosures(); err != nil {
		return nil, err
	}
	return p.Answer(in)
}

// Answer computes the product's answer from inputs and encodes it.
func (p *Product) Answer(in *Inputs) (_ *Answer, err error) {
	defer p.recovered(&err)
	a, err := p.computed(in)
	if err != nil {
		return nil, fmt.Errorf("compute %s: %w", p.Name, err)
	}
	if err := a.encode(); err != nil {
		return nil, fmt.Errorf("encode %s: %w", p.Name, err)
	}
	return a, nil
}

// computed returns the product's answer without its JSON.
func (p *Product) computed(in *Inputs) (a *Answer, err error) {
	a = &Answer{Product: p, Inputs: in}
	var d *feed.Document
	if !p.EveryChain() {
		if d, err = a.described(); err != nil {
			return nil, err
		}
	}
	return a, p.Compute(a, in, d)
}

// ErrPanic says that the computation of a product panicked.
var ErrPanic = errors.New("panic")

// recovered makes an error of a panic: it ends the computation of this product alone.
func (p *Product) recovered(err *error) {
	if panicked := recover(); panicked != nil {
		*err = fmt.Errorf("compute %s: %w: %v\n%s", p.Name, ErrPanic, panicked, debug.Stack())
	}
}
