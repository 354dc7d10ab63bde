package product

import (
	"strikecache/compute"
	"strikecache/refresh/feed"
)

// gatherGamma returns the inputs of [gammaOf], and the chain of the session before if it is stored.
func gatherGamma(p *Product, b *Batch) (*Inputs, error) {
	in, err := gatherExposure(p, b)
	if in == nil || err != nil {
		return nil, err
	}
	session, err := in.Documents[0].Session(b.Calendar)
	if err != nil {
		return nil, err
	}
	in.add(b.Memory.previous(p, p.Underlying, session, func(d *feed.Document) error {
		_, err := gammaReference(d, in.calendar, b.RiskFreeRate)
		return err
	}))
	return in, nil
}

// gatherChain returns the chain of the product's underlying as the only input.
func gatherChain(p *Product, b *Batch) (*Inputs, error) {
	return b.inputs(b.Document(feed.ChainOf(p.Underlying))), nil
}

// gatherExposure returns the chain and the rate: the inputs of [gammaOf]. If the batch has a gamma answer, its result is
// shared.
func gatherExposure(p *Product, b *Batch) (*Inputs, error) {
	in, err := gatherChain(p, b)
	if in == nil {
		return nil, err
	}
	in.parameters.RiskFreeRate = &b.RiskFreeRate
	if compute.UnderlyingOf(p.Underlying).American() {
		in.parameters.Exercise = "american_as_european"
	}
	if gamma := b.Answers[gammaOfUnderlying(p.Underlying)]; gamma != nil {
		in.gamma, in.parameters = gamma.Inputs.gamma, gamma.Inputs.parameters
	}
	return in, nil
}

func computeGamma(in *Inputs) (*Answer, error) {
	result, err := gammaOf(in)
	if err != nil {
		return nil, err
	}
	chain, err := in.chain()
	if err != nil {
		return nil, err
	}
	a := answerOf(chain)
	a.variants, a.quality, a.unusable = only(&result.Data), result.Quality, unusedContracts(result)
	g := &result.Data
	a.row = []any{a.Date(), g.SessionDate, g.Spot, g.Net, g.Flip, g.CallWall, g.PutWall, g.VolTrigger, g.AbsGammaStrike, g.Regime,
		g.OISettleDate, g.ContractsAnalyzed, in.source, result.Quality.Split()}
	a.summarise = func(row seriesRow) any { return row }
	return a, nil
}
