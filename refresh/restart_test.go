package refresh_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/compute"
	"strikecache/refresh"
	"strikecache/refresh/product"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// logHook is a log that calls a function with each message.
type logHook func(message string, attrs string)

func (h logHook) Enabled(context.Context, slog.Level) bool { return true }

func (h logHook) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h logHook) WithGroup(string) slog.Handler { return h }

func (h logHook) Handle(_ context.Context, r slog.Record) error {
	var attrs strings.Builder
	r.Attrs(func(a slog.Attr) bool { attrs.WriteString(a.String() + " "); return true })
	h(r.Message, attrs.String())
	return nil
}

// A damaged gamma file affects only gamma: the other answers do not go back to the documents of an earlier date.
func TestADamagedGammaFile(t *testing.T) {
	long(t)
	play(t, "2026-11-19 16:40", func(t *testing.T, r *rig) {
		r.once()
		r.onceAt("2026-11-19 20:30") // late for gamma, not for max pain and flow
		r.onceAt("2026-11-20 17:10")
		want := r.meta(product.PainResource).AsOf
		r.close()
		must(t, os.WriteFile(filepath.Join(r.dir, "simulated", "2026-11-20", snapshots.FileName(product.GammaResource)), []byte("torn"), 0o644))
		before := tree(t, filepath.Join(r.dir, "simulated"))
		again := newRig(t, r.dir, "2026-11-20 17:20")
		again.market.Fail("", faultHTMLPage, -1)
		again.restored()
		if got := again.meta(product.PainResource).AsOf; got.Before(want) {
			t.Errorf("max pain went back from %s to %s", want, got)
		}
		if q := string(again.meta(product.FlowResource).Quality); !strings.Contains(q, `"SPX"`) {
			t.Errorf("the flow lost its SPX chain: %s", q)
		}
		for name, body := range tree(t, filepath.Join(r.dir, "simulated")) {
			if strings.Contains(name, "2026-11-19") && !bytes.Equal(before[name], body) {
				t.Errorf("a start wrote %s", name)
			}
		}
	})
}

// While no history can be fetched, all are asked for every five minutes. As soon as they come, there is a rotation.
func TestHistoriesThatFail(t *testing.T) {
	play(t, "2026-11-20 11:00", func(t *testing.T, r *rig) {
		for _, symbol := range compute.FundSymbols() {
			r.market.Fail(upstream.History(symbol), faultHTMLPage, -1)
		}
		r.RefreshOnce(t.Context())
		first := r.market.askedFor(upstream.HistoryKind)
		for range 4 {
			time.Sleep(time.Minute)
			r.RefreshOnce(t.Context())
		}
		if n := r.market.askedFor(upstream.HistoryKind); n > first+2 { // the two of the VIX closes aside
			t.Errorf("%d histories were asked for in 4 minutes, after the %d of the first run", n-first, first)
		}
		r.market.ClearFaults()
		time.Sleep(time.Minute)
		r.RefreshOnce(t.Context())
		if r.store.Current(product.SectorsResource) == nil {
			t.Error("no rotation although the histories have come")
		}
	})
}

// Between two refresh windows, a chain whose quotes are final is not fetched again: a trade of the fund before the open would
// empty the flow until the first quotes of the session.
func TestFlowBetweenTwoWindows(t *testing.T) {
	long(t)
	play(t, "2026-11-19 16:00", func(t *testing.T, r *rig) {
		r.once()
		for _, x := range []struct {
			at   string
			want int
		}{{"2026-11-19 16:31", 1}, {"2026-11-19 16:45", 1}, {"2026-11-19 16:50", 0}, {"2026-11-20 08:00", 0}, {"2026-11-20 09:44", 0}, {"2026-11-20 09:45", 1}} {
			time.Sleep(ny(t, x.at).Sub(r.clock.Now()))
			clear(r.market.asked)
			if ok, n := refresh.RunJob(r.Refresher, t.Context(), "xlf"), r.market.askedFor(upstream.OptionsKind); !ok || n != x.want {
				t.Errorf("%s: %v, %d chains fetched, want %d", x.at, ok, n, x.want)
			}
		}
	})
}

// one is the underlying of tests that copy or compute many files.
var one = []string{"SPX"}

// feedOf are the resources that rest on the SPX chain and have an answer for every chain.
var feedOf = map[string]bool{product.MatrixResource: true, product.SeriesResource: true, product.PainResource: true, product.FlowResource: true}

// Whatever file a kill comes before or after, the newest date can be computed again: the documents of the answers that are in
// the files are there. After the next start no answer is older than the newest one of its feed.
func TestAKillAtEveryFileLeavesTheInputs(t *testing.T) {
	long(t)
	t.Run("in session", func(t *testing.T) {
		killAtEveryFile(t, slices.DeleteFunc(refresh.Resources(one), ofSettlements), "2026-11-20", "2026-11-20 11:00")
	})
	t.Run("after the date has closed", func(t *testing.T) {
		killAtEveryFile(t, refresh.Resources(one), "2026-11-18", "2026-11-18 17:30", 4*time.Hour)
	})
}

