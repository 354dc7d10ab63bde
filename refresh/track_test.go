package refresh_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/compute"
	"strikecache/refresh"
	"strikecache/refresh/product"
	"strikecache/snapshots"
)

const track = product.TrackResource

// trackData is the data of a track. A row begins with its as_of.
type trackData struct {
	Date        string            `json:"date"`
	SessionDate string            `json:"session_date"`
	Columns     []string          `json:"columns"`
	Rows        []json.RawMessage `json:"rows"`
}

func decodeTrack(t testing.TB, s *snapshots.Snapshot) (d trackData) {
	t.Helper()
	must(t, json.Unmarshal(s.Data(), &d))
	return d
}

// asOfs returns the as_of of each row in New York.
func (d trackData) asOfs(t testing.TB) (all []string) {
	t.Helper()
	for _, row := range d.Rows {
		var asOf time.Time
		must(t, json.Unmarshal(row, &[]any{&asOf}))
		all = append(all, asOf.In(compute.NewYork).Format("15:04:05"))
	}
	return all
}

func sameRow(a, b json.RawMessage) bool { return bytes.Equal(a, b) }

func (r *rig) track() trackData {
	r.t.Helper()
	return decodeTrack(r.t, r.store.Current(track).Default)
}

// spxAt runs the SPX job at an instant of New York.
func (r *rig) spxAt(text string) {
	r.t.Helper()
	time.Sleep(ny(r.t, text).Sub(r.clock.Now()))
	if !refresh.RunJob(r.Refresher, r.t.Context(), "spx") {
		r.t.Fatalf("the SPX job failed at %s", text)
	}
}

func (r *rig) restored() *rig {
	r.t.Helper()
	must(r.t, r.Restore())
	return r
}

// fileOf returns the bytes of the stored track of a date.
func (r *rig) fileOf(date string) []byte {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, "simulated", date, snapshots.FileName(track)))
	must(r.t, err)
	return b
}

// recomputed checks that the stored track of a date can be computed again.
func (r *rig) recomputed(date string) {
	r.t.Helper()
	f, err := refresh.Recompute(r.dir, "simulated", date, track)
	if err != nil || f.Verdict != "identical" {
		r.t.Errorf("recompute of %s: %+v, %v", date, f, err)
	}
}

// A session's first row begins its track. Each later as_of adds a row. An as_of that stands still adds none, and then the
// track is neither sealed nor written again. It ends the failures of the upstream.
func TestTrackOfASession(t *testing.T) {
	long(t)
	play(t, "2026-11-19 09:40", func(t *testing.T, r *rig) {
		r.spxAt("2026-11-19 09:40") // the chain is of the evening before, whose date has closed
		if d := r.track(); d.SessionDate != "2026-11-18" || !slices.Equal(d.asOfs(t), []string{"16:14:59"}) {
			t.Errorf("before the first row: %s %s", d.SessionDate, d.asOfs(t))
		}
		if dates := r.store.DatesOf(track); dates != nil {
			t.Errorf("stored for closed dates: %q", dates)
		}
		r.spxAt("2026-11-19 09:46")
		r.spxAt("2026-11-19 09:47")
		r.spxAt("2026-11-19 09:47") // the same chain
		r.spxAt("2026-11-19 12:00")
		want := []string{"09:30:52", "09:31:52", "11:44:52"}
		d := r.track()
		if !slices.Equal(d.asOfs(t), want) || d.Date != "2026-11-19" || d.SessionDate != "2026-11-19" {
			t.Errorf("%+v", d)
		}
		r.recomputed("2026-11-19")

		r.spxAt("2026-11-19 16:35")
		r.spxAt("2026-11-19 16:40")
		want = append(want, "16:14:59")
		if d := r.track(); !slices.Equal(d.asOfs(t), want) {
			t.Errorf("after the close: %s", d.Rows)
		}
		edition, file := r.store.Current(track), r.fileOf("2026-11-19")
		gamma := r.store.Current(product.GammaResource)
		r.spxAt("2026-11-19 20:40")
		if r.store.Current(product.GammaResource) == gamma {
			t.Fatal("the quotes do not move at night: the test shows nothing")
		}
		if r.store.Current(track) != edition || !bytes.Equal(r.fileOf("2026-11-19"), file) {
			t.Error("a chain that adds no row has changed the track")
		}
		r.market.Fail(spxDocument, faultHTMLPage, 3)
		for range 3 {
			refresh.RunJob(r.Refresher, t.Context(), "spx")
		}
		if f := r.meta(track).Freshness; f.State != "stale" || *f.Reason != "upstream_html" {
			t.Errorf("after three failures: %+v", f)
		}
		r.spxAt("2026-11-19 20:35")
		if f := r.meta(track).Freshness; f.State != "closed" || !bytes.Equal(r.store.Current(track).Default.Data(), edition.Default.Data()) {
			t.Errorf("after a success that adds no row: %+v, or other data", f)
		}
		r.recomputed("2026-11-19")
		past, err := r.store.Historical(track, "2026-11-19")
		if err != nil || !slices.Equal(decodeTrack(t, past).asOfs(t), want) {
			t.Errorf("the track of the date: %v, %v", past, err)
		}
		r.spxAt("2026-11-20 09:44")
		if d := r.track(); d.Date != "2026-11-19" {
			t.Errorf("before the first row of Friday, the track is of %s", d.Date)
		}
		r.spxAt("2026-11-20 09:46")
		if d := r.track(); d.Date != "2026-11-20" || len(d.Rows) != 1 {
			t.Errorf("on Friday: %s, %d rows", d.Date, len(d.Rows))
		}
		if !bytes.Equal(r.fileOf("2026-11-19"), file) {
			t.Error("the track of a past session has changed")
		}
	})
}

