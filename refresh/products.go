package refresh

import (
	"strings"

	"strikecache/compute"
)

const notAdvice = "; not investment advice"

const (
	modelled       = "Delayed 15 minutes and derived; dealer positioning is modelled (dealers long calls, short puts), not observed"
	modelledNotice = modelled + notAdvice
	derivedNotice  = "Delayed 15 minutes and derived from quotes" + notAdvice
)

// defaultOnly is for products whose default answer alone comes with deltas.
var defaultOnly = []string{""}

// table is the table of all products. A row with {u} in its name is a product of each underlying. The products of a feed are computed
// in the order of the table. The flow is the last of its feed: it drops the chains that it has counted.
var table = []*productRow{
	{
		pattern: "gex/{u}", feed: optionsFeed, method: compute.GammaMethod, notice: modelledNotice,
		gather: gatherGamma, compute: computeGamma, dated: true, backfilled: true,
		data: compute.Gamma{}, quality: compute.GammaQuality{},
	},
	{
		pattern: "gex/{u}/intraday", feed: optionsFeed, method: trackMethod, notice: modelledNotice,
		gather: gatherTrack, compute: computeTrack, dated: true, accumulates: true, forms: []Form{tableCSV},
		deltas: defaultOnly, data: trackData{}, quality: trackQuality{},
	},
	{
		pattern: "gex/{u}/series", feed: optionsFeed, method: seriesMethod, notice: modelledNotice,
		gather: gatherSeries, compute: computeSeries(seriesColumns), forms: []Form{tableCSV},
		deltas: defaultOnly, data: seriesData{}, quality: seriesQuality{},
	},
	{
		pattern: "gex/{u}/matrix", feed: optionsFeed, method: compute.GammaMethod, notice: modelledNotice,
		gather: gatherExposure, compute: computeMatrix, forms: []Form{matrixCSV},
		data: compute.Matrix{}, quality: matrixQuality{},
	},
	{
		pattern: "gex/{u}/levels", feed: optionsFeed, method: compute.KeyLevelsMethod,
		notice: modelled + "; levels of futures are fair values from option quotes, not prices of a futures exchange" + notAdvice,
		gather: gatherExposure, compute: computeLevels, forms: []Form{listCSV("levels", compute.KeyLevel{}), levelsLine},
		data: compute.KeyLevels{}, quality: matrixQuality{},
	},
	{
		pattern: "volatility/{u}", feed: optionsFeed, method: compute.VolatilityMethod, notice: derivedNotice,
		gather: gatherVolatility, compute: computeVolatility, dated: true, backfilled: true,
		data: compute.Volatility{}, quality: volatilityQuality{},
	},
	{
		pattern: "volatility/{u}/series", feed: optionsFeed, method: seriesMethod, notice: derivedNotice,
		gather: gatherSeries, compute: computeSeries(volatilityColumns), forms: []Form{tableCSV},
		data: volatilitySeriesData{}, quality: seriesQuality{},
	},
	{
		pattern: "{u}-max-pain", feed: optionsFeed, method: compute.MaxPainMethod,
		notice: "Delayed and derived from open interest of the previous session; max pain is arithmetic, not a forecast" + notAdvice,
		gather: gatherChain, compute: computeMaxPain,
		deltas: defaultOnly, data: compute.MaxPain{}, quality: painQuality{},
	},
	{
		pattern: UnderlyingsResource, feed: optionsFeed, method: underlyingsMethod, notice: modelledNotice,
		gather: gatherUnderlyings, compute: computeUnderlyings, reopen: reopenUnderlyings,
		data: underlyingsData{}, quality: underlyingsQuality{},
	},
	{
		pattern: FlowResource, feed: optionsFeed, method: compute.FlowMethod,
		notice: "Delayed 15 minutes; rows are observations of an aggregate chain, not prints; side and direction are inferred" + notAdvice,
		gather: gatherFlow, compute: computeFlow, reopen: reopenFlow, backfilled: true, forms: []Form{listCSV("items", compute.FlowItem{})},
		deltas: []string{"", allFlow}, data: compute.Flow{}, quality: flowQuality{},
	},
	{
		pattern: SectorsResource, feed: sectorsFeed, method: compute.SectorsMethod,
		notice: "Delayed 15 minutes and derived; price returns without dividends" + notAdvice,
		gather: gatherSectors, compute: computeSectors, dated: true, backfilled: true,
		deltas: defaultOnly, data: compute.Rotation{}, quality: sectorsQuality{},
	},
	{
		pattern: VIXResource, feed: vixFeed, method: compute.VIXMethod,
		notice: "Derived from daily settlement prices of VIX futures; cash quotes are delayed 15 minutes" + notAdvice,
		gather: gatherVIX, compute: computeVIX, dated: true, backfilled: true,
		data: compute.VIXCurve{}, quality: vixQuality{},
	},
	{
		pattern: VIXSeriesResource, feed: vixFeed, method: vixSeriesMethod,
		notice: "Derived from daily settlement prices of VIX futures" + notAdvice,
		gather: gatherSeries, compute: computeSeries(vixSeriesColumns), forms: []Form{tableCSV},
		data: vixSeries{}, quality: seriesQuality{},
	},
}

