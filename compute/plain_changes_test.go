package compute_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"strikecache/compute"
)

// plainExposures are the exposures of §1.4.
type plainExposures struct {
	Delta *float64 `json:"delta_dollars"`
	Vanna *float64 `json:"vanna_dollars_per_vol_point"`
	Charm *float64 `json:"charm_dollars_per_day"`
	Later *float64 `json:"charm_ex_zero_dte_dollars_per_day"`
}

// exposures sums the exposures of §1.4 over legs. today is the session date.
func exposuresOf(legs []leg, spot, rate float64, today compute.Date) plainExposures {
	var delta, vanna, charm, later float64
	for _, l := range legs {
		t := math.Max(l.group.years, 900.0/(365*86400))
		sigma := l.v / math.Sqrt(t)
		b := math.Log(l.group.forward/spot) / t
		d1 := l.logFK/l.v + l.v/2
		d2 := d1 - l.v
		density := math.Exp(-d1*d1/2) / math.Sqrt(2*math.Pi)
		side := 1.0 // of the delta
		if l.contract.Right == compute.Put {
			side = -1
		}
		weight := l.sign * l.weight * 100 * spot
		delta += weight * side * l.discount * normal(side*d1)
		slope := 0.0
		if density != 0 {
			vanna += weight * 0.01 * -l.discount * density * d2 / sigma
			slope = density * (b/(sigma*math.Sqrt(t)) - d2/(2*t))
		}
		decay := weight / 365 * -l.discount * (slope + side*(b-rate)*normal(side*d1))
		charm += decay
		if l.group.expiration > today {
			later += decay
		}
	}
	return plainExposures{known(delta), known(vanna), known(charm), known(later)}
}

// plainState is the state of §1.5: every contract with T > 0. v is 0 without a volatility.
type plainState struct {
	asOf       time.Time
	spot, rate float64
	net, flip  *float64
	held       map[string]plainHeld // by symbol
	unread     map[string]plainHeld // whose open interest cannot be read
}

// plainHeld is one contract of a state.
type plainHeld struct {
	root                           string
	expiration                     compute.Date
	settlement                     compute.Settlement
	strike                         float64
	right                          compute.Right
	openInterest, v, forward, secs float64
}

// stateOf returns the state of the groups.
func (r *plainResult) stateOf(in plainInput, groups []*plainSeries) *plainState {
	s := &plainState{in.Chain.AsOf, r.EffectiveSpot, in.Rate, r.Net, r.Flip, map[string]plainHeld{}, map[string]plainHeld{}}
	for _, g := range groups {
		for _, c := range g.contracts {
			v := 0.0
			if smile := g.smileAt(c.Strike); smile.step != stepNone {
				v = smile.v
			}
			s.held[plainSymbol(c)] = plainHeld{g.root, g.expiration, g.settlement, c.Strike, c.Right, c.OpenInterest, v, g.forward, g.seconds}
		}
	}
	for i := range in.Chain.Unread {
		c := &in.Chain.Unread[i]
		s.unread[plainSymbol(c)] = plainHeld{expiration: c.Expiration, settlement: c.Settlement}
	}
	return s
}

func plainSymbol(c *compute.Contract) string {
	letter := "C"
	if c.Right == compute.Put {
		letter = "P"
	}
	return fmt.Sprintf("%s%s%s%08.0f", c.Root, c.Expiration.Midnight().Format("060102"), letter, c.Strike*1000)
}

// gexOf is the GEX of one contract of a state.
func gexOf(h plainHeld, spot, rate float64) float64 {
	d1 := math.Log(h.forward/h.strike)/h.v + h.v/2
	density := math.Exp(-d1*d1/2) / math.Sqrt(2*math.Pi)
	if density == 0 || h.openInterest == 0 {
		return 0
	}
	gamma := h.forward / spot * math.Exp(-rate*h.secs/(365*86400)) * density / (spot * h.v)
	if h.right == compute.Put {
		gamma = -gamma
	}
	return gamma * h.openInterest * 100 * spot * spot * 0.01
}

