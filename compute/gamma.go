package compute

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// GammaMethod names the method of [GammaExposure] in receipts.
const GammaMethod = "gex/9"

// Gamma is the dealer gamma exposure of a chain and the levels computed from it, the `data` of gex/{u}. Positions are
// modelled: dealers are taken to be long every call and short every put. When `flip_status` is `open_interest_missing`, every figure that
// is a sum over all contracts, or rests on one, is `null`. When `flip_status` is `spot_mismatch`, every wall,
// and every figure that depends on the spot, is `null`.
type Gamma struct {
	Symbol string `json:"symbol" jsonschema:"pattern=^[A-Z.]+$"` // The underlying.
	// Published level of an index, last price of a fund or stock, at `meta.as_of`.
	Spot Level `json:"spot" jsonschema:"exclusiveMinimum=0" unit:"USD or index points"`
	// Change of `spot` in its session, in percent of the close before. `null` when the upstream gives none.
	SpotChange *Ratio `json:"spot_change_pct" unit:"percent"`
	// Spot of every figure of this answer: the price at the time of the quotes. Outside the session the published level of an index
	// stands still while option quotes move, and a share trades on while quotes stand still. Then this is the level that the
	// forwards imply.
	EffectiveSpot Level `json:"effective_spot" jsonschema:"exclusiveMinimum=0" unit:"USD or index points"`
	// Source of `effective_spot`. `index`: the published level, which is at most 5 minutes from the quotes and agrees with them.
	// `implied`: the level that put–call parity of the series of the next 60 days implies. `index_stale`: the published level,
	// although it stands still, because too few series agree on a level. `last`: the last price of a fund or stock.
	// `meta.quality.spot_note` says when it is of another moment than the quotes. `close`: the closing price of a fund or stock
	// that has traded since its options closed.
	SpotSource SpotSource `json:"spot_source" jsonschema:"enum=index,enum=implied,enum=index_stale,enum=last,enum=close"`
	// Net gamma exposure: the hedge delta in dollars that dealers must trade per 1 % move. Calls count as positive, puts as
	// negative. Above 0, dealers trade against a move. Below 0, dealers trade with a move. `null` when no contract could be
	// used, and while open interest is not known.
	Net *Dollars `json:"net_gex_dollars" unit:"USD per 1 % move of the underlying"`
	// Gamma exposure of the calls, never negative. `null` when no contract could be used, and while the open interest of over 1 % of the
	// calls is not known.
	Call *Dollars `json:"call_gex_dollars" jsonschema:"minimum=0" unit:"USD per 1 % move of the underlying"`
	// Gamma exposure of the puts, never positive. `null` when no contract could be used, and while the open interest of over 1 % of the
	// puts is not known.
	Put *Dollars `json:"put_gex_dollars" jsonschema:"maximum=0" unit:"USD per 1 % move of the underlying"`
	// Exposure of the calls minus exposure of the puts: the sum of their absolute values. `null` when no contract could be used.
	Gross *Dollars `json:"gross_gex_dollars" jsonschema:"minimum=0" unit:"USD per 1 % move of the underlying"`
	// Exposure of the calls over the absolute exposure of the puts. Over 1, the calls have the larger exposure. `null` when no
	// contract could be used or the puts have no exposure.
	Tilt *Ratio `json:"gamma_tilt" jsonschema:"minimum=0" unit:"ratio"`
	// Price of the underlying nearest the spot at which net gamma exposure, repriced at that level, changes sign. `null` when net
	// exposure has no material change of sign within 15 % of the spot: one with at least 1 % of the largest exposure on both sides.
	// `flip_status` says why.
	Flip *Level `json:"zero_gamma_flip" unit:"USD or index points"`
	// Result of the search for the flip. `found`: one sign change. `multiple`: several sign changes. `none_all_positive` and
	// `none_all_negative`: no material sign change, exposure has the sign in the name. `insufficient_data`: no contract could be
	// used, or exposure is 0 everywhere. `spot_mismatch`: the published price and the forwards differ by more than 10 %, so the
	// document contradicts itself. `open_interest_missing`: the open interest of over 1 % of the calls or of the puts is not known.
	FlipStatus FlipStatus `json:"flip_status" jsonschema:"enum=found,enum=multiple,enum=none_all_positive,enum=none_all_negative,enum=insufficient_data,enum=spot_mismatch,enum=open_interest_missing"`
	// (effective_spot − flip) / effective_spot · 100. Positive when the spot is above the flip. `distance_pct` of max pain
	// has the opposite sign. `null` without a flip.
	FlipDistance *Ratio `json:"flip_distance_pct" unit:"percent of the spot"`
	// Every material sign change within 15 % of the spot, lowest first. Empty without a sign change.
	Flips []Flip `json:"flips"`
	// Lowest and highest flip of the model and its scenarios. The band shows how far the flip moves when one assumption changes.
	// `null` when neither the model nor a scenario has a flip.
	FlipBand *Band `json:"flip_band"`
	// Net exposure and flip under one changed assumption each. Always these five, in this order: `vol_down_10`, `vol_up_10`,
	// `no_carry`, `ex_nearest_expiration`, `within_90_days`.
	Scenarios []Scenario `json:"scenarios" jsonschema:"minItems=5,maxItems=5"`
	// Sign of net exposure. `neutral`: net exposure is under 1 % of gross exposure, or it has the other sign in a volatility scenario or
	// without the contracts that settle on the session date. Near zero, the sign is the weakest statement of the convention. `null`
	// when no contract could be used.
	Regime *string `json:"gamma_regime" jsonschema:"enum=positive,enum=negative,enum=neutral"`
	// Strike with the most positive net exposure, on either side of the spot. `null` when no strike has a positive one.
	CallWall *Level `json:"call_wall" unit:"USD or index points"`
	// Strike with the most negative net exposure, on either side of the spot. `null` when no strike has a negative one.
	PutWall *Level `json:"put_wall" unit:"USD or index points"`
	// Flip of the contracts that expire within 7 calendar days of the session date: below it, modelled dealers of these contracts trade
	// with a move. The crossing nearest the spot. `null` without one within 15 % of the spot.
	VolTrigger *Level `json:"vol_trigger" unit:"USD or index points"`
	// Strike with the largest gross exposure. `null` when no strike has exposure.
	AbsGammaStrike *Level  `json:"abs_gamma_strike" unit:"USD or index points"`
	Walls          Walls   `json:"walls"`    // Strikes with the largest values of four measures.
	ZeroDTE        ZeroDTE `json:"zero_dte"` // Contracts that settle on the session date.
	// One standard deviation of the move of the underlying in one session, as implied by the at-the-money volatility of the nearest
	// expiration that has a full session left: its `expected_move` in volatility/{u} over the root of the sessions left. `null` when no such expiration has a volatility.
	ExpectedMove *Level `json:"expected_move_1d" jsonschema:"minimum=0" unit:"USD or index points"`
	SessionDate  Date   `json:"session_date"`   // Exchange session that the quotes belong to, by New York time.
	OISettleDate Date   `json:"oi_settle_date"` // Session whose settled positions the open interest describes.
	// `updating`: from midnight to 07:15 New York of a session day, while the overnight update of open interest arrives.
	// `settled`: at any other time.
	OIState string `json:"oi_state" jsonschema:"enum=settled,enum=updating"`
	// Contracts that the sums count. `meta.quality.contracts` says why the others were not used.
	ContractsAnalyzed int `json:"contracts_analyzed" jsonschema:"minimum=0" unit:"contracts"`
	// Net exposure and flip of the same contracts under conventions that other publishers use. Always these four, in this order:
	// `model`, `published_gamma`, `perfiliev`, `volume_weighted`.
	Conventions []Convention `json:"conventions" jsonschema:"minItems=4,maxItems=4"`
	Exposures   Exposures    `json:"exposures"`
	// What changed net exposure and the flip since the reference: the last snapshot of the previous session that was computed
	// from a chain. `null` when `meta.quality.changes_reason` says why.
	Changes *Changes `json:"changes"`
	// Contracts that have not settled with the largest changes of open interest since the reference, largest first. `null`
	// without a reference.
	OIChanges *[]OpenInterestChange `json:"open_interest_changes" jsonschema:"maxItems=10"`
	// One row per expiration date and settlement that has not settled, nearest first.
	ByExpiration []ExpirationGamma `json:"by_expiration"`
	// Net exposure repriced at 121 levels from 6 % below to 6 % above the spot, 0.1 % apart, lowest first.
	Profile []ProfilePoint `json:"profile" jsonschema:"maxItems=121"`
	// Strikes within 15 % of the spot that have open interest, lowest first. Each row is the sum over both roots and all
	// expirations.
	ByStrike []StrikeGamma `json:"by_strike"`
}

