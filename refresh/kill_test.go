package refresh_test

import (
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

// Whatever file a kill comes before or after, the newest date can be computed again: the documents of the answers that are in
// the files are there. After a start, the first chain replaces all answers to it, which may be of two instants.
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
			if _, bad, err := snapshots.Verify(into); len(bad) > 0 || err != nil {
				t.Errorf("bad files %v, %v", bad, err)
			}
			if !refresh.RunJob(next.Refresher, t.Context(), "spx") {
				t.Errorf("the next chain is not taken: %s", next.log)
			}
			for _, name := range next.Resources() {
				if gamma, m := next.meta(product.GammaResource), next.meta(name); len(m.Receipt.Inputs) > 0 && m.Receipt.Inputs[0].Name == string(spxDocument) && !m.AsOf.Equal(gamma.AsOf) {
					t.Errorf("the next chain gave gamma of %s, %s of %s", gamma.AsOf, name, m.AsOf)
				}
			}
			next.once()
			identical(t, into, date, products...)
			next.close()
		}
	})
}
