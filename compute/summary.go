package compute

// SummaryMethod names the method of [NewSummary] in receipts.
const SummaryMethod = "summary/1"

// Summary is the figures of gex/{u} and volatility/{u} that one looks at first, the `data` of gex/{u}/summary. Those answers describe
// each figure, and have the same value of the same chain.
type Summary struct {
	Symbol      string `json:"symbol" jsonschema:"pattern=^[A-Z.]+$"` // The underlying.
	SessionDate Date   `json:"session_date"`                          // Session of `meta.as_of`.
	// Published price of the underlying at `meta.as_of`.
	Spot Level `json:"spot" jsonschema:"exclusiveMinimum=0" unit:"USD or index points"`
	// Change of `spot` in its session. `null` when the upstream gives none.
	SpotChange *Ratio `json:"spot_change_pct" unit:"percent"`
	// Spot of every figure: the price at the time of the quotes.
	EffectiveSpot Level `json:"effective_spot" jsonschema:"exclusiveMinimum=0" unit:"USD or index points"`
	// Source of `effective_spot`.
	SpotSource SpotSource `json:"spot_source" jsonschema:"enum=index,enum=implied,enum=index_stale,enum=last,enum=close"`
	// Net gamma exposure. `null` when gex/{u} has none.
	Net *Dollars `json:"net_gex_dollars" unit:"USD per 1 % move of the underlying"`
	// Sign of net exposure. `null` when gex/{u} has none.
	Regime *string `json:"gamma_regime" jsonschema:"enum=positive,enum=negative,enum=neutral"`
	// Flip nearest the spot. `null` without a flip.
	Flip *Level `json:"zero_gamma_flip" unit:"USD or index points"`
	// Result of the search for the flip.
	FlipStatus FlipStatus `json:"flip_status" jsonschema:"enum=found,enum=multiple,enum=none_all_positive,enum=none_all_negative,enum=insufficient_data,enum=spot_mismatch,enum=open_interest_missing"`
	// (effective_spot − flip) / effective_spot · 100. `null` without a flip.
	FlipDistance *Ratio `json:"flip_distance_pct" unit:"percent of the spot"`
	FlipLow      *Level `json:"flip_low" unit:"USD or index points"`  // Lower end of `flip_band`. `null` without a band.
	FlipHigh     *Level `json:"flip_high" unit:"USD or index points"` // Upper end of `flip_band`. `null` without a band.
	// Strike with the most positive net exposure. `null` when no strike has a positive one.
	CallWall *Level `json:"call_wall" unit:"USD or index points"`
	// Strike with the most negative net exposure. `null` when no strike has a negative one.
	PutWall *Level `json:"put_wall" unit:"USD or index points"`
	// Flip of the contracts that expire within 7 days. `null` without one.
	VolTrigger *Level `json:"vol_trigger" unit:"USD or index points"`
	// One standard deviation of the move in one session. `null` when gex/{u} has none.
	ExpectedMove *Level `json:"expected_move_1d" jsonschema:"minimum=0" unit:"USD or index points"`
	// `net_gex_dollars` of `zero_dte`: net gamma exposure of the contracts that settle on the session date. `null` as there.
	ZeroDTENet *Dollars `json:"zero_dte_net_gex_dollars" unit:"USD per 1 % move of the underlying"`
	// `gross_share_pct` of `zero_dte`: share of these contracts in gross exposure. `null` as there.
	ZeroDTEShare *Ratio `json:"zero_dte_gross_share_pct" jsonschema:"minimum=0,maximum=100" unit:"percent"`
	// Open puts over open calls. `null` when volatility/{u} has none.
	PutCallOpenInterest *Ratio `json:"put_call_open_interest" jsonschema:"minimum=0" unit:"ratio"`
	// At-the-money volatility of the next 30 days. `null` when volatility/{u} has none.
	ATM30 *Ratio `json:"atm_30d" jsonschema:"minimum=0" unit:"percent"`
}

// NewSummary returns the summary of a gamma exposure. It shares the memory of r.
func NewSummary(r *GammaResult) *Summary {
	g, v := &r.Data, &r.Volatility.Data
	s := &Summary{
		Symbol: g.Symbol, SessionDate: g.SessionDate,
		Spot: g.Spot, SpotChange: g.SpotChange, EffectiveSpot: g.EffectiveSpot, SpotSource: g.SpotSource,
		Net: g.Net, Regime: g.Regime, Flip: g.Flip, FlipStatus: g.FlipStatus, FlipDistance: g.FlipDistance,
		CallWall: g.CallWall, PutWall: g.PutWall, VolTrigger: g.VolTrigger, ExpectedMove: g.ExpectedMove,
		ZeroDTENet: g.ZeroDTE.Net, ZeroDTEShare: g.ZeroDTE.Share,
		PutCallOpenInterest: v.PutCallOpenInterest, ATM30: v.ATM30,
	}
	if g.FlipBand != nil {
		s.FlipLow, s.FlipHigh = &g.FlipBand.Low, &g.FlipBand.High
	}
	return s
}
