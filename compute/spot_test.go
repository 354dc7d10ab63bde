package compute_test

import (
	"math"
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
		{"almost a contradiction", "2026-08-11T20:00:00Z", "2026-08-12T06:00:00Z", 9.9, near60, compute.SpotImplied},
		{"a contradiction", "2026-08-11T20:00:00Z", "2026-08-12T06:00:00Z", 10.1, near60, compute.SpotImplied},
		{"a contradiction in session", "2026-08-12T15:00:00Z", "2026-08-12T15:00:00Z", -10.1, near60, compute.SpotImplied},
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
		if contradicts := math.Abs(c.percent) > 10 && len(c.dates) > 4; contradicts != (r.Data.FlipStatus == compute.FlipSpotMismatch) {
			t.Errorf("%s: flip status %s", c.name, r.Data.FlipStatus)
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
