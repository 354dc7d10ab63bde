package refresh

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

var cal = compute.NewCalendar(nil, nil)

func ny(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.ParseInLocation("2006-01-02 15:04:05", text, compute.NewYork)
	must(t, err)
	return at.UTC()
}

func TestScheduleNext(t *testing.T) {
	s := schedule{MachineClock(), cal, 25 * time.Second, 0}
	for _, c := range []struct{ after, want string }{
		{"2026-11-20 09:45:00", "2026-11-20 09:45:25"}, // the window begins 15 minutes after the open
		{"2026-11-20 09:44:59", "2026-11-20 09:45:00"},
		{"2026-11-20 09:42:00", "2026-11-20 09:45:00"},
		{"2026-11-20 09:38:00", "2026-11-20 09:40:00"},
		{"2026-11-20 11:00:01", "2026-11-20 11:00:25"}, // anchored at the window's start
		{"2026-11-20 16:31:59", "2026-11-20 16:32:00"}, // and ends 32 minutes after the close, with a run
		{"2026-11-20 16:32:00", "2026-11-20 16:35:00"},
		{"2026-11-20 23:59:59", "2026-11-21 00:00:00"},
		{"2026-11-21 12:00:00", "2026-11-21 12:05:00"}, // Saturday
		{"2026-11-27 13:31:50", "2026-11-27 13:32:00"}, // early close at 13:00
		{"2026-11-27 13:32:00", "2026-11-27 13:35:00"},
		{"2026-11-26 11:00:00", "2026-11-26 11:05:00"}, // Thanksgiving
		{"2026-03-09 09:44:00", "2026-03-09 09:45:00"}, // the day after the clocks changed
	} {
		if got, want := s.next(ny(t, c.after)), ny(t, c.want); !got.Equal(want) {
			t.Errorf("after %s: %s, want %s", c.after, got.In(compute.NewYork), c.want)
		}
	}
}

// From any instant, the next run is later, by at most 5 minutes, and no run is left out.
func TestScheduleAdvances(t *testing.T) {
	for _, every := range []time.Duration{5 * time.Second, 25 * time.Second, 7 * time.Minute, time.Hour} {
		s := schedule{MachineClock(), cal, every, 0}
		at := ny(t, "2026-11-19 00:00:00")
		for range 3000 {
			next := s.next(at)
			if !next.After(at) || next.Sub(at) > max(every, outsideEvery) {
				t.Fatalf("every %s: after %s comes %s", every, at, next)
			}
			at = next
		}
	}
}

func TestClock(t *testing.T) {
	start := ny(t, "2026-11-20 11:00:00")
	for _, speed := range []float64{0.5, 1, 60, 10_000} {
		c := NewClock(start, speed)
		for _, d := range []time.Duration{0, time.Second, time.Hour, 24 * time.Hour} {
			if got := c.At(c.Wall(start.Add(d))).Sub(start.Add(d)); got.Abs() > time.Millisecond {
				t.Errorf("speed %v: %v there and back is off by %v", speed, d, got)
			}
		}
	}
	frozen := NewClock(start, 0)
	if !frozen.Now().Equal(start) || !frozen.Wall(start.Add(time.Second)).IsZero() {
		t.Error("a clock at speed 0 moves")
	}
	if next := (schedule{frozen, cal, time.Minute, 0}).Next(time.Now()); !next.IsZero() {
		t.Errorf("a clock that stands still schedules %v", next)
	}
	if now := MachineClock().Now(); time.Since(now).Abs() > time.Minute {
		t.Errorf("machine clock says %v", now)
	}
}

