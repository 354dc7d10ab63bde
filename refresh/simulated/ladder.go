package simulated

// indexOfVIX is how an index of the VIX ladder follows from the VIX: at mean while the VIX is at the level that it returns to, and share
// of a point further for each point that the VIX is above that.
type indexOfVIX struct {
	mean  float64 // of a volatility above the level that the VIX returns to, of another index itself
	share float64
	other bool // the index is no volatility of the SPX
}

// ladder has the indices besides the VIX and the VIX3M. The longer the term of a volatility, the less it moves.
var ladder = map[string]indexOfVIX{
	"_VIX9D": {mean: -0.4, share: 1.15},
	"_VIX6M": {mean: 1.2, share: 0.32},
	"_VIX1Y": {mean: 2, share: 0.2},
	"_VVIX":  {mean: 96, share: 2.2, other: true},
	"_SKEW":  {mean: 141, share: -0.9, other: true},
}

// level returns the index for a VIX and the level that the VIX returns to.
func (i indexOfVIX) level(vix, returnsTo float64) float64 {
	x := i.mean + i.share*(vix-returnsTo)
	if !i.other {
		x += returnsTo
	}
	return x
}
