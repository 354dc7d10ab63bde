package compute

import (
	"math"
	"slices"
)

// scenarios reprices the exposure under each changed assumption. [exposure.regime] reads the first two.
func (e *exposure) scenarios() []Scenario {
	nearest := Date(math.MaxInt32)
	for _, s := range e.series {
		if s.used > 0 {
			nearest = min(nearest, s.Expiration)
		}
	}
	variants := []struct {
		name string
		variant
	}{
		{"vol_down_10", variant{volScale: 0.9}},
		{"vol_up_10", variant{volScale: 1.1}},
		{"no_carry", variant{volScale: 1, noCarry: true}},
		{"ex_nearest_expiration", variant{volScale: 1, keep: func(s *series) bool { return s.Expiration != nearest }}},
		{"within_90_days", variant{volScale: 1, keep: func(s *series) bool { return s.Expiration-e.session <= 90 }}},
	}
	out := make([]Scenario, len(variants))
	for i, v := range variants {
		p := e.profile(e.summed(), v.variant)
		out[i] = Scenario{Name: v.name, Net: p.net(), Flip: p.sample().findFlips().nearest}
	}
	return out
}

// flipBand returns the lowest and highest flip over the base and the scenarios.
func flipBand(base *Level, scenarios []Scenario) *Band {
	var flips []Level
	for _, s := range append([]Scenario{{Flip: base}}, scenarios...) {
		if s.Flip != nil {
			flips = append(flips, *s.Flip)
		}
	}
	if flips == nil {
		return nil
	}
	return &Band{slices.Min(flips), slices.Max(flips)}
}

// zeroDTE returns the exposure that settles on the session date. After the PM settlement of that date its figures are
// unknown, not 0. So they are, for the reason returned, when open interest is not known, and without a contract that must be listed.
func (e *exposure) zeroDTE() (z ZeroDTE, unknown *string) {
	if !e.quoted.Before(e.Calendar.Close(e.session)) {
		return ZeroDTE{Settled: true}, new("settled")
	}
	var net, gross float64
	expiring := slices.DeleteFunc(slices.Clone(e.series), func(s *series) bool { return s.settles != e.session })
	for _, s := range expiring {
		z.Contracts += s.used
		net += s.call + s.put
		gross += s.call - s.put
		if s.settlement == PM && len(s.strikes) > 0 && !e.mismatch {
			z.RemainingMove = finiteOrNil(Level(e.level * math.Sqrt(s.atTheMoney())))
		}
	}
	switch held := positionsOf(expiring...); {
	case len(expiring) == 0 && e.expiresOn(e.session):
		return z, new("not_listed")
	case !held.interest.complete():
		return z, new(interestMissing)
	case e.mismatch:
		return z, nil
	}
	if e.all.interest.complete() {
		z.Share = percentOf(gross, e.gross())
	}
	z.Net, z.Flip = new(Dollars(net)), e.profile(expiring, variant{volScale: 1}).sample().findFlips().nearest
	return z, nil
}

// conventions returns the exposure of the used contracts under our convention and under those of other publishers. net and
// flip are the results of our convention.
func (e *exposure) conventions(net *Dollars, flip *Level) []Convention {
	perfiliev := e.perfiliev()
	traded := e.summed()
	if !e.all.traded.complete() {
		traded = nil
	}
	volume := e.profile(traded, variant{volScale: 1, weight: func(c *Contract) float64 { return positive(c.Volume) }})
	return []Convention{
		{"model", net, flip,
			"own implied volatility per strike, forward from put-call parity, dealers long calls and short puts"},
		{"published_gamma", e.publishedGamma(), nil,
			"the upstream's gamma, rounded to 4 decimals; cannot be repriced, so it has no flip"},
		{"perfiliev", perfiliev.net(), perfiliev.sample().findFlips().nearest,
			"each contract's published volatility, no rates, no carry, business days over 262"},
		{"volume_weighted", volume.net(), volume.sample().findFlips().nearest,
			"the session's volume in place of open interest, without the volume of contracts that have settled"},
	}
}

// publishedGamma returns the net by the upstream's gamma, nil when no used contract has one.
func (e *exposure) publishedGamma() *Dollars {
	sum, n := 0.0, 0
	eachUsed(e.summed(), func(_ *series, _ *strike, c *Contract) {
		if finite(c.Gamma) {
			sum += sign(c.Right) * c.Gamma * c.OpenInterest
			n++
		}
	})
	if n == 0 {
		return nil
	}
	return new(Dollars(sum * dollarsPerGamma(e.level)))
}

// perfiliev builds G after S. Perfiliev, How to calculate gamma exposure and zero gamma level (perfiliev.com, 2022):
// published volatility, no rates, T as weekdays/262, at least 1/262.
func (e *exposure) perfiliev() *profile {
	p := &profile{spot: e.level, terms: make([]term, 0, e.contracts.Used)}
	eachUsed(e.summed(), func(s *series, row *strike, c *Contract) {
		if c.IV > 0 {
			years := float64(max(1, weekdaysBetween(e.session, s.Expiration))) / 262
			p.contracts++
			p.add(sign(c.Right)*c.OpenInterest, c.IV*math.Sqrt(years), logMoneyness(p.spot, row.k), 1)
		}
	})
	return p
}

// weekdaysBetween returns the number of weekdays in [from, to): exchange holidays count as weekdays.
func weekdaysBetween(from, to Date) int {
	days := int(to - from)
	if days <= 0 {
		return 0
	}
	n := days / 7 * 5
	for d := from + Date(days/7*7); d < to; d++ {
		if !d.Weekend() {
			n++
		}
	}
	return n
}

func sign(r Right) float64 {
	if r == Put {
		return -1
	}
	return 1
}
