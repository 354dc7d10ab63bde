package refresh

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"strikecache/refresh/upstream"
)

// Each line is a run of documents, rows@minute with ' for other content of the same minute, and what the guard says of each: ok, or its reason.
func TestGuard(t *testing.T) {
	for _, c := range []struct{ name, documents, want string }{
		{"the first is accepted", "10@0", "ok"},
		{"exactly half is accepted", "100@0 50@1 25@2", "ok ok ok"},
		{"under half is refused", "100@0 49@1", "ok shrunk"},
		{"an odd count's half is not reached", "101@0 50@1 51@1", "ok shrunk ok"},
		{"growth is accepted", "10@0 1000@1", "ok ok"},
		{"an equal timestamp is accepted", "100@5 100'@5 50@5", "ok ok ok"},
		{"an older timestamp is refused", "100@5 100@4", "ok clock_backwards"},
		{"the clock comes first", "100@5 10@4", "ok clock_backwards"},
		{"a good one between starts the count again", "100@0 10@1 10@2 100@3 10@4 10@5 10@6", "ok shrunk shrunk ok shrunk shrunk ok"},
		{"three that agree are accepted", "100@0 10@1 11@2 10@3 11@4", "ok shrunk shrunk ok ok"},
		{"the third is what later ones are compared with", "100@0 40@1 40@2 40@3 19@4 20@4", "ok shrunk shrunk ok shrunk ok"},
		{"three corrected clocks are accepted", "100@60 100@1 100@2 100@3 100@2", "ok clock_backwards clock_backwards ok clock_backwards"},
		{"a clock that stands still behind, while the rest moves", "100@60 100@1 100'@1 100''@1", "ok clock_backwards clock_backwards ok"},
		{"the same document is no further one", "100@0 10@1 10@1 10@1 10@1 10@2 10@2 10@3", "ok shrunk shrunk shrunk shrunk shrunk shrunk ok"},
		{"a clock that runs backwards never agrees", "100@60 100@59 100@58 100@57 100@56", "ok clock_backwards clock_backwards clock_backwards clock_backwards"},
		{"halving again does not agree", "100@0 40@1 19@2 9@3 9@4 9@5", "ok shrunk shrunk shrunk shrunk ok"},
		{"doubling does not agree", "1000@0 10@1 21@2 43@3 43@4 44@5", "ok shrunk shrunk shrunk shrunk ok"},
		{"the reasons may differ", "100@60 100@59 10@61 10@62 10@63", "ok clock_backwards shrunk shrunk ok"},
		{"nothing readable", "100@0 0@1 0@2 0@3", "ok shrunk shrunk ok"},
	} {
		var g guard
		var got []string
		for _, text := range strings.Fields(c.documents) {
			got = append(got, verdict(t, &g, text))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %s: %s, want %s", c.name, c.documents, s, c.want)
		}
	}
}

// verdict asks a guard of a document.
func verdict(t *testing.T, g *guard, text string) string {
	t.Helper()
	var rows, minute int
	bare := strings.ReplaceAll(text, "'", "")
	if _, err := fmt.Sscanf(bare, "%d@%d", &rows, &minute); err != nil {
		t.Fatal(err)
	}
	err := g.check(chainMark{rows, ny(t, "2026-11-20 11:00:00").Add(time.Duration(minute) * time.Minute), text})
	if err == nil {
		return "ok"
	}
	return string(reasonOf(err))
}

func TestGuardAfterARestart(t *testing.T) {
	at := ny(t, "2026-11-20 11:00:00")
	accepted := flowSource{Listed: 110, Skipped: 10, CapturedAt: at}
	for _, c := range []struct {
		now  time.Duration // after the accepted document
		mark chainMark
		want upstream.Reason
	}{
		{time.Minute, chainMark{50, at, "b"}, ""},
		{time.Minute, chainMark{49, at, "b"}, upstream.Shrunk},
		{time.Minute, chainMark{100, at.Add(-time.Second), "b"}, upstream.Backwards},
		{-time.Second, chainMark{1, at.Add(-time.Hour), "b"}, ""}, // the clock was set back
	} {
		var g guard
		g.restore(accepted, at.Add(c.now))
		var got upstream.Reason
		if err := g.check(c.mark); err != nil {
			got = reasonOf(err)
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c, got, c.want)
		}
	}
}

// A recording may be exchanged for an older or smaller one, since there will never be a third that agrees.
func TestGuardIsOffWhenTheClockStandsStill(t *testing.T) {
	for speed, off := range map[float64]bool{0: true, 1: false} {
		r := &Refresher{cfg: Config{Clock: NewClock(ny(t, "2026-11-20 11:00:00"), speed)}}
		g := r.newGuard()
		if verdict(t, g, "100@0") != "ok" || (verdict(t, g, "1@0") == "ok") != off {
			t.Errorf("speed %v: a shrunk chain is accepted: %v, want %v", speed, !off, off)
		}
	}
	if g := (&Refresher{cfg: Config{Clock: MachineClock()}}).newGuard(); g.off {
		t.Error("the machine's clock does not stand still")
	}
}
