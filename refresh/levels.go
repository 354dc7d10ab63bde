package refresh

import "strikecache/compute"

// computeLevels returns the levels of gex/{u} and the max pain of the default expiration.
func computeLevels(in *inputs) (*answer, error) {
	gamma, err := gammaOf(in)
	if err != nil {
		return nil, err
	}
	chain, err := in.chain()
	if err != nil {
		return nil, err
	}
	var pain *compute.MaxPain
	pains := compute.MaxPains(chain, in.calendar)
	if i := compute.DefaultMaxPain(pains); i >= 0 {
		pain = pains[i]
	}
	a, q := answerOf(chain), &gamma.Quality
	a.variants = only(compute.NewKeyLevels(gamma, pain, in.calendar))
	a.quality = matrixQuality{q.Contracts, q.SpotGap, q.Calendar, q.BadNumbers, q.AmericanQuality}
	return a, nil
}