// A restart continues the track. A damaged track is named in the log and not served, and the next row begins a new track.
func TestTrackContinuesAfterARestart(t *testing.T) {
	play(t, "2026-11-20 11:00", func(t *testing.T, r *rig) {
		r.spxAt("2026-11-20 11:00")
		r.spxAt("2026-11-20 11:01")
		before := r.track()
		r = r.again("2026-11-20 11:02").restored()
		r.spxAt("2026-11-20 11:02")
		d := r.track()
		if !slices.Equal(d.asOfs(t), []string{"10:44:52", "10:45:52", "10:46:52"}) || !slices.EqualFunc(d.Rows[:2], before.Rows, sameRow) {
			t.Errorf("after the restart: %s", d.Rows)
		}
		r.recomputed("2026-11-20")

		// Another rate changes the newest row alone: the rows before are an input.
		r = r.again("2026-11-20 11:02", func(c *refresh.Config) { c.RiskFreeRate = 0.06 }).restored()
		changed := r.track()
		if !slices.Equal(changed.asOfs(t), d.asOfs(t)) || !slices.EqualFunc(changed.Rows[:2], d.Rows[:2], sameRow) {
			t.Errorf("with another rate: %s", changed.Rows)
		}
		if bytes.Equal(changed.Rows[2], d.Rows[2]) {
			t.Error("the row of the old rate is served")
		}

		file, path := r.fileOf("2026-11-20"), filepath.Join(r.dir, "simulated", "2026-11-20", snapshots.FileName(track))
		file[len(file)/2] ^= 1
		must(t, os.WriteFile(path, file, 0o600))
		r = r.again("2026-11-20 11:05")
		must(t, r.Restore())
		if !bytes.Contains(r.log.Bytes(), []byte(path)) || r.store.Current(track) != nil {
			t.Errorf("current %v, log %s", r.store.Current(track), r.log)
		}
		r.spxAt("2026-11-20 11:06")
		if got := r.track().asOfs(t); !slices.Equal(got, []string{"10:50:52"}) {
			t.Errorf("after a damaged track: %q", got)
		}
	})
}

// A chain that arrives after its date has closed adds no row, although its as_of is newer than the last row. A new method of the
// track is served after a restart. The file of the closed date stays.
func TestTrackOfAClosedDate(t *testing.T) {
	long(t)
	play(t, "2026-11-19 16:00", func(t *testing.T, r *rig) {
		r.spxAt("2026-11-19 16:00")
		file := r.fileOf("2026-11-19")
		r = r.again("2026-11-19 19:11").restored()
		r.spxAt("2026-11-19 19:11")
		if asOf := r.meta(product.GammaResource).AsOf; !asOf.Equal(ny(t, "2026-11-19 16:15").Add(-time.Second)) {
			t.Fatalf("gamma is of %s", asOf)
		}
		if got := r.track().asOfs(t); !slices.Equal(got, []string{"15:44:52"}) || !bytes.Equal(r.fileOf("2026-11-19"), file) {
			t.Errorf("%q, or the file has changed", got)
		}
		refresh.SetMethod(t, track, "track/99")
		r = r.again("2026-11-19 19:12").restored()
		if got := r.meta(track).Receipt.Method; got != "track/99" || !bytes.Equal(r.fileOf("2026-11-19"), file) {
			t.Errorf("the track of the method %s is served, or the file has changed", got)
		}
		if got := r.track().asOfs(t); !slices.Equal(got, []string{"15:44:52"}) {
			t.Errorf("with the new method: %q", got)
		}
	})
}

// Today's track gets the rows before its first, one for every 5 minutes.
func TestTodaysTrackIsBackfilled(t *testing.T) {
	long(t)
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		past := history(1)
		r := newRig(t, dir, "2026-11-20 10:10", past)
		r.run(80 * time.Second) // not at an instant when a job is due
		today := r.track()
		asOfs := today.asOfs(t)
		if len(asOfs) < 7 || asOfs[0] != "09:30:52" || asOfs[4] != "09:50:52" || asOfs[5] != "09:54:52" || !slices.IsSorted(asOfs) {
			t.Errorf("today: %q", asOfs)
		}
		if len(slices.Compact(asOfs)) != len(today.Rows) || today.Date != "2026-11-20" {
			t.Errorf("today has an as_of twice: %q", asOfs)
		}
		r.recomputed("2026-11-20")
		if got := r.track(); !slices.EqualFunc(got.Rows, today.Rows, sameRow) {
			t.Error("the restart has changed today's rows")
		}
	})
}
