package product

import (
	"fmt"
	"reflect"
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

	AsOf     time.Time
	Captured *time.Time // nil when no document has a timestamp of its own
	quality  any
	// variants holds a pointer to the data for each value of the resource's parameter; see [only] for a resource without one.
	// byDefault is the value that a request without the parameter gets. storedVariant is the only value that the file stores;
	// "" stores all values.
	variants                 map[string]any
	byDefault, storedVariant string
	// rare says whether clients seldom ask for a variant. To save time, rare variants are sealed in identity and gzip only.
	// If rare is nil, no variant is rare.
	rare func(variant string) bool
	// RestsOn are the symbols whose failed fetches can make the answer stale; nil: every failure of the product counts.
	RestsOn []string

	// row has the values of the answer's row in its series but for the method, which is the last, and summarise returns what the file stores
	// beside the answer, the row included; both nil without a series. summary is the JSON of that.
	row                     []any
	summarise               func(seriesRow) any
	summary                 []byte
	parameters, QualityJSON json.RawMessage          // JSON of the parameters and of quality
	Encoded                 map[any][]byte           // JSON of data and variants, by their pointers
	Forms                   map[any][]snapshots.Form // of data and variants, by their pointers
	Edition                 *snapshots.Edition       // nil before seal
}

// only returns the variants of a resource without a parameter.
func only(data any) map[string]any { return map[string]any{"": data} }

// answerOf returns an answer with as_of and captured_at of the only chain that it rests on.
func answerOf(chain *compute.Chain) *Answer {
	return &Answer{AsOf: chain.AsOf, Captured: new(chain.CapturedAt)}
}

// Usable returns the refusal of an answer without a figure.
func (a *Answer) Usable() error {
	if a.unusable == "" {
		return nil
	}
	return upstream.Refuse(upstream.Empty, "%s: %s", a.Product.Name, a.unusable)
}

// describes raises the answer's as_of and captured_at to those of a document that it rests on, if the document's are
// later.
func (a *Answer) describes(asOf, captured time.Time) {
	a.AsOf = feed.Later(a.AsOf, asOf)
	if a.Captured == nil || captured.After(*a.Captured) {
		a.Captured = new(captured)
	}
}

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
	unknown := notFinite(reflect.ValueOf(a.quality))
	a.Encoded = map[any][]byte{}
	if a.variants[a.byDefault] == nil {
		return fmt.Errorf("the default variant %q is missing", a.byDefault)
	}
	for name, data := range a.variants {
		if a.Encoded[data] != nil {
			continue
		}
		if a.Encoded[data], err = json.Marshal(data); err != nil {
			return fmt.Errorf("variant %q: %w", name, err)
		}
		unknown = append(unknown, notFinite(reflect.ValueOf(data))...)
	}
	if unknown != nil {
		slices.Sort(unknown)
		a.QualityJSON = fmt.Appendf(nil, `{"not_finite":["%s"],%s`, strings.Join(slices.Compact(unknown), `","`), a.QualityJSON[1:])
	}
	if a.row != nil {
		values, err := json.Marshal(append(a.row, a.Product.Method)) // a series says by which method each row was made
		if err == nil {
			a.summary, err = json.Marshal(a.summarise(seriesRow{feed.Digest(a.Encoded[a.variants[""]]), values}))
		}
		if err != nil {
			return fmt.Errorf("row: %w", err)
		}
	}
	return a.renderForms()
}
