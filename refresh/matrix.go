package refresh

import "strikecache/compute"

// matrixQuality is `meta.quality` of gex/spx/matrix.
type matrixQuality struct {
	Contracts  compute.ContractCounts `json:"contracts"`
	SpotGap    *compute.Ratio         `json:"spot_gap_pct"`
	Calendar   *string                `json:"calendar"`
	BadNumbers int                    `json:"bad_numbers,omitempty"`
}

func computeMatrix(in *inputs) (*answer, error) {
	gamma, err := gammaOf(in)
	if err != nil {
		return nil, err
	}
	chain, err := in.chain()
	if err != nil {
		return nil, err
	}
	a, q := answerOf(chain), &gamma.Quality
	a.data = &gamma.Matrix
	a.quality = matrixQuality{q.Contracts, q.SpotGap, q.Calendar, q.BadNumbers}
	return a, nil
}
