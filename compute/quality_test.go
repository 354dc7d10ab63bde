package compute_test

import (
	"math"
	"strings"
	"testing"
)

// |published - recomputed| over used contracts with T > 2 days: of {0.001, 0.002, 0.003, 0.005} the median is 0.0025. The
// linear 95th percentile is 0.0047: 0.85 of the way from 0.003 to 0.005.
func TestPublishedGammaDifference(t *testing.T) {
	v := 0.3 * math.Sqrt(years(ten))
	off := func(k, by float64) row {
		return row{symbolOf("SPXW260821C", k), full(0, 0, 0.3, gammaOf(7000, k, v)+by, 1, 0)}
	}
	rows := []row{off(7000, 0.001), off(7100, -0.002), off(7200, 0.003), off(7300, -0.005)}
	rows = append(rows, row{"SPXW260821C07400000", full(0, 0, 0.3, math.NaN(), 1, 0)}, // no published gamma
		row{"SPXW260821C07500000", full(0, 0, 0.3, 9, 0, 0)}, // not used
		row{"SPXW260813C07500000", full(0, 0, 0.3, 9, 1, 0)}) // T is exactly 2 days
	d := exposure(t, index(7000, closing), rows...).Quality.GammaDifference
	equal(t, "contracts", d.Contracts, 4)
	near(t, "median", d.Median, 0.0025, 1e-12)
	near(t, "95th percentile", d.Percentile95, 0.0047, 1e-12)
	// A second earlier, T is more than 2 days and the contract counts.
	d = exposure(t, index(7000, "2026-08-11T19:59:59Z"), rows...).Quality.GammaDifference
	equal(t, "contracts", d.Contracts, 5)
	d = exposure(t, index(7000, closing), rows[1]).Quality.GammaDifference
	near(t, "median of one", d.Median, 0.002, 1e-12)
	near(t, "95th percentile of one", d.Percentile95, 0.002, 1e-12)
	d = exposure(t, index(7000, closing), rows[6]).Quality.GammaDifference
	equal(t, "contracts", d.Contracts, 0)
	isNull(t, "median of none", d.Median)
	isNull(t, "percentile of none", d.Percentile95)
}

func TestQualityClockAndCalendar(t *testing.T) {
	u := index(7000, "2026-08-11T20:14:59Z")
	u.CapturedAt = at("2026-08-11T20:36:41Z")
	q := exposure(t, u, row{"SPXW260821C07000000", published(0.2, 10)}).Quality
	equal(t, "age", q.QuoteAgeSeconds, 21*60+42)
	isNull(t, "calendar", q.Calendar)
	q = exposure(t, u, row{"SPXW311219C07000000", published(0.2, 0)}).Quality
	if q.Calendar == nil || !strings.Contains(*q.Calendar, "2014-2030") {
		t.Errorf("calendar note of 2031: %v", q.Calendar)
	}
	if body := string(marshal(t, q)); !strings.Contains(body, `"forwards":{"extrapolated":0,"interpolated":0,"none":1,`) {
		t.Error(body)
	}
}