// Band is a closed interval of prices of the underlying.
type Band struct {
	Low  Level `json:"low" unit:"USD or index points"`  // Lower end.
	High Level `json:"high" unit:"USD or index points"` // Upper end.
}

// Scenario is the exposure under one changed assumption.
type Scenario struct {
	// `vol_down_10`: every volatility × 0.9. `vol_up_10`: every volatility × 1.1. `no_carry`: every forward equals the spot.
	// `ex_nearest_expiration`: without the nearest expiration date. `within_90_days`: only expirations of the next 90 calendar
	// days.
	Name string `json:"name" jsonschema:"enum=vol_down_10,enum=vol_up_10,enum=no_carry,enum=ex_nearest_expiration,enum=within_90_days"`
	Flip *Level `json:"zero_gamma_flip" unit:"USD or index points"` // Flip under this assumption. `null` without a flip.
	// Net gamma exposure at the spot under this assumption. `null` when no contract belongs to the scenario, and while open
	// interest is not known.
	Net *Dollars `json:"net_gex_dollars" unit:"USD per 1 % move of the underlying"`
}

// ZeroDTE is the exposure of the contracts that settle on the session date.
type ZeroDTE struct {
	// Net gamma exposure of these contracts. `null` when `meta.quality.zero_dte_reason` says why: they have settled, the document lacks them,
	// or their open interest is not known.
	Net *Dollars `json:"net_gex_dollars" unit:"USD per 1 % move of the underlying"`
	// Share of these contracts in gross exposure. `null` when gross exposure is 0 or `null`, and when their net exposure is.
	Share *Ratio `json:"gross_share_pct" jsonschema:"minimum=0,maximum=100" unit:"percent"`
	// Flip of these contracts alone. `null` without a flip, and when their net exposure is `null`.
	Flip *Level `json:"zero_gamma_flip" unit:"USD or index points"`
	// How many of these contracts were used. 0 once they have settled.
	Contracts int `json:"contracts" jsonschema:"minimum=0" unit:"contracts"`
	// Whether the settlement at the close of the session date is past. It is past in the last snapshot of every past date.
	Settled bool `json:"settled"`
	// Strike with the largest gross exposure of these contracts, within 10 % of the spot. `null` when no strike has exposure, and when
	// their net exposure is.
	Pin *Level `json:"pin_strike" unit:"USD or index points"`
	// One standard deviation of the move of the underlying up to the close, from the smile of the contracts that settle then. `null` when
	// there is none with a volatility, after the close, and after `spot_mismatch`.
	RemainingMove *Level `json:"remaining_move" jsonschema:"minimum=0" unit:"USD or index points"`
	// The strikes within 10 % of the spot with the most positive net exposure of these contracts, largest first.
	CallWalls []StrikeWall `json:"call_walls" jsonschema:"maxItems=3"`
	// The strikes within 10 % of the spot with the most negative net exposure of these contracts, largest first.
	PutWalls []StrikeWall `json:"put_walls" jsonschema:"maxItems=3"`
}

