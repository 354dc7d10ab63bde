package compute_test

import (
	"strings"
	"testing"
)

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
