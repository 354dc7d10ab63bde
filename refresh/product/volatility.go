package product

import (
	"errors"
	"fmt"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/feed"
)

var volatilityColumns = []string{"date", "atm_30d", "model_free_30d", "rank_1y", "realised_20d", "risk_reversal_25_30d", "put_call_open_interest", "method", "computed_at"}

// volatilityQuality is `meta.quality` of volatility/{u}.
type volatilityQuality struct {
	matrixQuality
	compute.VolatilityQuality
}

// gatherVolatility adds the inputs of [gammaOf] and the history of earlier sessions.
func gatherVolatility(p *Product, b *Batch, in *Inputs) error {
	session, err := in.Documents[0].Session(b.Calendar)
	if err != nil {
		return err
	}
	days, err := b.Memory.VolatilityDays(p.Name, session)
	if err != nil {
		return err
	}
	return errors.Join(gatherExposure(p, b, in), in.addState(volatilityHistory, days))
}

// VolatilityDays returns what the stored answers of the named resource left of the sessions before one, one day a session, rising. Of a
// session that is stored under two UTC dates, the later answer counts.
func (m *Memory) VolatilityDays(name string, before compute.Date) ([]compute.VolatilityDay, error) {
	days := []compute.VolatilityDay{}
	for _, stored := range m.store.Summaries(name) {
		var day compute.VolatilityDay
		if err := json.Unmarshal(stored.Body, &day); err != nil {
			return nil, fmt.Errorf("stored summary of %s: %w", stored.Date, err)
		}
		if day.Session >= before {
			break
		}
		if n := len(days); n > 0 && days[n-1].Session == day.Session {
			days = days[:n-1]
		}
		days = append(days, day)
	}
	return days[max(0, len(days)-compute.VolatilityHistory):], nil
}

func computeVolatility(a *Answer, in *Inputs, _ *feed.Document) error {
	days, err := stateOf[[]compute.VolatilityDay](in, volatilityHistory)
	if err != nil {
		return err
	}
	r := in.gamma.Volatility.With(days, in.calendar)
	v := &r.Data
	a.variants, a.quality = only(v), volatilityQuality{a.quality.(matrixQuality), r.Quality}
	a.row = &seriesRow{Values: []any{a.Date(), v.ATM30, v.ModelFree30, v.Rank, v.Realised20, v.RiskReversal30, v.PutCallOpenInterest}}
	a.leaves = struct {
		*seriesRow
		compute.VolatilityDay
	}{a.row, r.Today}
	return nil
}
