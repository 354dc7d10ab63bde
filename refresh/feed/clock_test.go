package feed

import (
	"testing"
	"time"
	"unsafe"

	"strikecache/compute"
)

var cal = compute.NewCalendar(nil, nil)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

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
	if now := MachineClock().Now(); time.Since(now).Abs() > time.Minute {
		t.Errorf("machine clock says %v", now)
	}
}

// stepped returns a reading of a clock that is set ahead. Its monotonic part stays. Package time keeps the seconds of a reading in the
// upper 34 bits of its first word, below a mark, and the nanoseconds in the lower 30.
func stepped(at time.Time, by time.Duration) time.Time {
	ahead := at.Round(0).Add(by)
	*(*uint64)(unsafe.Pointer(&at)) += uint64(ahead.Unix()-at.Unix())<<30 + uint64(ahead.Nanosecond()-at.Nanosecond())
	return at
}

// A market that is not live goes on by the monotonic clock, and its jobs are scheduled by what the machine's clock shows now.
func TestASimulatedClockWhenTheMachinesIsSet(t *testing.T) {
	start, now := ny(t, "2026-11-20 11:00:00"), time.Now()
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		c := NewClock(start, 2)
		c.Set(Hands{start, stepped(now, -by), 2}) // the machine's clock was set after that
		shown := now.Round(0)
		if market := c.At(shown); market.Sub(start).Abs() > time.Second {
			t.Errorf("set by %v: the market is at %v", by, market)
		}
		if wall := c.Wall(start.Add(time.Minute)).Round(0); wall.Sub(shown.Add(30*time.Second)).Abs() > time.Second {
			t.Errorf("set by %v: a minute of the market later, the machine's clock shows %v, not half a minute after %v", by, wall, shown)
		}
	}
}
