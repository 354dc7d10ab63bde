package refresh_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/compute"
	"strikecache/refresh"
	"strikecache/refresh/simulated"
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

// At the end of the window the SPX job publishes the last chain of the day while another job's reseal turns the answer
// before it to closed: the older answer must not replace the newer one.
func TestResealReplacesANewerAnswer(t *testing.T) { synctest.Test(t, resealDuringAPublication) }

func resealDuringAPublication(t *testing.T) {
	var mu sync.Mutex
	var stored, changed func()
	hook := func(message, attrs string) {
		mu.Lock()
		var f func()
		switch {
		case message == "stored" && strings.Contains(attrs, "options-flow-unusual"):
			f, stored = stored, nil
		case message == "freshness changed":
			f, changed = changed, nil
		}
		mu.Unlock()
		if f != nil {
			f()
		}
	}
	log := slog.New(logHook(hook))
	store, err := snapshots.Open(snapshots.Options{
		Dir: t.TempDir(), Source: "simulated", DatedProducts: refresh.DatedResources(), HistoryBytes: 1 << 20, Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	clock := refresh.NewClock(ny(t, "2026-11-20 16:26"), 1)
	market := newFaultyMarket(simulated.Config{Seed: 7, Now: clock.Now, Calendar: calendar})
	r := refresh.New(refresh.Config{
		Source: market, SourceName: "simulated", Store: store, Clock: clock, Calendar: calendar, RiskFreeRate: rate,
		ChainEvery: 25 * time.Second, QuotesEvery: time.Minute, FlowEvery: 10 * time.Second, Log: log,
	})
	if err := refresh.RefreshSPX(r, t.Context()); err != nil {
		t.Fatal(err)
	}
	old := store.Current(refresh.GammaResource)
	time.Sleep(ny(t, "2026-11-20 16:33").Sub(clock.Now()))
	inWindow, goOn := make(chan bool), make(chan bool)
	mu.Lock()
	stored = func() { close(inWindow); <-goOn } // the last file is written: makeCurrent comes next
	changed = func() {                          // reseal has sealed the older answer, and publishes next
		close(goOn)
		for n := 0; n < 100_000 && store.Current(refresh.GammaResource) == old; n++ {
			runtime.Gosched() // the other goroutine publishes now, unless it waits for a lock
		}
	}
	mu.Unlock()
	done := make(chan error)
	go func() { done <- refresh.RefreshSPX(r, t.Context()) }()
	<-inWindow
	if err := refresh.Reseal(r); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if at := store.Current(refresh.GammaResource).Default.Meta.AsOf; !at.After(old.Default.Meta.AsOf) {
		t.Errorf("the answer of %s is back", at)
	}
	if err := errors.Join(refresh.Reseal(r), refresh.RefreshSPX(r, t.Context()), refresh.Reseal(r)); err != nil {
		t.Fatal(err)
	}
	got, want := store.Current(refresh.GammaResource).Default.Meta, refresh.Held(r, refresh.GammaResource).Default.Meta
	if got.AsOf != want.AsOf {
		t.Errorf("served: as_of %s, computed %s; the refresher holds as_of %s, computed %s", got.AsOf, got.ComputedAt, want.AsOf, want.ComputedAt)
	}
}

// The first start on a directory of an earlier version, whose content digests had another form, publishes nothing that has the
// same receipt and the same data.
func TestFirstStartOnAnOldDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := newRig(t, dir, "2026-11-20 17:10")
		r.once()
		for _, name := range refresh.Resources() {
			date := "2026-11-20"
			if name == refresh.VIXResource {
				date = "2026-11-19"
			}
			f, err := r.store.Load(name, date)
			if err != nil {
				t.Fatal(err)
			}
			f.Content = "of another form"
			if err := r.store.Save(name, date, f); err != nil {
				t.Fatal(err)
			}
		}
		r.close()
		before := tree(t, dir)
		again := newRig(t, dir, "2026-11-22 12:00")
		defer again.close()
		again.market.Fail("", faultHTMLPage, -1)
		if err := errors.Join(again.Restore(), again.Resume()); err != nil {
			t.Fatal(err)
		}
		for name, body := range tree(t, dir) {
			if !strings.Contains(name, "vix-term-structure") && !bytes.Equal(before[name], body) { // the curve has stale_sessions
				t.Errorf("a start wrote %s", name)
			}
		}
	})
}

