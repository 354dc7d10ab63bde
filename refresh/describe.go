package refresh

import "strikecache/compute"

// Shape has a value of the type that a resource has as `data`, and one of the type that it has as `meta.quality`. Only the
// types matter: the values are zero.
type Shape struct{ Data, Quality any }

// Shapes returns the shape of each resource, by its name, for the description of the interface.
func Shapes() map[string]Shape {
	return map[string]Shape{
		GammaResource:   {compute.Gamma{}, compute.GammaQuality{}},
		SeriesResource:  {seriesData{}, seriesQuality{}},
		PainResource:    {compute.MaxPain{}, painQuality{}},
		FlowResource:    {compute.Flow{}, flowQuality{}},
		SectorsResource: {compute.Rotation{}, sectorsQuality{}},
		VIXResource:     {compute.VIXCurve{}, vixQuality{}},
	}
}
