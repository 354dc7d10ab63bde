package refresh_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/compute"
	"strikecache/refresh"

	"strikecache/refresh/folder"
	"strikecache/snapshots"
)

// recomputeAll recomputes every stored product of a date.
func recomputeAll(t testing.TB, dir, date string) map[string]*refresh.Finding {
	t.Helper()
	found := map[string]*refresh.Finding{}
	names, err := snapshots.FileNames(dir, "simulated", date)
	if err != nil {
		t.Fatal(err)
	}
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

// storedOf returns the file of a date.
func storedOf(t testing.TB, dir, product, date string) snapshots.File {
	t.Helper()
	f, err := snapshots.ReadFile(dir, "simulated", product, date)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// inputOf returns the bytes of an input, "" when the file does not name it.
func inputOf(t testing.TB, dir, product, date, name string) string {
	t.Helper()
	for _, in := range storedOf(t, dir, product, date).Inputs {
		if in.Name == name {
			body, err := snapshots.ReadObject(dir, "simulated", in.SHA256)
			if err != nil {
				t.Fatal(err)
			}
			return string(body)
		}
	}
	return ""
}

// quoted are the resources that rest on quotes: their newest date is today's, that of the others the date of the newest settlements.
var quoted = slices.DeleteFunc(refresh.Resources(underlyings), ofSettlements)

func ofSettlements(name string) bool { return strings.HasPrefix(name, refresh.VIXResource) }

// The same input gives the same bytes. Recompute reproduces days with everything that changes the numbers: back-filled sessions,
// refreshes that rest on the one before, volatilities of the session before, a restart.
func TestStoredDaysAreRecomputed(t *testing.T) {
	long(t)
	dir, other := t.TempDir(), t.TempDir()
	for _, dir := range []string{dir, other} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, dir, "2026-11-20 10:00", func(c *refresh.Config) {
				c.Past, c.BackfillSessions = c.Source.(refresh.PastSource), 2
			})
			defer r.close()
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
		defer restarted.close()
		restarted.once()
		identical(t, dir, "2026-11-20", quoted...)
		for _, date := range []string{"2026-11-18", "2026-11-19"} {
			stored := []string{refresh.GammaResource, "gex/xlf", "volatility/spx", "volatility/xlf", refresh.FlowResource, refresh.SectorsResource, refresh.VIXResource}
			if date == "2026-11-19" { // of the newest settlements
				stored = append(stored, refresh.VIXSeriesResource)
			}
			identical(t, dir, date, stored...)
		}
	})
	for product, rests := range map[string]bool{
		"the session before":            inputOf(t, dir, refresh.GammaResource, "2026-11-20", "previous/options/_SPX.json") != "",
		"volatilities of SPX":           inputOf(t, dir, refresh.FlowResource, "2026-11-20", "previous/options/_SPX.json") != "",
		"volatilities of another chain": inputOf(t, dir, refresh.FlowResource, "2026-11-20", "previous/options/XLF.json") != "",
		"earlier sessions":              strings.Contains(inputOf(t, dir, "volatility/spx", "2026-11-20", "state/volatility-history"), `{"session":"2026-11-19","close":`),
		"settlements of the day before": strings.Contains(inputOf(t, dir, refresh.VIXResource, "2026-11-19", "state/vix-history"), `"settlements":{"VX`),
	} {
		if !rests {
			t.Errorf("nothing rests on %s: the test shows too little", product)
		}
	}
}

// A replay of the recorded folder serves the resources that it has documents for, and they are computed again.
func TestRecordedDaysAreRecomputed(t *testing.T) {
	long(t)
	source, err := folder.NewRecorded(recorded(t, "replay"))
	if err != nil {
		t.Fatal(err)
	}
	if want := time.Date(2026, 10, 6, 17, 56, 38, 0, time.UTC); !source.Now().Equal(want) {
		t.Errorf("it is %v, want %v, the newest captured_at", source.Now(), want)
	}
	dir := t.TempDir()
	r := newRig(t, dir, "2026-11-20 11:00", func(c *refresh.Config) {
		c.Source, c.Clock, c.Underlyings = source, refresh.NewClock(source.Now(), 0), []string{"SPX"}
	})
	defer r.close()
	r.once()
	var g struct{ Spot float64 }
	if r.data(refresh.GammaResource, &g); g.Spot != 7728.20 {
		t.Errorf("spot %v", g.Spot)
	}
	offered := r.Offers()
	if _, ok := offered[refresh.SectorsResource]; ok || !offered[refresh.VIXResource] {
		t.Errorf("offered %v: a folder without price history feeds no sector rotation", offered)
	}
	identical(t, dir, "2026-08-11", slices.DeleteFunc(slices.Clone(quoted), func(name string) bool { return name == refresh.SectorsResource || strings.Contains(name, "xlf") })...)
	identical(t, dir, "2026-10-05", refresh.VIXResource, refresh.VIXSeriesResource)
}

