package product

import (
	"strikecache/compute"
	"strikecache/refresh/feed"
)

// matrixQuality is `meta.quality` of gex/{u}/matrix and gex/{u}/levels.
type matrixQuality struct {
	Contracts compute.ContractCounts `json:"contracts"`
	// (level that the forwards imply / published level − 1) · 100. `null` when too few series have a parity forward.
	SpotGap *compute.Ratio `json:"spot_gap_pct" unit:"percent"`
	// A note that some dates lie outside the verified exchange calendar of 2014 to 2030. `null` when none does.
	Calendar *string `json:"calendar"`
	// Numbers of the upstream document that count as absent because no market has them. Absent when every number is usable.
	BadNumbers int `json:"bad_numbers,omitempty" jsonschema:"minimum=1,example=1" unit:"numbers"`
	compute.HoursQuality
	compute.AmericanQuality
}

// ofGamma returns the gamma exposure of the chain, the chain, and an answer that still lacks its data.
func ofGamma(in *Inputs) (*compute.GammaResult, *compute.Chain, *Answer, error) {
	gamma, err := gammaOf(in)
	if err != nil {
		return nil, nil, nil, err
	}
	chain, err := in.chain()
	if err != nil {
		return nil, nil, nil, err
	}
	a, q := answerOf(chain), &gamma.Quality
	a.quality = matrixQuality{q.Contracts, q.SpotGap, q.Calendar, q.BadNumbers, q.HoursQuality, q.AmericanQuality}
	return gamma, chain, a, nil
}

// unusedContracts says why no contract of a gamma exposure was used; "" if one was.
func unusedContracts(g *compute.GammaResult) string {
	if g.Quality.Contracts.Used > 0 {
		return ""
	}
	return "no contract can be used: " + feed.Counts(g.Quality.Contracts.Skipped)
}

func computeMatrix(in *Inputs) (*Answer, error) {
	gamma, _, a, err := ofGamma(in)
	if err != nil {
		return nil, err
	}
	a.variants, a.unusable = only(&gamma.Matrix), unusedContracts(gamma)
	return a, nil
}
