package feed

import (
	"testing"
	"time"

	"strikecache/compute"

	"strikecache/bench/testkit"
)

var must = testkit.Must

var cal = compute.NewCalendar(nil, nil)

func ny(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.ParseInLocation("2006-01-02 15:04:05", text, compute.NewYork)
	must(t, err)
	return at.UTC()
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
	before := time.Now()
	if now := MachineClock().Now(); now.Before(before) || now.After(time.Now()) {
		t.Errorf("machine clock says %v", now)
	}
}
