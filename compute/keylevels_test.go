package compute_test

import (
	"fmt"
	"strings"
	"testing"

	"strikecache/compute"
)

// text of levels: name, price and distance, as they are served.
func served(t testing.TB, levels []compute.KeyLevel) string {
	t.Helper()
	var out []string
	for _, l := range levels {
		out = append(out, fmt.Sprintf("%s %s %s", l.Name, marshal(t, l.Price), marshal(t, l.Away)))
	}
	return strings.Join(out, ", ")
}

func walls(strikes ...compute.Level) (all []compute.StrikeWall) {
	for _, k := range strikes {
		all = append(all, compute.StrikeWall{Strike: k})
	}
	return all
}

func exposed(g compute.Gamma) *compute.GammaResult { return &compute.GammaResult{Data: g} }

func level(x compute.Level) *compute.Level { return &x }

// Each known level has its price and its distance, the highest first; equal ones are in the order of their definition. What is not known
// is left out.
func TestKeyLevels(t *testing.T) {
	g := compute.Gamma{
		Symbol: "SPY", Spot: 501, EffectiveSpot: 500, SessionDate: day("2026-11-20"),
		CallWall: level(510), PutWall: level(490), Flip: level(497.5), FlipBand: &compute.Band{Low: 496, High: 510},
		AbsGammaStrike: level(510), ExpectedMove: level(6.25), ZeroDTE: compute.ZeroDTE{Pin: level(505), CallWalls: walls(507, 500, 480), PutWalls: walls(498, 505)},
	}
	k := compute.NewKeyLevels(exposed(g), &compute.MaxPain{PainSide: compute.PainSide{MaxPain: level(499)}}, at(noon), cal)
	equal(t, "levels", served(t, k.Levels), "call_wall 510 2, flip_high 510 2, abs_gamma_strike 510 2, zero_dte_call_wall 507 1.4, "+
		"expected_high_1d 506.25 1.25, zero_dte_put_wall_2 505 1, zero_dte_pin 505 1, zero_dte_call_wall_2 500 0, max_pain 499 -0.2, zero_dte_put_wall 498 -0.4, zero_gamma_flip 497.5 -0.5, flip_low 496 -0.8, "+
		"expected_low_1d 493.75 -1.25, put_wall 490 -2, zero_dte_call_wall_3 480 -4")
	equal(t, "futures of a fund", len(k.Futures), 0)
	equal(t, "head", fmt.Sprint(k.Spot, k.EffectiveSpot, k.SessionDate), "501 500 2026-11-20")

	none := compute.NewKeyLevels(exposed(compute.Gamma{Symbol: "SPY", Spot: 501, EffectiveSpot: 500, FlipStatus: compute.FlipSpotMismatch}), nil, at(noon), cal)
	equal(t, "nothing is known", string(marshal(t, none.Levels)), "[]")
	low := compute.NewKeyLevels(exposed(compute.Gamma{Symbol: "A", Spot: 1, EffectiveSpot: 1, ExpectedMove: level(1.5)}), &compute.MaxPain{}, at(noon), cal)
	equal(t, "no price below 0", served(t, low.Levels), "expected_high_1d 2.5 150")
}

// The levels of a future rest on the nearest quarterly date that settles at the open and has a parity forward. From the Monday of its week
// on, as CME Globex counts it, the next such date comes first.
func TestKeyLevelsOfFutures(t *testing.T) {
	row := func(date string, s compute.Settlement, forward compute.Level) compute.ExpirationGamma {
		return compute.ExpirationGamma{Expiration: day(date), Settlement: s, Forward: forward, ForwardSource: "parity"}
	}
	interpolated := row("2026-12-18", compute.AM, 5022)
	interpolated.ForwardSource = "interpolated"
	march, june, september := row("2026-03-20", compute.AM, 5002), row("2026-06-18", compute.AM, 5050), row("2026-09-18", compute.AM, 5100)
	const onlyJune = "ES 2026-06 2026-06-18 5050 1.01: call_wall 5151, put_wall 4946.5"
	const rolling = onlyJune + "; ES 2026-03 2026-03-20 5002 1.0004: call_wall 5102, put_wall 4899.5" // 5102.04, 4899.459
	for _, c := range []struct {
		what, symbol, captured string
		rows                   []compute.ExpirationGamma
		want                   string
	}{
		{"ES", "SPX", noon, []compute.ExpirationGamma{
			row("2026-11-20", compute.AM, 5010), row("2026-12-18", compute.PM, 5020), row("2026-12-18", compute.AM, 5022),
		}, "ES 2026-12 2026-12-18 5022 1.0044: call_wall 5122.5, put_wall 4919"}, // 5122.44 and 4919.05 before rounding
		{"NQ, the nearest without a forward of its own", "NDX", noon, []compute.ExpirationGamma{
			interpolated, row("2027-03-19", compute.AM, 5050),
		}, "NQ 2027-03 2027-03-19 5050 1.01: call_wall 5151, put_wall 4946.5"}, // 4946.4750
		{"RTY, on the eve of a holiday", "RUT", noon, []compute.ExpirationGamma{row("2027-06-17", compute.AM, 5060)},
			"RTY 2027-06 2027-06-17 5060 1.012: call_wall 5161.2, put_wall 4956.3"}, // 4956.27
		{"Sunday afternoon before the roll", "SPX", "2026-03-15T21:59:59Z", []compute.ExpirationGamma{march, june},
			"ES 2026-03 2026-03-20 5002 1.0004: call_wall 5102, put_wall 4899.5"},
		{"from Sunday 18:00 on", "SPX", "2026-03-15T22:00:00Z", []compute.ExpirationGamma{march, june, september}, rolling},
		{"the morning of its last day", "SPX", "2026-03-20T13:29:59Z", []compute.ExpirationGamma{march, june, september}, rolling},
		{"after it", "SPX", "2026-03-20T13:30:01Z", []compute.ExpirationGamma{june, september}, onlyJune},
		{"the last day is a Thursday: Friday is Juneteenth", "SPX", "2026-06-15T13:30:00Z", []compute.ExpirationGamma{june, september},
			"ES 2026-09 2026-09-18 5100 1.02: call_wall 5202, put_wall 4995.5; " + onlyJune}, // 4995.45
		{"the next one is not quoted", "SPX", "2026-03-18T13:30:00Z", []compute.ExpirationGamma{march}, "ES 2026-03 2026-03-20 5002 1.0004: call_wall 5102, put_wall 4899.5"},
		{"no quarterly date", "SPX", noon, []compute.ExpirationGamma{row("2027-01-15", compute.AM, 5030), row("2027-06-18", compute.AM, 5030)}, ""},
		{"a fund", "SPY", noon, []compute.ExpirationGamma{row("2026-12-18", compute.AM, 5022)}, ""},
	} {
		g := compute.Gamma{Symbol: c.symbol, Spot: 5000, EffectiveSpot: 5000, CallWall: level(5100), PutWall: level(4897.5), ByExpiration: c.rows}
		k := compute.NewKeyLevels(exposed(g), nil, at(c.captured), cal)
		got := ""
		for _, f := range k.Futures {
			var levels []string
			for _, l := range f.Levels {
				levels = append(levels, fmt.Sprintf("%s %s", l.Name, marshal(t, l.Price)))
			}
			if got != "" {
				got += "; "
			}
			got += fmt.Sprintf("%s %s %s %s %s: %s", f.Symbol, f.Month, f.Expiration, marshal(t, f.Forward), marshal(t, f.Ratio), strings.Join(levels, ", "))
		}
		equal(t, c.what, got, c.want)
	}
}
