package refresh_test

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/refresh"
	"strikecache/refresh/product"
)

// What is looked at first is played first: the track of today of SPX, the sessions, oldest first, the tracks of SPX of the last five, newest first,
// and the tracks of today of the others. A start plays nothing twice. An interrupted run goes on where it was, also when the documents of the first
// sessions are as old as those that are removed, and leaves the same files.
func TestPlayedSessionsAndTracks(t *testing.T) {
	long(t)
	const sessions, today = 7, "2026-11-20"
	past := func(p *interrupted) func(*refresh.Config) {
		return func(c *refresh.Config) {
			history(sessions)(c)
			p.Past, c.Past, c.ArchiveMaxAge = c.Past, p, 24*time.Hour
		}
	}
	closed := func(r *rig) map[string][]byte {
		files := tree(t, r.dir)
		maps.DeleteFunc(files, func(path string, _ []byte) bool {
			return !strings.HasPrefix(path, "/simulated/20") || strings.Contains(path, today)
		})
		return files
	}
	whole, documents := map[string][]byte{}, 0
	synctest.Test(t, func(t *testing.T) {
		first, second := &interrupted{}, &interrupted{}
		r := newRig(t, t.TempDir(), today+" 11:00", past(first))
		r.run(82 * time.Second)
		days := calendar.Back(calendar.SessionDate(r.clock.Now()), sessions)
		want := []string{today + " options/_SPX.json"}
		for range sessions {
			want, days = append(want, days.String()+" options/_SPX.json", days.String()+" options/XLF.json"), calendar.Next(days)
		}
		for i := range 5 {
			want = append(want, want[len(want)-2-3*i])
		}
		want = append(want, today+" options/XLF.json")
		if got := slices.Compact(first.asked); !slices.Equal(got, want) {
			t.Errorf("asked in the order\n%s, want\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		dates := r.store.DatesOf(product.TrackResource)
		if len(dates) != 6 || r.History() != "7 of 7" || r.log.Len() > 0 {
			t.Fatalf("tracks of %v, history %s, log %s", dates, r.History(), r.log)
		}
		for _, date := range dates[:5] {
			f, err := r.store.Load(product.TrackResource, date)
			must(t, err)
			rows, err := product.Named(product.TrackResource).TrackRows(f.Edition.Default.Data())
			must(t, err)
			if n := len(rows); n != 27 || !bytes.Contains(rows[0], []byte(date+"T14:")) || !bytes.Contains(rows[n-1], []byte(date+"T21:14:59Z")) {
				t.Errorf("track of %s: %d rows, from %s to %s", date, n, rows[0], rows[n-1])
			}
		}
		maps.Copy(whole, closed(r))
		documents = first.found
		r = r.again(today+" 11:05", past(second)).restored()
		r.run(time.Minute)
		if second.found > 0 {
			t.Errorf("played again: %q", second.asked)
		}
	})
	for _, last := range []int{documents / 6, documents / 2, documents - 30} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			r := newRig(t, t.TempDir(), today+" 11:00", past(&interrupted{last: last, end: cancel}))
			r.Run(ctx)
			before := closed(r)
			r = r.again(today+" 11:05", past(&interrupted{})).restored()
			r.run(82 * time.Second)
			after := closed(r)
			if len(before) == len(whole) || !maps.EqualFunc(after, whole, bytes.Equal) {
				t.Errorf("ended after %d documents of %d with %d files: then %d files, which differ from the %d of a whole run", last, documents, len(before), len(after), len(whole))
			}
		})
	}
}
