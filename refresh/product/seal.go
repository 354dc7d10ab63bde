package product

import (
	"bytes"
	"fmt"
	"runtime"
	"time"

	"strikecache/refresh/feed"
	"strikecache/snapshots"
)

// Seal seals the answer with the given freshness and interval of refreshes.
func (a *Answer) Seal(every time.Duration, fresh snapshots.Freshness) (err error) {
	delay := new(15)
	if a.Product.Daily() {
		delay = nil // settlements are not delayed
	}
	meta := snapshots.Meta{
		Endpoint: a.Product.Name, Source: a.Inputs.source,
		AsOf: a.AsOf, CapturedAt: a.Captured, ComputedAt: a.computedAt(),
		SessionDate: a.Inputs.calendar.SessionDate(a.AsOf).String(), DelayMinutes: delay,
		RefreshSeconds: int(every.Seconds()), Freshness: fresh,
		Receipt: snapshots.Receipt{Method: a.Product.Method, Parameters: a.parameters, Inputs: a.Inputs.receipt()},
		Quality: a.QualityJSON, Notice: a.Product.notice,
	}
	a.Edition, err = a.sealVariants(meta)
	return err
}

func (a *Answer) sealVariants(meta snapshots.Meta) (*snapshots.Edition, error) {
	sealed := map[*Variant]*snapshots.Snapshot{}
	e := &snapshots.Edition{Variants: map[string]*snapshots.Snapshot{}}
	for name, v := range a.variants {
		if sealed[v] == nil {
			var codings []snapshots.Coding
			if !v.rare {
				codings = []snapshots.Coding{snapshots.Brotli, snapshots.Zstd}
			}
			s, err := snapshots.Seal(v.JSON, meta, codings...)
			if err == nil {
				s, err = s.WithForms(v.Forms...)
			}
			if err != nil {
				return nil, fmt.Errorf("variant %s: %w", name, err)
			}
			sealed[v] = s
		}
		e.Variants[name] = sealed[v]
	}
	if a.cuts != nil {
		var cuts []snapshots.Cut
		for _, c := range a.cuts {
			cuts = append(cuts, c.Cut)
		}
		parts, err := e.Variants[a.storedVariant].Cut(cuts)
		if err != nil {
			return nil, err
		}
		for i, c := range a.cuts {
			e.Variants[c.limit] = parts[i]
		}
	}
	e.Default = e.Variants[a.byDefault]
	if a.byDefault == "" {
		e.Variants = nil // the resource has no parameter
	}
	return e, nil
}

// File returns the sealed answer as it is stored, and the bytes of those of its inputs that have them. dated says whether it belongs under its date.
func (a *Answer) File(dated bool) (f snapshots.File, objects []snapshots.Object) {
	f = snapshots.File{Product: a.Product.Name, Edition: a.Edition, Build: Build(), Summary: a.summary, Current: true, Dated: dated}
	for _, d := range a.Inputs.Documents {
		f.Inputs = append(f.Inputs, d.StoredInput)
		objects = append(objects, snapshots.Object{SHA256: d.SHA256, Body: d.Body, Gzip: d.Gzip})
	}
	if a.storedVariant != "" {
		f.Edition, f.Served = &snapshots.Edition{Default: a.Edition.Variants[a.storedVariant]}, a.Edition
	}
	return f, objects
}

// Stored returns the variants that the file stores, by parameter value, which is "" when the file stores one value.
func (a *Answer) Stored() map[string]*Variant {
	if a.storedVariant != "" {
		return map[string]*Variant{"": a.variants[a.storedVariant]}
	}
	return a.variants
}

// Build returns the Go version and the architecture, such as "go1.26.0 amd64". The last digits of numbers may depend on both.
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
	if len(a.variants)+len(a.cuts) != len(served) || e.Default != served[a.byDefault] {
		return false
	}
	for name, v := range a.variants {
		if s := served[name]; s == nil || !bytes.Equal(v.JSON, s.Data()) || OtherForms(s, v.Forms) != nil {
			return false
		}
	}
	return true
}

// VariantsOf returns the snapshots of an edition by the names that [Answer.variants] has.
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
