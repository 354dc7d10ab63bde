package refresh

import (
	"slices"
	"time"

	"strikecache/compute"
	"strikecache/refresh/upstream"
)

// The resources, by the canonical form of their keys.
const (
	GammaResource   = "gex/spx"
	SeriesResource  = "gex/spx/series"
	PainResource    = "spx-max-pain"
	FlowResource    = "options/flow/unusual"
	SectorsResource = "sectors/rotation"
	VIXResource     = "vix-term-structure"
)

// The feeds. The products of one feed become current at the same instant.
const (
	optionsFeed = "options"
	sectorsFeed = "sectors"
	vixFeed     = "vix"
)

// product is one row of the table: all that the refresher knows of a resource.
type product struct {
	name   string // canonical name, meta.endpoint
	feed   string
	method string // in the receipt
	notice string
	every  func(*Config) time.Duration // between refreshes in session

	overnight  bool // rests on option quotes, which also move at night
	everyChain bool // rests on every chain of the flow universe; the other products of the options feed rest on SPX alone
	daily      bool // the upstream makes one document a day
	stored     bool // has dated files
	closes     bool // the file of a UTC date never changes once that date has closed
	expires    bool // dated files are removed after Config.SnapshotMaxAge

	// offered says whether the source could ever feed the product.
	offered func(*Config) bool
	// gather returns the inputs of the answer that describes now, nil while they are not complete. done has the answers
	// of the products above it in the table that the same documents feed.
	gather func(v *view, done map[string]*answer) (*inputs, error)
	// compute turns inputs into an answer. It is the only way to an answer of the product: live refresh, start,
	// back-fill and recompute call it. It depends on nothing but the inputs.
	compute func(in *inputs) (*answer, error)

	// The following may be nil.

	// remember takes up what later answers need of a published one.
	remember func(r *Refresher, a *answer)
	// resume takes up the state that a stored answer was computed with, so that a start computes from the same.
	resume func(r *Refresher, in *inputs) error
	// past names the documents of a past session and when they are final, for back-fill.
	past func(cal *compute.Calendar, d compute.Date) ([]upstream.Name, time.Time)

	data, quality any // zero values of what the answer holds, for the API description
}

const notAdvice = "; not investment advice"

const modelledNotice = "Delayed 15 minutes and derived; dealer positioning is modelled (dealers long calls, short puts), not observed" + notAdvice

// products is the table. Its order is that of computation within a feed.
var products = []*product{
	{
		name: GammaResource, feed: optionsFeed, method: compute.GammaMethod, notice: modelledNotice,
		every: chainEvery, overnight: true, stored: true, closes: true, offered: spxOffered,
		gather: gatherGamma, compute: computeGamma, remember: rememberGamma, resume: resumeGamma, past: pastChain,
		data: compute.Gamma{}, quality: compute.GammaQuality{},
	},
	{
		name: SeriesResource, feed: optionsFeed, method: seriesMethod, notice: modelledNotice,
		every: chainEvery, overnight: true, offered: spxOffered,
		gather: gatherSeries, compute: computeSeries,
		data: seriesData{}, quality: seriesQuality{},
	},
	{
		name: PainResource, feed: optionsFeed, method: compute.MaxPainMethod,
		notice: "Delayed and derived from open interest of the previous session; max pain is arithmetic, not a forecast" + notAdvice,
		every:  chainEvery, overnight: true, stored: true, expires: true, offered: spxOffered,
		gather: gatherChain, compute: computeMaxPain,
		data: compute.MaxPain{}, quality: painQuality{},
	},
	{
		name: FlowResource, feed: optionsFeed, method: compute.FlowMethod,
		notice: "Delayed 15 minutes; rows are observations of an aggregate chain, not prints; side and direction are inferred" + notAdvice,
		every:  func(c *Config) time.Duration { return c.FlowEvery }, overnight: true, everyChain: true, stored: true, expires: true,
		offered: func(c *Config) bool { return spxOffered(c) || len(flowNames(c)) > 0 },
		gather:  gatherFlow, compute: computeFlow,
		data: compute.Flow{}, quality: flowQuality{},
	},
	{
		name: SectorsResource, feed: sectorsFeed, method: compute.SectorsMethod,
		notice: "Delayed 15 minutes and derived; price returns without dividends" + notAdvice,
		every:  func(c *Config) time.Duration { return c.QuotesEvery }, stored: true, offered: sectorsOffered,
		gather: gatherSectors, compute: computeSectors, past: pastFunds,
		data: compute.Rotation{}, quality: sectorsQuality{},
	},
	{
		name: VIXResource, feed: vixFeed, method: compute.VIXMethod,
		notice: "Derived from daily settlement prices of VIX futures" + notAdvice,
		every:  func(*Config) time.Duration { return outsideEvery }, daily: true, stored: true, offered: settlementsOffered,
		gather: gatherVIX, compute: computeVIX, remember: rememberVIX, past: pastSettlement,
		data: compute.VIXCurve{}, quality: vixQuality{},
	},
}

// spxChain is the document that most products rest on.
var spxChain = upstream.Options("_SPX")

func chainEvery(c *Config) time.Duration { return c.ChainEvery }

func spxOffered(c *Config) bool { return c.Source.Offers(spxChain) }

// gatherChain gathers the SPX chain alone.
func gatherChain(v *view, _ map[string]*answer) (*inputs, error) {
	return v.inputs(v.document(spxChain)), nil
}

// pastChain names the SPX chain as it was after the close of a session, when its last quotes are final.
func pastChain(cal *compute.Calendar, d compute.Date) ([]upstream.Name, time.Time) {
	return []upstream.Name{spxChain}, cal.Close(d).Add(afterClose)
}

// productOf returns the row of a resource, nil for an unknown name.
func productOf(name string) *product {
	if i := slices.IndexFunc(products, func(p *product) bool { return p.name == name }); i >= 0 {
		return products[i]
	}
	return nil
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

// Feeds returns which resources each feed publishes together, as [snapshots.Options] wants it.
func Feeds() map[string][]string {
	feeds := map[string][]string{}
	for _, p := range products {
		feeds[p.feed] = append(feeds[p.feed], p.name)
	}
	return feeds
}

// StoredProducts returns the products that have dated files.
func StoredProducts() (names []string) {
	for _, p := range products {
		if p.stored {
			names = append(names, p.name)
		}
	}
	return names
}

// Shape holds zero values of a resource's `data` and `meta.quality`.
type Shape struct{ Data, Quality any }

// Shapes returns the shape of each resource, by name, for the API description.
func Shapes() map[string]Shape {
	shapes := map[string]Shape{}
	for _, p := range products {
		shapes[p.name] = Shape{p.data, p.quality}
	}
	return shapes
}
