package refresh_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// quoted are the resources that rest on quotes: their newest date is today's, that of the others the date of the newest settlements.
var quoted = slices.DeleteFunc(refresh.Resources(underlyings), ofSettlements)

func ofSettlements(name string) bool { return strings.HasPrefix(name, product.VIXResource) }

// The same input gives the same bytes. Recompute reproduces days with everything that changes the numbers: back-filled sessions,
// refreshes that rest on the one before, volatilities of the session before, a restart. A back-fill gives each closed date its curve, the
// newest after the others, and all are rows of the series.
func TestStoredDaysAreRecomputed(t *testing.T) {
	long(t)
	dir, other := t.TempDir(), t.TempDir()
	for _, dir := range []string{dir, other} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, dir, "2026-11-20 10:00", history(3))
			r.run(82 * time.Second) // not at an instant when a job is due
		})
	}
	files := tree(t, dir)
	if !maps.EqualFunc(files, tree(t, other), bytes.Equal) || len(files) < 9 {
		t.Errorf("the files of two runs differ: %q and %q", slices.Sorted(maps.Keys(files)), slices.Sorted(maps.Keys(tree(t, other))))
	}
	if back := files["/simulated/2026-11-19/gex-spx"]; !bytes.Contains(back, []byte(`"changes":{"reference_as_of":"2026-11-18T21:14:59Z"`)) {
		t.Errorf("the second back-filled session does not say what changed since the first: %.300s", back)
	}
	synctest.Test(t, func(t *testing.T) {
		restarted := newRig(t, dir, "2026-11-20 10:05").restored()
		restarted.once()
		identical(t, dir, "2026-11-20", quoted...)
		dates := []string{"2026-11-17", "2026-11-18", "2026-11-19"}
		for i, date := range dates {
			stored := []string{"gex/spx", "gex/spx/intraday", "gex/spx/strikes", "gex/xlf", "volatility/spx", "volatility/xlf", "spx-max-pain", "xlf-max-pain", "options/flow/spx", "options/flow/xlf", product.FlowResource, product.SectorsResource, product.VIXResource}
			identical(t, dir, date, stored...)
			curve, err := restarted.store.Historical(product.VIXResource, date)
			must(t, err)
			data := string(curve.Default.Data())
			for _, want := range []string{`"settlement_date":"` + date, `"stale_sessions":0,`, `"vvix":{`, `"as_of":"` + date + `T21:14:59Z"`} {
				if !strings.Contains(data, want) {
					t.Errorf("%s: want %s in %s", date, want, data)
				}
			}
			if _, change, _ := strings.Cut(data, `"change":`); strings.HasPrefix(change, "null") != (i == 0) {
				t.Errorf("%s: change %.10s", date, change)
			}
		}
		for resource, want := range map[string][]string{product.VIXResource: dates, product.SectorsResource: append(slices.Clone(dates), "2026-11-20")} {
			if got := restarted.store.DatesOf(resource); !slices.Equal(got, want) {
				t.Errorf("stored dates of %s: %v", resource, got)
			}
		}
		if data := restarted.store.Current(product.VIXSeriesResource).Default.Data(); !bytes.Contains(data, []byte(`"rows":[["2026-11-17",`)) || bytes.Count(data, []byte("],[")) != 2 {
			t.Errorf("rows of the curves %s", data)
		}
	})
	for product, rests := range map[string]bool{
		"the session before":            inputOf(t, dir, product.GammaResource, "2026-11-20", "previous/options/_SPX.json") != "",
		"volatilities of SPX":           inputOf(t, dir, "options/flow/spx", "2026-11-20", "previous/options/_SPX.json") != "",
		"volatilities of another chain": inputOf(t, dir, "options/flow/xlf", "2026-11-20", "previous/options/XLF.json") != "",
		"earlier sessions":              strings.Contains(inputOf(t, dir, "volatility/spx", "2026-11-20", "state/volatility-history"), `{"session":"2026-11-19","close":`),
		"settlements of the day before": strings.Contains(inputOf(t, dir, product.VIXResource, "2026-11-19", "state/vix-history"), `"settlements":{"VX`),
	} {
		if !rests {
			t.Errorf("nothing rests on %s: the test shows too little", product)
		}
	}
}

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
