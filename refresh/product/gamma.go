package product

import (
	"errors"
	"fmt"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/feed"
)

// matrixQuality is `meta.quality` of gex/{u}/matrix and gex/{u}/levels.
type matrixQuality struct {
	Contracts compute.ContractCounts `json:"contracts"`
	// (level that the forwards imply / published level − 1) · 100. `null` when too few series have a parity forward.
	SpotGap *compute.Ratio `json:"spot_gap_pct" unit:"percent"`
	compute.ChainQuality
}

// gatherGamma adds the inputs of [gammaOf], and the chain of the session before if it is stored.
func gatherGamma(p *Product, b *Batch, in *Inputs) error {
	return errors.Join(gatherPrevious(p, b, in), gatherExposure(p, b, in))
}

// gatherExposure adds the rate: with the chain it is the input of [gammaOf]. If the batch has a gamma answer, its result is shared.
func gatherExposure(p *Product, b *Batch, in *Inputs) error {
	in.parameters.RiskFreeRate = &b.RiskFreeRate
	if compute.UnderlyingOf(p.Underlying).American() {
		in.parameters.Exercise = "american_as_european"
	}
	if gamma := b.Answers[gammaOfUnderlying(p.Underlying)]; gamma != nil {
		in.gamma, in.parameters = gamma.Inputs.gamma, gamma.Inputs.parameters
	}
	return nil
}

// gammaOf returns the gamma exposure of the opened chain d, and sets the rate of the receipt. The products of one batch share the result.
func gammaOf(in *Inputs, d *feed.Document) (_ *compute.GammaResult, err error) {
	if in.gamma != nil {
		return in.gamma, nil
	}
	if in.parameters.RiskFreeRate == nil {
		return nil, errors.New("inputs lack the rate")
	}
	rate, source := compute.RateOf(d.Chain, in.calendar, *in.parameters.RiskFreeRate)
	in.parameters.RiskFreeRate, in.parameters.RateSource = &rate, source
	input := compute.GammaInput{Chain: d.Chain, Calendar: in.calendar, RiskFreeRate: rate}
	if before := in.named(feed.PreviousDir + d.Name); before != nil {
		if input.Reference, err = gammaReference(before, in.calendar, input.RiskFreeRate); err != nil {
			return nil, err
		}
	}
	result := compute.GammaExposure(input)
	in.gamma = &result
	return in.gamma, nil
}

// reference is what the answers to a chain compare with: of the chain of the session before. It is [feed.Document.Derived] of that.
type reference struct {
	chain *compute.Chain
	state *compute.GammaState // nil until a gamma exposure needs it
	rate  compute.RateSource
}

// referenceOf returns the reference of a document. It is made once, and keeps the chain of the document, but not its bytes.
func referenceOf(d *feed.Document) (*reference, error) {
	r, made := d.Derived.(*reference)
	if !made {
		if err := d.Open(); err != nil {
			return nil, err
		}
		r = &reference{chain: d.Chain}
		d.Derived = r
		d.Release()
	}
	return r, nil
}

// gammaReference returns the state of a chain. One that gives no rate takes the given rate. It is computed once for a rate.
func gammaReference(d *feed.Document, cal *compute.Calendar, rate float64) (*compute.GammaState, error) {
	r, err := referenceOf(d)
	if err != nil {
		return nil, err
	}
	if r.state == nil || r.rate == compute.RateConfigured && r.state.Rate != rate {
		rate, r.rate = compute.RateOf(r.chain, cal, rate)
		r.state = compute.GammaExposure(compute.GammaInput{Chain: r.chain, Calendar: cal, RiskFreeRate: rate}).State
	}
	return r.state, nil
}

// ofGamma returns a computation that takes the gamma exposure of the chain from in.gamma, and finds the quality of the matrix in the answer.
func ofGamma(rest Computation) Computation {
	return func(a *Answer, in *Inputs, d *feed.Document) error {
		gamma, err := gammaOf(in, d)
		if err != nil {
			return err
		}
		q := &gamma.Quality
		a.quality = matrixQuality{q.Contracts, q.SpotGap, q.ChainQuality}
		return rest(a, in, d)
	}
}

// unusedContracts says why no contract of a gamma exposure was used; "" if one was.
func unusedContracts(g *compute.GammaResult) string {
	if g.Quality.Contracts.Used > 0 {
		return ""
	}
	return "no contract can be used: " + feed.Counts(g.Quality.Contracts.Skipped)
}

func computeGamma(a *Answer, in *Inputs, _ *feed.Document) error {
	g, q := &in.gamma.Data, in.gamma.Quality
	a.variants, a.quality, a.unusable = only(g), q, unusedContracts(in.gamma)
	a.row = &seriesRow{Values: []any{a.Date(), g.SessionDate, g.Spot, g.Net, g.Flip, g.CallWall, g.PutWall, g.VolTrigger, g.AbsGammaStrike, g.Regime,
		g.OISettleDate, g.ContractsAnalyzed, in.source, q.Split()}}
	return nil
}

