package compute

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// GammaMethod names the method of [GammaExposure] in receipts.
const GammaMethod = "gex/3"

// Gamma is the `data` of gex/spx. Dollar amounts are hedge deltas per 1 % move of the index under the model
// convention, dealers long calls and short puts. Nil means unknown.
type Gamma struct {
	Symbol            string                `json:"symbol"`
	Spot              Level                 `json:"spot"`
	EffectiveSpot     Level                 `json:"effective_spot"` // the spot of every figure
	SpotSource        SpotSource            `json:"spot_source"`
	Net               *Dollars              `json:"net_gex_dollars"`
	Call              *Dollars              `json:"call_gex_dollars"`
	Put               *Dollars              `json:"put_gex_dollars"`
	Gross             *Dollars              `json:"gross_gex_dollars"`
	Tilt              *Ratio                `json:"gamma_tilt"`
	Flip              *Level                `json:"zero_gamma_flip"`
	FlipStatus        FlipStatus            `json:"flip_status"`
	FlipDistance      *Ratio                `json:"flip_distance_pct"`
	Flips             []Flip                `json:"flips"`
	FlipBand          *Band                 `json:"flip_band"`
	Scenarios         []Scenario            `json:"scenarios"`
	Regime            *string               `json:"gamma_regime"`
	CallWall          *Level                `json:"call_wall"`
	PutWall           *Level                `json:"put_wall"`
	VolTrigger        *Level                `json:"vol_trigger"`
	AbsGammaStrike    *Level                `json:"abs_gamma_strike"`
	Walls             Walls                 `json:"walls"`
	ZeroDTE           ZeroDTE               `json:"zero_dte"`
	ExpectedMove      *Level                `json:"expected_move_1d"`
	SessionDate       Date                  `json:"session_date"`
	OISettleDate      Date                  `json:"oi_settle_date"`
	OIState           string                `json:"oi_state"`
	ContractsAnalyzed int                   `json:"contracts_analyzed"`
	Conventions       []Convention          `json:"conventions"`
	Exposures         Exposures             `json:"exposures"`
	Changes           *Changes              `json:"changes"`
	OIChanges         *[]OpenInterestChange `json:"open_interest_changes"` // nil without a reference
	ByExpiration      []ExpirationGamma     `json:"by_expiration"`
	Profile           []ProfilePoint        `json:"profile"`
	ByStrike          []StrikeGamma         `json:"by_strike"`
}

// Band is a closed interval of index levels.
type Band struct {
	Low  Level `json:"low"`
	High Level `json:"high"`
}

// Scenario is the exposure and its flip under one changed assumption.
type Scenario struct {
	Name string   `json:"name"`
	Flip *Level   `json:"zero_gamma_flip"`
	Net  *Dollars `json:"net_gex_dollars"`
}

// ZeroDTE is the exposure that settles on the session date.
type ZeroDTE struct {
	Net       *Dollars `json:"net_gex_dollars"`
	Share     *Ratio   `json:"gross_share_pct"`
	Flip      *Level   `json:"zero_gamma_flip"`
	Contracts int      `json:"contracts"`
	Settled   bool     `json:"settled"` // the PM settlement of the session date is past
}

// Convention is the exposure of the used contracts under another published convention.
type Convention struct {
	Name string   `json:"name"`
	Net  *Dollars `json:"net_gex_dollars"`
	Flip *Level   `json:"zero_gamma_flip"`
	Note string   `json:"note"`
}

// ExpirationGamma is the exposure of one expiration date and settlement.
type ExpirationGamma struct {
	Expiration    Date          `json:"expiration"`
	Settlement    Settlement    `json:"settlement"`
	Net           *Dollars      `json:"net_gex_dollars"`
	Gross         *Dollars      `json:"gross_gex_dollars"`
	Share         *Ratio        `json:"gross_share_pct"`
	Forward       Level         `json:"forward"`
	ForwardSource forwardSource `json:"forward_source"`
	Exposures
}

// ProfilePoint is G at a hypothetical spot.
type ProfilePoint struct {
	Spot Level    `json:"spot"`
	Net  *Dollars `json:"net_gex_dollars"`
}

// GammaInput is what [GammaExposure] reads.
type GammaInput struct {
	Chain        *Chain
	Calendar     *Calendar
	RiskFreeRate float64     // per year, continuously compounded
	Reference    *GammaState // [GammaResult.State] of the last snapshot of the previous session; nil: not known

	// LevelsOnly says that only these fields of [GammaResult.Data] are needed: spots, net, flip and its band, walls, regime,
	// expected move, and net and share of ZeroDTE. They have the same values, at half of the cost. Other fields are empty or
	// incomplete.
	LevelsOnly bool
}

// GammaResult is the result of [GammaExposure].
type GammaResult struct {
	Data    Gamma
	Matrix  Matrix
	Quality GammaQuality
	State   *GammaState // Reference of the next session
}

