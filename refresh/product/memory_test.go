package product

import (
	"fmt"
	"slices"
	"testing"

	"strikecache/compute"
	"strikecache/snapshots"
)

// past is a store that has only what the answers of one product left, by date, rising.
type past struct {
	Stored
	summaries []snapshots.Summary
}

func (p *past) Summaries(string) []snapshots.Summary { return p.summaries }

// What is played belongs to the file of its date.
func TestWhatIsPlayedIsDated(t *testing.T) {
	b := &Batch{At: ny(t, "2026-11-23 10:00:00")}
	if !b.Dated(&Answer{Product: Named(GammaResource), AsOf: ny(t, "2026-11-20 16:14:59")}) {
		t.Error("it does not")
	}
}

// The history has one day a session, at most 251: of a session that trades into the next UTC date, the later answer counts.
func TestVolatilityHistoryOfSessions(t *testing.T) {
	store := &past{}
	add := func(date, session compute.Date, atm int) {
		store.summaries = append(store.summaries, snapshots.Summary{Date: date.String(), Body: fmt.Appendf(nil, `{"session":%q,"close":null,"atm_30d":%d}`, session, atm)})
	}
	friday := compute.NewDate(2026, 11, 13)
	d := calendar.Back(friday, 300)
	for i := range 300 {
		add(d, d, i-300)
		d = calendar.Next(d)
	}
	add(friday, friday, 1)
	add(friday+1, friday, 2) // until 20:00 New York
	add(friday+3, friday+3, 3)
	for before, want := range map[compute.Date][]float64{friday + 7: {-249, 2, 3}, friday + 3: {-250, -1, 2}, friday: {-251, -2, -1}} {
		days, err := NewMemory(store, calendar, nil).VolatilityDays("volatility/spx", before)
		must(t, err)
		var values []float64
		for _, day := range days {
			values = append(values, float64(*day.ATM30))
		}
		if n := len(values); n != compute.VolatilityHistory || !slices.Equal([]float64{values[0], values[n-2], values[n-1]}, want) {
			t.Errorf("before %s: %d days, %v … %v, want %v", before, n, values[0], values[n-2:], want)
		}
	}
}