// placeholder stands for the symbol of an underlying, in small letters, in [productRow.pattern].
const placeholder = "{u}"

// of returns the product of the row for an underlying, which a row without a placeholder does not have.
func (r *productRow) of(underlying string) *product {
	if !strings.Contains(r.pattern, placeholder) {
		return &product{r, r.pattern, ""}
	}
	return &product{r, strings.Replace(r.pattern, placeholder, compute.PathOf(underlying), 1), underlying}
}

// products is a list of products, in the order of the table and within a row in that of the underlyings.
type products []*product

// productsOf returns the products of all rows for the underlyings.
func productsOf(underlyings []string) (all products) {
	for _, r := range table {
		if !strings.Contains(r.pattern, placeholder) {
			all = append(all, r.of(""))
			continue
		}
		for _, u := range underlyings {
			all = append(all, r.of(u))
		}
	}
	return all
}

// where returns the products that have a property.
func (all products) where(has func(*product) bool) (some products) {
	for _, p := range all {
		if has(p) {
			some = append(some, p)
		}
	}
	return some
}

// ofFeed returns the products of a feed.
func (all products) ofFeed(feed *feed) products {
	return all.where(func(p *product) bool { return p.feed == feed })
}

// groups returns the products in groups whose answers become current together at a start: those of each chain, those of all chains,
// and those of each other feed. So one chain at a time is decoded.
func (all products) groups() (groups []products) {
	type key struct {
		*feed
		underlying string
	}
	index := map[key]int{}
	for _, p := range all {
		k := key{p.feed, p.underlying}
		if _, known := index[k]; !known {
			index[k] = len(groups)
			groups = append(groups, nil)
		}
		groups[index[k]] = append(groups[index[k]], p)
	}
	return groups
}

// ofChain returns the products that rest on the chain of an underlying.
func (all products) ofChain(underlying string) products {
	return all.where(func(p *product) bool { return p.everyChain() || p.underlying == underlying })
}

// names returns the names of the products.
func (all products) names() (names []string) {
	for _, p := range all {
		names = append(names, p.name)
	}
	return names
}

// productOf returns the product of a name, of any underlying, and nil for a name that no product has.
func productOf(name string) *product {
	for _, r := range table {
		before, after, _ := strings.Cut(r.pattern, placeholder)
		symbol := strings.ToUpper(strings.TrimSuffix(strings.TrimPrefix(name, before), after))
		if p := r.of(symbol); p.name == name && (p.underlying == "" || symbolForm.MatchString(symbol)) {
			return p
		}
	}
	return nil
}

// Resources returns the names of all resources of the underlyings, which are symbols such as SPX.
func Resources(underlyings []string) []string { return productsOf(underlyings).names() }

// DatedResources returns the resources whose past dates are served.
func DatedResources(underlyings []string) []string {
	return productsOf(underlyings).where(func(p *product) bool { return p.dated }).names()
}

// Deltas returns the parameter values whose answers come with deltas against the last answers, by resource. "" stands for the
// default.
func Deltas(underlyings []string) map[string][]string {
	deltas := map[string][]string{}
	for _, p := range productsOf(underlyings) {
		if p.deltas != nil {
			deltas[p.name] = p.deltas
		}
	}
	return deltas
}

// Shape holds a zero value of the Go type of a resource's `data` and of its `meta.quality`, and its forms besides JSON.
type Shape struct {
	Data, Quality any
	Forms         []Form
}

// Shapes returns the shape of each resource, for the API description, by name with {u} in place of the underlying.
func Shapes() map[string]Shape {
	shapes := map[string]Shape{}
	for _, r := range table {
		shapes[r.pattern] = Shape{r.data, r.quality, r.forms}
	}
	return shapes
}
