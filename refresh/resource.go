package refresh

import (
	"time"

	"strikecache/compute"
)

// The resources that the refresher publishes, by the canonical form of their keys.
const (
	GammaResource   = "gex/spx"
	SeriesResource  = "gex/spx/series"
	PainResource    = "spx-max-pain"
	FlowResource    = "options/flow/unusual"
	SectorsResource = "sectors/rotation"
	VIXResource     = "vix-term-structure"
)

// The feeds: what is published together.
const (
	optionsFeed = "options"
	sectorsFeed = "sectors"
	vixFeed     = "vix"
)

// Feeds returns which resources each feed publishes together, as [snapshots.Options] wants it.
func Feeds() map[string][]string {
	return map[string][]string{
		optionsFeed: {GammaResource, SeriesResource, PainResource, FlowResource},
		sectorsFeed: {SectorsResource},
		vixFeed:     {VIXResource},
	}
}

// resource is what the refresher knows of a resource beside its numbers.
type resource struct {
	name, feed, method string
	every              time.Duration // between refreshes in session
	overnight          bool          // rests on option quotes, which move at night
	stored             bool          // has dated files
	closes             bool          // a UTC date's file does not change once the date closed
	notice             string
}

// delayMinutes is how old the upstream's quotes are by design.
const delayMinutes = 15

const notAdvice = "; not investment advice"

func resources(cfg Config) []resource {
	const modelled = "Delayed 15 minutes and derived; dealer positioning is modelled (dealers long calls, short puts), not observed"
	return []resource{
		{name: GammaResource, feed: optionsFeed, method: compute.GammaMethod, every: cfg.ChainEvery,
			overnight: true, stored: true, closes: true, notice: modelled + notAdvice},
		{name: SeriesResource, feed: optionsFeed, method: seriesMethod, every: cfg.ChainEvery,
			overnight: true, notice: modelled + notAdvice},
		{name: PainResource, feed: optionsFeed, method: compute.MaxPainMethod, every: cfg.ChainEvery,
			overnight: true, stored: true,
			notice: "Delayed and derived from open interest of the previous session; max pain is arithmetic, not a forecast" + notAdvice},
		{name: FlowResource, feed: optionsFeed, method: compute.FlowMethod, every: cfg.FlowEvery,
			overnight: true, stored: true,
			notice: "Delayed 15 minutes; rows are observations of an aggregate chain, not prints; side and direction are inferred" + notAdvice},
		{name: SectorsResource, feed: sectorsFeed, method: compute.SectorsMethod, every: cfg.QuotesEvery,
			stored: true, notice: "Delayed 15 minutes and derived; price returns without dividends" + notAdvice},
		{name: VIXResource, feed: vixFeed, method: compute.VIXMethod, every: outsideEvery,
			stored: true, notice: "Derived from daily settlement prices of VIX futures" + notAdvice},
	}
}

// due returns the oldest instant that an answer may describe in session without lagging. Settlements are daily:
// the previous session's is the newest there can be.
func (res *resource) due(now time.Time, cal *compute.Calendar) time.Time {
	if res.name == VIXResource {
		return cal.Close(cal.Previous(cal.SessionDate(now)))
	}
	return now.Add(-maxLag)
}
