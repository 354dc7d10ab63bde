package refresh

import (
	"fmt"
)

// gatherGamma returns the inputs of [gammaOf], and the chain of the session before if it is stored.
func gatherGamma(b *batch, m *memory) (*inputs, error) {
	in, err := gatherExposure(b, m)
	if in == nil || err != nil {
		return nil, err
	}
	session, err := b.document(spxChain).session(b.cfg.Calendar)
	if err != nil {
		return nil, err
	}
	in.add(m.previous(GammaResource, spxChain, session, func(d *document) error {
		_, err := gammaReference(d, in.calendar, b.cfg.RiskFreeRate)
		return err
	}))
	return in, nil
}

// gatherExposure returns the SPX chain and the rate: the inputs of [gammaOf]. If the batch has a gamma answer, its result is
// shared.
func gatherExposure(b *batch, m *memory) (*inputs, error) {
	in, err := gatherChain(b, m)
	if in == nil {
		return nil, err
	}
	in.parameters.RiskFreeRate = &b.cfg.RiskFreeRate
	if gamma := b.answers[GammaResource]; gamma != nil {
		in.gamma = gamma.inputs.gamma
	}
	return in, nil
}

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
	a.variants, a.quality = only(&result.Data), result.Quality
	if a.summary, err = encodeRow(a.date(), &result.Data, in.source); err != nil {
		return nil, fmt.Errorf("encode row: %w", err)
	}
	return a, nil
}