// changed stores an answer with other data, sealed as if it were genuine.
func changed(t testing.TB, r *rig, product, date string, change func(data string, meta *snapshots.Meta) string) {
	t.Helper()
	f, err := r.store.Load(product, date)
	if err != nil {
		t.Fatal(err)
	}
	meta := f.Edition.Default.Meta
	data := change(string(f.Edition.Default.Data()), &meta)
	s, err := snapshots.Seal([]byte(data), meta)
	if err != nil {
		t.Fatal(err)
	}
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
	if err := r.store.Save([]snapshots.File{f}, nil); err != nil {
		t.Fatal(err)
	}
}

func TestWhatDiffersIsShownFieldByField(t *testing.T) {
	long(t)
	const date = "2026-11-20"
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := newRig(t, dir, "2026-11-20 11:00")
		defer r.close()
		r.once()
		replace := func(old, new string) func(string, *snapshots.Meta) string {
			return func(data string, _ *snapshots.Meta) string {
				if !strings.Contains(data, old) {
					t.Fatalf("no %s in %.300s", old, data)
				}
				return strings.Replace(data, old, new, 1)
			}
		}
		changed(t, r, refresh.GammaResource, date, replace(`"contracts_analyzed":`, `"contracts_analyzed":1`))
		changed(t, r, refresh.PainResource, date, replace(`"by_settlement":{"am":`, `"by_settlement":{"bm":`))
		changed(t, r, refresh.FlowResource, date, func(data string, meta *snapshots.Meta) string {
			meta.Receipt.Method = "flow/0"
			return data
		})
		changed(t, r, refresh.SectorsResource, date, func(data string, meta *snapshots.Meta) string {
			meta.Quality = bytes.Replace(meta.Quality, []byte(`"history_rows":`), []byte(`"history_rows":9`), 1)
			return data
		})
		changed(t, r, "gex/spx/levels", date, func(data string, _ *snapshots.Meta) string { return data }) // sealed without its forms
		found := recomputeAll(t, dir, date)
		for product, want := range map[string][]string{
			"gex/spx/levels":        {"differs", "csv: stored other bytes or none", "line: stored other bytes or none"},
			refresh.GammaResource:   {"differs", "data.contracts_analyzed: stored 1"},
			refresh.FlowResource:    {"method_changed"},
			refresh.SectorsResource: {"differs", "meta.quality.funds[0].history_rows: stored 9"},
			refresh.PainResource:    {"differs", ": data.by_settlement.am: stored absent, recomputed", ", recomputed absent"},
			refresh.MatrixResource:  {"identical"},
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
		if f := found[refresh.FlowResource]; f.Summary != ": stored by flow/0, this version has "+compute.FlowMethod {
			t.Errorf("method changed%s", f.Summary)
		}
	})
}

// An input that is missing or altered is named. All inputs are named when the store has those of another answer.
func TestGoneInputsAreNamed(t *testing.T) {
	long(t)
	const date = "2026-11-20"
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := newRig(t, dir, "2026-11-20 11:00")
		defer r.close()
		r.once()
		recipe := storedOf(t, dir, refresh.SectorsResource, date)
		in := filepath.Join(dir, "simulated", "objects")
		if err := os.Remove(filepath.Join(in, recipe.Inputs[3].SHA256+".gz")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(in, recipe.Inputs[5].SHA256+".gz"), []byte("other"), 0o600); err != nil {
			t.Fatal(err)
		}
		gone := recomputeAll(t, dir, date)[refresh.SectorsResource]
		if gone.Verdict != "inputs_gone" || len(gone.Details) != 2 || !strings.HasPrefix(gone.Details[0], recipe.Inputs[3].SHA256) ||
			!strings.Contains(gone.Details[0], snapshots.ErrGone.Error()) || !strings.Contains(gone.Details[1], recipe.Inputs[5].Name) ||
			!strings.Contains(gone.Details[1], snapshots.ErrTorn.Error()) {
			t.Errorf("gone: %q", gone)
		}
		changed(t, r, refresh.GammaResource, date, func(data string, meta *snapshots.Meta) string {
			meta.Receipt.Inputs = []snapshots.Input{{Name: "options/_SPX.json", SHA256: strings.Repeat("0", 64)}}
			return data
		})
		if gone := recomputeAll(t, dir, date)[refresh.GammaResource].Details; len(gone) != 1 || !strings.HasPrefix(gone[0], strings.Repeat("0", 64)) {
			t.Errorf("inputs of another answer: %q", gone)
		}
	})
}