// A late gamma answer is not sealed again for a document that says nothing new.
func TestALateAnswerIsNotSealedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := newRig(t, dir, "2026-11-20 20:30")
		defer r.close()
		r.once()
		gamma, pain := r.store.Current(refresh.GammaResource), r.store.Current(refresh.PainResource)
		for range 3 {
			time.Sleep(5 * time.Minute)
			r.once()
		}
		if r.store.Current(refresh.PainResource) != pain {
			t.Fatal("the content changed: the test shows nothing")
		}
		if now := r.store.Current(refresh.GammaResource); now != gamma {
			t.Errorf("sealed again: computed at %s and %s", gamma.Default.Meta.ComputedAt, now.Default.Meta.ComputedAt)
		}
		// The chain of that gamma answer is in no recipe. A chain of the universe says something new.
		r.market.Fail(xlfDocument, faultGarbageNumbers, -1)
		time.Sleep(5 * time.Minute)
		if err := refresh.RefreshFlow(r.Refresher, t.Context()); err != nil {
			t.Fatal(err)
		}
		f := recomputeAll(t, dir, "2026-11-20")[refresh.FlowResource]
		if f.Gone != nil {
			t.Errorf("inputs of the stored flow are gone: %v", f.Gone)
		}
	})
}

// An unchanged answer stays when the limits of the archive have removed its inputs.
func TestExpiredInputs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var inputs *archive.Archive
		r := newRig(t, dir, "2026-11-20 18:45", func(c *refresh.Config) { inputs = c.Inputs })
		defer r.close()
		r.once()
		time.Sleep(ny(t, "2026-11-23 10:00").Sub(r.clock.Now()))
		r.once()
		inputs.Expire("2026-11-23")
		before := r.store.Current(refresh.VIXResource)
		for range 3 {
			time.Sleep(5 * time.Minute)
			r.once()
		}
		if now := r.store.Current(refresh.VIXResource); now != before {
			t.Errorf("the same curve was sealed again: computed at %s and %s", before.Default.Meta.ComputedAt, now.Default.Meta.ComputedAt)
		}
	})
}

// A damaged gamma file affects only gamma: the other answers do not go back to the documents of an earlier date.
func TestADamagedGammaFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := newRig(t, dir, "2026-11-19 16:40")
		r.once()
		time.Sleep(ny(t, "2026-11-19 20:30").Sub(r.clock.Now()))
		r.once() // late for gamma, not for max pain and flow
		time.Sleep(ny(t, "2026-11-20 17:10").Sub(r.clock.Now()))
		r.once()
		want := r.meta(refresh.PainResource).AsOf
		r.close()
		if err := os.WriteFile(filepath.Join(dir, "simulated", "2026-11-20", snapshots.FileName(refresh.GammaResource)), []byte("torn"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, "simulated", "2026-11-19", snapshots.FileName(refresh.GammaResource)+"@late")); err != nil {
			t.Log(err)
		}
		before := tree(t, filepath.Join(dir, "simulated"))
		again := newRig(t, dir, "2026-11-20 17:20")
		defer again.close()
		again.market.Fail("", faultHTMLPage, -1)
		if err := errors.Join(again.Restore(), again.Resume()); err != nil {
			t.Fatal(err)
		}
		if got := again.meta(refresh.PainResource).AsOf; got.Before(want) {
			t.Errorf("max pain went back from %s to %s", want, got)
		}
		if q := string(again.meta(refresh.FlowResource).Quality); !strings.Contains(q, `"SPX"`) {
			t.Errorf("the flow lost its SPX chain: %s", q)
		}
		for name, body := range tree(t, filepath.Join(dir, "simulated")) {
			if strings.Contains(name, "2026-11-19") && !bytes.Equal(before[name], body) {
				t.Errorf("a start wrote %s", name)
			}
		}
	})
}

// counting is a source that counts the requests and answers them slowly.
type counting struct {
	*faultyMarket
	asked map[upstream.Kind]int
	takes time.Duration
	last  time.Time
	now   func() time.Time
}

func (c *counting) Fetch(ctx context.Context, name upstream.Name, since *upstream.Document) (*upstream.Document, error) {
	kind, _ := name.Split()
	c.asked[kind]++
	time.Sleep(c.takes)
	if kind == upstream.QuotesKind && strings.Contains(string(name), "XL") {
		c.last = c.now()
	}
	return c.faultyMarket.Fetch(ctx, name, since)
}

