package refresh

import (
	"fmt"
	"slices"

	"strikecache/compute"
	"strikecache/refresh/upstream"
)

// statesOf returns the names of the states that a chain leaves.
func statesOf(name upstream.Name) []string {
	states := []string{volatilityState + symbolOf(name)}
	if name == spxChain {
		states = append(states, referenceState)
	}
	return states
}

// encodeState returns a state of a chain as it is stored: a gzip file. The input of an answer is the uncompressed text. in has
// the chain and what [gammaOf] needs.
func encodeState(state string, chain *compute.Chain, in *inputs) ([]byte, error) {
	if state != referenceState {
		return zip(encodeVolatility(chain))
	}
	gamma, err := gammaOf(in)
	if err != nil {
		return nil, err
	}
	text, err := gamma.State.AppendText(nil)
	if err != nil {
		return nil, fmt.Errorf("encode state %s: %w", state, err)
	}
	return zip(text)
}

// encodeStates adds the states of the batch's chains that later sessions need to those of the batch. A state of a chain that
// is not new is stored already, unless an earlier version or a kill left it out. The reference is that of the gamma answer in
// the date's file: in the quotes of the night the next day's open interest arrives.
func (r *Refresher) encodeStates(b *batch, answers []*answer) error {
	var gamma *answer
	if i := slices.IndexFunc(answers, func(a *answer) bool { return a.product.name == GammaResource }); i >= 0 {
		gamma = answers[i]
	}
	for name, d := range b.documents {
		if d.chain == nil {
			continue
		}
		session := d.chain.Session(r.cal).String()
		old := r.acceptedDocument(name)
		known := d.load != nil || old != nil && old.content == d.content
		for _, state := range statesOf(name) {
			isReference, late := state == referenceState, gamma != nil && gamma.late && slices.Contains(r.store.DatesOf(GammaResource), session)
			if isReference && (gamma == nil || late) || known && slices.Contains(r.store.StateDates(state), session) {
				continue
			}
			var in *inputs
			if isReference {
				in = gamma.inputs
			}
			body, err := encodeState(state, d.chain, in)
			if err != nil {
				return err
			}
			b.states[state] = datedState{session, body}
		}
	}
	return nil
}