// StrikeWall is a strike with its net exposure.
type StrikeWall struct {
	Strike Level   `json:"strike" unit:"USD or index points"`                         // Strike.
	Net    Dollars `json:"net_gex_dollars" unit:"USD per 1 % move of the underlying"` // Its net gamma exposure.
}

// Convention is the exposure of the same contracts under one published convention.
type Convention struct {
	// `model`: the convention of this interface. `published_gamma`: with the rounded gamma that the upstream publishes.
	// `perfiliev`: as in Perfiliev (2022). `volume_weighted`: with the session's volume in place of open interest. Settled
	// contracts are left out, so after the close the volume of the contracts that settled at the close is missing.
	Name string `json:"name" jsonschema:"enum=model,enum=published_gamma,enum=perfiliev,enum=volume_weighted"`
	// Net gamma exposure by this convention. `null` when no contract has what the convention needs, and while open interest is not known;
	// `volume_weighted` also while over 1 % of the calls or of the puts have no volume.
	Net *Dollars `json:"net_gex_dollars" unit:"USD per 1 % move of the underlying"`
	// Flip by this convention. `null` without a flip. `published_gamma` never has a flip, because a published gamma cannot be
	// repriced.
	Flip *Level `json:"zero_gamma_flip" unit:"USD or index points"`
	Note string `json:"note"` // What the convention assumes, in words.
}