// Histories that cannot be fetched are asked for once an hour.
func TestHistoriesThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var source *counting
		r := newRig(t, t.TempDir(), "2026-11-20 11:00", func(c *refresh.Config) {
			source = &counting{faultyMarket: c.Source.(*faultyMarket), asked: map[upstream.Kind]int{}, now: c.Clock.Now}
			c.Source = source
		})
		defer r.close()
		for _, symbol := range compute.FundSymbols() {
			r.market.Fail(upstream.History(symbol), faultHTMLPage, -1)
		}
		r.RefreshOnce(t.Context())
		first := source.asked[upstream.HistoryKind]
		for range 5 {
			time.Sleep(time.Minute)
			r.RefreshOnce(t.Context())
		}
		if n := source.asked[upstream.HistoryKind]; n > first+2 { // the two of the VIX closes aside
			t.Errorf("%d histories were asked for in 5 minutes, after the %d of the first run", n-first, first)
		}
	})
}

// computed_at is never before the arrival of the documents.
func TestComputedBeforeItArrived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var source *counting
		r := newRig(t, t.TempDir(), "2026-11-20 11:00", func(c *refresh.Config) {
			source = &counting{faultyMarket: c.Source.(*faultyMarket), asked: map[upstream.Kind]int{}, takes: 3 * time.Second, now: c.Clock.Now}
			c.Source = source
		})
		defer r.close()
		r.once()
		m := r.meta(refresh.SectorsResource)
		if m.ComputedAt.Before(source.last) || m.ComputedAt.Before(*m.CapturedAt) {
			t.Errorf("computed_at %s, captured_at %s, last quote at %s", m.ComputedAt, m.CapturedAt, source.last)
		}
	})
}

// After a restart without an archive, a chain that cannot be fetched keeps its rows in the stored flow.
func TestFlowAfterARestartWithoutArchive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := newRig(t, dir, "2026-11-20 11:00")
		r.once()
		r.close()
		again := newRig(t, dir, "2026-11-20 11:05")
		defer again.close()
		if err := again.Restore(); err != nil {
			t.Fatal(err)
		}
		again.market.Fail(xlfDocument, faultHTMLPage, -1)
		again.RefreshOnce(t.Context())
		time.Sleep(25 * time.Second)
		again.RefreshOnce(t.Context())
		if q := string(again.meta(refresh.FlowResource).Quality); !strings.Contains(q, `"XLF"`) {
			t.Errorf("the flow lost XLF: %s", q)
		}
	})
}

// When the exchange has closed, the dated file says so, like the answer.
func TestTheFileOfAClosedDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.TempDir(), "2026-11-20 16:31")
		defer r.close()
		r.once()
		time.Sleep(4 * time.Minute)
		r.once()
		r.once() // the next publication writes the file
		past, err := r.store.Historical(refresh.GammaResource, "2026-11-20")
		if err != nil {
			t.Fatal(err)
		}
		if now := r.meta(refresh.GammaResource).Freshness; past.Meta.Freshness.State != now.State {
			t.Errorf("the file says %s, the answer %s", past.Meta.Freshness.State, now.State)
		}
	})
}

// If inputs of a past date are not archived, the first refresh after a start either archives them or changes nothing. From
// 17:15 on, the quote instant does not move with the document, so a later document says nothing new.
func TestAnArchiveThatLacksAPastDate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := newRig(t, dir, "2026-11-20 17:20")
		r.once()
		r.close()
		if err := os.RemoveAll(archive.Dir(dir, "simulated")); err != nil {
			t.Fatal(err)
		}
		again := newRig(t, dir, "2026-11-20 20:30")
		defer again.close()
		if err := errors.Join(again.Restore(), again.Resume()); err != nil {
			t.Fatal(err)
		}
		before := tree(t, filepath.Join(dir, "simulated", "2026-11-20"))
		for n := range 3 {
			pain := again.store.Current(refresh.PainResource)
			again.once()
			if again.store.Current(refresh.PainResource) != pain {
				t.Errorf("refresh %d sealed the same max pain again", n+1)
			}
			for name, body := range tree(t, filepath.Join(dir, "simulated", "2026-11-20")) {
				if !strings.Contains(name, "state-") && name != "/vix-term-structure" && name != "/sectors-rotation" && !bytes.Equal(before[name], body) { // these have evening documents
					t.Errorf("refresh %d wrote %s", n+1, name)
				}
			}
			before = tree(t, filepath.Join(dir, "simulated", "2026-11-20"))
			time.Sleep(5 * time.Minute)
		}
	})
}