// killAtEveryFile refreshes at a time, after each pause, and 5 minutes later. Kills come during the last refresh. The products
// are those that have files of the date.
func killAtEveryFile(t *testing.T, products []string, date, start string, pauses ...time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var kills []string
		var left []map[string][]byte // the files that a kill leaves
		on := false
		object := func(attrs string) bool { return strings.Contains(attrs, "objects") }
		hook := logHook(func(message, attrs string) {
			if on && message == "storing" && strings.Contains(attrs, "step=rename") {
				if n := len(kills); n > 1 && object(attrs) && object(kills[n-1]) && object(kills[n-2]) {
					kills, left = kills[:n-1], left[:n-1] // of objects in a row, the first and the last are enough: no file names them yet
				}
				kills, left = append(kills, attrs), append(left, tree(t, dir))
			}
		})
		r := newRig(t, dir, start, func(c *refresh.Config) { c.Log, c.Underlyings = slog.New(hook), one })
		r.once()
		for _, pause := range pauses {
			time.Sleep(pause)
			r.once()
		}
		time.Sleep(5 * time.Minute)
		on = true
		r.once()
		on = false
		later := r.clock.Now().Add(time.Minute).In(compute.NewYork).Format("2006-01-02 15:04")
		r.close()
		if len(kills) < 4 {
			t.Fatalf("killed at %q: the test shows too little", kills)
		}
		copied := func(files map[string][]byte) (into string) {
			into = t.TempDir()
			for name, body := range files {
				must(t, os.MkdirAll(filepath.Dir(into+name), 0o700), os.WriteFile(into+name, body, 0o600))
			}
			return into
		}
		for i, files := range left {
			into := copied(files)
			t.Log(kills[i])
			identical(t, into, date, products...)
			next := newRig(t, into, later, func(c *refresh.Config) { c.Underlyings = one })
			next.restored()
			for _, name := range products {
				if at := next.meta(name).AsOf; feedOf[name] && at.Before(next.meta(product.GammaResource).AsOf) {
					t.Errorf("%s is of %s, gamma of %s", name, at, next.meta(product.GammaResource).AsOf)
				}
			}
			if _, bad, err := snapshots.Verify(into); len(bad) > 0 || err != nil {
				t.Errorf("bad files %v, %v", bad, err)
			}
			must(t, refresh.RefreshSPX(next.Refresher, t.Context()))
			if gamma, flow := next.meta(product.GammaResource), next.meta(product.FlowResource); !flow.ComputedAt.Equal(gamma.ComputedAt) {
				t.Errorf("the next chain gave gamma at %s, flow at %s", gamma.ComputedAt, flow.ComputedAt)
			}
			next.once()
			identical(t, into, date, products...)
			next.close()
		}
	})
}

// Rows that back-fill adds change only the series. The series keeps the instant of its feed.
func TestBackfillKeepsTheInstantOfTheFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.TempDir(), "2026-11-20 09:46") // the track begins: no row of the morning is missing
		r.once()
		r.onceAt("2026-11-20 17:30")
		series := r.store.Current(product.SeriesResource).Default
		again := r.again("2026-11-20 17:45", history(2))
		must(t, again.Restore())
		again.run(time.Minute)
		gamma, now := again.store.Current(product.GammaResource).Default, again.store.Current(product.SeriesResource).Default
		if bytes.Equal(now.Data(), series.Data()) {
			t.Fatal("back-fill added no row: the test shows nothing")
		}
		if !now.Meta.ComputedAt.Equal(gamma.Meta.ComputedAt) {
			t.Errorf("gamma was computed at %s, the series at %s", gamma.Meta.ComputedAt, now.Meta.ComputedAt)
		}
		if !now.Meta.CapturedAt.Equal(*gamma.Meta.CapturedAt) || now.Meta.Receipt.InputSHA256[0] != gamma.Meta.Receipt.InputSHA256[0] {
			t.Errorf("gamma is of %s, the series of %s", gamma.Meta.CapturedAt, now.Meta.CapturedAt)
		}
	})
}

// A clock that is months ahead removes nothing. Once answers of that time are stored, what is older than the limits is removed.
func TestExpiryOfAClockThatIsAhead(t *testing.T) {
	long(t)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.TempDir(), "2026-11-19 15:00", func(c *refresh.Config) { c.Underlyings = one })
		r.once()
		r = r.again("2027-03-19 15:00", func(c *refresh.Config) {
			c.Underlyings, c.SnapshotMaxAge, c.ArchiveMaxAge = one, 30*24*time.Hour, 90*24*time.Hour
		})
		before := tree(t, r.dir)
		refresh.RunJob(r.Refresher, t.Context(), "expiry")
		if after := tree(t, r.dir); len(after) != len(before) {
			t.Errorf("%d of %d files are left", len(after), len(before))
		}
		r.once()
		refresh.RunJob(r.Refresher, t.Context(), "expiry")
		if dates := r.store.DatesOf(product.FlowResource); slices.Contains(dates, "2026-11-19") {
			t.Errorf("nothing is removed: %v", dates)
		}
	})
}
