package product

import (
	"slices"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/feed"
)

var painColumns = []string{"date", "session_date", "spot", "expiration", "max_pain", "distance_pct", "put_call_oi_ratio",
	"monthly_expiration", "monthly_max_pain", "monthly_distance_pct", "monthly_put_call_oi_ratio", "source", "method", "computed_at"}

// painSeriesData is max pain of the stored dates as a table, the `data` of spx-max-pain/series: the newest 400, oldest first. A date
// without a stored answer has no row.
type painSeriesData struct {
	// Names of the columns, in the order of the values of a row.
	Columns []string `json:"columns" jsonschema:"minItems=14,maxItems=14,oneof_ref=#/components/schemas/PainColumn"`
	// One row per stored date.
	Rows []json.RawMessage `json:"rows" jsonschema:"maxItems=400,oneof_ref=#/components/schemas/PainRow"`
}

// painQuality is `meta.quality` of spx-max-pain.
type painQuality struct {
	Contracts painContracts `json:"contracts"`
	// A note that some dates lie outside the verified exchange calendar of 2014 to 2030. `null` when none does.
	Calendar *string `json:"calendar"`
	// A note that the quotes are of a day for which the hours of the options are not verified. `null` when it is not so.
	Hours *string `json:"hours" jsonschema:"example=the quotes are of a day after 2027-12-31, until which the hours of options are verified; those of then were applied"`
	// Numbers of the upstream document that count as absent because no market has them. Absent when every number is usable.
	BadNumbers int `json:"bad_numbers,omitempty" jsonschema:"minimum=1,example=1" unit:"numbers"`
}

// painContracts are the rows of the chain that were used and skipped: listed = used + skipped.
type painContracts struct {
	Listed  int         `json:"listed" jsonschema:"minimum=0" unit:"rows"` // Rows of the upstream document.
	Used    int         `json:"used" jsonschema:"minimum=0" unit:"rows"`   // Rows whose contracts have not settled.
	Skipped painSkipped `json:"skipped"`
	// Contracts that have not settled and whose open interest is not known: their rows cannot be read, or an expiration has rows of the
	// other right alone.
	InterestUnknown compute.InterestUnknown `json:"open_interest_unknown"`
}

// painSkipped are the rows that were not used, each by the first reason that applied.
type painSkipped struct {
	compute.Skipped
	// The contract had settled when the quotes were made.
	Settled int `json:"settled" jsonschema:"minimum=0" unit:"rows"`
}

// gatherPain shares the result of [painsOf] with the levels of the batch, which come before.
func gatherPain(p *Product, b *Batch, in *Inputs) error {
	if levels := b.Answers[gammaOfUnderlying(p.Underlying)+"/levels"]; levels != nil {
		in.pains = levels.Inputs.pains
	}
	return nil
}

// painsOf returns the max pain of each date of a chain. The products of one batch share the result.
func painsOf(in *Inputs, chain *compute.Chain) []*compute.MaxPain {
	if in.pains == nil {
		in.pains = compute.MaxPains(chain, in.calendar)
	}
	return in.pains
}

func computeMaxPain(a *Answer, in *Inputs, d *feed.Document) error {
	chain := d.Chain
	pains := painsOf(in, chain)
	dates := []compute.Date{chain.Session(in.calendar)}
	a.variants = map[string]*Variant{}
	for _, p := range pains {
		dates = append(dates, p.Expiration)
		a.variants[p.Expiration.String()] = &Variant{data: p, rare: true}
	}
	if i := compute.DefaultMaxPain(pains); i >= 0 {
		p, monthly := pains[i], []any{nil, nil, nil, nil}
		a.byDefault = p.Expiration.String()
		a.variants[a.byDefault].rare = false
		if m := compute.MonthlyPain(pains, in.calendar); m != nil {
			monthly = []any{m.Expiration, m.MaxPain, m.Distance, m.PutCallRatio}
		}
		a.row = &seriesRow{Values: slices.Concat([]any{a.Date(), dates[0], p.Spot, p.Expiration, p.MaxPain, p.Distance, p.PutCallRatio}, monthly, []any{in.source})}
		if calls, puts := p.CallOpenInterest, p.PutOpenInterest; calls != nil && puts != nil && *calls+*puts == 0 {
			a.unusable = "no contract has open interest"
		}
	}
	used := compute.Unsettled(chain, in.calendar).Contracts
	contracts := painContracts{chain.Listed, used, painSkipped{chain.Skipped, len(chain.Contracts) - used}, compute.UnknownInterest(chain, in.calendar)}
	a.quality = painQuality{contracts, compute.CalendarNote(dates...), chain.HoursNote(in.calendar), chain.BadNumbers}
	return nil
}