// plainChanges is `changes` of §1.5.
type plainChanges struct {
	ReferenceAsOf time.Time  `json:"reference_as_of"`
	Net           plainParts `json:"net_gex_dollars"`
	Flip          struct {
		From *float64 `json:"from"`
		To   *float64 `json:"to"`
	} `json:"flip"`
}

type plainParts struct {
	From         float64 `json:"from"`
	To           float64 `json:"to"`
	Expired      float64 `json:"expired"`
	Spot         float64 `json:"spot"`
	Time         float64 `json:"time"`
	Volatility   float64 `json:"volatility"`
	OpenInterest float64 `json:"open_interest"`
	Listed       float64 `json:"listed"`
}

type plainInterest struct {
	Contract   string        `json:"contract"`
	Strike     float64       `json:"strike"`
	Expiration compute.Date  `json:"expiration"`
	Right      compute.Right `json:"option_type"`
	From       float64       `json:"from"`
	To         float64       `json:"to"`
}

// compareStates fills changes, open_interest_changes and the reason. settled says whether a contract has settled at the quote instant
// of today.
func (r *plainResult) compareStates(before, now *plainState, settled func(plainHeld) bool) {
	if before == nil {
		r.quality.ChangesReason = new("no_reference")
		return
	}
	r.compareInterest(before, now, settled)
	switch {
	case r.Net == nil:
		r.quality.ChangesReason = new("net_unknown")
		return
	case before.net == nil:
		r.quality.ChangesReason = new("reference_net_unknown")
		return
	}
	p := plainParts{From: *before.net, To: *r.Net}
	for symbol, was := range before.held {
		if was.v == 0 {
			continue
		}
		start := gexOf(was, before.spot, before.rate)
		is, both := now.held[symbol]
		both = both && is.v > 0
		switch {
		case settled(was):
			p.Expired -= start
			continue
		case !both:
			p.Listed -= start
			continue
		}
		state := was
		step := func(part *float64, spot, rate float64) {
			next := gexOf(state, spot, rate)
			*part += next - start
			start = next
		}
		state.forward = was.forward * now.spot / before.spot
		step(&p.Spot, now.spot, before.rate)
		state.secs, state.v = is.secs, was.v*math.Sqrt(is.secs/was.secs)
		step(&p.Time, now.spot, now.rate)
		state.v, state.forward = is.v, is.forward
		step(&p.Volatility, now.spot, now.rate)
		state.openInterest = is.openInterest
		step(&p.OpenInterest, now.spot, now.rate)
	}
	for symbol, is := range now.held {
		if before.held[symbol].v == 0 && is.v > 0 {
			p.Listed += gexOf(is, now.spot, now.rate)
		}
	}
	r.Changes = &plainChanges{ReferenceAsOf: before.asOf, Net: p}
	r.Changes.Flip.From, r.Changes.Flip.To = before.flip, r.Flip
}

// compareInterest fills in the ten largest changes of unsettled contracts, and the number of those that cannot be compared.
func (r *plainResult) compareInterest(before, now *plainState, settled func(plainHeld) bool) {
	unread := map[string]bool{}
	for _, s := range []*plainState{before, now} {
		for symbol, h := range s.unread {
			if !settled(h) {
				unread[symbol] = true
			}
		}
	}
	r.quality.Unread = new(len(unread))
	all := map[string]plainHeld{}
	for symbol, h := range before.held {
		all[symbol] = h
	}
	for symbol, h := range now.held {
		all[symbol] = h
	}
	rows := []plainInterest{}
	for symbol, h := range all {
		row := plainInterest{symbol, h.strike, h.expiration, h.right, before.held[symbol].openInterest, now.held[symbol].openInterest}
		if !settled(h) && row.From != row.To && !unread[symbol] {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b plainInterest) int {
		return cmp.Or(-cmp.Compare(math.Abs(a.To-a.From), math.Abs(b.To-b.From)), cmp.Compare(a.Contract, b.Contract))
	})
	rows = rows[:min(10, len(rows))]
	r.OIChanges = &rows
}

