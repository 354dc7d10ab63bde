package refresh_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"

	"strikecache/refresh"
	"strikecache/refresh/product"
	"strikecache/refresh/simulated"
	"strikecache/snapshots"
)

// rareVariant says whether an answer is one that clients seldom ask for: a limit of the flow, or an expiration of max pain.
func rareVariant(resource string, s *snapshots.Snapshot, e *snapshots.Edition) bool {
	whole := e.Variants["100"]
	return s != e.Default && (whole == nil || s.Meta.Receipt.DataSHA256 != whole.Meta.Receipt.DataSHA256) && (strings.HasSuffix(resource, "-max-pain") || strings.HasPrefix(resource, "options/flow/"))
}

// Every form of every answer is made of the JSON beside it, in its codings: when it is refreshed and restored. An answer that was
// stored without its forms gets them with the next document, although its data is the same. Rare answers have no form, and gzip alone.
func TestFormsHaveTheValuesOfTheJSON(t *testing.T) {
	long(t)
	synctest.Test(t, func(t *testing.T) {
		allStrikes := func(c *refresh.Config) { // else the flow has too few rows
			m := c.Source.Source.(*faultyMarket)
			m.cfg.Every = 1
			m.Market = simulated.New(m.cfg)
		}
		r := newRig(t, t.TempDir(), "2026-11-20 11:00", allStrikes)
		check := func(when string) {
			t.Helper()
			forms, rare := 0, map[string]int{}
			for _, resource := range r.Resources() {
				e := r.store.Current(resource)
				for name, s := range product.VariantsOf(e) {
					if rareVariant(resource, s, e) {
						if rare[resource]++; s.Has(snapshots.Brotli) || s.Has(snapshots.Zstd) || s.Form("csv") != nil {
							t.Errorf("%s: %s %s is sealed as if it were often asked for", when, resource, name)
						}
						continue
					}
					for _, f := range product.Named(resource).Forms {
						form := s.Form(f.Name)
						if form == nil || form.ContentType != f.ContentType {
							t.Fatalf("%s: %s has no %s", when, resource, f.Name)
						}
						forms++
						if want, err := f.Render(s.Data()); err != nil || !bytes.Equal(form.Body(snapshots.Identity), want) || !form.Has(snapshots.Gzip) {
							t.Errorf("%s: %s: the %s is not that of the JSON: %v", when, resource, f.Name, err)
						}
					}
				}
			}
			if forms < 6*len(underlyings) || rare[product.FlowResource] == 0 || rare[product.PainResource] == 0 {
				t.Errorf("%s: only %d forms, rare answers %v", when, forms, rare)
			}
		}
		r.once()
		check("fresh")
		f, err := r.store.LoadCurrent(product.SeriesResource) // as a version without forms has stored it
		must(t, err)
		f.Edition.Default, err = f.Edition.Default.WithForms()
		f.Current = true
		must(t, err, r.store.Save([]snapshots.File{f}, nil))
		r = r.again("2026-11-20 11:31", allStrikes).restored()
		if r.store.Current(product.SeriesResource).Default.Form("csv") != nil {
			t.Fatal("the stored answer has the form: the test shows nothing")
		}
		r.once()
		check("computed again")
	})
}
