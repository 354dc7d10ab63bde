package refresh

import "strikecache/compute"

// gatherGamma returns the inputs of [gammaOf], and the chain of the session before if it is stored.
func gatherGamma(p *product, b *batch, m *memory) (*inputs, error) {
	in, err := gatherExposure(p, b, m)
	if in == nil || err != nil {
		return nil, err
	}
	name := chainOf(p.underlying)
	session, err := b.document(name).session(b.cfg.Calendar)
	if err != nil {
		return nil, err
	}
	in.add(m.previous(p.name, name, session, func(d *document) error {
		_, err := gammaReference(d, in.calendar, b.cfg.RiskFreeRate)
		return err
	}))
	return in, nil
}

// gatherExposure returns the chain and the rate: the inputs of [gammaOf]. If the batch has a gamma answer, its result is
// shared.
func gatherExposure(p *product, b *batch, m *memory) (*inputs, error) {
	in, err := gatherChain(p, b, m)
	if in == nil {
		return nil, err
	}
	in.parameters.RiskFreeRate = &b.cfg.RiskFreeRate
	if compute.UnderlyingOf(p.underlying).American() {
		in.parameters.Exercise = "american_as_european"
	}
	if gamma := b.answers[gammaOfUnderlying(p.underlying)]; gamma != nil {
		in.gamma, in.parameters = gamma.inputs.gamma, gamma.inputs.parameters
	}
	return in, nil
}

// gammaOfUnderlying returns the name of the resource gex/{u} of an underlying.
func gammaOfUnderlying(symbol string) string { return "gex/" + compute.PathOf(symbol) }

// trackOf returns the name of the track of an underlying.
func trackOf(symbol string) string { return gammaOfUnderlying(symbol) + "/intraday" }

func computeGamma(in *inputs) (*answer, error) {
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
	a.row = []any{a.date(), g.SessionDate, g.Spot, g.Net, g.Flip, g.CallWall, g.PutWall, g.VolTrigger, g.AbsGammaStrike, g.Regime,
		g.OISettleDate, g.ContractsAnalyzed, in.source, result.Quality.Split()}
	a.summarise = func(row seriesRow) any { return row }
	return a, nil
}
