package refresh

import (
	"log/slog"
	"testing"
	"time"
	"unsafe"

	"strikecache/compute"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// stepped returns a reading of a clock that is set ahead. Its monotonic part stays. Package time keeps the seconds of a reading in the
// upper 34 bits of its first word, below a mark, and the nanoseconds in the lower 30.
func stepped(at time.Time, by time.Duration) time.Time {
	ahead := at.Round(0).Add(by)
	*(*uint64)(unsafe.Pointer(&at)) += uint64(ahead.Unix()-at.Unix())<<30 + uint64(ahead.Nanosecond()-at.Nanosecond())
	return at
}

// A stepped reading differs from the true one by the step, but by nothing on the monotonic clock.
func TestStepped(t *testing.T) {
	at := time.Now()
	for _, by := range []time.Duration{time.Minute, -time.Hour, 24 * time.Hour, 700 * time.Millisecond, -700 * time.Millisecond} {
		if s := stepped(at, by); s.Sub(at) != 0 || !s.Round(0).Equal(at.Add(by).Round(0)) {
			t.Errorf("%v: %v instead of %v", by, s, at)
		}
	}
}

// A market that is not live goes on by the monotonic clock, and its jobs are scheduled by what the machine's clock shows now.
func TestASimulatedClockWhenTheMachinesIsSet(t *testing.T) {
	start, now := ny(t, "2026-11-20 11:00:00"), time.Now()
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		c := NewClock(start, 2)
		c.set(hands{start, stepped(now, -by), 2}) // the machine's clock was set after that
		shown := now.Round(0)
		if market := c.At(shown); market.Sub(start).Abs() > time.Second {
			t.Errorf("set by %v: the market is at %v", by, market)
		}
		if wall := c.Wall(start.Add(time.Minute)).Round(0); wall.Sub(shown.Add(30*time.Second)).Abs() > time.Second {
			t.Errorf("set by %v: a minute of the market later, the machine's clock shows %v, not half a minute after %v", by, wall, shown)
		}
	}
}

// An interval that began while the clock was ahead does not wait until the clock has come there again.
func TestIsOver(t *testing.T) {
	now := time.Now()
	for began, want := range map[time.Time]bool{
		{}: true, now.Add(-time.Hour): true, now.Add(-time.Hour + 1): false, now: false, now.Add(1): true, now.Add(24 * time.Hour): true,
	} {
		if isOver(began, now, time.Hour) != want {
			t.Errorf("an hour that began %v ago: %v", now.Sub(began), !want)
		}
	}
}

// A clock that was set back opens no date again: the upstream's timestamp says that the date has closed.
func TestAClosedDateWhenTheClockIsSetBack(t *testing.T) {
	asOf, captured := ny(t, "2026-11-20 16:14:59"), ny(t, "2026-11-20 20:00:00") // 01:00 UTC
	for received, d := range map[time.Time]*document{captured.Add(-time.Hour): {}, captured.Add(time.Minute): {}} {
		d.Name, d.Received, d.mark.captured = string(upstream.Options("_SPX")), received, captured
		if in := (&inputs{documents: []*document{d}}); !dateClosed(compute.DateOf(asOf.UTC()), in.arrived()) {
			t.Errorf("received %v: the date is open", received)
		}
	}
}

// Whether a publication hangs is told by the monotonic clock.
func TestADeadDiskWhenTheClockIsSet(t *testing.T) {
	store, err := snapshots.Open(snapshots.Options{Dir: t.TempDir(), Source: "cboe", HistoryBytes: 1 << 20, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	p := newPublisher(&Config{Store: store})
	for began, dead := range map[time.Time]bool{
		stepped(time.Now().Add(time.Hour), -2*time.Hour):   false, // the clock was set ahead
		stepped(time.Now().Add(-2*time.Hour), 3*time.Hour): true,  // the clock was set back
	} {
		p.since.Store(&began)
		if err := p.DiskError(); (err != nil) != dead {
			t.Errorf("a publication of %v: %v", began, err)
		}
	}
}