// GammaExposure computes the dealer gamma exposure of a chain and its levels.
func GammaExposure(in GammaInput) GammaResult {
	chain, cal := in.Chain, in.Calendar
	e := exposure{
		GammaInput: in,
		session:    chain.Session(cal),
		quoted:     chain.QuoteInstant(cal),
		series:     newSeries(chain, cal, in.RiskFreeRate),
		contracts: ContractCounts{Listed: chain.Listed, Skipped: SkippedGamma{
			Skipped: chain.Skipped, Settled: len(chain.Contracts) - Unsettled(chain, cal),
		}},
	}
	e.effectiveSpot = findSpot(chain, e.quoted, e.series)
	e.grids = newGrid(e.level)
	price(e.series, e.level)
	e.sum()
	g := Gamma{
		Symbol:            chain.Symbol,
		Spot:              Level(chain.Spot),
		EffectiveSpot:     Level(e.level),
		SpotSource:        e.source,
		SessionDate:       e.session,
		ContractsAnalyzed: e.contracts.Used,
		ByExpiration:      e.byExpiration(),
	}
	g.OISettleDate, g.OIState = OpenInterestDate(chain.CapturedAt, cal)
	base := e.profile(variant{volScale: 1})
	base.fine = true
	found := base.findFlips()
	g.Flips, g.FlipStatus, g.Flip = append([]Flip{}, found.flips...), found.status, found.nearest
	if g.Flip != nil {
		g.FlipDistance = new(Ratio((e.level - float64(*g.Flip)) / e.level * 100))
	}
	g.Scenarios = e.scenarios(base)
	g.ZeroDTE = e.zeroDTE()
	if e.contracts.Used > 0 {
		g.Net, g.Call, g.Put, g.Gross = new(Dollars(e.net())), new(Dollars(e.call)), new(Dollars(e.put)), new(Dollars(e.gross()))
		g.Tilt = finiteOrNil(Ratio(e.call / -e.put))
		g.FlipBand = flipBand(g.Flip, g.Scenarios)
		g.Regime = new(e.regime(g.Scenarios))
		g.ExpectedMove = e.expectedMove()
		g.Exposures = e.greeks.exposures()
		e.levels(&g)
	}
	if !in.LevelsOnly {
		g.Profile = base.points()
		g.Conventions = e.conventions(g.Net, g.Flip)
		g.ByStrike = e.byStrike(e.strikes, strikeReach)
	}
	if e.mismatch() {
		g.withhold()
	}
	if in.LevelsOnly {
		return GammaResult{Data: g}
	}
	q := e.quality(g.Flip)
	g.Changes, q.ChangesReason = e.changes(g.Net, g.Flip)
	g.OIChanges = e.openInterestChanges()
	return GammaResult{Data: g, Matrix: e.matrix(), Quality: q, State: e.state(g.Net, g.Flip)}
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
		rows = append(rows, ExpirationGamma{
			Expiration: s.Expiration, Settlement: s.settlement,
			Net: new(Dollars(s.call + s.put)), Gross: new(Dollars(s.call - s.put)),
			Share:   percentOf(s.call-s.put, e.gross()),
			Forward: Level(s.forward), ForwardSource: s.source, Exposures: s.greeks.exposures(),
		})
	}
	return rows
}

// byDate returns the series sorted by expiration date and settlement.
func (e *exposure) byDate() []*series {
	return slices.SortedStableFunc(slices.Values(e.series), func(a, b *series) int {
		return cmp.Or(cmp.Compare(a.Expiration, b.Expiration), cmp.Compare(a.settlement, b.settlement))
	})
}

// regime compares the net exposure with its uncertainty: it is neutral when the net is small, or when the spot lies between
// the flips of the scenarios vol_down_10 and vol_up_10.
func (e *exposure) regime(scenarios []Scenario) string {
	net, spot := e.net(), Level(e.level)
	down, up := scenarios[0].Flip, scenarios[1].Flip
	switch {
	case math.Abs(net) < 0.01*e.gross() || net == 0:
		return "neutral"
	case down != nil && up != nil && spot >= min(*down, *up) && spot <= max(*down, *up):
		return "neutral"
	case net > 0:
		return "positive"
	}
	return "negative"
}

// expectedMove returns S·v/√n: one standard deviation, in index points, of the move in one session that at-the-money
// volatility implies. It uses the nearest series that trades in at least one session after the session date. n counts the
// sessions that this series still trades, the rest of today's as a fraction. The result is nil when no session is left,
// because the quotes are much newer than the index.
func (e *exposure) expectedMove() *Level {
	cal, today := e.Calendar, e.Calendar.SessionDate(e.quoted)
	var nearest *series
	var last Date // its last trading day
	for _, s := range e.series {
		lastTrading := s.Expiration
		if s.settlement == AM {
			lastTrading--
		}
		if (nearest == nil || s.left < nearest.left) && cal.SessionsBetween(e.session, lastTrading) >= 1 {
			nearest, last = s, lastTrading
		}
	}
	if nearest == nil {
		return nil
	}
	var atm *strike
	for i := range nearest.strikes {
		row := &nearest.strikes[i]
		if row.step != volNone && (atm == nil || math.Abs(row.k-nearest.forward) < math.Abs(atm.k-nearest.forward)) {
			atm = row
		}
	}
	if atm == nil {
		return nil
	}
	n := float64(cal.SessionsBetween(today, last))
	if today <= last {
		opens, closes := cal.Open(today), cal.Close(today)
		n += min(max(closes.Sub(e.quoted).Seconds()/closes.Sub(opens).Seconds(), 0), 1)
	}
	return finiteOrNil(Level(e.level * atm.v / math.Sqrt(n)))
}
