package snapshots

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/bench/testkit"
)

// occupy takes every place for reading files, so that every read of a file is refused. free gives the places back.
func occupy(s *Store) (free func()) {
	s.reading.Lock()
	defer s.reading.Unlock()
	for i := range concurrentReads - len(s.reads) {
		s.reads[fmt.Sprint("occupied ", i)] = &pastRead{done: make(chan struct{})}
	}
	return func() {
		s.reading.Lock()
		defer s.reading.Unlock()
		maps.DeleteFunc(s.reads, func(digest string, _ *pastRead) bool { return strings.HasPrefix(digest, "occupied") })
	}
}

// reading begins a read of the answer of monday that ends with an answer when end is called.
func reading(s *Store, answer *Snapshot) (end func()) {
	r, digest := &pastRead{done: make(chan struct{}), edition: &Edition{Default: answer}}, s.digest(key{monday, "gex-spx"})
	s.reads[digest] = r
	return func() {
		s.reading.Lock()
		delete(s.reads, digest)
		s.reading.Unlock()
		s.hangs.Store(false)
		close(r.done)
	}
}

// Each dated product has its own dates and answers. A product that is not dated has no past answers. Writing a past date, as
// back-fill does, leaves the newest date the newest.
func TestHistorical(t *testing.T) {
	const track = "gex/spx/intraday"
	o := options(t.TempDir())
	o.DatedProducts = []string{gamma, track}
	s := openWith(t, o)
	equal(t, historical(t, s, ""), "none", "before the first")
	for _, date := range []string{wednesday, monday, friday} {
		must(t, save(s, gamma, date, single(t, `"`+date+`"`)))
	}
	for _, product := range []string{track, pain} {
		must(t, save(s, product, monday, single(t, `"`+product+`"`)))
	}
	for range 2 { // before and after a restart
		for range 2 { // first from the disk, then from memory
			for date, want := range map[string]string{
				"": friday, friday: friday, wednesday: wednesday, monday: monday, tuesday: "none", "2026-11-15": "none", "2026-11-21": "none",
			} {
				equal(t, historical(t, s, date), want, "%q", date)
			}
			for product, want := range map[string]string{track: track, pain: "none"} {
				equal(t, historicalOf(t, s, product, monday), want, "%s", product)
			}
			equal(t, historicalOf(t, s, track, friday), "none", "a date that only gex/spx has")
			s.history.Wait()
		}
		s = reopen(t, s)
		must(t, save(s, gamma, monday, single(t, `"`+monday+`"`)))
	}
	must(t, save(s, track, monday, single(t, `"one more row"`)))
	equal(t, historicalOf(t, s, track, monday), "one more row", "after a write of the track")
	equal(t, historical(t, s, monday), monday, "the other product after it")
	equal(t, s.DatesOf(track), []string{monday}, "dates")
	n := testing.AllocsPerRun(1000, func() { s.DatesOf(track); s.Historical(track, monday) })
	failIf(t, n != 0 && !raceEnabled, "%v allocations", n)
}

// An answer that was written or read once is served without the disk and without allocation. A date that is not stored never
// costs a read, whatever it looks like. Here every read would be refused.
func TestHistoricalWithoutTheDisk(t *testing.T) {
	s := week(t, options(t.TempDir()), monday, tuesday)
	must(t, save(s, gamma, friday, single(t, `"`+friday+`"`)))
	put(t, s, thursday+"/gex-spx", "written behind the store's back")
	first, err := s.Historical(gamma, monday)
	must(t, err)
	s.history.Wait()
	must(t, os.RemoveAll(s.dir))
	defer occupy(s)()
	again, err := s.Historical(gamma, monday)
	failIf(t, again != first, "%s: %p, %v, want %p", monday, again, err, first)
	want := map[string]string{"": friday, friday: friday, monday: monday, tuesday: "busy"}
	for _, date := range []string{wednesday, thursday, "2026-11-21", "0000-00-00", "../../etc", monday + "/../" + monday, strings.Repeat("9", 1000), "\x00", " "} {
		want[date] = "none"
	}
	for date, want := range want {
		equal(t, historical(t, s, date), want, "%.40q", date)
		n := testing.AllocsPerRun(1000, func() { s.Historical(gamma, date) })
		failIf(t, n != 0 && want != "busy" && !raceEnabled, "%.40q: %v allocations", date, n)
	}
	equal(t, s.DatesOf(gamma), []string{monday, tuesday, friday}, "dates")
}

// A damaged file is not served and is logged once. Its date is not listed until it is written again.
func TestHistoricalDamage(t *testing.T) {
	o, log := options(t.TempDir()), &testkit.Text{}
	o.Log = log.Logger(slog.LevelInfo)
	s := week(t, o, monday, tuesday, wednesday, friday)
	damage(t, s, monday+"/gex-spx")
	put(t, s, wednesday+"/gex-spx", `{"format":2}`+"\n")
	b := bytesOf(t, s, friday+"/gex-spx")
	put(t, s, friday+"/gex-spx", string(b[:len(b)/2]))
	equal(t, historical(t, s, ""), tuesday, "newest")
	for range 2 {
		for _, date := range []string{monday, wednesday, friday} {
			equal(t, historical(t, s, date), "none", "%s", date)
		}
	}
	equal(t, s.DatesOf(gamma), []string{tuesday}, "dates")
	equal(t, log.Count(passedOver), 3, "lines for 3 bad files")
	equal(t, historical(t, s, ""), tuesday, "newest")
	must(t, save(s, gamma, monday, single(t, `"mended"`)))
	equal(t, historical(t, s, monday), "mended", "after another write")
	equal(t, s.DatesOf(gamma), []string{monday, tuesday}, "dates after another write")
}