// ExpirationGamma is the exposure of one expiration date and settlement.
type ExpirationGamma struct {
	Expiration Date `json:"expiration"` // Expiration date.
	// `am`: settles at the opening print, 09:30 New York. `pm`: settles at the close.
	Settlement Settlement `json:"settlement"`
	// Net gamma exposure of this row. `null` after `spot_mismatch`, and while open interest of the row is not known.
	Net *Dollars `json:"net_gex_dollars" unit:"USD per 1 % move of the underlying"`
	// Gross gamma exposure of this row. `null` after `spot_mismatch`, and while open interest of the row is not known.
	Gross *Dollars `json:"gross_gex_dollars" jsonschema:"minimum=0" unit:"USD per 1 % move of the underlying"`
	// Share of this row in the gross exposure of all rows. `null` when gross exposure is 0 or `null`, and when that of the row is `null`.
	Share   *Ratio `json:"gross_share_pct" jsonschema:"minimum=0,maximum=100" unit:"percent"`
	Forward Level  `json:"forward" unit:"USD or index points"` // Forward of the underlying for this settlement.
	// Source of the forward, best first. `parity`: put–call parity of the row's own quotes. `other_settlement`: parity forward
	// of the other settlement of the date. `interpolated` and `extrapolated`: parity forwards of other dates. `none`: no source,
	// the forward equals the spot.
	ForwardSource forwardSource `json:"forward_source" jsonschema:"enum=parity,enum=other_settlement,enum=interpolated,enum=extrapolated,enum=none"`
	Exposures                   // of this row alone
}

// ProfilePoint is the net exposure at a hypothetical price of the underlying.
type ProfilePoint struct {
	Spot Level `json:"spot" unit:"USD or index points"` // Hypothetical price.
	// Net gamma exposure, repriced at this level with each strike's volatility unchanged. `null` when no contract could be
	// used, and while open interest is not known.
	Net *Dollars `json:"net_gex_dollars" unit:"USD per 1 % move of the underlying"`
}

// GammaInput is what [GammaExposure] reads.
type GammaInput struct {
	Chain        *Chain
	Calendar     *Calendar
	RiskFreeRate float64     // per year, continuously compounded
	Reference    *GammaState // [GammaResult.State] of the last snapshot of the previous session; nil: not known
}

// GammaResult is the result of [GammaExposure].
type GammaResult struct {
	Data   Gamma
	Matrix Matrix
	// OpenInterest has more of the changes of open interest than Data.
	OpenInterest OpenInterestChanges
	Quality      GammaQuality
	State        *GammaState // Reference of the next session
	// Volatility is that of the same forwards and strikes.
	Volatility VolatilityResult
}

