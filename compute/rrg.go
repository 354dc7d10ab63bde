package compute

// RRG is a point of a relative rotation graph in the style of RRG. The formula of RRG itself is proprietary. Each number is
// 100 plus a z-score over 63 closes.
type RRG struct {
	Ratio Ratio `json:"rs_ratio" unit:"standard deviations, from 100"` // Relative strength against SPY.
	// Change of relative strength over 10 sessions.
	Momentum Ratio `json:"rs_momentum" unit:"standard deviations, from 100"`
	// Quadrant around (100, 100). `leading`: strong and rising. `weakening`: strong and falling. `lagging`: weak and falling.
	// `improving`: weak and rising.
	Quadrant string `json:"quadrant" jsonschema:"enum=leading,enum=weakening,enum=lagging,enum=improving"`
}

// TrailPoint is a point of the rotation graph at a week-end.
type TrailPoint struct {
	Date     Date   `json:"date"` // Last date of its week with a close of fund and benchmark.
	Symbol   string `json:"symbol" jsonschema:"oneof_ref=#/components/schemas/SectorFund"`
	Ratio    Ratio  `json:"rs_ratio" unit:"standard deviations, from 100"`    // As in `rrg`, of the closes up to this date.
	Momentum Ratio  `json:"rs_momentum" unit:"standard deviations, from 100"` // As in `rrg`, of the closes up to this date.
}

const (
	rrgWindow   = 63  // sessions of a z-score
	rrgMomentum = 10  // sessions of a change
	rrgCloses   = 135 // closes needed: 63 + 10 + 62
	trailWeeks  = 8
)

// rrg returns the rotation point at the last value of a relative strength, nil when there are fewer than rrgCloses values or a z-score
// is undefined.
func rrg(rs []float64) *RRG {
	if len(rs) < rrgCloses {
		return nil
	}
	rs = rs[len(rs)-rrgCloses:]
	var ratios []float64
	for i := rrgWindow; i <= len(rs); i++ {
		ratios = append(ratios, 100+zScore(rs[i-rrgWindow:i]))
	}
	var changes []float64
	for i := rrgMomentum; i < len(ratios); i++ {
		changes = append(changes, ratios[i]-ratios[i-rrgMomentum])
	}
	p := RRG{Ratio: Ratio(ratios[len(ratios)-1]), Momentum: Ratio(100 + zScore(changes))}
	if !finite(float64(p.Ratio)) || !finite(float64(p.Momentum)) {
		return nil
	}
	p.Quadrant = [2][2]string{{"lagging", "improving"}, {"weakening", "leading"}}[above100(p.Ratio)][above100(p.Momentum)]
	return &p
}

func above100(x Ratio) int {
	if x >= 100 {
		return 1
	}
	return 0
}

// relativeStrength returns P/P_benchmark on the dates that both histories have.
func relativeStrength(fund, benchmark []Close) (dates []Date, rs []float64) {
	for len(fund) > 0 && len(benchmark) > 0 {
		switch a, b := fund[0], benchmark[0]; {
		case a.Date < b.Date:
			fund = fund[1:]
		case b.Date < a.Date:
			benchmark = benchmark[1:]
		default:
			dates, rs = append(dates, a.Date), append(rs, a.Price/b.Price)
			fund, benchmark = fund[1:], benchmark[1:]
		}
	}
	return dates, rs
}

// trail returns the rotation points of a fund at the last of the dates of each of the newest weeks, newest first.
func trail(symbol string, dates []Date, rs []float64) (points []TrailPoint) {
	for end, week := len(dates), 0; end > 0 && week < trailWeeks; week++ {
		last := dates[end-1]
		if p := rrg(rs[:end]); p != nil {
			points = append(points, TrailPoint{last, symbol, p.Ratio, p.Momentum})
		}
		for end > 0 && dates[end-1].friday() == last.friday() {
			end--
		}
	}
	return points
}
