package refresh

import (
	"slices"
	"time"

	"strikecache/compute"
)

const notAdvice = "; not investment advice"

const modelledNotice = "Delayed 15 minutes and derived; dealer positioning is modelled (dealers long calls, short puts), not observed" + notAdvice

// defaultOnly is for products whose default answer alone comes with deltas.
var defaultOnly = []string{""}

// products is the table of all products. The products of a feed are computed in the order of the table. The flow is the last
// of its feed: it drops the chains that it has counted.
var products = []*product{
	{
		name: GammaResource, feed: optionsFeed, method: compute.GammaMethod, notice: modelledNotice,
		every: chainEvery, finalAtClose: true, offered: spxOffered,
		gather: gatherGamma, compute: computeGamma, past: pastChain,
		data: compute.Gamma{}, quality: compute.GammaQuality{},
	},
	{
		name: TrackResource, feed: optionsFeed, method: trackMethod, notice: modelledNotice,
		every: chainEvery, finalAtClose: true, accumulates: true, offered: spxOffered,
		gather: gatherTrack, compute: computeTrack,
		deltas: defaultOnly, data: trackData{}, quality: trackQuality{},
	},
	{
		name: SeriesResource, feed: optionsFeed, method: seriesMethod, notice: modelledNotice,
		every: chainEvery, expires: true, offered: spxOffered,
		gather: gatherSeries, compute: computeSeries,
		deltas: defaultOnly, data: seriesData{}, quality: seriesQuality{},
	},
	{
		name: MatrixResource, feed: optionsFeed, method: compute.GammaMethod, notice: modelledNotice,
		every: chainEvery, expires: true, offered: spxOffered,
		gather: gatherExposure, compute: computeMatrix,
		data: compute.Matrix{}, quality: matrixQuality{},
	},
	{
		name: PainResource, feed: optionsFeed, method: compute.MaxPainMethod,
		notice: "Delayed and derived from open interest of the previous session; max pain is arithmetic, not a forecast" + notAdvice,
		every:  chainEvery, expires: true, offered: spxOffered,
		gather: gatherChain, compute: computeMaxPain,
		deltas: defaultOnly, data: compute.MaxPain{}, quality: painQuality{},
	},
	{
		name: FlowResource, feed: optionsFeed, method: compute.FlowMethod,
		notice: "Delayed 15 minutes; rows are observations of an aggregate chain, not prints; side and direction are inferred" + notAdvice,
		every:  func(c *Config) time.Duration { return c.FlowEvery }, everyChain: true, expires: true,
		offered: func(c *Config) bool { return spxOffered(c) || len(flowNames(c)) > 0 },
		gather:  gatherFlow, compute: computeFlow, reopen: reopenFlow, past: pastChains, pastSessions: 2,
		deltas: []string{"", allFlow}, data: compute.Flow{}, quality: flowQuality{},
	},
	{
		name: SectorsResource, feed: sectorsFeed, method: compute.SectorsMethod,
		notice: "Delayed 15 minutes and derived; price returns without dividends" + notAdvice,
		every:  func(c *Config) time.Duration { return c.QuotesEvery }, offered: sectorsOffered,
		gather: gatherSectors, compute: computeSectors, past: pastFunds,
		deltas: defaultOnly, data: compute.Rotation{}, quality: sectorsQuality{},
	},
	{
		name: VIXResource, feed: vixFeed, method: compute.VIXMethod,
		notice: "Derived from daily settlement prices of VIX futures" + notAdvice,
		every:  func(*Config) time.Duration { return outsideEvery }, daily: true, offered: settlementsOffered,
		gather: gatherVIX, compute: computeVIX, past: pastSettlement,
		data: compute.VIXCurve{}, quality: vixQuality{},
	},
}

// ofFeed returns the products of a feed, in the order of the table.
func ofFeed(feed string) (of []*product) {
	for _, p := range products {
		if p.feed == feed {
			of = append(of, p)
		}
	}
	return of
}

// productOf returns the product of a name, nil for an unknown name.
func productOf(name string) *product {
	if i := slices.IndexFunc(products, func(p *product) bool { return p.name == name }); i >= 0 {
		return products[i]
	}
	return nil
}

// Resources returns the names of all resources, in the order of the table.
func Resources() (names []string) {
	for _, p := range products {
		names = append(names, p.name)
	}
	return names
}

// DatedResources returns the resources whose past dates are served: those whose files are final once the date has closed.
func DatedResources() (names []string) {
	for _, p := range products {
		if p.finalAtClose {
			names = append(names, p.name)
		}
	}
	return names
}

// Deltas returns the parameter values whose answers come with deltas against the last answers, by resource. "" stands for the
// default.
func Deltas() map[string][]string {
	deltas := map[string][]string{}
	for _, p := range products {
		if p.deltas != nil {
			deltas[p.name] = p.deltas
		}
	}
	return deltas
}

// Shape holds a zero value of the Go type of a resource's `data` and of its `meta.quality`.
type Shape struct{ Data, Quality any }

// Shapes returns the shape of each resource, by name, for the API description.
func Shapes() map[string]Shape {
	shapes := map[string]Shape{}
	for _, p := range products {
		shapes[p.name] = Shape{p.data, p.quality}
	}
	return shapes
}
