package product

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/snapshots"
)

// underlyingsData is the levels of all underlyings, one row each, the `data` of underlyings.
type underlyingsData struct {
	// One row per underlying that has an answer, in the order of the configuration.
	Rows []underlyingRow `json:"rows" jsonschema:"maxItems=100"`
}

// underlyingRow is one underlying. The values are those of its gex/{u} and volatility/{u}, which describe them.
type underlyingRow struct {
	// The underlying.
	Symbol string `json:"symbol" jsonschema:"pattern=^[A-Z.]+$"`
	// Last trade of the underlying.
	AsOf time.Time `json:"as_of"`
	// Digest of the `data` of gex/{u} that the row was taken from.
	SHA256 string `json:"data_sha256" jsonschema:"pattern=^[0-9a-f]{64}$"`
	// Published price of the underlying.
	Spot compute.Level `json:"spot" jsonschema:"exclusiveMinimum=0" unit:"USD or index points"`
	// Change of `spot` in its session. `null` when gex/{u} has none.
	SpotChange *compute.Ratio `json:"spot_change_pct" unit:"percent"`
	// Spot of every figure of the row.
	EffectiveSpot compute.Level `json:"effective_spot" jsonschema:"exclusiveMinimum=0" unit:"USD or index points"`
	// Net gamma exposure. `null` when gex/{u} has none.
	Net *compute.Dollars `json:"net_gex_dollars" unit:"USD per 1 % move of the underlying"`
	// Gross gamma exposure. `null` when gex/{u} has none.
	Gross *compute.Dollars `json:"gross_gex_dollars" jsonschema:"minimum=0" unit:"USD per 1 % move of the underlying"`
	// Flip nearest the spot. `null` without a flip.
	Flip *compute.Level `json:"zero_gamma_flip" unit:"USD or index points"`
	// Result of the search for the flip.
	FlipStatus compute.FlipStatus `json:"flip_status" jsonschema:"enum=found,enum=multiple,enum=none_all_positive,enum=none_all_negative,enum=insufficient_data,enum=spot_mismatch,enum=open_interest_missing"`
	// (effective_spot − flip) / effective_spot · 100. `null` without a flip.
	FlipDistance *compute.Ratio `json:"flip_distance_pct" unit:"percent of the spot"`
	// Sign of net exposure. `null` when gex/{u} has none.
	Regime *string `json:"gamma_regime" jsonschema:"enum=positive,enum=negative,enum=neutral"`
	// Call wall. `null` when gex/{u} has none.
	CallWall *compute.Level `json:"call_wall" unit:"USD or index points"`
	// Put wall. `null` when gex/{u} has none.
	PutWall *compute.Level `json:"put_wall" unit:"USD or index points"`
	// Expected move of a session. `null` when gex/{u} has none.
	ExpectedMove *compute.Level `json:"expected_move_1d" jsonschema:"minimum=0" unit:"USD or index points"`
	// Digest of the `data` of volatility/{u} that the last three values were taken from. `null` without such an answer.
	VolatilitySHA256 *string `json:"volatility_data_sha256" jsonschema:"pattern=^[0-9a-f]{64}$"`
	// At-the-money volatility of the next 30 days. `null` when volatility/{u} has none.
	ATM30 *compute.Ratio `json:"atm_30d" jsonschema:"minimum=0" unit:"percent"`
	// Place of `atm_30d` in its range of a year. `null` when volatility/{u} has none.
	Rank *compute.Ratio `json:"rank_1y" jsonschema:"minimum=0,maximum=100,example=41.25" unit:"percent"`
	// Open puts over open calls. `null` when volatility/{u} has none.
	PutCallOpenInterest *compute.Ratio `json:"put_call_open_interest" jsonschema:"minimum=0" unit:"ratio"`
}

// underlyingsQuality is `meta.quality` of underlyings.
type underlyingsQuality struct {
	Rows int `json:"rows" jsonschema:"minimum=0" unit:"underlyings"` // Rows served.
}

// answered is what a table of answers takes of an answer.
type answered struct {
	data, quality []byte
	asOf          time.Time
	captured      *time.Time
	digest        *string // of data; nil: there is no answer
	err           error   // why the stored answer of a past session cannot be read
}

// answered returns the answer of a resource in the batch, else the current one, of a past session the stored one. Of an answer with limits, it
// is that with all rows.
func (b *Batch) answered(name string) answered {
	if a := b.Answers[name]; a != nil {
		text := a.variants[a.storedVariant].JSON
		return answered{text, a.QualityJSON, a.AsOf, a.Captured, new(snapshots.Digest(text)), nil}
	}
	e := b.Memory.store.Current(name)
	if b.Accepted == nil {
		f, err := b.Memory.store.Load(name, compute.DateOf(b.At.UTC()).String())
		if err != nil && !errors.Is(err, snapshots.ErrNoSnapshot) {
			return answered{err: fmt.Errorf("%s: %w", name, err)}
		}
		e = f.Edition
	}
	if e == nil {
		return answered{}
	}
	return answeredBy(cmp.Or(e.Variants[allFlow], e.Default))
}

func answeredBy(s *snapshots.Snapshot) answered {
	return answered{s.Data(), s.Meta.Quality, s.Meta.AsOf, s.Meta.CapturedAt, &s.Meta.Receipt.DataSHA256, nil}
}

// rowOf returns the row of two answers, whose names of values are those of the row.
func rowOf(symbol string, gamma, volatility answered) (r underlyingRow, err error) {
	if volatility.digest != nil {
		err = json.Unmarshal(volatility.data, &r)
	}
	if err == nil {
		err = json.Unmarshal(gamma.data, &r)
	}
	r.AsOf, r.SHA256, r.VolatilitySHA256 = gamma.asOf.UTC(), *gamma.digest, volatility.digest
	if err != nil {
		return r, fmt.Errorf("decode answers of %s: %w", symbol, err)
	}
	return r, nil
}

// gatherUnderlyings adds the rows of the answers in the batch, and of the current ones of the other underlyings.
func gatherUnderlyings(_ *Product, b *Batch, in *Inputs) error {
	rows := []underlyingRow{}
	for _, u := range b.Underlyings {
		gamma := b.answered(gammaOfUnderlying(u))
		if gamma.digest == nil {
			continue
		}
		row, err := rowOf(u, gamma, b.answered("volatility/"+compute.PathOf(u)))
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return nil
	}
	return in.addState(underlyingsState, rows)
}

func computeUnderlyings(a *Answer, in *Inputs, _ *feed.Document) error {
	rows, err := stateOf[[]underlyingRow](in, underlyingsState)
	a.variants, a.quality, a.RestsOn = only(&underlyingsData{rows}), underlyingsQuality{len(rows)}, symbolsOf(rows)
	for _, r := range rows {
		a.AsOf = compute.Later(a.AsOf, r.AsOf)
	}
	return err
}

func symbolsOf(rows []underlyingRow) []string {
	symbols := []string{}
	for _, r := range rows {
		symbols = append(symbols, r.Symbol)
	}
	return symbols
}

// reopenUnderlyings returns a stored answer as it is, and the symbols of its rows.
func reopenUnderlyings(_ *Product, stored *snapshots.Snapshot) (*snapshots.Edition, []string, error) {
	var data underlyingsData
	if err := json.Unmarshal(stored.Data(), &data); err != nil {
		return nil, nil, err
	}
	return &snapshots.Edition{Default: stored}, symbolsOf(data.Rows), nil
}
