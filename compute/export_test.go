package compute

// EachStrike calls f for every strike of a state that has a volatility, with T in years.
func (g *GammaState) EachStrike(f func(s Series, years, forward, k, v float64)) {
	for _, s := range g.series {
		for _, row := range s.strikes {
			if row.step != volNone {
				f(s.Series, s.years, s.forward, row.k, row.v)
			}
		}
	}
}
