package refresh

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/archive"
	"strikecache/refresh/cboe"
	"strikecache/refresh/upstream"
)

// Recomputed is an answer that was computed again.
type Recomputed struct {
	Method      string // of this version
	AsOf        time.Time
	CapturedAt  *time.Time
	SessionDate string
	Quality     json.RawMessage
	// Data holds the bytes of data by parameter value, as its file does: the default's alone under "", or all.
	Data map[string][]byte
}

// StoredProducts returns the products that have dated files, and recipes.
func StoredProducts() []string {
	var names []string
	for _, res := range resources(Config{}) {
		if res.stored {
			names = append(names, res.name)
		}
	}
	return names
}

// Recompute computes the answer of a recipe again, with the methods of this version. body returns the bytes of an
// input; its errors are returned as they are.
func Recompute(recipe *archive.Recipe, body func(archive.Input) ([]byte, error)) (*Recomputed, error) {
	r := New(Config{
		Source: nowhere{}, RiskFreeRate: recipe.RiskFreeRate, Calendar: compute.NewCalendar(recipe.Closed, recipe.Early),
		Log: slog.New(slog.DiscardHandler),
	})
	a, err := r.again(&again{recipe, body})
	if err != nil {
		return nil, err
	}
	out := &Recomputed{
		Method: r.resources[recipe.Product].method, AsOf: a.asOf, CapturedAt: a.captured,
		SessionDate: r.cal.SessionDate(a.asOf).String(), Data: map[string][]byte{},
	}
	if out.Quality, err = json.Marshal(a.quality); err != nil {
		return nil, fmt.Errorf("encode quality: %w", err)
	}
	if a.variants == nil {
		a.variants = map[string]any{"": a.data}
	} else if a.stored != "" {
		a.variants = map[string]any{"": a.variants[a.stored]}
	}
	for name, data := range a.variants {
		if out.Data[name], err = json.Marshal(data); err != nil {
			return nil, fmt.Errorf("encode data: %w", err)
		}
	}
	return out, nil
}

// nowhere is a source that offers nothing.
type nowhere struct{ upstream.Source }

// Offers implements [upstream.Source].
func (nowhere) Offers(upstream.Name) bool { return false }

// again is a recipe and where its documents are.
type again struct {
	*archive.Recipe
	body func(archive.Input) ([]byte, error)
}

// document reads an input as it was received.
func (g *again) document(in archive.Input) (*upstream.Document, error) {
	b, err := g.body(in)
	if err != nil {
		return nil, err
	}
	return &upstream.Document{
		Name: upstream.Name(in.Name), Body: b, Received: in.Received, Generated: in.Generated, FileDate: in.FileDate,
	}, nil
}

// one returns the only input.
func (g *again) one() (archive.Input, error) {
	if len(g.Inputs) != 1 {
		return archive.Input{}, fmt.Errorf("recipe of %s names %d inputs, want 1", g.Product, len(g.Inputs))
	}
	return g.Inputs[0], nil
}

func (g *again) chain(in archive.Input) (*chainDocument, error) {
	doc, err := g.document(in)
	if err != nil {
		return nil, err
	}
	return decodeChain(doc)
}

func (g *again) state(v any) error {
	if err := json.Unmarshal(g.State, v); err != nil {
		return fmt.Errorf("decode state of %s: %w", g.Product, err)
	}
	return nil
}

// again computes the answer of a recipe.
func (r *Refresher) again(g *again) (answer, error) {
	switch g.Product {
	case GammaResource:
		return r.gammaAgain(g)
	case PainResource:
		in, err := g.one()
		if err != nil {
			return answer{}, err
		}
		c, err := g.chain(in)
		if err != nil {
			return answer{}, err
		}
		return r.painAnswer(c, g.ComputedAt), nil
	case FlowResource:
		return r.flowAgain(g)
	case SectorsResource:
		return r.sectorsAgain(g)
	case VIXResource:
		return r.vixAgain(g)
	}
	return answer{}, fmt.Errorf("recipe of the unknown product %.40q", g.Product)
}

func (r *Refresher) gammaAgain(g *again) (answer, error) {
	var state gammaState
	in, err := g.one()
	if err == nil {
		err = g.state(&state)
	}
	if err != nil {
		return answer{}, err
	}
	c, err := g.chain(in)
	if err != nil {
		return answer{}, err
	}
	a, _ := r.gammaAnswer(c, g.ComputedAt, carryOf(state.Carry))
	return a, nil
}

func (r *Refresher) flowAgain(g *again) (answer, error) {
	states := map[string]archive.Input{}
	for _, in := range g.States {
		states[in.Name] = in
	}
	for _, in := range g.Inputs {
		c, err := g.chain(in)
		if err != nil {
			return answer{}, err
		}
		var iv map[string]float64
		if in, ok := states[stateDir+volatilityState+c.Symbol]; ok {
			b, err := g.body(in)
			if err != nil {
				return answer{}, err
			}
			if iv, err = decodeVolatility(b); err != nil {
				return answer{}, fmt.Errorf("decode %s: %w", in.Name, err)
			}
		}
		part := r.flowPartOf(c, iv)
		part.input = nil // the body is not needed any more
		r.flow.parts[c.Symbol] = part
	}
	return r.flowAnswer(g.ComputedAt), nil
}

func (r *Refresher) sectorsAgain(g *again) (answer, error) {
	funds := map[string]*fund{}
	for _, in := range g.Inputs {
		doc, err := g.document(in)
		if err != nil {
			return answer{}, err
		}
		kind, symbol := doc.Name.Split()
		if funds[symbol] == nil {
			funds[symbol] = &fund{}
		}
		f := funds[symbol]
		if kind == upstream.HistoryKind {
			if f.closes, err = cboe.DecodeHistory(doc.Body); err != nil {
				return answer{}, decodeError(doc.Name, err)
			}
			f.history = historyDocument(doc)
			continue
		}
		q, err := cboe.DecodeQuote(doc.Body)
		if err != nil {
			return answer{}, decodeError(doc.Name, err)
		}
		f.underlying, f.quote = q.Underlying, fundDocument{hexOf(q.Content), doc.Received, inputOf(doc)}
	}
	a, ok := r.sectorsAnswer(funds, g.ComputedAt)
	if !ok {
		return a, fmt.Errorf("the inputs of %s make no rotation", g.Product)
	}
	return a, nil
}

func (r *Refresher) vixAgain(g *again) (answer, error) {
	var state vixState
	in, err := g.one()
	if err == nil {
		err = g.state(&state)
	}
	if err != nil {
		return answer{}, err
	}
	doc, err := g.document(in)
	if err != nil {
		return answer{}, err
	}
	_, key := doc.Name.Split()
	asked, err := compute.ParseDate(key)
	if err != nil {
		return answer{}, err
	}
	f, err := decodeSettlement(doc, asked)
	if err != nil {
		return answer{}, decodeError(doc.Name, err)
	}
	r.vix.history = state.History
	a, _, err := r.vixAnswer(f, state.Closes, g.ComputedAt)
	return a, err
}
