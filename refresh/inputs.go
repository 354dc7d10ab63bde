package refresh

import (
	"fmt"
	"runtime"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/archive"
	"strikecache/refresh/upstream"
)

// inputOf names a document and keeps its body until it is archived.
func inputOf(doc *upstream.Document) *archive.Document {
	return &archive.Document{
		Input: archive.Input{
			Name: string(doc.Name), SHA256: sha256Hex(doc.Body), Received: doc.Received, Generated: doc.Generated, FileDate: doc.FileDate,
		},
		Body: doc.Body,
	}
}

// stateInput names dated state as an input.
func stateInput(name, date string, state []byte) *archive.Document {
	return &archive.Document{Input: archive.Input{Name: stateDir + name, SHA256: sha256Hex(state), FileDate: date}, Body: state}
}

// document returns the chain of the part.
func (p *flowPart) document() *archive.Document {
	if p.input != nil {
		return p.input
	}
	return &archive.Document{Input: archive.Input{Name: string(p.source.Name), SHA256: p.source.SHA256, Received: p.source.Arrived}}
}

// volatility returns the state that the part compares with.
func (p *flowPart) volatility(symbol string) *archive.Document {
	if p.previousIV != nil {
		return p.previousIV
	}
	return &archive.Document{Input: archive.Input{Name: stateDir + volatilityState + symbol, SHA256: p.source.PreviousIV}}
}

// gammaState is the state of a gamma recipe.
type gammaState struct {
	Carry []carryRow `json:"carry"` // of the snapshot before
}

// vixState is the state of a recipe of the VIX curve.
type vixState struct {
	Closes indexCloses `json:"closes"`
	// History has the earlier dates, rising, the last one with its settlements.
	History []vixSummary `json:"history"`
}

// before returns the history before a date, in the form of a recipe.
func (v *vixJob) before(date compute.Date) []vixSummary {
	out := []vixSummary{}
	for _, h := range v.history {
		if h.Date < date {
			if n := len(out); n > 0 {
				out[n-1].Settlements = nil
			}
			out = append(out, h)
		}
	}
	return out
}

// keepInputs archives what stored answers were computed from, after their publication: nobody waits for it. Documents
// lose their bodies. A disk that refuses is logged; the archive writes it later.
func (r *Refresher) keepInputs(answers ...answer) {
	var recipes []archive.Recipe
	var documents []*archive.Document
	for i := range answers {
		a := &answers[i]
		documents = append(append(documents, a.documents...), a.states...)
		res := r.resources[a.resource]
		if r.cfg.Inputs == nil || !res.stored || res.closes && a.late() {
			continue
		}
		recipe, err := r.recipe(res, a)
		if err != nil {
			r.log.Error("inputs not archived", "resource", a.resource, "err", err)
			continue
		}
		recipes = append(recipes, recipe)
	}
	if len(recipes) > 0 {
		if err := r.cfg.Inputs.Put(recipes, documents); err != nil {
			r.log.Error("inputs not archived", "err", err)
		}
	}
	for _, d := range documents {
		d.Body = nil
	}
}

// Build names the toolchain and the architecture, on which the last digits of numbers may depend.
func Build() string { return runtime.Version() + " " + runtime.GOARCH }

func (r *Refresher) recipe(res *resource, a *answer) (archive.Recipe, error) {
	closed, early := r.cal.Closures()
	out := archive.Recipe{
		Product: res.name, Date: a.date().String(), Method: res.method, Build: Build(),
		ComputedAt: a.computed.UTC(), RiskFreeRate: r.cfg.RiskFreeRate, Closed: closed, Early: early,
	}
	for _, d := range a.documents {
		out.Inputs = append(out.Inputs, d.Input)
	}
	for _, d := range a.states {
		out.States = append(out.States, d.Input)
	}
	if a.state == nil {
		return out, nil
	}
	state, err := json.Marshal(a.state)
	if err != nil {
		return out, fmt.Errorf("encode state of %s: %w", res.name, err)
	}
	out.State = state
	return out, nil
}

// holdsInputs says whether the inputs of a restored answer are archived. After a crash between an answer and its
// inputs they are not, and the answer is computed again from the next document, whatever that says.
func (r *Refresher) holdsInputs(h *holding) bool {
	return r.cfg.Inputs == nil || r.cfg.Inputs.Holds(h.answer.resource, h.answer.date().String(), h.answer.inputs)
}
