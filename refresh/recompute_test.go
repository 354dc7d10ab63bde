package refresh_test

import (
	"bytes"
	"strings"
	"testing"

	"strikecache/compute"
	"strikecache/refresh"
	"strikecache/refresh/product"
	"strikecache/snapshots"
)

// recomputeAll recomputes every stored product of a date.
func recomputeAll(t testing.TB, dir, date string) map[string]*refresh.Finding {
	t.Helper()
	found := map[string]*refresh.Finding{}
	names, err := snapshots.FileNames(dir, "simulated", date)
	must(t, err)
	for _, name := range names {
		f, err := refresh.Recompute(dir, "simulated", date, name)
		if err != nil {
			t.Fatalf("%s of %s: %v", name, date, err)
		}
		found[f.Product] = f
	}
	return found
}

// identical recomputes a date and fails the test unless these products are stored and identical.
func identical(t testing.TB, dir, date string, products ...string) {
	t.Helper()
	found := recomputeAll(t, dir, date)
	for _, product := range products {
		f := found[product]
		switch {
		case f == nil:
			t.Errorf("%s of %s is not stored", product, date)
		case f.Verdict != "identical":
			t.Errorf("%s of %s: %s%s: %q", product, date, f.Verdict, f.Summary, f.Details[:min(5, len(f.Details))])
		}
	}
	if len(found) != len(products) {
		t.Errorf("%s: %d products are stored, want %q", date, len(found), products)
	}
}

// inputOf returns the bytes of an input, "" when the file does not name it.
func inputOf(t testing.TB, dir, product, date, name string) string {
	t.Helper()
	f, err := snapshots.ReadFile(dir, "simulated", product, date)
	must(t, err)
	for _, in := range f.Inputs {
		if in.Name == name {
			body, err := snapshots.ReadObject(dir, "simulated", in.SHA256)
			must(t, err)
			return string(body)
		}
	}
	return ""
}

func ofSettlements(name string) bool { return strings.HasPrefix(name, product.VIXResource) }

// changed stores an answer with other data, sealed as if it were genuine.
func changed(t testing.TB, r *rig, product, date string, change func(data string, meta *snapshots.Meta) string) {
	t.Helper()
	f, err := r.store.Load(product, date)
	must(t, err)
	meta := f.Edition.Default.Meta
	data := change(string(f.Edition.Default.Data()), &meta)
	s, err := snapshots.Seal([]byte(data), meta, snapshots.Brotli, snapshots.Zstd)
	must(t, err)
	edition := &snapshots.Edition{Default: s}
	for name, v := range f.Edition.Variants {
		if edition.Variants == nil {
			edition.Variants = map[string]*snapshots.Snapshot{}
		}
		if edition.Variants[name] = v; v == f.Edition.Default {
			edition.Variants[name] = s
		}
	}
	f.Edition, f.Dated = edition, true
	for i, in := range meta.Receipt.Inputs {
		f.Inputs[i].Input = in
	}
	f.Inputs = f.Inputs[:len(meta.Receipt.Inputs)]
	must(t, r.store.Save([]snapshots.File{f}, nil))
}

func TestWhatDiffersIsShownFieldByField(t *testing.T) {
	long(t)
	const date = "2026-11-20"
	play(t, "2026-11-20 11:00", func(t *testing.T, r *rig) {
		r.once()
		replace := func(old, new string) func(string, *snapshots.Meta) string {
			return func(data string, _ *snapshots.Meta) string {
				if !strings.Contains(data, old) {
					t.Fatalf("no %s in %.300s", old, data)
				}
				return strings.Replace(data, old, new, 1)
			}
		}
		changed(t, r, product.GammaResource, date, replace(`"contracts_analyzed":`, `"contracts_analyzed":1`))
		changed(t, r, product.PainResource, date, replace(`"by_settlement":{"am":`, `"by_settlement":{"bm":`))
		changed(t, r, product.FlowResource, date, func(data string, meta *snapshots.Meta) string {
			meta.Receipt.Method = "flow/0"
			return data
		})
		changed(t, r, product.SectorsResource, date, func(data string, meta *snapshots.Meta) string {
			meta.Quality = bytes.Replace(meta.Quality, []byte(`"history_rows":`), []byte(`"history_rows":9`), 1)
			return data
		})
		changed(t, r, "gex/spx/levels", date, func(data string, _ *snapshots.Meta) string { return data }) // sealed without its forms
		changed(t, r, "gex/xlf", date, func(data string, meta *snapshots.Meta) string {                    // the store has the inputs of another answer
			meta.Receipt.Inputs = []snapshots.Input{{Name: string(xlfDocument), SHA256: strings.Repeat("0", 64)}}
			return data
		})
		found := recomputeAll(t, r.dir, date)
		for product, want := range map[string][]string{
			"gex/spx/levels":        {"differs", "csv: stored other bytes or none", "line: stored other bytes or none"},
			product.GammaResource:   {"differs", "data.contracts_analyzed: stored 1"},
			product.FlowResource:    {"method_changed"},
			product.SectorsResource: {"differs", "meta.quality.funds[0].history_rows: stored 9", "csv: stored other bytes or none"},
			product.PainResource:    {"differs", ": data.by_settlement.am: stored absent, recomputed", ", recomputed absent"},
			product.MatrixResource:  {"identical"},
			"gex/xlf":               {"inputs_gone", strings.Repeat("0", 64)},
		} {
			f := found[product]
			if f.Verdict != want[0] || len(f.Details) != len(want)-1 {
				t.Errorf("%s: %s, %q; want %q", product, f.Verdict, f.Details, want)
				continue
			}
			for i, part := range want[1:] {
				if !strings.Contains(f.Details[i], part) {
					t.Errorf("%s: %s, want %s", product, f.Details[i], part)
				}
			}
		}
		if f := found[product.FlowResource]; f.Summary != ": stored by flow/0, which it keeps, and this version has "+compute.FlowMethod {
			t.Errorf("method changed%s", f.Summary)
		}
	})
}