// plainMatrix is §1.6.
type plainMatrix struct {
	Underlying    string                  `json:"symbol"`
	Spot          float64                 `json:"spot"`
	EffectiveSpot float64                 `json:"effective_spot"`
	SessionDate   compute.Date            `json:"session_date"`
	Expirations   []plainMatrixExpiration `json:"expirations"`
	Strikes       []plainMatrixStrike     `json:"strikes"`
	Net           [][]*float64            `json:"net_gex_dollars"`
	Parts         []plainPart             `json:"parts"`
}

type plainMatrixExpiration struct {
	Expiration compute.Date       `json:"expiration"`
	Settlement compute.Settlement `json:"settlement"`
	Net        *float64           `json:"net_gex_dollars"`
}

type plainMatrixStrike struct {
	Strike float64  `json:"strike"`
	Net    *float64 `json:"net_gex_dollars"`
}

// plainPart is the strikes of the expirations from one date to another.
type plainPart struct {
	Name     string        `json:"name"`
	From     compute.Date  `json:"from"`
	To       compute.Date  `json:"to"`
	ByStrike []plainStrike `json:"by_strike"`
}

// part returns the strikes of the groups that expire from the session date to last.
func (r *plainResult) part(name string, last compute.Date, groups []*plainSeries, legs []leg, spot float64, unknown bool) plainPart {
	p := plainPart{Name: name, From: r.SessionDate, To: last}
	var listed []*plainSeries
	for _, g := range groups {
		if g.expiration >= r.SessionDate && g.expiration <= last {
			listed = append(listed, g)
		}
	}
	var used []leg
	for _, l := range legs {
		if slices.Contains(listed, l.group) {
			used = append(used, l)
		}
	}
	for _, row := range strikeRows(listed, used, spot) {
		if row.CallOpenInterest+row.PutOpenInterest == 0 || 100*math.Abs(row.Strike-spot) > 10*spot {
			continue
		}
		if unknown {
			row.Call, row.Put, row.Net = nil, nil, nil
		}
		p.ByStrike = append(p.ByStrike, row)
	}
	return p
}

// matrix fills the matrix. The rows of by_expiration are in order.
func (r *plainResult) matrix(groups []*plainSeries, legs []leg, spot float64, unknown bool) {
	m := plainMatrix{Underlying: r.Underlying, Spot: r.Spot, EffectiveSpot: spot, SessionDate: r.SessionDate}
	sum := func(keep func(leg) bool) (net *float64, used bool) {
		total, n := 0.0, 0
		for _, l := range legs {
			if keep(l) {
				total += l.gex(0, spot)
				n++
			}
		}
		if unknown {
			return nil, n > 0
		}
		return known(total), n > 0
	}
	for _, row := range r.ByExpiration {
		net, used := sum(func(l leg) bool { return l.group.expiration == row.Expiration && l.group.settlement == row.Settlement })
		if used && len(m.Expirations) < 16 {
			m.Expirations = append(m.Expirations, plainMatrixExpiration{row.Expiration, row.Settlement, net})
		}
	}
	var strikes []float64
	for _, l := range legs {
		if k := l.contract.Strike; 100*math.Abs(k-spot) <= 10*spot && !slices.Contains(strikes, k) {
			strikes = append(strikes, k)
		}
	}
	slices.Sort(strikes)
	for _, k := range strikes {
		net, _ := sum(func(l leg) bool { return l.contract.Strike == k })
		m.Strikes = append(m.Strikes, plainMatrixStrike{k, net})
		var cells []*float64
		for _, e := range m.Expirations {
			cell, used := sum(func(l leg) bool {
				return l.contract.Strike == k && l.group.expiration == e.Expiration && l.group.settlement == e.Settlement
			})
			if !used {
				cell = nil
			}
			cells = append(cells, cell)
		}
		m.Net = append(m.Net, cells)
	}
	friday := r.SessionDate
	for friday.Weekday() != time.Friday {
		friday++
	}
	m.Parts = []plainPart{
		r.part("zero_dte", r.SessionDate, groups, legs, spot, unknown),
		r.part("this_week", friday, groups, legs, spot, unknown),
	}
	r.grid = m
}