// Of many requests for one date, one reads the file and all get its answer. The test holds the reader back until all the others
// wait for it.
func TestHistoricalSingleFlight(t *testing.T) {
	const many = 50
	s := week(t, options(t.TempDir()), monday, friday)
	want := sealed(t, `"read once"`)
	synctest.Test(t, func(t *testing.T) {
		end := reading(s, want)
		defer occupy(s)() // a second read would be refused
		var wg sync.WaitGroup
		for range many {
			wg.Go(func() {
				if got, err := s.Historical(gamma, monday); err != nil || got.Default != want {
					t.Errorf("%v, %v", got, err)
				}
			})
		}
		synctest.Wait() // all wait for the reader
		end()
		wg.Wait()
	})
}

// While the disk does not answer, one request waits for a second and the next ones not at all. When it answers again, each gets
// its answer.
func TestHistoricalOfADiskThatHangs(t *testing.T) {
	s := week(t, options(t.TempDir()), monday, friday)
	want := sealed(t, `"read at last"`)
	synctest.Test(t, func(t *testing.T) {
		end := reading(s, want)
		for _, waits := range []time.Duration{longestWait, 0, 0} {
			began := time.Now()
			if got, err := s.Historical(gamma, monday); !errors.Is(err, ErrBusy) || time.Since(began) != waits {
				t.Errorf("%v, %v after %v, want %v", got, err, time.Since(began), waits)
			}
		}
		end()
	})
	for _, date := range []string{monday, friday} {
		equal(t, historical(t, s, date), date, "%s", date)
	}
}

// An error that may pass forgets no date, and the log has one line of it, however often the file is asked for.
func TestAPassingReadErrorForgetsNoDate(t *testing.T) {
	o, log := options(t.TempDir()), &testkit.Text{}
	o.Log = log.Logger(slog.LevelWarn)
	s := week(t, o, monday, friday)
	dir := filepath.Join(s.dir, monday)
	must(t, os.Rename(dir, dir+"~"))
	put(t, s, monday, "in the way: the read fails with ENOTDIR, as it would with EMFILE or EIO")
	for range 3 {
		historical(t, s, monday)
	}
	equal(t, log.Count(passedOver), 1, "lines: %s", log)
	must(t, os.Remove(dir))
	must(t, os.Rename(dir+"~", dir))
	equal(t, historical(t, s, monday), monday, "when the file can be read again")
}

// A reader that finds a damaged file does not remove its date if a new answer meanwhile replaces the file.
func TestSaveDuringAReadOfADamagedFile(t *testing.T) {
	s := week(t, options(t.TempDir()), monday, friday)
	damage(t, s, monday+"/gex-spx")
	k := key{monday, "gex-spx"}
	_, e, err := s.raw(k)
	must(t, err)
	must(t, save(s, gamma, monday, single(t, `"new"`)))
	s.passOver(k, e, ErrTorn)
	equal(t, historical(t, s, monday), "new", "the date has")
	equal(t, s.DatesOf(gamma), []string{monday, friday}, "dates")
}

// If an answer is replaced while its old file is read, requests after Save always get the new answer.
func TestOverwriteDuringARead(t *testing.T) {
	o := options(t.TempDir())
	o.HistoryBytes = 64 << 20
	s := openWith(t, o)
	large := func(n int) File {
		return single(t, fmt.Sprintf(`{"n":%d,"fill":%q}`, n, strings.Repeat("abcdefghij", 100_000)))
	}
	must(t, save(s, gamma, monday, large(0)))
	must(t, save(s, gamma, friday, large(0)))
	for n := 1; n <= 10; n++ {
		next, want := large(n), fmt.Sprintf(`{"n":%d,`, n)
		s.history.Del(s.digest(key{monday, "gex-spx"}))
		s.history.Wait()
		var wg sync.WaitGroup
		var done atomic.Bool
		wg.Go(func() { s.Historical(gamma, monday); done.Store(true) })
		for reads := 0; reads == 0 && !done.Load(); runtime.Gosched() {
			s.reading.Lock()
			reads = len(s.reads)
			s.reading.Unlock()
		}
		must(t, save(s, gamma, monday, next))
		for _, when := range []string{"right after Save", "for good"} {
			if got, err := s.Historical(gamma, monday); err != nil || !strings.HasPrefix(string(got.Default.Data()), want) {
				t.Errorf("overwrite %d: the old answer %s, %v", n, when, err)
			}
			wg.Wait()
			s.history.Wait()
		}
	}
}