func TestFreshness(t *testing.T) {
	const none = ""
	for _, c := range []struct {
		now, asOf string
		captured  string // none: the answer does not rest on option quotes
		failures  int
		state     string
		reason    string
		since     string
	}{
		{"2026-11-20 11:00:00", "2026-11-20 10:44:57", "2026-11-20 10:59:59", 0, "fresh", "", "2026-11-20 09:45:00"},
		{"2026-11-20 11:00:00", "2026-11-20 10:28:00", "2026-11-20 10:59:59", 0, "fresh", "", "2026-11-20 09:45:00"}, // 32 minutes
		{"2026-11-20 11:00:00", "2026-11-20 10:27:59", "2026-11-20 10:59:59", 0, "stale", "upstream_lag", "2026-11-20 10:59:59"},
		{"2026-11-20 11:00:00", "2026-11-19 16:14:59", "2026-11-20 10:59:59", 0, "stale", "upstream_lag", "2026-11-20 09:45:00"},
		{"2026-11-20 11:00:00", "2026-11-20 10:44:57", "2026-11-20 10:59:59", 2, "fresh", "", "2026-11-20 09:45:00"},
		{"2026-11-20 11:00:00", "2026-11-20 10:44:57", "2026-11-20 10:59:59", 3, "stale", "quotes_missing", "2026-11-20 10:58:00"},
		{"2026-11-20 16:31:59", "2026-11-20 16:14:59", "2026-11-20 16:31:00", 0, "fresh", "", "2026-11-20 09:45:00"},
		{"2026-11-20 16:32:00", "2026-11-20 16:14:59", "2026-11-20 16:31:00", 0, "closed", "outside_session", "2026-11-20 16:32:00"},
		{"2026-11-20 20:45:00", "2026-11-20 16:14:59", "2026-11-20 20:44:00", 0, "closed", "outside_session", "2026-11-20 16:32:00"}, // Friday night: no trading
		{"2026-11-20 17:00:00", "2026-11-20 16:14:59", "2026-11-20 16:59:00", 2, "closed", "outside_session", "2026-11-20 16:32:00"}, // until three failures
		{"2026-11-20 17:00:00", "2026-11-20 16:14:59", "2026-11-20 16:59:00", 3, "stale", "quotes_missing", "2026-11-20 10:58:00"},
		{"2026-11-21 12:00:00", "2026-11-20 16:14:59", "2026-11-21 07:06:00", 0, "closed", "outside_session", "2026-11-20 16:32:00"},
		// The night is that of the quotes, which are 15 minutes late, not that of the clock.
		{"2026-11-22 20:29:59", "2026-11-20 16:14:59", "2026-11-22 20:29:59", 0, "closed", "outside_session", "2026-11-20 16:32:00"},
		{"2026-11-22 20:30:00", "2026-11-20 16:14:59", "2026-11-22 20:30:00", 0, "closed", "overnight_quotes", "2026-11-22 20:15:00"},
		{"2026-11-22 20:45:00", "2026-11-20 16:14:59", "2026-11-21 07:06:00", 0, "closed", "outside_session", "2026-11-20 16:32:00"}, // no newer document
		{"2026-11-22 20:45:00", "2026-11-20 16:14:59", none, 0, "closed", "outside_session", "2026-11-20 16:32:00"},
		{"2026-11-23 09:14:59", "2026-11-20 16:14:59", "2026-11-23 09:14:00", 0, "closed", "overnight_quotes", "2026-11-22 20:15:00"},
		{"2026-11-23 09:44:59", "2026-11-20 16:14:59", "2026-11-23 09:44:59", 0, "closed", "overnight_quotes", "2026-11-22 20:15:00"},
		{"2026-11-23 09:44:59", "2026-11-23 09:30:00", "2026-11-23 09:44:59", 0, "closed", "outside_session", "2026-11-20 16:32:00"},
		// Until the first quotes of a session have come, for two minutes, the answer of the session before is closed.
		{"2026-11-23 09:45:00", "2026-11-20 16:14:59", none, 0, "closed", "outside_session", "2026-11-20 16:32:00"},
		{"2026-11-23 09:46:59", "2026-11-20 16:14:59", "2026-11-23 09:44:59", 0, "closed", "overnight_quotes", "2026-11-22 20:15:00"},
		{"2026-11-23 09:47:00", "2026-11-20 16:14:59", none, 0, "stale", "upstream_lag", "2026-11-23 09:45:00"},
		{"2026-11-23 09:30:00", "2026-11-20 16:14:59", none, 0, "closed", "outside_session", "2026-11-20 16:32:00"},
		{"2026-11-27 13:32:00", "2026-11-27 13:14:59", "2026-11-27 13:31:00", 0, "closed", "outside_session", "2026-11-27 13:32:00"}, // early close
	} {
		failing := healths{}
		for range c.failures {
			failing.fail("SPX", upstream.QuotesMissing, ny(t, "2026-11-20 10:58:00"))
		}
		h := failing.worst(nil, nil)
		now, asOf, night := ny(t, c.now), ny(t, c.asOf), time.Time{}
		if c.captured != none {
			night = productOf(GammaResource).night(asOf, new(ny(t, c.captured)), nil, cal)
		}
		f := h.freshness(now, asOf, now.Add(-maxLag), night, cal, nil)
		if f.State != c.state || textOf(f.Reason) != c.reason || !f.Since.Equal(ny(t, c.since)) {
			t.Errorf("at %s: %s %q since %s, want %s %q since %s", c.now, f.State, textOf(f.Reason), f.Since.In(compute.NewYork), c.state, c.reason, c.since)
		}
	}
}

