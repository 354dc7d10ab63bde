package refresh_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"strikecache/compute"
	"strikecache/refresh"
	"strikecache/snapshots"
)

// The history has one day a session, at most 251: of a session that trades into the next UTC date, the later answer counts.
func TestVolatilityHistoryOfSessions(t *testing.T) {
	play(t, "2026-11-20 11:00", func(t *testing.T, r *rig) {
		const name = "volatility/spx"
		store := func(date, session compute.Date, atm float64) {
			s, err := snapshots.Seal([]byte(`{}`), snapshots.Meta{Endpoint: name, Source: "simulated", AsOf: date.Midnight().Add(time.Hour),
				Quality: json.RawMessage("{}"), Receipt: snapshots.Receipt{InputSHA256: []string{}}})
			if err == nil {
				err = r.store.Save([]snapshots.File{{Product: name, Edition: &snapshots.Edition{Default: s}, Dated: true,
					Summary: fmt.Appendf(nil, `{"snapshot":"","row":[],"session":%q,"close":null,"atm_30d":%v}`, session, atm)}}, nil)
			}
			must(t, err)
		}
		friday := calendar.Back(calendar.SessionDate(ny(t, "2026-11-20 11:00")), 5)
		store(friday, friday, 1)
		store(friday+1, friday, 2) // until 20:00 New York
		store(calendar.Next(friday), calendar.Next(friday), 3)
		get := func(before compute.Date) (values []float64) {
			days, err := refresh.VolatilityDays(r.Refresher, name, before)
			must(t, err)
			for _, d := range days {
				values = append(values, *d.ATM30)
			}
			return values
		}
		if got := get(friday + 7); !slices.Equal(got, []float64{2, 3}) {
			t.Errorf("history %v", got)
		}
		if got := get(calendar.Next(friday)); !slices.Equal(got, []float64{2}) {
			t.Errorf("history before the second session %v", got)
		}
		d := friday
		for i := range 300 {
			d = calendar.Previous(d)
			store(d, d, float64(-i))
		}
		if got := get(friday + 7); len(got) != compute.VolatilityHistory || got[0] != -248 || got[250] != 3 {
			t.Errorf("%d days from %v to %v", len(got), got[0], got[len(got)-1])
		}
	})
}
