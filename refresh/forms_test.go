package refresh_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/refresh"
	"strikecache/snapshots"
)

// jsonRows returns the rows that the CSV of data must have, the header row first. It knows nothing of how the CSV is made.
func jsonRows(t *testing.T, resource string, data []byte) (rows [][]string) {
	t.Helper()
	var all map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&all); err != nil {
		t.Fatal(err)
	}
	row := func(values ...any) {
		var texts []string
		for _, v := range values {
			texts = append(texts, plain(v))
		}
		rows = append(rows, texts)
	}
	list := func(v any) []any { return v.([]any) }
	object := func(v any) map[string]any { return v.(map[string]any) }
	switch {
	case all["columns"] != nil:
		row(list(all["columns"])...)
		for _, values := range list(all["rows"]) {
			row(list(values)...)
		}
	case strings.HasSuffix(resource, "/matrix"):
		row("strike", "expiration", "settlement", "net_gex_dollars")
		for i, cells := range list(all["net_gex_dollars"]) {
			for j, cell := range list(cells) {
				e := object(list(all["expirations"])[j])
				row(object(list(all["strikes"])[i])["strike"], e["expiration"], e["settlement"], cell)
			}
		}
	case strings.HasSuffix(resource, "/levels"):
		row("name", "label", "price", "distance_pct")
		for _, level := range list(all["levels"]) {
			l := object(level)
			row(l["name"], l["label"], l["price"], l["distance_pct"])
		}
	default:
		var names []any
		for _, item := range list(all["items"]) {
			fields := object(item)
			for name, value := range object(fields["components"]) {
				fields["components_"+name] = value
			}
			delete(fields, "components")
			if names == nil { // the order of the columns is that of the CSV, see below
				for _, name := range slices.Sorted(maps.Keys(fields)) {
					names = append(names, name)
				}
				row(names...)
			}
			var values []any
			for _, name := range names {
				values = append(values, fields[name.(string)])
			}
			row(values...)
		}
	}
	return rows
}

func plain(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case []any:
		var texts []string
		for _, x := range v {
			texts = append(texts, plain(x))
		}
		return strings.Join(texts, "; ") // the values have spaces: "VOL_OI 52.8x"
	}
	return fmt.Sprint(v)
}

// sortedColumns returns rows with the columns in the order of their names.
func sortedColumns(rows [][]string) (sorted [][]string) {
	order := make([]int, len(rows[0]))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(rows[0][a], rows[0][b]) })
	for _, row := range rows {
		var out []string
		for _, i := range order {
			out = append(out, row[i])
		}
		sorted = append(sorted, out)
	}
	return sorted
}

// checkForms compares the forms of an answer with its JSON, value by value.
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
		body, want := string(form.Body(snapshots.Identity)), jsonRows(t, resource, s.Data())
		if f.Name == "line" {
			checkLine(t, resource, body, want[1:])
			continue
		}
		if !strings.HasSuffix(body, "\r\n") || strings.Count(body, "\n") != strings.Count(body, "\r\n") || strings.HasSuffix(body, ",\r\n") && want[len(want)-1][len(want[0])-1] != "" {
			t.Errorf("%s: the CSV ends with %q", resource, body[max(0, len(body)-40):])
		}
		got, err := csv.NewReader(strings.NewReader(body)).ReadAll() // all rows must have as many fields
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(resource, "options/") {
			if first := []string{"id", "symbol", "contract", "option_type", "strike"}; !slices.Equal(got[0][:5], first) {
				t.Errorf("the columns of the flow begin with %q", got[0][:5])
			}
			got = sortedColumns(got)
		}
		if !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%s: %d rows of CSV, %d of JSON:\n%.300q\n%.300q", resource, len(got), len(want), got, want)
		}
		rows += len(got) - 1
	}
	return rows
}

// checkLine reads the line as chart scripts do: what is before the colon names the symbol, and between commas labels and prices
// alternate.
func checkLine(t *testing.T, resource, line string, levels [][]string) {
	t.Helper()
	parts := strings.Split(line, ":")
	if symbol := strings.Split(resource, "/")[1]; len(parts) != 2 || parts[0] != "$"+strings.ToUpper(symbol) || strings.ContainsAny(line, "\r\n\"") {
		t.Fatalf("%s: %q", resource, line)
	}
	fields := strings.Split(strings.TrimSpace(parts[1]), ", ")
	if len(fields) != 2*len(levels) {
		t.Fatalf("%s: %d levels in %q", resource, len(levels), line)
	}
	for i, level := range levels {
		label, price := fields[2*i], fields[2*i+1]
		if x, err := strconv.ParseFloat(price, 64); label != level[1] || price != level[2] || err != nil || x <= 0 {
			t.Errorf("%s: %s at %s is %q", resource, label, price, level)
		}
	}
}

// Every form of every resource has the values of the JSON: when it is refreshed, of each date and limit, when it is stale, and when a
// start restores and computes it again.
func TestFormsHaveTheValuesOfTheJSON(t *testing.T) {
	long(t)
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := newRig(t, dir, "2026-11-20 11:00")
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
		time.Sleep(5 * time.Minute)
		refresh.RunJob(r.Refresher, t.Context(), "spx") // the track gets a second row
		time.Sleep(7 * time.Hour)
		refresh.RunJob(r.Refresher, t.Context(), "freshness")
		if r.meta(refresh.TrackResource).Freshness.State != "closed" {
			t.Fatal("the session is not over: the test shows nothing")
		}
		check("closed")
		r.close()
		r = newRig(t, dir, "2026-11-20 18:30")
		defer r.close()
		if err := r.Restore(); err != nil {
			t.Fatal(err)
		}
		check("restored")
		if err := r.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		check("computed again")
	})
}

// An answer that was stored without its forms gets them at a start, although its data is the same.
func TestAStartAddsForms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := newRig(t, dir, "2026-11-20 11:00")
		r.once()
		f, err := r.store.LoadCurrent(refresh.SeriesResource)
		if err != nil {
			t.Fatal(err)
		}
		if f.Edition.Default, err = f.Edition.Default.WithForms(); err != nil {
			t.Fatal(err)
		}
		f.Current = true
		if err := r.store.Save([]snapshots.File{f}, nil); err != nil {
			t.Fatal(err)
		}
		r.close()
		r = newRig(t, dir, "2026-11-20 11:01")
		defer r.close()
		if err := r.Restore(); err != nil {
			t.Fatal(err)
		}
		if r.store.Current(refresh.SeriesResource).Default.Form("csv") != nil {
			t.Fatal("the stored answer has the form: the test shows nothing")
		}
		if err := r.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r.store.Current(refresh.SeriesResource).Default.Form("csv") == nil {
			t.Error("the answer has no CSV")
		}
	})
}

// Odd values: names with commas, quotes and line ends, null, absent fields, lists, nested objects, no rows.
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
