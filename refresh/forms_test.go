package refresh_test

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/refresh"
	"strikecache/refresh/product"
	"strikecache/snapshots"
)

// checkForms checks that the forms of an answer are those of its JSON, in its codings, and returns how many rows its CSV has.
func checkForms(t *testing.T, resource string, s *snapshots.Snapshot, forms []product.Form) (rows int) {
	t.Helper()
	for _, f := range forms {
		form := s.Form(f.Name)
		if form == nil || form.ContentType != f.ContentType {
			t.Fatalf("%s has no %s", resource, f.Name)
		}
		for c := range snapshots.Codings {
			if form.Has(c) != s.Has(c) {
				t.Errorf("%s: %s is sealed in %v: %v", resource, f.Name, c, form.Has(c))
			}
		}
		body := form.Body(snapshots.Identity)
		if want, err := f.Render(s.Data()); err != nil || !bytes.Equal(body, want) {
			t.Errorf("%s: the %s is not that of the JSON, %v: %.300q", resource, f.Name, err, body)
		}
		if f.Name == "csv" {
			got, err := csv.NewReader(bytes.NewReader(body)).ReadAll() // all rows must have as many fields
			must(t, err)
			rows += len(got) - 1
		}
	}
	return rows
}

// checkCodings checks that every answer of a resource has every coding, except for the rare limits of flow and the rare expirations of max
// pain. It returns the number of these.
func checkCodings(r *rig, resource string) (rare int) {
	e := r.store.Current(resource)
	for name, s := range e.Variants {
		whole := s == e.Default || !strings.HasSuffix(resource, "-max-pain") && resource != product.FlowResource || resource == product.FlowResource && name == "100"
		if !whole {
			rare++
		}
		if !s.Has(snapshots.Gzip) || s.Has(snapshots.Brotli) != whole || s.Has(snapshots.Zstd) != whole {
			r.t.Errorf("%s/%s is sealed in br: %t, zstd: %t", resource, name, s.Has(snapshots.Brotli), s.Has(snapshots.Zstd))
		}
	}
	if s := e.Default; !s.Has(snapshots.Gzip) || !s.Has(snapshots.Brotli) || !s.Has(snapshots.Zstd) {
		r.t.Errorf("%s lacks a coding", resource)
	}
	return rare
}

// Every form of every resource is made of the JSON beside it: when it is refreshed, of each date and limit, when it is stale, and when a
// start restores and computes it again. An answer that was stored without its forms gets them at a start, although its data is the same.
func TestFormsHaveTheValuesOfTheJSON(t *testing.T) {
	long(t)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.TempDir(), "2026-11-20 11:00", allStrikes)
		check := func(when string) {
			t.Helper()
			checked, rows := 0, 0
			for pattern, shape := range product.Shapes() {
				for _, u := range underlyings {
					resource := strings.Replace(pattern, "{u}", strings.ToLower(u), 1)
					e := r.store.Current(resource)
					if len(shape.Forms) == 0 {
						if e.Default.Form("csv") != nil {
							t.Errorf("%s has a form", resource)
						}
						continue
					}
					answers := map[string]*snapshots.Snapshot{"": e.Default}
					for name, s := range e.Variants {
						if name == "20" || name == "100" { // others are rare
							answers[name] = s
						}
					}
					for _, date := range r.store.DatesOf(resource) {
						if s, err := r.store.Historical(resource, date); err == nil {
							answers[date] = s
						}
					}
					for _, s := range answers {
						if n := checkForms(t, resource, s, shape.Forms); n > 0 {
							checked++
							rows += n
						}
						if form := s.Form("csv"); !strings.Contains(form.Lines, "\r\nX-Freshness: "+s.Meta.Freshness.State) {
							t.Errorf("%s: %s of %+v", resource, form.Lines, s.Meta.Freshness)
						}
					}
				}
			}
			if checked < 4*len(underlyings) || rows < 900 {
				t.Errorf("%s: only %d answers with %d rows", when, checked, rows)
			}
		}
		r.once()
		check("fresh")
		for _, resource := range refresh.Resources(underlyings) {
			if rare := checkCodings(r, resource); rare == 0 && (resource == product.FlowResource || resource == product.PainResource) {
				t.Errorf("%s has no rare answers: the test shows too little", resource)
			}
		}
		time.Sleep(5 * time.Minute)
		refresh.RunJob(r.Refresher, t.Context(), "spx") // the track gets a second row
		time.Sleep(7 * time.Hour)
		must(t, refresh.Reseal(r.Refresher))
		if r.meta(product.TrackResource).Freshness.State != "closed" {
			t.Fatal("the session is not over: the test shows nothing")
		}
		check("closed")
		r = r.again("2026-11-20 18:30", allStrikes)
		must(t, r.Restore())
		check("restored")
		f, err := r.store.LoadCurrent(product.SeriesResource) // as a version without forms has stored it
		must(t, err)
		f.Edition.Default, err = f.Edition.Default.WithForms()
		f.Current = true
		must(t, err, r.store.Save([]snapshots.File{f}, nil))
		r = r.again("2026-11-20 18:31", allStrikes)
		must(t, r.Restore())
		if r.store.Current(product.SeriesResource).Default.Form("csv") != nil {
			t.Fatal("the stored answer has the form: the test shows nothing")
		}
		r.once()
		check("computed again")
	})
}