// A flow rests on the quotes of SPX only while the chain of SPX is among its chains, and the rotation never rests on them.
func TestNightOfAnswers(t *testing.T) {
	asOf, captured := ny(t, "2026-11-19 16:14:59"), ny(t, "2026-11-19 23:00:00")
	for _, c := range []struct {
		product  string
		restsOn  []string
		captured *time.Time
		want     bool
	}{
		{GammaResource, nil, &captured, true}, {PainResource, nil, &captured, true}, {SeriesResource, nil, &captured, true},
		{FlowResource, []string{"SPX", "XLF"}, &captured, true}, {FlowResource, []string{"XLF"}, &captured, false}, {FlowResource, []string{}, &captured, false},
		{SectorsResource, nil, &captured, false}, {VIXResource, nil, nil, false},
	} {
		if night := productOf(c.product).night(asOf, c.captured, c.restsOn, cal); night.IsZero() == c.want {
			t.Errorf("%s on %q: %v", c.product, c.restsOn, night)
		}
	}
}

// since stays the same while state and reason do. After a recovery, it is the time of the recovery.
func TestFreshnessSince(t *testing.T) {
	now := ny(t, "2026-11-20 11:00:00")
	asOf := now.Add(-15 * time.Minute)
	var h health
	before := snapshots.Freshness{State: stateFresh, Since: now.Add(-time.Minute)}
	if f := h.freshness(now, asOf, now.Add(-maxLag), time.Time{}, cal, &before); !f.Since.Equal(before.Since) {
		t.Errorf("since %v, want %v", f.Since, before.Since)
	}
	stale := because(stateStale, "upstream_timeout", now.Add(-time.Hour))
	if f := h.freshness(now, asOf, now.Add(-maxLag), time.Time{}, cal, &stale); f.State != stateFresh || !f.Since.Equal(now) {
		t.Errorf("after a recovery: %s since %v, want fresh since %v", f.State, f.Since, now)
	}
}

func TestLateAnswers(t *testing.T) {
	a := answer{asOf: ny(t, "2026-11-20 16:14:59")} // 21:14:59 UTC
	for arrived, want := range map[string]bool{"2026-11-20T21:40:00Z": false, "2026-11-21T00:10:00Z": false, "2026-11-21T00:10:01Z": true, "2026-11-23T09:00:00Z": true} {
		at, err := time.Parse(time.RFC3339, arrived)
		must(t, err)
		if dateClosed(a.date(), at) != want || a.date().String() != "2026-11-20" {
			t.Errorf("computed %s: late %v, want %v", arrived, !want, want)
		}
	}
}

func TestSettlementDue(t *testing.T) {
	for now, want := range map[string]string{
		"2026-11-20 18:29:59": "2026-11-19", "2026-11-20 18:30:00": "2026-11-20", "2026-11-22 12:00:00": "2026-11-20",
		"2026-11-23 10:00:00": "2026-11-20", "2026-11-26 20:00:00": "2026-11-25", // Thanksgiving
	} {
		if got := settlementDue(ny(t, now), cal); got.String() != want {
			t.Errorf("at %s: %s, want %s", now, got, want)
		}
	}
}

func TestTrackHours(t *testing.T) {
	for asOf, want := range map[string]bool{
		"2026-11-20 09:29:59": false, "2026-11-20 09:30:00": true, "2026-11-20 12:00:00": true, "2026-11-20 16:00:00": true,
		"2026-11-20 16:15:00": true, "2026-11-20 16:15:01": false, "2026-11-20 23:00:00": false,
		"2026-11-27 13:00:00": true, "2026-11-27 13:15:00": true, "2026-11-27 13:15:01": false, // an early close
		"2026-11-21 12:00:00": false, "2026-11-26 12:00:00": false, // a Saturday, a holiday
	} {
		if got := inTrack(ny(t, asOf), cal); got != want {
			t.Errorf("%s: %v, want %v", asOf, got, want)
		}
	}
}

// A track of more than 1,200 rows keeps every second row, the first and the last.
func TestTrackIsThinned(t *testing.T) {
	for n, want := range map[int]int{1200: 1200, 1201: 601, 1202: 602, 1300: 651, 2401: 1201/2 + 1} {
		rows := make([]json.RawMessage, n)
		for i := range rows {
			rows[i] = json.RawMessage(strconv.Itoa(i))
		}
		var got []int
		for _, row := range thinned(rows) {
			i, _ := strconv.Atoi(string(row))
			got = append(got, i)
		}
		if len(got) != want || got[0] != 0 || n > 1200 && got[1]%2 != 0 || got[len(got)-1] != n-1 || !slices.IsSorted(got) {
			t.Errorf("of %d rows %d stay, want %d: %v … %v", n, len(got), want, got[:3], got[len(got)-3:])
		}
	}
}
