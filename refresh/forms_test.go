package refresh_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/refresh"
	"strikecache/snapshots"
)

// checkForms checks that the forms of an answer are those of its JSON, in its codings, and returns how many rows its CSV has.
func checkForms(t *testing.T, resource string, s *snapshots.Snapshot, forms []refresh.Form) (rows int) {
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
		whole := s == e.Default || !strings.HasSuffix(resource, "-max-pain") && resource != refresh.FlowResource || resource == refresh.FlowResource && name == "100"
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
			for pattern, shape := range refresh.Shapes() {
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
			if rare := checkCodings(r, resource); rare == 0 && (resource == refresh.FlowResource || resource == refresh.PainResource) {
				t.Errorf("%s has no rare answers: the test shows too little", resource)
			}
		}
		time.Sleep(5 * time.Minute)
		refresh.RunJob(r.Refresher, t.Context(), "spx") // the track gets a second row
		time.Sleep(7 * time.Hour)
		must(t, refresh.Reseal(r.Refresher))
		if r.meta(refresh.TrackResource).Freshness.State != "closed" {
			t.Fatal("the session is not over: the test shows nothing")
		}
		check("closed")
		r = r.again("2026-11-20 18:30", allStrikes)
		must(t, r.Restore())
		check("restored")
		f, err := r.store.LoadCurrent(refresh.SeriesResource) // as a version without forms has stored it
		must(t, err)
		f.Edition.Default, err = f.Edition.Default.WithForms()
		f.Current = true
		must(t, err, r.store.Save([]snapshots.File{f}, nil))
		r = r.again("2026-11-20 18:31", allStrikes)
		must(t, r.Restore())
		if r.store.Current(refresh.SeriesResource).Default.Form("csv") != nil {
			t.Fatal("the stored answer has the form: the test shows nothing")
		}
		must(t, r.Resume(t.Context()))
		check("computed again")
	})
}

// The values of every kind of form, and odd ones: names with commas, quotes and line ends, null, absent fields, lists, nested objects, no rows.
func TestOddForms(t *testing.T) {
	shapes := refresh.Shapes()
	render := func(pattern, name, data string) (string, error) {
		for _, f := range shapes[pattern].Forms {
			if f.Name == name {
				body, err := f.Render([]byte(data))
				return string(body), err
			}
		}
		return "", fmt.Errorf("%s has no %s", pattern, name)
	}
	for _, x := range []struct{ pattern, form, data, want string }{
		{"gex/{u}/series", "csv", `{"columns":["a","b"],"rows":[]}`, "a,b\r\n"},
		{"gex/{u}/series", "csv", `{"columns":["a","b,\"c\""],"rows":[["x,\"y\"\nz\u00e9",null],[true,-1.50e3],[["u","v"],""]]}`, "a,\"b,\"\"c\"\"\"\r\n\"x,\"\"y\"\"\r\nz\u00e9\",\r\ntrue,-1.50e3\r\nu; v,\r\n"},
		{"gex/{u}/levels", "csv", `{"symbol":"SPX","levels":[]}`, "name,label,price,distance_pct\r\n"},
		{"gex/{u}/levels", "csv", `{"levels":[{"price":1.5,"name":"n","more":{},"distance_pct":null}]}`, "name,label,price,distance_pct\r\nn,,1.5,\r\n"},
		{"gex/{u}/levels", "line", `{"symbol":"SPX","levels":[]}`, "$SPX: "},
		{"gex/{u}/levels", "line", `{"symbol":"XLE","levels":[{"label":"A B","price":45},{"label":"C","price":44.25}]}`, "$XLE: A B, 45, C, 44.25"},
		{"gex/{u}/matrix", "csv", `{"strikes":[],"expirations":[],"net_gex_dollars":[]}`, "strike,expiration,settlement,net_gex_dollars\r\n"},
		{"gex/{u}/matrix", "csv", `{"strikes":[{"strike":50}],"expirations":[{"expiration":"2026-11-20","settlement":"am"},{"expiration":"2026-11-20","settlement":"pm"}],"net_gex_dollars":[[null,-7]]}`, "strike,expiration,settlement,net_gex_dollars\r\n50,2026-11-20,am,\r\n50,2026-11-20,pm,-7\r\n"},
		{"options/flow/unusual", "csv", `{"count":1,"items":[{"reasons":["VOL_OI 52.8x","NEW"],"id":"i","symbol":"XLF","contract":"XLF261218C00050000","option_type":"call",` +
			`"strike":50,"expiration":"2026-12-18","days_to_expiration":28,"score":61.5,"band":"high","volume":900,"open_interest":0,"volume_oi_ratio":null,"premium":45000,` +
			`"premium_basis":"mid","last_price":0.5,"bid":null,"ask":0.55,"implied_volatility":0.2,"iv_change":-1.84,"delta":0.5,"moneyness_pct":1.5,"underlying_price":49.26,` +
			`"side":"ask","direction":"bullish","direction_confidence":0.6,"direction_basis":"b","opening_likely":true,"observed_at":"2026-11-20T15:44:52Z",` +
			`"components":{"volume_oi":1,"premium":2,"size_surprise":3,"quote_location":4,"iv_change":null},"quality":[],"other":1}]}`,
			"id,symbol,contract,option_type,strike,expiration,days_to_expiration,score,band,volume,open_interest,volume_oi_ratio,premium,premium_basis,last_price,bid,ask," +
				"implied_volatility,iv_change,delta,moneyness_pct,underlying_price,side,direction,direction_confidence,direction_basis,opening_likely,observed_at," +
				"components_volume_oi,components_premium,components_size_surprise,components_quote_location,components_iv_change,quality,reasons\r\n" +
				"i,XLF,XLF261218C00050000,call,50,2026-12-18,28,61.5,high,900,0,,45000,mid,0.5,,0.55,0.2,-1.84,0.5,1.5,49.26,ask,bullish,0.6,b,true,2026-11-20T15:44:52Z,1,2,3,4,,,VOL_OI 52.8x; NEW\r\n"},
	} {
		if got, err := render(x.pattern, x.form, x.data); err != nil || got != x.want {
			t.Errorf("%s: %q, %v, want %q", x.data, got, err, x.want)
		}
	}
	for _, data := range []string{``, `[]`, `{"columns":1}`, `{"columns":["a"],"rows":[1]}`} {
		if got, err := render("gex/{u}/series", "csv", data); err == nil {
			t.Errorf("%s gives %q", data, got)
		}
	}
	for pattern, shape := range shapes {
		for _, f := range shape.Forms {
			header, err := render(pattern, f.Name, `{"columns":["x"],"items":[],"levels":[],"rows":[]}`)
			columns := strings.Split(strings.TrimSpace(header), ",")
			slices.Sort(columns)
			if err != nil || len(slices.Compact(slices.Clone(columns))) != len(columns) || slices.Contains(columns, "") {
				t.Errorf("%s: %q, %v", pattern, columns, err)
			}
		}
	}
}
