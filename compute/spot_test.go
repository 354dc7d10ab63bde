package compute_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"strikecache/compute"
)

// near60 are expirations within 60 days of the night of 2026-08-11. The last one is 43 days away.
var near60 = []string{"260813", "260814", "260818", "260821", "260828", "260904", "260911", "260923"}

// made returns the rows of a market at a level: a carry of 1 %, a call wall at 7200, a put wall at 6800, and a smile. The
// smile moves with the level, 1.5 times as far as its slope: so the volatility of a strike falls when the market rises, as
// that of SPX does. q is the instant of the quotes, dates are the expirations of SPXW.
func made(level float64, q string, dates ...string) []row {
	var rows []row
	for _, d := range dates {
		settles := compute.PM.Instant(day("20"+d[:2]+"-"+d[2:4]+"-"+d[4:]), cal)
		t := settles.Sub(at(q)).Hours() / (365 * 24)
		f := level * math.Exp(0.01*t)
		for k := 5000.0; k <= 9000; k += 50 {
			v := math.Max(0.08, 0.16-0.4*math.Log(k/f)-0.6*math.Log(level/7000)) * math.Sqrt(t)
			calls, puts := 100.0, 100.0
			switch k {
			case 7200:
				calls = 4000
			case 6800:
				puts = 4000
			}
			for right, interest := range map[compute.Right]float64{compute.Call: calls, compute.Put: puts} {
				price := compute.BlackValue(right, f, k, v)
				rows = append(rows, row{symbolOf("SPXW"+d+"CP"[right:right+1], k), quoted(price, price, interest)})
			}
		}
	}
	return rows
}

// documentOf returns the exposure of a market whose quotes are of the instant q, and whose published level is of the
// instant asOf.
func documentOf(t *testing.T, published float64, asOf, q string, rows []row) compute.GammaResult {
	t.Helper()
	u := index(published, asOf)
	u.CapturedAt = index(published, q).CapturedAt
	return exposure(t, u, rows...)
}

// The index has stood at 7000 since the close, while the quotes move at night. The figures equal those of a document with
// the true level: the flip moves with the market, and the walls stay. With the published level, the flip would move against
// the market.
func TestQuotesMoveAtNight(t *testing.T) {
	const closed, night = "2026-08-11T20:00:00Z", "2026-08-12T06:00:00Z"
	flips := map[float64]float64{}
	for _, percent := range []float64{-1.3, -0.1, 0, 0.1, 1.3} {
		level := 7000 * (1 + percent/100)
		rows := made(level, night, near60...)
		got, want := documentOf(t, 7000, closed, night, rows), documentOf(t, level, night, night, rows)
		equal(t, "source", got.Data.SpotSource, compute.SpotImplied)
		equal(t, "source of the true level", want.Data.SpotSource, compute.SpotIndex)
		nearly(t, "spot", got.Data.Spot, 7000, 0)
		nearly(t, "effective spot", got.Data.EffectiveSpot, level, 1e-6)
		near(t, "gap", got.Quality.SpotGap, percent, 1e-8)
		near(t, "flip", got.Data.Flip, float64(*want.Data.Flip), 1e-3)
		near(t, "flip distance", got.Data.FlipDistance, float64(*want.Data.FlipDistance), 1e-4)
		near(t, "net", got.Data.Net, float64(*want.Data.Net), 1e-6*float64(*want.Data.Gross))
		near(t, "call wall", got.Data.CallWall, 7200, 0)
		near(t, "put wall", got.Data.PutWall, 6800, 0)
		equal(t, "walls", string(marshal(t, got.Data.Walls)), string(marshal(t, want.Data.Walls)))
		nearly(t, "middle of the profile", got.Data.Profile[60].Spot, level, 1e-6)
		for i, c := range got.Data.Conventions {
			if c.Net != nil {
				near(t, c.Name, c.Net, float64(*want.Data.Conventions[i].Net), 1e-6*float64(*want.Data.Gross))
			}
		}
		flips[percent] = float64(*got.Data.Flip)
	}
	for _, moves := range [][2]float64{{-1.3, -0.1}, {-0.1, 0}, {0, 0.1}, {0.1, 1.3}} {
		if flips[moves[0]] >= flips[moves[1]] {
			t.Errorf("flip %v at %v %%, %v at %v %%: it does not move with the market", flips[moves[0]], moves[0], flips[moves[1]], moves[1])
		}
	}
}