// A document that says nothing new writes nothing.
func TestUnchangedInputWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := newRig(t, dir, "2026-11-20 17:20")
		defer r.close()
		r.once()
		n := r.store.Stats().FilesWritten
		time.Sleep(10 * time.Minute)
		r.once()
		if now := r.store.Stats().FilesWritten; now != n {
			t.Errorf("%d files were written for documents that say nothing new", now-n)
		}
	})
}

// After a restart at night, when the newest gamma answer is a late one, the carry is not lost, and a changed rate is served
// without a new document.
func TestRestartAtNight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := newRig(t, dir, "2026-11-19 16:40")
		r.once()
		time.Sleep(ny(t, "2026-11-19 20:30").Sub(r.clock.Now()))
		r.once()
		late := r.store.Current(refresh.GammaResource).Default.Data()
		computed := r.meta(refresh.GammaResource).ComputedAt
		r.close()
		same := newRig(t, dir, "2026-11-19 20:30")
		if err := errors.Join(same.Restore(), same.Resume()); err != nil {
			t.Fatal(err)
		}
		for _, name := range allResources {
			if at := same.meta(name).ComputedAt; at.After(computed) {
				t.Errorf("%s was sealed again though nothing changed: computed at %s after %s", name, at, computed)
			}
		}
		same.close()
		again := newRig(t, dir, "2026-11-19 20:31", func(c *refresh.Config) { c.RiskFreeRate = 0.06 })
		defer again.close()
		if err := errors.Join(again.Restore(), again.Resume()); err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(again.store.Current(refresh.GammaResource).Default.Data(), late) {
			t.Error("the gamma exposure of the old rate is served")
		}
	})
}

