package refresh

import (
	"testing"
	"time"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/refresh/product"
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
	s := schedule{feed.MachineClock(), cal, 25 * time.Second, 0}
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
		s := schedule{feed.MachineClock(), cal, every, 0}
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
		a := &product.Answer{Product: product.Named(product.GammaResource), AsOf: ny(t, c.asOf)}
		if c.captured != none {
			a.Captured = new(ny(t, c.captured))
		}
		f := h.freshness(a, ny(t, c.now), cal, nil)
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
		{product.GammaResource, nil, &captured, true}, {product.PainResource, nil, &captured, true}, {product.SeriesResource, nil, &captured, true},
		{product.FlowResource, []string{"SPX", "XLF"}, &captured, true}, {product.FlowResource, []string{"XLF"}, &captured, false}, {product.FlowResource, []string{}, &captured, false},
		{product.SectorsResource, nil, &captured, false}, {product.VIXResource, nil, nil, false},
	} {
		a := &product.Answer{Product: product.Named(c.product), AsOf: asOf, Captured: c.captured, RestsOn: c.restsOn}
		if began := night(a, cal); began.IsZero() == c.want {
			t.Errorf("%s on %q: %v", c.product, c.restsOn, began)
		}
	}
}

// since stays the same while state and reason do. After a recovery, it is the time of the recovery.
func TestFreshnessSince(t *testing.T) {
	now := ny(t, "2026-11-20 11:00:00")
	a := &product.Answer{Product: product.Named(product.GammaResource), AsOf: now.Add(-15 * time.Minute)}
	var h health
	before := snapshots.Freshness{State: stateFresh, Since: now.Add(-time.Minute)}
	if f := h.freshness(a, now, cal, &before); !f.Since.Equal(before.Since) {
		t.Errorf("since %v, want %v", f.Since, before.Since)
	}
	stale := because(stateStale, "upstream_timeout", now.Add(-time.Hour))
	if f := h.freshness(a, now, cal, &stale); f.State != stateFresh || !f.Since.Equal(now) {
		t.Errorf("after a recovery: %s since %v, want fresh since %v", f.State, f.Since, now)
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
