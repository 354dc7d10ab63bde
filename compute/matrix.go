package compute

import (
	"math"
	"slices"
	"time"
)

const (
	matrixExpirations = 16 // columns at most
	matrixReach       = 10 // percent of the spot: the greatest distance of a row's strike
)

// Matrix is the `data` of gex/spx/matrix: the net exposure by strike and expiration, and calls and puts by strike of the
// nearest expirations. Its dollars are those of [Gamma].
type Matrix struct {
	Symbol        string             `json:"symbol"`
	Spot          Level              `json:"spot"`
	EffectiveSpot Level              `json:"effective_spot"`
	SessionDate   Date               `json:"session_date"`
	Expirations   []MatrixExpiration `json:"expirations"`     // the columns
	Strikes       []MatrixStrike     `json:"strikes"`         // the rows
	Net           [][]*Dollars       `json:"net_gex_dollars"` // a row per strike, a cell per expiration; nil: nothing used
	Parts         []MatrixPart       `json:"parts"`           // zero_dte and this_week
}

// MatrixExpiration is a column of a [Matrix], with the sum over all strikes of the chain.
type MatrixExpiration struct {
	Expiration Date       `json:"expiration"`
	Settlement Settlement `json:"settlement"`
	Net        *Dollars   `json:"net_gex_dollars"`
}

// MatrixStrike is a row of a [Matrix], with the sum over all expirations of the chain.
type MatrixStrike struct {
	Strike Level    `json:"strike"`
	Net    *Dollars `json:"net_gex_dollars"`
}

// MatrixPart is the exposure and the positions by strike in the expirations of some dates.
type MatrixPart struct {
	Name     string        `json:"name"`
	From     Date          `json:"from"` // the first expiration date
	To       Date          `json:"to"`   // the last, included
	ByStrike []StrikeGamma `json:"by_strike"`
}

// matrix returns the net exposure of the strikes near the spot in the nearest series that have used contracts, and the parts.
func (e *exposure) matrix() Matrix {
	m := Matrix{
		Symbol: e.Chain.Symbol, Spot: Level(e.Chain.Spot), EffectiveSpot: Level(e.level), SessionDate: e.session,
		Expirations: []MatrixExpiration{}, Strikes: []MatrixStrike{}, Net: [][]*Dollars{},
	}
	used := map[float64]bool{}
	e.eachUsed(func(_ *series, row *strike, _ *Contract) { used[row.k] = true })
	rowOf := map[float64]int{}
	for i := range e.strikes {
		r := &e.strikes[i]
		k := float64(r.Strike)
		if used[k] && 100*math.Abs(k-e.level) <= matrixReach*e.level { // exact at round numbers
			rowOf[k] = len(m.Strikes)
			m.Strikes = append(m.Strikes, MatrixStrike{r.Strike, e.dollars(float64(*r.Net))})
		}
	}
	columns := slices.DeleteFunc(e.byDate(), func(s *series) bool { return s.used == 0 })
	columns = columns[:min(len(columns), matrixExpirations)]
	for range m.Strikes {
		m.Net = append(m.Net, make([]*Dollars, len(columns)))
	}
	for column, s := range columns {
		m.Expirations = append(m.Expirations, MatrixExpiration{s.Expiration, s.settlement, e.dollars(s.call + s.put)})
		for j := range s.strikes {
			row := &s.strikes[j]
			net, n := row.net()
			if i, near := rowOf[row.k]; near && n > 0 {
				m.Net[i][column] = e.dollars(net)
			}
		}
	}
	friday := e.session
	for friday.Weekday() != time.Friday {
		friday++
	}
	m.Parts = []MatrixPart{e.part("zero_dte", e.session, e.session), e.part("this_week", e.session, friday)}
	return m
}

// part returns the part of the expirations from one date to another.
func (e *exposure) part(name string, from, to Date) MatrixPart {
	outside := func(s *series) bool { return s.Expiration < from || s.Expiration > to }
	rows := e.byStrike(sumStrikes(slices.DeleteFunc(slices.Clone(e.series), outside)), matrixReach)
	if e.mismatch() {
		withholdDollars(rows)
	}
	return MatrixPart{name, from, to, rows}
}

// net returns the net GEX of the used contracts of a strike at the spot, and how many they are.
func (r *strike) net() (net float64, used int) {
	for right, c := range r.contracts {
		if usedContract(r, c) {
			net += sign(Right(right)) * (r.gex * c.OpenInterest)
			used++
		}
	}
	return net, used
}

// dollars returns a figure of the matrix, nil when the document contradicts itself.
func (e *exposure) dollars(x float64) *Dollars {
	if e.mismatch() {
		return nil
	}
	return new(Dollars(x))
}
