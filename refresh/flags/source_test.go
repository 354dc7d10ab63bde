package flags

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"strikecache/compute"
	"strikecache/refresh"
	"strikecache/snapshots"
)

// The simulated market goes on where its newest answer left off, whichever that is, so that no answer is followed by
// an older one.
func TestResumed(t *testing.T) {
	now := time.Date(2026, 11, 20, 22, 0, 0, 0, time.UTC)
	eleven := time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC) // in New York
	at := func(minutes int) time.Time { return eleven.Add(time.Duration(minutes) * time.Minute) }
	type stored struct {
		resource        string
		computed, since int // minutes after eleven
	}
	for name, c := range map[string]struct {
		stored []stored
		want   time.Time
	}{
		"nothing":                     {nil, at(0)},
		"an older market":             {[]stored{{refresh.GammaResource, -60, -90}}, at(0)},
		"gamma":                       {[]stored{{refresh.GammaResource, 7, -90}}, at(7)},
		"sectors after gamma":         {[]stored{{refresh.GammaResource, 7, -90}, {refresh.SectorsResource, 9, 0}}, at(9)},
		"gamma after the settlements": {[]stored{{refresh.GammaResource, 7, -90}, {refresh.VIXResource, 2, 0}}, at(7)},
		"a chain stored alone":        {[]stored{{refresh.GammaResource, 7, -90}, {"SPX", 44, 0}}, at(44)},
		"another chain":               {[]stored{{refresh.GammaResource, 7, -90}, {"XLF", 8, 0}}, at(8)},
		"a chain before its answers":  {[]stored{{"SPX", 6, 0}, {refresh.GammaResource, 7, -90}}, at(7)},
		"freshness changed since":     {[]stored{{refresh.GammaResource, 7, 0}, {refresh.PainResource, 7, 31}}, at(31)},
	} {
		store, err := snapshots.Open(snapshots.Options{
			Dir: t.TempDir(), Source: "simulated", Feeds: refresh.Feeds(), HistoricalProduct: refresh.GammaResource, HistoryBytes: 1 << 20,
			Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range c.stored {
			if f.resource == "SPX" || f.resource == "XLF" {
				state := fmt.Appendf(nil, `{"source":{"arrived":%q}}`, at(f.computed).Format(time.RFC3339))
				if err := store.SaveState("chain-"+f.resource, "2026-11-20", state); err != nil {
					t.Fatal(err)
				}
				continue
			}
			s, err := snapshots.Seal([]byte(`{}`), snapshots.Meta{
				ComputedAt: at(f.computed), Freshness: snapshots.Freshness{Since: at(f.since)}, Quality: []byte(`{}`),
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := store.Save(f.resource, "2026-11-20", snapshots.File{Edition: &snapshots.Edition{Default: s}}); err != nil {
				t.Fatal(err)
			}
		}
		if got := resumed(compute.NewCalendar(nil, nil), store, []string{"XLF"}, now); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		store.Close()
	}
}