// Whatever file a kill comes before or after, the newest date can be computed again: the archive has the inputs of the
// answers that are in the files. The next start keeps these answers as they are.
func TestAKillAtEveryFileLeavesTheInputs(t *testing.T) {
	long(t)
	t.Run("in session", func(t *testing.T) { killAtEveryFile(t, quoted, "2026-11-20", "2026-11-20 11:00") })
	t.Run("after the date has closed", func(t *testing.T) {
		killAtEveryFile(t, refresh.Resources(), "2026-11-18", "2026-11-18 17:30", 4*time.Hour)
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
		hook := logHook(func(message, attrs string) {
			state := strings.Contains(attrs, "state-")
			if on && !state && (message == "stored" || message == "storing" && strings.Contains(attrs, "step=rename")) {
				kills, left = append(kills, message+" "+attrs), append(left, tree(t, dir))
			}
		})
		r := newRig(t, dir, start, func(c *refresh.Config) {
			if err := c.Store.Close(); err != nil {
				t.Fatal(err)
			}
			var err error
			if c.Store, err = snapshots.Open(snapshots.Options{
				Dir: dir, Source: "simulated", DatedProducts: refresh.DatedResources(), HistoryBytes: 1 << 20, Log: slog.New(hook),
			}); err != nil {
				t.Fatal(err)
			}
		})
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
		if err := r.Store().Close(); err != nil {
			t.Fatal(err)
		}
		if len(kills) < 4 {
			t.Fatalf("killed at %q: the test shows too little", kills)
		}
		copied := func(files map[string][]byte) (into string) {
			into = t.TempDir()
			for name, body := range files {
				if err := errors.Join(os.MkdirAll(filepath.Dir(into+name), 0o700), os.WriteFile(into+name, body, 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			return into
		}
		for i, files := range left {
			into := copied(files)
			t.Log(kills[i])
			identical(t, into, date, products...)
			next := newRig(t, into, later)
			if err := next.Restore(); err != nil {
				t.Fatal(err)
			}
			before := map[string]time.Time{}
			for _, name := range products {
				before[name] = next.meta(name).ComputedAt
			}
			if err := next.Resume(); err != nil {
				t.Fatal(err)
			}
			for _, name := range products {
				behind := name == refresh.TrackResource && before[name].Before(before[refresh.GammaResource]) // gets the row of the chain
				if at := next.meta(name).ComputedAt; !at.Equal(before[name]) && !behind {
					t.Errorf("%s was computed at %s, after the start at %s", name, before[name], at)
				}
			}
			if gamma, track := next.meta(refresh.GammaResource), next.meta(refresh.TrackResource); pauses == nil && !track.AsOf.Equal(gamma.AsOf) {
				t.Errorf("the track ends at %s, gamma is of %s", track.AsOf, gamma.AsOf)
			}
			second := tree(t, into) // a second kill: the recipes of its answers have replaced those that were put before their files
			maps.DeleteFunc(second, func(name string, _ []byte) bool { return strings.Contains(name, archive.Next) })
			identical(t, copied(second), date, products...)
			if err := refresh.RefreshSPX(next.Refresher, t.Context()); err != nil {
				t.Fatal(err)
			}
			if gamma, flow := next.meta(refresh.GammaResource), next.meta(refresh.FlowResource); !flow.ComputedAt.Equal(gamma.ComputedAt) {
				t.Errorf("the next chain gave gamma at %s, flow at %s", gamma.ComputedAt, flow.ComputedAt)
			}
			next.once()
			identical(t, into, date, products...)
			next.close()
			if rest, err := filepath.Glob(filepath.Join(archive.Dir(into, "simulated"), "*"+archive.Next+"*")); len(rest) > 0 || err != nil {
				t.Errorf("after the next refresh there is %q, %v", rest, err)
			}
		}
	})
}

// A kill after the file of gamma was written leaves the other files and the inputs of the feed as they were. A start does not
// compute gamma from the older chain.
func TestAKillBehindTheGammaFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := newRig(t, dir, "2026-11-20 11:00")
		r.once()
		before := tree(t, dir)
		time.Sleep(5 * time.Minute)
		r.once()
		newest := r.store.Current(refresh.GammaResource).Default.Meta.AsOf
		r.close()
		for name, body := range before {
			if !strings.HasSuffix(name, "2026-11-20/gex-spx") {
				if err := os.WriteFile(dir+name, body, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		again := newRig(t, dir, "2026-11-20 11:05")
		defer again.close()
		again.market.Fail("", faultHTMLPage, -1)
		if err := errors.Join(again.Restore(), again.Resume()); err != nil {
			t.Fatal(err)
		}
		if at := again.store.Current(refresh.PainResource).Default.Meta.AsOf; !at.Before(newest) {
			t.Fatalf("max pain is of %s: the test shows nothing", at)
		}
		if at := again.store.Current(refresh.GammaResource).Default.Meta.AsOf; !at.Equal(newest) {
			t.Errorf("gamma went back from %s to %s", newest, at)
		}
	})
}

// Rows that back-fill adds change only the series. The series keeps the instant of its feed.
func TestBackfillKeepsTheInstantOfTheFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := newRig(t, dir, "2026-11-20 17:30")
		r.once()
		series := r.store.Current(refresh.SeriesResource).Default
		r.close()
		again := newRig(t, dir, "2026-11-20 17:45", func(c *refresh.Config) {
			c.Past, c.BackfillSessions = c.Source.(refresh.PastSource), 2
		})
		defer again.close()
		if err := again.Restore(); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { again.Run(ctx) })
		time.Sleep(time.Minute)
		stop()
		run.Wait()
		gamma, now := again.store.Current(refresh.GammaResource).Default, again.store.Current(refresh.SeriesResource).Default
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

// After a kill between the files of gamma and max pain, max pain is older. The next chain says nothing new to gamma: it is
// published again with max pain, so that both have one instant.
func TestAFeedHasOneInstantAfterAKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := newRig(t, dir, "2026-11-20 15:50")
		r.once()
		before := tree(t, dir)
		time.Sleep(ny(t, "2026-11-20 17:30").Sub(r.clock.Now()))
		r.once()
		gamma := r.store.Current(refresh.GammaResource).Default
		r.close()
		for name, body := range before {
			if !strings.HasSuffix(name, "2026-11-20/gex-spx") {
				if err := os.WriteFile(dir+name, body, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		again := newRig(t, dir, "2026-11-20 17:45")
		defer again.close()
		if err := errors.Join(again.Restore(), again.Resume()); err != nil {
			t.Fatal(err)
		}
		again.once()
		now := again.store.Current(refresh.GammaResource).Default
		if !bytes.Equal(now.Data(), gamma.Data()) {
			t.Fatal("the chain said something new: the test shows nothing")
		}
		for _, name := range []string{refresh.SeriesResource, refresh.PainResource} {
			other := again.store.Current(name).Default.Meta
			if !other.CapturedAt.Equal(*now.Meta.CapturedAt) || !other.ComputedAt.Equal(now.Meta.ComputedAt) {
				t.Errorf("gamma was captured at %s and computed at %s, %s at %s and %s", now.Meta.CapturedAt, now.Meta.ComputedAt, name, other.CapturedAt, other.ComputedAt)
			}
		}
	})
}