// GammaExposure computes the dealer gamma exposure of a chain and its levels.
func GammaExposure(in GammaInput) GammaResult {
	chain, cal := in.Chain, in.Calendar
	e := exposure{
		GammaInput: in,
		underlying: UnderlyingOf(chain.Symbol),
		session:    chain.Session(cal),
		quoted:     chain.QuoteInstant(cal),
		series:     newSeries(chain, cal, in.RiskFreeRate),
		contracts: ContractCounts{Listed: chain.Listed, Skipped: SkippedGamma{
			Skipped: chain.Skipped, Settled: len(chain.Contracts) - Unsettled(chain, cal).Contracts,
		}},
	}
	e.effectiveSpot = findSpot(chain, e.underlying, cal, e.quoted, e.series)
	price(e.series, e.level, in.RiskFreeRate)
	e.sum()
	e.contracts.InterestUnknown = InterestUnknown{e.all.interest.lacking[Call], e.all.interest.lacking[Put]}
	g := Gamma{
		Symbol:            chain.Symbol,
		Spot:              Level(chain.Spot),
		SpotChange:        finiteOrNil(Ratio(chain.PriceChangePercent)),
		EffectiveSpot:     Level(e.level),
		SpotSource:        e.source,
		SessionDate:       e.session,
		ContractsAnalyzed: e.contracts.Used,
		ByExpiration:      e.byExpiration(),
	}
	g.OISettleDate, g.OIState = OpenInterestDate(chain.CapturedAt, cal)
	base := e.profile(e.summed(), variant{volScale: 1}).sample()
	found := base.findFlips()
	g.Flips, g.FlipStatus, g.Flip = append([]Flip{}, found.flips...), found.status, found.nearest
	if g.Flip != nil {
		g.FlipDistance = new(Ratio((e.level - float64(*g.Flip)) / e.level * 100))
	}
	switch {
	case e.mismatch:
		g.FlipStatus = FlipSpotMismatch
	case !e.all.interest.complete():
		g.FlipStatus = FlipUnknown
	}
	g.Scenarios = e.scenarios()
	zeroDTE, zeroDTEReason := e.zeroDTE()
	g.ZeroDTE = zeroDTE
	if e.contracts.Used > 0 && !e.mismatch {
		g.Call, g.Put = ifKnown(&e.all.interest, Call, Dollars(e.call)), ifKnown(&e.all.interest, Put, Dollars(e.put))
		g.ExpectedMove = e.expectedMove()
	}
	if e.contracts.Used > 0 && e.summed() != nil {
		g.Net, g.Gross = new(Dollars(e.net())), new(Dollars(e.gross()))
		g.Tilt = finiteOrNil(Ratio(e.call / -e.put))
		g.FlipBand = flipBand(g.Flip, g.Scenarios)
		g.Regime = new(e.regime(g.Scenarios))
		g.Exposures = e.greeks.exposures()
		g.VolTrigger = e.profile(e.series, variant{volScale: 1, keep: func(s *series) bool { return s.Expiration-e.session <= triggerDays }}).sample().findFlips().nearest
		e.levels(&g)
	}
	g.Profile = base.points()
	g.Conventions = e.conventions(g.Net, g.Flip)
	g.ByStrike = e.byStrike(e.strikes, strikeReach)
	q := e.quality(g.Flip)
	q.ZeroDTEReason = zeroDTEReason
	g.Changes, q.ChangesReason = e.changes(g.Net, g.Flip)
	o := OpenInterestChanges{Symbol: g.Symbol, SessionDate: g.SessionDate, OISettleDate: g.OISettleDate, OIState: g.OIState}
	if q.ChangesReason == nil || *q.ChangesReason != split {
		o.Contracts, q.InterestUnread = e.openInterestChanges()
	}
	if o.Contracts != nil {
		o.ReferenceAsOf, g.OIChanges = &in.Reference.chain.AsOf, new((*o.Contracts)[:min(len(*o.Contracts), maxGammaChanges)])
	}
	m := e.matrix()
	g.ZeroDTE.nameStrikes(m.Parts[0].ByStrike, g.EffectiveSpot)
	state := &GammaState{in.RiskFreeRate, e.level, chain, e.series, g.Net, g.Flip}
	return GammaResult{Data: g, Matrix: m, OpenInterest: o, Quality: q, State: state, Volatility: e.volatility()}
}