// METHODS.md §1.0: which spot the figures use, by the age of the index and its difference from the quotes.
func TestSpotSource(t *testing.T) {
	few := near60[:4]
	for _, c := range []struct {
		name, asOf, q string
		percent       float64 // the true level over the published one
		dates         []string
		want          compute.SpotSource
	}{
		{"in session", "2026-08-12T15:00:00Z", "2026-08-12T15:00:00Z", 0, near60, compute.SpotIndex},
		{"5 minutes", "2026-08-12T15:00:00Z", "2026-08-12T15:05:00Z", 0.1, near60, compute.SpotIndex},
		{"over 5 minutes", "2026-08-12T15:00:00Z", "2026-08-12T15:05:01Z", 0.1, near60, compute.SpotImplied},
		{"the index agrees", "2026-08-12T15:00:00Z", "2026-08-12T15:00:00Z", 0.49, near60, compute.SpotIndex},
		{"the index lags at the open", "2026-08-12T13:30:05Z", "2026-08-12T13:31:00Z", 0.51, near60, compute.SpotImplied},
		{"it lags downwards", "2026-08-12T13:30:05Z", "2026-08-12T13:31:00Z", -1.3, near60, compute.SpotImplied},
		{"too few series in session", "2026-08-12T15:00:00Z", "2026-08-12T15:05:00Z", 1.3, few, compute.SpotIndex},
		{"too few series at night", "2026-08-11T20:00:00Z", "2026-08-12T06:00:00Z", 1.3, few, compute.SpotIndexStale},
		{"too few, and a contradiction", "2026-08-11T20:00:00Z", "2026-08-12T06:00:00Z", 12, few, compute.SpotIndexStale},
		{"five are enough", "2026-08-11T20:00:00Z", "2026-08-12T06:00:00Z", 1.3, near60[:5], compute.SpotImplied},
		{"five within 7 days", "2026-08-11T20:00:00Z", "2026-08-12T06:00:00Z", 1.3,
			[]string{"260812", "260813", "260814", "260817", "260818"}, compute.SpotIndexStale},
		{"five over 7 days, 60 days away", "2026-08-12T20:00:00Z", "2026-08-12T20:10:00Z", 1.3,
			[]string{"260813", "260814", "260817", "260820", "261011"}, compute.SpotImplied},
		{"the last is 10 minutes too far", "2026-08-12T19:40:00Z", "2026-08-12T19:50:00Z", 1.3,
			[]string{"260813", "260814", "260817", "260818", "261011"}, compute.SpotIndexStale},
	} {
		r := documentOf(t, 7000, c.asOf, c.q, made(7000*(1+c.percent/100), c.q, c.dates...))
		equal(t, c.name, r.Data.SpotSource, c.want)
		level := 7000.0
		if c.want == compute.SpotImplied {
			level *= 1 + c.percent/100
		}
		nearly(t, c.name+": effective spot", r.Data.EffectiveSpot, level, 1e-6)
		if fit := c.want == compute.SpotImplied || c.want == compute.SpotIndex && len(c.dates) > 4; fit != (r.Quality.SpotGap != nil) {
			t.Errorf("%s: the gap is known: %v", c.name, !fit)
		}
		if r.Data.Flip == nil || r.Data.FlipStatus == compute.FlipSpotMismatch {
			t.Errorf("%s: no flip", c.name)
		}
	}
}

// The implied spot is exp(intercept) of the least-squares line of ln F on T, for any carry. The wanted level solves the
// normal equations with 50 digits.
func TestImpliedSpotIsAnIntercept(t *testing.T) {
	var rows []row
	for _, s := range []struct {
		series string
		f      float64
	}{{"SPXW260813", 7001}, {"SPX260821", 7009}, {"SPXW260821", 7006}, {"SPXW260904", 7020}, {"SPXW260930", 7035}, {"SPXW261219", 9999}} {
		for _, k := range []float64{6990, 7000, 7010, 7040} {
			rows = append(rows, row{symbolOf(s.series+"C", k), quoted(50+s.f-k, 50+s.f-k, 1)}, row{symbolOf(s.series+"P", k), quoted(50, 50, 1)})
		}
	}
	rows = append(rows, row{"SPXW260828C07000000", quoted(9, 9, 1)}, row{"SPXW260828P07000000", quoted(5, 5, 1)}) // no forward of its own
	r := documentOf(t, 6990, "2026-08-12T15:00:00Z", "2026-08-12T16:00:00Z", rows)
	const want = 7001.25278121769
	nearly(t, "effective spot", r.Data.EffectiveSpot, want, 1e-6)
	near(t, "gap", r.Quality.SpotGap, (want/6990.0-1)*100, 1e-8)
}

