package refresh

import (
	"cmp"
	"errors"
	"slices"

	"strikecache/compute"
)

const (
	// carryState names the state with the carry of the previous gamma answer.
	carryState = "gex-carry"
	// referenceState names the dated state of the SPX chain with which the changes of the next session compare.
	referenceState = "gex-reference"
)

// carryRow is the carry of one series, per year.
type carryRow struct {
	Root       string       `json:"root"`
	Expiration compute.Date `json:"expiration"`
	Carry      float64      `json:"carry"`
}

// gammaOf returns the gamma exposure of the SPX chain among the inputs. The products of one batch share the result.
func gammaOf(in *inputs) (*compute.GammaResult, error) {
	if in.gamma != nil {
		return in.gamma, nil
	}
	chain, err := in.chain()
	if err != nil {
		return nil, err
	}
	var before []carryRow
	if found, err := in.decodeState(carryState, &before); err != nil {
		return nil, err
	} else if !found || in.parameters.RiskFreeRate == nil {
		return nil, errors.New("inputs lack the carry or the rate")
	}
	input := compute.GammaInput{Chain: chain, Calendar: in.calendar, RiskFreeRate: *in.parameters.RiskFreeRate, PreviousCarry: carryOf(before)}
	if d := in.named(stateDir + referenceState); d != nil {
		if err := d.openSessionState(); err != nil {
			return nil, err
		}
		input.Reference = d.reference
	}
	result := compute.GammaExposure(input)
	in.gamma = &result
	return in.gamma, nil
}

// carryRows returns the carry of each series, sorted by expiration and root, so that equal maps give equal JSON.
func carryRows(carry map[compute.Series]float64) []carryRow {
	rows := make([]carryRow, 0, len(carry))
	for s, b := range carry {
		rows = append(rows, carryRow{s.Root, s.Expiration, b})
	}
	slices.SortFunc(rows, func(a, b carryRow) int {
		return cmp.Or(cmp.Compare(a.Expiration, b.Expiration), cmp.Compare(a.Root, b.Root))
	})
	return rows
}

func carryOf(rows []carryRow) map[compute.Series]float64 {
	out := make(map[compute.Series]float64, len(rows))
	for _, row := range rows {
		out[compute.Series{Root: row.Root, Expiration: row.Expiration}] = row.Carry
	}
	return out
}
