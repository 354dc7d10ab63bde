package product

import (
	"regexp"
	"strings"
	"time"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/snapshots"
)

// Methods of this package. The number of a method rises when a figure is computed in another way.
const (
	seriesMethod      = "series/3"
	vixSeriesMethod   = "vixseries/3"
	underlyingsMethod = "underlyings/3" // its rows are those of gex/{u} and volatility/{u}
)

const notAdvice = "; not investment advice"

const (
	modelled       = "Delayed 15 minutes and derived; dealer positioning is modelled (dealers long calls, short puts), not observed"
	modelledNotice = modelled + notAdvice
	flowNotice     = "Delayed 15 minutes; rows are observations of an aggregate chain, not prints; side and direction are inferred" + notAdvice
	derivedNotice  = "Delayed 15 minutes and derived from quotes" + notAdvice
	sectorsNotice  = "Delayed 15 minutes and derived; price returns without dividends" + notAdvice
	painNotice     = "Delayed and derived from open interest of the previous session; max pain is arithmetic, not a forecast" + notAdvice
)

// defaultOnly is for products whose default answer alone comes with deltas.
var defaultOnly = []string{""}

// table is the table of all products. A row with {u} in its name is a product of each underlying. The products of a feed are computed
// in the order of the table.
var table = []*Row{
	{
		pattern: "gex/{u}", Feed: Chains, Method: compute.GammaMethod, notice: modelledNotice,
		gather: gatherGamma, Compute: ofGamma(computeGamma), Dated: true, Forms: []Form{listCSV("by_strike", compute.StrikeGamma{})},
		Data: compute.Gamma{}, Quality: compute.GammaQuality{},
	},
	{
		pattern: "gex/{u}/summary", Feed: Chains, Method: compute.SummaryMethod, notice: modelledNotice,
		gather: gatherExposure, Compute: ofGamma(computeSummary),
		Data: compute.Summary{}, Quality: summaryQuality{},
	},
	{
		pattern: "gex/{u}/intraday", Feed: Chains, Method: levelsTrack.method, notice: modelledNotice,
		gather: gatherTrack, Compute: levelsTrack.compute, Dated: true, Accumulates: true, track: levelsTrack, Forms: []Form{tableCSV},
		deltas: defaultOnly, Data: trackData{}, Quality: trackQuality{},
	},
	{
		pattern: "gex/{u}/strikes", Feed: Chains, Method: strikesTrack.method, notice: modelledNotice,
		gather: gatherTrack, Compute: strikesTrack.compute, Dated: true, Accumulates: true, track: strikesTrack, Forms: []Form{strikesCSV},
		Data: strikesData{}, Quality: trackQuality{},
	},
	{
		pattern: "gex/{u}/series", Feed: Chains, Method: seriesMethod, notice: modelledNotice,
		gather: gatherSeries, Compute: computeSeries(seriesColumns), Forms: []Form{tableCSV},
		deltas: defaultOnly, Data: seriesData{}, Quality: seriesQuality{},
	},
	{
		pattern: "gex/{u}/matrix", Feed: Chains, Method: compute.GammaMethod, notice: modelledNotice,
		gather: gatherExposure, Compute: ofGamma(computeMatrix), Forms: []Form{matrixCSV},
		Data: compute.Matrix{}, Quality: matrixQuality{},
	},
	{
		pattern: "gex/{u}/levels", Feed: Chains, Method: compute.KeyLevelsMethod,
		notice: modelled + "; levels of futures are fair values from option quotes, not prices of a futures exchange" + notAdvice,
		gather: gatherExposure, Compute: ofGamma(computeLevels), Forms: []Form{listCSV("levels", compute.KeyLevel{}), levelsLine},
		Data: compute.KeyLevels{}, Quality: matrixQuality{},
	},
	{
		pattern: "gex/{u}/open-interest", Feed: Chains, Method: compute.GammaMethod,
		notice: "Delayed and derived from open interest of the previous session" + notAdvice,
		gather: gatherGamma, Compute: ofGamma(computeOpenInterest), Forms: []Form{listCSV("contracts", compute.OpenInterestChange{})},
		Data: compute.OpenInterestChanges{}, Quality: openInterestQuality{},
	},
	{
		pattern: "volatility/{u}", Feed: Chains, Method: compute.VolatilityMethod, notice: derivedNotice,
		gather: gatherVolatility, Compute: ofGamma(computeVolatility), Dated: true, Forms: []Form{listCSV("expirations", compute.ExpirationVolatility{})},
		Data: compute.Volatility{}, Quality: volatilityQuality{},
	},
	series("volatility/{u}", Chains, seriesMethod, derivedNotice, volatilityColumns, volatilitySeriesData{}),
	{
		pattern: "{u}-max-pain", Feed: Chains, Method: compute.MaxPainMethod, notice: painNotice,
		gather: gatherPain, Compute: computeMaxPain, Dated: true, Forms: []Form{listCSV("expirations", compute.PainExpiration{})},
		deltas: defaultOnly, Data: compute.MaxPain{}, Quality: painQuality{},
	},
	series("{u}-max-pain", Chains, seriesMethod, painNotice, painColumns, painSeriesData{}),
	{
		pattern: UnderlyingsResource, Feed: Chains, Method: underlyingsMethod, notice: modelledNotice,
		gather: gatherUnderlyings, Compute: computeUnderlyings, reopen: reopenUnderlyings, Forms: []Form{listCSV("rows", underlyingRow{})},
		Data: underlyingsData{}, Quality: underlyingsQuality{},
	},
	{
		pattern: "options/flow/{u}", Feed: Chains, Method: compute.FlowMethod, notice: flowNotice,
		gather: gatherPrevious, Compute: computeChainFlow, reopen: reopenFlow, Dated: true, Forms: []Form{listCSV("items", compute.FlowItem{})},
		deltas: defaultOnly, Data: compute.Flow{}, Quality: flowQuality{},
	},
	{
		pattern: FlowResource, Feed: Chains, Method: compute.FlowMethod, notice: flowNotice,
		gather: gatherFlow, Compute: computeFlow, reopen: reopenFlow, Dated: true, Forms: []Form{listCSV("items", compute.FlowItem{})},
		deltas: []string{"", allFlow}, Data: compute.Flow{}, Quality: flowQuality{},
	},
	{
		pattern: SectorsResource, Feed: Funds, Method: compute.SectorsMethod, notice: sectorsNotice,
		gather: gatherSectors, Compute: computeSectors, Dated: true, Forms: []Form{listCSV("trail", compute.TrailPoint{})},
		deltas: defaultOnly, Data: compute.Rotation{}, Quality: sectorsQuality{},
	},
	series(SectorsResource, Funds, seriesMethod, sectorsNotice, sectorColumns, sectorSeriesData{}),
	{
		pattern: VIXResource, Feed: Settlements, Method: compute.VIXMethod,
		notice: "Derived from daily settlement prices of VIX futures; cash quotes are delayed 15 minutes" + notAdvice,
		gather: gatherVIX, Compute: computeVIX, Dated: true, Forms: []Form{listCSV("curve", compute.VIXFuture{})},
		Data: compute.VIXCurve{}, Quality: vixQuality{},
	},
	series(VIXResource, Settlements, vixSeriesMethod, "Derived from daily settlement prices of VIX futures"+notAdvice, vixSeriesColumns, vixSeries{}),
}

