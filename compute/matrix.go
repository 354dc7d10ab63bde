package compute

import "slices"

const (
	matrixExpirations = 16 // columns at most
	matrixReach       = 10 // percent of the spot: the greatest distance of a row's strike
)

// Matrix is net gamma exposure by strike and expiration, the `data` of gex/{u}/matrix: a row per strike within 10 % of the
// effective spot, and a column for each of the nearest 16 expirations. For the expirations of today and of this week there are
// also calls and puts by strike. The contracts are those of gex/{u}.
type Matrix struct {
	ChainHead
	Expirations []MatrixExpiration `json:"expirations" jsonschema:"maxItems=16"` // The columns, nearest first.
	Strikes     []MatrixStrike     `json:"strikes"`                              // The rows, lowest first.
	// A row per strike of `strikes`, and in it a cell per expiration of `expirations`: the net exposure of the contracts with
	// this strike and expiration. `null` when none of them is used, and when the open interest of one is not known.
	Net [][]*Dollars `json:"net_gex_dollars" unit:"USD per 1 % move of the underlying"`
	// Calls and puts by strike, for the expirations of the session date, and for those of the rest of its week as well.
	Parts []MatrixPart `json:"parts" jsonschema:"minItems=2,maxItems=2"`
}

// ChainHead is what the answers beside gex/{u} begin with.
type ChainHead struct {
	Symbol string `json:"symbol" jsonschema:"pattern=^[A-Z.]+$"` // The underlying.
	// Published level of an index, last price of a fund or stock, at `meta.as_of`.
	Spot Level `json:"spot" jsonschema:"exclusiveMinimum=0" unit:"USD or index points"`
	// Spot of every figure, as in gex/{u}.
	EffectiveSpot Level `json:"effective_spot" jsonschema:"exclusiveMinimum=0" unit:"USD or index points"`
	SessionDate   Date  `json:"session_date"` // Session of `meta.as_of`.
}

// MatrixExpiration is a column of the matrix, with the sum over all strikes of the chain.
type MatrixExpiration struct {
	Expiration Date `json:"expiration"` // Expiration date.
	// `am`: settles at the opening print, 09:30 New York. `pm`: settles at the close.
	Settlement Settlement `json:"settlement"`
	// Net exposure over all strikes, also those without a row. `null` after `spot_mismatch`, and while open interest of the expiration is not known.
	Net *Dollars `json:"net_gex_dollars" unit:"USD per 1 % move of the underlying"`
}

// MatrixStrike is a row of the matrix, with the sum over all expirations of the chain.
type MatrixStrike struct {
	Strike Level `json:"strike" jsonschema:"exclusiveMinimum=0" unit:"USD or index points"` // Strike.
	// Net exposure over all expirations, also those without a column. `null` after `spot_mismatch`, and while open interest at the strike is not known.
	Net *Dollars `json:"net_gex_dollars" unit:"USD per 1 % move of the underlying"`
}

// MatrixPart is calls and puts by strike, for the expirations of some dates.
type MatrixPart struct {
	// `zero_dte`: expirations on the session date. `this_week`: from the session date to the Friday of its week.
	Name string `json:"name" jsonschema:"enum=zero_dte,enum=this_week"`
	From Date   `json:"from"` // First expiration date.
	To   Date   `json:"to"`   // Last expiration date, included.
	// The strikes within 10 % of the effective spot that have open interest, lowest first. Contracts that have settled are left
	// out: after the close, `zero_dte` has no strike.
	ByStrike []StrikeGamma `json:"by_strike"`
}

// matrix returns the net exposure of the strikes near the spot in the nearest series that have used contracts, and the parts.
func (e *exposure) matrix() Matrix {
	m := Matrix{ChainHead: e.head(), Expirations: []MatrixExpiration{}, Strikes: []MatrixStrike{}, Net: [][]*Dollars{}}
	used := map[float64]bool{}
	eachUsed(e.series, func(_ *series, row *strike, _ *Contract) { used[row.k] = true })
	rowOf := map[float64]int{}
	for i := range e.strikes {
		r := &e.strikes[i]
		if k := float64(r.Strike); used[k] && e.near(r.Strike, matrixReach) {
			rowOf[k] = len(m.Strikes)
			m.Strikes = append(m.Strikes, MatrixStrike{r.Strike, e.dollars(r.held.interest, float64(*r.Net))})
		}
	}
	columns := slices.DeleteFunc(e.byDate(), func(s *series) bool { return s.used == 0 })
	columns = columns[:min(len(columns), matrixExpirations)]
	for range m.Strikes {
		m.Net = append(m.Net, make([]*Dollars, len(columns)))
	}
	for column, s := range columns {
		m.Expirations = append(m.Expirations, MatrixExpiration{s.Expiration, s.settlement, e.dollars(positionsOf(s).interest, s.call+s.put)})
		for row, c := range s.all() {
			i, near := rowOf[c.Strike]
			switch {
			case !near || e.mismatch:
			case row == nil:
				m.Net[i][column] = nil
			case usedContract(row, c):
				if m.Net[i][column] == nil {
					m.Net[i][column] = new(Dollars)
				}
				*m.Net[i][column] += Dollars(sign(c.Right) * (row.gex * c.OpenInterest))
			}
		}
	}
	m.Parts = []MatrixPart{e.part("zero_dte", e.session), e.part("this_week", e.session.friday())}
	return m
}

func (e *exposure) head() ChainHead {
	return ChainHead{e.Chain.Symbol, Level(e.Chain.Spot), Level(e.level), e.session}
}

// part returns the part of the expirations from the session date to another. Those before have settled.
func (e *exposure) part(name string, to Date) MatrixPart {
	later := func(s *series) bool { return s.settles > to }
	rows := sumStrikes(slices.DeleteFunc(slices.Clone(e.series), later))
	return MatrixPart{name, e.session, to, e.byStrike(rows, matrixReach)}
}

// dollars returns a figure of the matrix, nil when the document contradicts itself or the open interest behind the figure is not known.
func (e *exposure) dollars(interest coverage, x float64) *Dollars {
	if e.mismatch || !interest.complete() {
		return nil
	}
	return new(Dollars(x))
}
