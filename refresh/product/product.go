// Package product says what is served, and how each answer is made from documents.
//
// A [Product] makes the answers of one resource: a row of the [table], for an underlying if the row is for each. It gathers its inputs from a
// [Batch] of documents, of which some are new, and computes an [Answer] from them. The inputs are the documents of the answer's session,
// those of the session before, and states: small data from answers before or from the configuration, such as the rows of a series. An answer
// is sealed into an edition: one snapshot for each value of the resource's parameter.
//
// Nothing here asks an upstream or serves anything, and nothing depends on the machine's clock.
package product

import (
	"errors"
	"slices"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// Resources by their canonical names. Those that rest on one chain are of the first underlying.
const (
	GammaResource       = "gex/spx"
	TrackResource       = "gex/spx/intraday"
	SeriesResource      = "gex/spx/series"
	MatrixResource      = "gex/spx/matrix"
	PainResource        = "spx-max-pain"
	UnderlyingsResource = "underlyings"
	FlowResource        = "options/flow/unusual"
	SectorsResource     = "sectors/rotation"
	VIXResource         = "vix-term-structure"
	VIXSeriesResource   = "vix-term-structure/series"
)

// ErrNoInput is the error of a product, or of a run, that has too few documents for an answer.
var ErrNoInput = errors.New("no input for an answer")

// Feed is a kind of documents. The answers of one feed that rest on the same chain become current at the same instant.
type Feed uint8

// The feeds.
const (
	Chains      Feed = iota // option chains
	Funds                   // quotes and price histories of funds
	Settlements             // VIX futures settlements, one file a day, and quotes of volatility indices
)

// Computation fills in an answer from its inputs, and depends on these alone. Live refresh, history and recompute all call it, so that the
// same inputs always give the same answer. d is the first of the documents that the answer describes, decoded, whose as_of and captured_at the
// answer has. Of a product that rests on every chain, d is nil, and the computation sets them.
type Computation func(a *Answer, in *Inputs, d *feed.Document) error

// Row is one row of the [table]: how the answers of one resource are made. Its functions take the product that is asked for.
type Row struct {
	pattern string // the canonical name of the resource, with {u} in place of the underlying, if it rests on the chain of one
	Feed    Feed
	Method  string // in the receipt
	notice  string

	// Dated says that past dates are served, and never removed. The dated files of other products are removed when they are old.
	Dated       bool
	Accumulates bool   // the answer adds to the answer before, and rests on the last document that added to it
	track       *track // of an answer that accumulates

	// deltas are the parameter values whose answers come with deltas against the last answers; "" stands for the default.
	deltas []string
	Forms  []Form // besides JSON

	// gather adds other documents of the batch, and what earlier answers left, to the inputs of the next answer, which have the document that
	// it describes. It leaves no document there while one is missing or when they change nothing. If it is nil, the document is enough.
	gather  func(p *Product, b *Batch, in *Inputs) error
	Compute Computation

	// reopen returns what is served of a stored answer, and its [Answer.RestsOn]. If it is nil, the stored edition is served.
	reopen func(p *Product, stored *snapshots.Snapshot) (*snapshots.Edition, []string, error)

	Data, Quality any // zero values of `data` and `meta.quality`, for the API description
}

// Product is a row for one underlying, or for none.
type Product struct {
	*Row
	Name       string // canonical name, meta.endpoint
	Underlying string // symbol, such as SPX; "" if the answer does not rest on one chain
}

// EveryChain says whether the product rests on the chains of all underlyings.
func (p *Product) EveryChain() bool { return p.Feed == Chains && p.Underlying == "" }

// document returns the name of the only document of its session that the answer describes, "" when there are several or none.
func (p *Product) document() upstream.Name {
	switch {
	case p.Underlying != "":
		return feed.ChainOf(p.Underlying)
	case p.Daily():
		return feed.LatestSettlement
	}
	return ""
}

// Daily says whether the upstream makes one document a day for the product.
func (p *Product) Daily() bool { return p.Feed == Settlements }

// Reopen returns what is served of a stored answer, and the symbols of the chains that it rests on; see [Answer.RestsOn].
func (p *Product) Reopen(stored *snapshots.Edition) (*snapshots.Edition, []string, error) {
	if p.reopen == nil {
		return stored, nil, nil
	}
	return p.reopen(p, stored.Default)
}

// List is a list of products, in the order of the table and within a row in that of the underlyings.
type List []*Product

// Where returns the products that have a property.
func (all List) Where(has func(*Product) bool) (some List) {
	for _, p := range all {
		if has(p) {
			some = append(some, p)
		}
	}
	return some
}

// Of returns the products of a feed.
func (all List) Of(f Feed) List { return all.Where(func(p *Product) bool { return p.Feed == f }) }

// OfChain returns the products that rest on the chain of an underlying.
func (all List) OfChain(underlying string) List {
	return all.Where(func(p *Product) bool { return p.EveryChain() || p.Underlying == underlying })
}

// Names returns the names of the products.
func (all List) Names() (names []string) {
	for _, p := range all {
		names = append(names, p.Name)
	}
	return names
}

// Groups returns the products in groups whose answers become current together: those of each chain, those of all chains,
// and those of each other feed. So one chain at a time is decoded.
func (all List) Groups() (groups []List) {
	for _, p := range all {
		i := slices.IndexFunc(groups, func(g List) bool { return g[0].Feed == p.Feed && g[0].Underlying == p.Underlying })
		if i < 0 {
			i, groups = len(groups), append(groups, nil)
		}
		groups[i] = append(groups[i], p)
	}
	return groups
}

func gammaOfUnderlying(symbol string) string { return "gex/" + compute.PathOf(symbol) }

// Form is another form of a product's answers than JSON. It is made from the JSON of `data`, so both have the same values.
type Form struct {
	Name, ContentType string // Name is the value of the parameter format
	Render            func(data []byte) ([]byte, error)
}