// OpenInterestDate returns the session whose closing open interest a document has, and the state of that count. The state
// is updating before 07:15 New York on the day of a session, when the overnight update may be incomplete, and settled at
// any other time.
func OpenInterestDate(capturedAt time.Time, cal *Calendar) (settled Date, state string) {
	ny := capturedAt.In(NewYork)
	day := DateOf(ny)
	last := cal.OnOrBefore(day)
	if last == day && ny.Before(day.At(7, 15, 0, NewYork)) {
		return cal.Previous(cal.Previous(day)), "updating"
	}
	return cal.Previous(last), "settled"
}

func (e *exposure) byExpiration() []ExpirationGamma {
	rows := make([]ExpirationGamma, 0, len(e.series))
	for _, s := range e.byDate() {
		interest := positionsOf(s).interest
		row := ExpirationGamma{
			Expiration: s.Expiration, Settlement: s.settlement,
			Net: e.dollars(interest, s.call+s.put), Gross: e.dollars(interest, s.call-s.put),
			Forward: Level(s.forward), ForwardSource: s.source,
		}
		if row.Net != nil {
			row.Exposures = s.greeks.exposures()
		}
		if row.Net != nil && e.all.interest.complete() {
			row.Share = percentOf(s.call-s.put, e.gross())
		}
		rows = append(rows, row)
	}
	return rows
}

func (e *exposure) byDate() []*series {
	return slices.SortedStableFunc(slices.Values(e.series), func(a, b *series) int {
		return cmp.Or(cmp.Compare(a.Expiration, b.Expiration), cmp.Compare(a.settlement, b.settlement))
	})
}

// regime is the sign of the net exposure, or neutral where the data cannot tell it: when the net is small, and when it has the other
// sign with volatilities a tenth lower or higher, or without the contracts of the session date, whose open interest changes within the
// session.
func (e *exposure) regime(scenarios []Scenario) string {
	later := 0.0
	for _, s := range e.series {
		if s.Expiration > e.session {
			later += s.call + s.put
		}
	}
	net, down, up := e.net(), float64(*scenarios[0].Net), float64(*scenarios[1].Net)
	switch {
	case math.Abs(net) < 0.01*e.gross() || min(net*down, net*up, net*later) < 0 || net == 0:
		return "neutral"
	case net > 0:
		return "positive"
	}
	return "negative"
}

// expectedMove returns S·√(w/n): one standard deviation, in points, of the move in one session that the at-the-money variance w
// implies. It uses the nearest series that trades in at least one session after the session date. n counts the
// sessions that this series still trades, the rest of today's as a fraction. The result is nil when no session is left,
// because the quotes are much newer than the spot.
func (e *exposure) expectedMove() *Level {
	cal, today := e.Calendar, e.Calendar.SessionDate(e.quoted)
	var nearest *series
	var last Date // its last trading day
	for _, s := range e.series {
		lastTrading := s.settles
		if s.settlement == AM {
			lastTrading--
		}
		if len(s.strikes) > 0 && (nearest == nil || s.left < nearest.left) && cal.SessionsBetween(e.session, lastTrading) >= 1 {
			nearest, last = s, lastTrading
		}
	}
	if nearest == nil {
		return nil
	}
	n := float64(cal.SessionsBetween(today, last))
	if today <= last {
		opens, closes := cal.Open(today), cal.Close(today)
		n += min(max(closes.Sub(e.quoted).Seconds()/closes.Sub(opens).Seconds(), 0), 1)
	}
	return finiteOrNil(Level(e.level * math.Sqrt(nearest.atTheMoney()/n)))
}