// summaryQuality is `meta.quality` of gex/{u}/summary. That of gex/{u} has the rest.
type summaryQuality struct {
	Used int `json:"contracts_used" jsonschema:"minimum=0" unit:"contracts"` // Contracts that the sums count.
	// Why the figures of the contracts that settle on the session date are `null`, as in gex/{u}. `null` when they are known.
	ZeroDTEReason *string `json:"zero_dte_reason" jsonschema:"enum=settled,enum=not_listed,enum=open_interest_missing,example=settled"`
}

func computeSummary(a *Answer, in *Inputs, _ *feed.Document) error {
	q := &in.gamma.Quality
	a.variants, a.quality, a.unusable = only(compute.NewSummary(in.gamma)), summaryQuality{q.Contracts.Used, q.ZeroDTEReason}, unusedContracts(in.gamma)
	return nil
}

func computeMatrix(a *Answer, in *Inputs, _ *feed.Document) error {
	a.variants, a.unusable = only(&in.gamma.Matrix), unusedContracts(in.gamma)
	return nil
}

// openInterestQuality is `meta.quality` of gex/{u}/open-interest.
type openInterestQuality struct {
	matrixQuality
	// Why `contracts` is `null`. `no_reference`: no snapshot of the previous session is stored. `split`: the shares of a fund or stock
	// were split, or their strikes adjusted, so symbols of the reference are gone or are of other contracts. `null` when there are changes.
	Reason *string `json:"changes_reason" jsonschema:"enum=no_reference,enum=split,example=no_reference"`
	// Contracts left out, because their open interest is not known in one of the two documents. `null` when `contracts` is.
	Unread *int `json:"open_interest_unread" jsonschema:"minimum=0" unit:"contracts"`
}

func computeOpenInterest(a *Answer, in *Inputs, _ *feed.Document) error {
	q := openInterestQuality{a.quality.(matrixQuality), in.gamma.Quality.ChangesReason, in.gamma.Quality.InterestUnread}
	if in.gamma.OpenInterest.Contracts != nil {
		q.Reason = nil // it is of the net
	}
	a.variants, a.quality = only(&in.gamma.OpenInterest), q
	return nil
}

// computeLevels returns the levels of gex/{u} and the max pain of the default expiration.
func computeLevels(a *Answer, in *Inputs, d *feed.Document) error {
	var pain *compute.MaxPain
	pains := painsOf(in, d.Chain)
	if i := compute.DefaultMaxPain(pains); i >= 0 {
		pain = pains[i]
	}
	a.variants = only(compute.NewKeyLevels(in.gamma, pain, d.Chain.CapturedAt, in.calendar))
	return nil
}

// KeepReference keeps what the answers of the next session would compute again from the chain of a stored answer, which is open.
func (m *Memory) KeepReference(a *Answer) {
	if in := a.Inputs; in.gamma != nil {
		chain := in.newest()[0]
		d := m.asPrevious(chain.StoredInput)
		d.Derived = &reference{chain: chain.Chain, state: in.gamma.State}
		m.before[a.Product.Underlying] = previousChain{a.Date(), d}
	}
}

var volatilityColumns = []string{"date", "atm_30d", "model_free_30d", "rank_1y", "realised_20d", "risk_reversal_25_30d", "put_call_open_interest", "method", "computed_at"}

// volatilityQuality is `meta.quality` of volatility/{u}.
type volatilityQuality struct {
	matrixQuality
	compute.VolatilityQuality
}

// gatherVolatility adds the inputs of [gammaOf] and the history of earlier sessions.
func gatherVolatility(p *Product, b *Batch, in *Inputs) error {
	session, err := in.Documents[0].Session(b.Calendar)
	if err != nil {
		return err
	}
	days, err := b.Memory.VolatilityDays(p.Name, session)
	if err != nil {
		return err
	}
	return errors.Join(gatherExposure(p, b, in), in.addState(volatilityHistory, days))
}

// VolatilityDays returns what the stored answers of the named resource left of the sessions before one, one day a session, rising. Of a
// session that is stored under two UTC dates, the later answer counts.
func (m *Memory) VolatilityDays(name string, before compute.Date) ([]compute.VolatilityDay, error) {
	days := []compute.VolatilityDay{}
	for _, stored := range m.store.Summaries(name) {
		var day compute.VolatilityDay
		if err := json.Unmarshal(stored.Body, &day); err != nil {
			return nil, fmt.Errorf("stored summary of %s: %w", stored.Date, err)
		}
		if day.Session >= before {
			break
		}
		if n := len(days); n > 0 && days[n-1].Session == day.Session {
			days = days[:n-1]
		}
		days = append(days, day)
	}
	return days[max(0, len(days)-compute.VolatilityHistory):], nil
}

func computeVolatility(a *Answer, in *Inputs, _ *feed.Document) error {
	days, err := stateOf[[]compute.VolatilityDay](in, volatilityHistory)
	if err != nil {
		return err
	}
	r := in.gamma.Volatility.With(days, in.calendar)
	v := &r.Data
	a.variants, a.quality = only(v), volatilityQuality{a.quality.(matrixQuality), r.Quality}
	a.row = &seriesRow{Values: []any{a.Date(), v.ATM30, v.ModelFree30, v.Rank, v.Realised20, v.RiskReversal30, v.PutCallOpenInterest}}
	a.leaves = struct {
		*seriesRow
		compute.VolatilityDay
	}{a.row, r.Today}
	return nil
}
