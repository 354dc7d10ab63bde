package refresh_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"strikecache/refresh"
	"strikecache/refresh/levels"
)

const levelsHeader = "date,symbol,spot,net_gex_dollars,zero_gamma_flip,call_wall,put_wall,vol_trigger,abs_gamma_strike,gamma_regime,oi_settle_date,contracts_analyzed\n"

// importDates imports a row of each date into a directory that no store has open.
func importDates(t *testing.T, dir string, dates ...string) {
	t.Helper()
	text := levelsHeader
	for _, date := range dates {
		text += date + ",SPX,5900.5,,,,,,,,,7\n"
	}
	c := levels.ImportCommand{File: "-", DataDir: dir, Source: "simulated"}
	if err := c.Run(context.Background(), levels.Streams{In: strings.NewReader(text), Out: io.Discard, Err: io.Discard}); err != nil {
		t.Fatal(err)
	}
}

// sources returns the source of each row of the series, by date.
func (r *rig) sources() map[string]string {
	r.t.Helper()
	var series struct{ Rows [][]any }
	r.data(refresh.SeriesResource, &series)
	out := map[string]string{}
	last := ""
	for _, row := range series.Rows {
		date := row[0].(string)
		if date <= last || len(row) != 13 {
			r.t.Errorf("row %v after %s", row, last)
		}
		out[date], last = row[12].(string), date
	}
	return out
}

func (r *rig) historicalSource(date string) string {
	r.t.Helper()
	s, err := r.store.Historical(refresh.GammaResource, date)
	if err != nil {
		r.t.Fatalf("historical of %q: %v", date, err)
	}
	return s.Meta.Source
}

// Imported dates are in the history and the series. The current answer stays the newest answer of the source itself, even
// if it is older.
func TestAnImportIsNeverCurrent(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, dir, "2024-11-20 11:00")
	r.once()
	own := r.meta(refresh.GammaResource).AsOf
	r.close()
	importDates(t, dir, "2024-11-18", "2024-11-21", "2024-11-22")

	r = newRig(t, dir, "2024-11-25 11:00")
	defer r.close()
	if err := r.Restore(); err != nil {
		t.Fatal(err)
	}
	if m := r.meta(refresh.GammaResource); m.Source != "simulated" || !m.AsOf.Equal(own) {
		t.Errorf("restored %s of %s", m.Source, m.AsOf)
	}
	if m := r.meta(refresh.SeriesResource); m.Source != "simulated" || !m.AsOf.Equal(own) {
		t.Errorf("restored series %s of %s", m.Source, m.AsOf)
	}
	for _, date := range []string{"2024-11-18", "2024-11-21", "2024-11-22"} { // the series has them after the first refresh
		if source := r.historicalSource(date); source != "imported" {
			t.Errorf("restored: %s is of %q in the history", date, source)
		}
	}
	want := map[string]string{"2024-11-18": "imported", "2024-11-20": "simulated", "2024-11-21": "imported", "2024-11-22": "imported"}
	check := func(when string) {
		t.Helper()
		got := r.sources()
		for date, source := range want {
			if got[date] != source || r.historicalSource(date) != source {
				t.Errorf("%s: %s is of %q in the series, of %q in the history", when, date, got[date], r.historicalSource(date))
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: rows %v", when, got)
		}
	}
	r.once()
	want["2024-11-25"] = "simulated"
	check("refreshed")
}

// With only imports, no resource is answered, but the imported dates are served. An answer of the source itself replaces an
// imported one.
func TestImportsAlone(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, dir, "2024-11-20 11:00")
	r.close()
	importDates(t, dir, "2024-11-18", "2024-11-20")
	r = newRig(t, dir, "2024-11-20 11:00")
	defer r.close()
	if err := r.Restore(); err != nil {
		t.Fatal(err)
	}
	for resource, answered := range r.Offers() {
		if answered {
			t.Errorf("%s is answered", resource)
		}
	}
	for _, date := range []string{"", "2024-11-18", "2024-11-20"} {
		if got := r.historicalSource(date); got != "imported" {
			t.Errorf("historical of %q: %s", date, got)
		}
	}
	r.once()
	if got := r.sources(); len(got) != 2 || got["2024-11-18"] != "imported" || got["2024-11-20"] != "simulated" {
		t.Errorf("rows %v", got)
	}
	if got := r.historicalSource("2024-11-20"); got != "simulated" {
		t.Errorf("historical of a date with an answer of the source: %s", got)
	}
}
