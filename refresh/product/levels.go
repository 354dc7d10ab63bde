package product

import "strikecache/compute"

// computeLevels returns the levels of gex/{u} and the max pain of the default expiration.
func computeLevels(in *Inputs) (*Answer, error) {
	gamma, chain, a, err := ofGamma(in)
	if err != nil {
		return nil, err
	}
	var pain *compute.MaxPain
	pains := compute.MaxPains(chain, in.calendar)
	if i := compute.DefaultMaxPain(pains); i >= 0 {
		pain = pains[i]
	}
	a.variants = only(compute.NewKeyLevels(gamma, pain, chain.CapturedAt, in.calendar))
	return a, nil
}