// A document whose forwards are 12 % from the index contradicts itself, in session and outside. It keeps the fields that do
// not depend on the spot. All others are null.
func TestSpotMismatch(t *testing.T) {
	for _, percent := range []float64{-12, 12} {
		for _, q := range []string{"2026-08-12T15:00:00Z", "2026-08-12T06:00:00Z"} {
			level := 7000 * (1 + percent/100)
			r := documentOf(t, 7000, "2026-08-11T20:00:00Z", q, made(level, q, near60...))
			near(t, "gap", r.Quality.SpotGap, percent, 1e-8)
			checkWithheld(t, r.Data)
			nearly(t, "effective spot", r.Data.EffectiveSpot, level, 1e-6)
			if r.Data.ContractsAnalyzed == 0 || len(r.Data.ByStrike) == 0 || r.Data.ByStrike[0].CallOpenInterest == 0 {
				t.Error("open interest of the strikes is missing")
			}
		}
	}
	// spot_mismatch outranks insufficient_data.
	rows := made(7900, "2026-08-12T06:00:00Z", near60...)
	for i := range rows {
		rows[i].OpenInterest = 0
	}
	checkWithheld(t, documentOf(t, 7000, "2026-08-11T20:00:00Z", "2026-08-12T06:00:00Z", rows).Data)
	r := documentOf(t, 7000, "2026-08-11T20:00:00Z", "2026-08-12T06:00:00Z", made(7000*1.099, "2026-08-12T06:00:00Z", near60...))
	equal(t, "9.9 %", r.Data.FlipStatus, compute.FlipFound)
}

func checkWithheld(t *testing.T, g compute.Gamma) {
	t.Helper()
	equal(t, "status", g.FlipStatus, compute.FlipSpotMismatch)
	equal(t, "source", g.SpotSource, compute.SpotImplied)
	var data map[string]any
	if err := json.Unmarshal(marshal(t, g), &data); err != nil {
		t.Fatal(err)
	}
	kept := strings.Fields(`symbol spot effective_spot spot_source flip_status session_date oi_settle_date oi_state contracts_analyzed
		name note expiration settlement forward forward_source strike call_open_interest put_open_interest call_volume put_volume
		contracts settled`)
	var check func(path string, v any)
	check = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, x := range v {
				if !slices.Contains(kept, key) {
					check(path+" "+key, x)
				}
			}
		case []any:
			for _, x := range v {
				check(path, x)
			}
		case nil:
		default:
			t.Errorf("%s = %v, want null", path, v)
		}
	}
	check("", data)
}

// The exposure that expires on the session date is known until its PM settlement, by the instant of the quotes. From then
// on it is null, not 0, whatever is listed.
func TestZeroDTE(t *testing.T) {
	const gone = `{"net_gex_dollars":null,"gross_share_pct":null,"zero_gamma_flip":null,"contracts":0,"settled":true}`
	today := []row{{"SPX260821C07000000", published(0.2, 5)}, {"SPXW260821C07000000", published(0.2, 5)}, {"SPXW260918C07000000", published(0.2, 5)}}
	friday := []row{{"SPXW261127C07000000", published(0.2, 5)}, {"SPXW261218C07000000", published(0.2, 5)}}
	for _, c := range []struct {
		name, asOf, q string
		rows          []row
		contracts     int
		settled       bool
	}{
		{"before the AM settlement", "2026-08-21T13:00:00Z", "2026-08-21T13:00:00Z", today, 2, false},
		{"after the AM settlement", "2026-08-21T13:30:00Z", "2026-08-21T13:30:00Z", today, 1, false},
		{"a second before the PM settlement", "2026-08-21T19:50:00Z", "2026-08-21T19:59:59Z", today, 1, false},
		{"the PM settlement", "2026-08-21T19:50:00Z", "2026-08-21T20:00:00Z", today, 0, true},
		{"the index stands still on a Sunday", "2026-08-21T20:00:00Z", "2026-08-24T01:00:00Z", today, 0, true},
		{"nothing of the day is listed", "2026-08-20T20:00:00Z", "2026-08-20T20:00:00Z", today, 0, true},
		{"nothing of the day is listed, in session", "2026-08-20T15:00:00Z", "2026-08-20T15:00:00Z", today, 0, false},
		{"before an early close", "2026-11-27T17:59:59Z", "2026-11-27T17:59:59Z", friday, 1, false},
		{"an early close", "2026-11-27T18:00:00Z", "2026-11-27T18:00:00Z", friday, 0, true},
	} {
		z := documentOf(t, 7000, c.asOf, c.q, c.rows).Data.ZeroDTE
		equal(t, c.name, z.Contracts, c.contracts)
		equal(t, c.name, z.Settled, c.settled)
		if c.settled {
			equal(t, c.name, string(marshal(t, z)), gone)
		} else {
			equal(t, c.name+": net is positive", z.Net != nil && *z.Net > 0, c.contracts > 0)
			equal(t, c.name+": share is positive", z.Share != nil && *z.Share > 0, c.contracts > 0)
		}
	}
}