// series is the row of the series of a resource.
func series(of string, feed Feed, method, notice string, columns []string, data any) *Row {
	return &Row{
		pattern: of + "/series", Feed: feed, Method: method, notice: notice, gather: gatherSeries, Compute: computeSeries(columns),
		Forms: []Form{tableCSV}, Data: data, Quality: seriesQuality{},
	}
}

// placeholder stands for the symbol of an underlying, in small letters, in [Row.pattern].
const placeholder = "{u}"

// of returns the product of the row for an underlying, which a row without a placeholder does not have.
func (r *Row) of(underlying string) *Product {
	if !strings.Contains(r.pattern, placeholder) {
		return &Product{r, r.pattern, ""}
	}
	return &Product{r, strings.Replace(r.pattern, placeholder, compute.PathOf(underlying), 1), underlying}
}

// All returns the products of all rows for the underlyings.
func All(underlyings []string) (all List) {
	for _, r := range table {
		of := []string{""}
		if strings.Contains(r.pattern, placeholder) {
			of = underlyings
		}
		for _, u := range of {
			all = append(all, r.of(u))
		}
	}
	return all
}

// Symbol is the form of the symbol of an underlying.
var Symbol = regexp.MustCompile(`^[A-Z]{1,6}$|^[A-Z]{1,5}[.][A-Z]$`)

// Named returns the product of a name, of any underlying, and nil for a name that no product has.
func Named(name string) *Product {
	for _, r := range table {
		before, after, _ := strings.Cut(r.pattern, placeholder)
		symbol := strings.ToUpper(strings.TrimSuffix(strings.TrimPrefix(name, before), after))
		if p := r.of(symbol); p.Name == name && (p.Underlying == "" || Symbol.MatchString(symbol)) {
			return p
		}
	}
	return nil
}

// Deltas returns the parameter values whose answers come with deltas, by resource; see [Row].
func (all List) Deltas() map[string][]string {
	deltas := map[string][]string{}
	for _, p := range all {
		if p.deltas != nil {
			deltas[p.Name] = p.deltas
		}
	}
	return deltas
}

// Reopen returns, by resource, what is served of the stored answer of a date; see [snapshots.Options].
func (all List) Reopen() map[string]func(*snapshots.Edition) (*snapshots.Edition, error) {
	reopen := map[string]func(*snapshots.Edition) (*snapshots.Edition, error){}
	for _, p := range all {
		if p.reopen != nil {
			reopen[p.Name] = func(stored *snapshots.Edition) (*snapshots.Edition, error) {
				e, _, err := p.Reopen(stored)
				return e, err
			}
		}
	}
	return reopen
}

// Shapes returns the rows, for the API description, by the name of the resource with {u} in place of the underlying.
func Shapes() map[string]*Row {
	shapes := map[string]*Row{}
	for _, r := range table {
		shapes[r.pattern] = r
	}
	return shapes
}

// FirstInputs returns the inputs of an answer to a chain alone, as at a first start: there are no earlier answers.
func FirstInputs(s Settings, at time.Time, chain *feed.Document) *Inputs {
	in := &Inputs{at: at, calendar: s.Calendar, source: s.Source, Documents: []*feed.Document{chain}, parameters: parameters{RiskFreeRate: &s.RiskFreeRate}}
	for _, state := range [...]string{trackRowsState, rowsState, volatilityHistory} {
		in.Documents = append(in.Documents, feed.State(state, []byte("[]")))
	}
	return in
}
