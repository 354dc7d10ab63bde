package product

import (
	"bytes"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"time"

	"strikecache/refresh/feed"
	"strikecache/snapshots"
)

// Seal seals the answer with the given freshness and interval of refreshes.
func (a *Answer) Seal(every time.Duration, fresh snapshots.Freshness) error {
	meta := snapshots.Meta{
		Endpoint: a.Product.Name, Source: a.Inputs.source,
		AsOf: a.AsOf, CapturedAt: a.Captured, ComputedAt: a.Inputs.at.UTC().Truncate(time.Second),
		SessionDate: a.Inputs.calendar.SessionDate(a.AsOf).String(), DelayMinutes: a.Product.delayMinutes(),
		RefreshSeconds: int(every.Seconds()), Freshness: fresh,
		Receipt: snapshots.Receipt{Method: a.Product.Method, Parameters: a.parameters},
		Quality: a.QualityJSON, Notice: a.Product.notice,
	}
	meta.Receipt.Inputs = a.Inputs.receipt()
	var err error
	a.Edition, err = a.sealVariants(meta)
	return err
}

// delayMinutes is by how much the upstream delays its quotes.
const delayMinutes = 15

// delayMinutes is by how much the upstream delays the quotes behind the answer, nil for settlements: they are not delayed.
func (p *Product) delayMinutes() *int {
	if p.Daily() {
		return nil
	}
	return new(delayMinutes)
}

// sealVariants seals a snapshot for each parameter value. Variants with the same pointer share one snapshot. The shared
// snapshot has br and zstd unless all of its variants are rare.
func (a *Answer) sealVariants(meta snapshots.Meta) (*snapshots.Edition, error) {
	common := map[any]bool{}
	for name, data := range a.variants {
		if a.rare == nil || !a.rare(name) {
			common[data] = true
		}
	}
	sealed := make(map[any]*snapshots.Snapshot, len(a.Encoded))
	e := &snapshots.Edition{Variants: make(map[string]*snapshots.Snapshot, len(a.variants))}
	for _, name := range slices.Sorted(maps.Keys(a.variants)) {
		data := a.variants[name]
		if sealed[data] == nil {
			codings := []snapshots.Coding{snapshots.Brotli, snapshots.Zstd}
			if !common[data] {
				codings = nil
			}
			var err error
			if sealed[data], err = snapshots.SealIn(a.Encoded[data], meta, codings...); err == nil && a.Forms[data] != nil {
				sealed[data], err = sealed[data].WithForms(a.Forms[data]...)
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

// File returns the sealed answer as it is stored. dated says whether it belongs under its date.
func (a *Answer) File(dated bool) snapshots.File {
	f := snapshots.File{
		Product: a.Product.Name, Edition: a.Edition, Inputs: a.StoredInputs(), Build: Build(), Summary: a.summary, Current: true, Dated: dated,
	}
	if a.storedVariant != "" {
		f.Edition = &snapshots.Edition{Default: a.Edition.Variants[a.storedVariant]}
	}
	return f
}

// StoredInputs returns the inputs as the file names them.
func (a *Answer) StoredInputs() (stored []snapshots.StoredInput) {
	for _, d := range a.Inputs.Documents {
		stored = append(stored, d.StoredInput)
	}
	return stored
}

// Objects returns the bytes of the inputs that have them.
func (a *Answer) Objects() (objects []snapshots.Object) {
	for _, d := range a.Inputs.Documents {
		objects = append(objects, snapshots.Object{SHA256: d.SHA256, Body: d.Body, Gzip: d.Gzip})
	}
	return objects
}

// StoredData returns the data that the file stores, as keys of Encoded and Forms, by parameter value. The key is "" when the file
// stores one value.
func (a *Answer) StoredData() map[string]any {
	if a.storedVariant != "" {
		return only(a.variants[a.storedVariant])
	}
	return a.variants
}

// Build returns the Go version and the architecture, such as "go1.26.0 amd64". The last digits of numbers may depend on
// both.
func Build() string { return runtime.Version() + " " + runtime.GOARCH }

// Matches says whether publishing the answer in place of an edition would change nothing but its receipt and its clocks: the
// edition has the same data, as_of, quality, method, parameters, notice and interval.
func (a *Answer) Matches(e *snapshots.Edition, every time.Duration) bool {
	if e == nil {
		return false
	}
	meta := &e.Default.Meta
	if meta.Receipt.Method != a.Product.Method || meta.Notice != a.Product.notice || meta.RefreshSeconds != int(every.Seconds()) ||
		!meta.AsOf.Equal(a.AsOf) || !bytes.Equal(meta.Receipt.Parameters, a.parameters) || closuresIn(a.Inputs.receipt()) != closuresIn(meta.Receipt.Inputs) ||
		!bytes.Equal(withoutQuoteAge(meta.Quality), withoutQuoteAge(a.QualityJSON)) {
		return false
	}
	served := VariantsOf(e)
	if len(a.variants) != len(served) || e.Default != served[a.byDefault] {
		return false
	}
	for name, data := range a.variants {
		if s := served[name]; s == nil || !bytes.Equal(a.Encoded[data], s.Data()) || OtherForms(s, a.Forms[data]) != nil {
			return false
		}
	}
	return true
}

// VariantsOf returns the snapshots of an edition by the names that [answer.variants] has.
func VariantsOf(e *snapshots.Edition) map[string]*snapshots.Snapshot {
	if e.Variants == nil {
		return map[string]*snapshots.Snapshot{"": e.Default}
	}
	return e.Variants
}

// closuresIn returns the digest of the configured closures among the inputs, "" if there are none.
func closuresIn(receipt []snapshots.Input) string {
	for _, in := range receipt {
		if in.Name == feed.StateDir+closedDates {
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

// OtherForms returns the names of the forms that a snapshot does not have, or has with other bytes.
func OtherForms(s *snapshots.Snapshot, forms []snapshots.Form) (names []string) {
	for _, f := range forms {
		if has := s.Form(f.Name); has == nil || has.ContentType != f.ContentType || !bytes.Equal(has.Body(snapshots.Identity), f.Body) {
			names = append(names, f.Name)
		}
	}
	return names
}
