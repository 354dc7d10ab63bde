package snapshots

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// All methods run at the same time. The race detector must find no access without its lock, and each reader must get an
// answer that was written for its date. The memory has room for about one past answer.
func TestStoreFromManyGoroutines(t *testing.T) {
	o := options(t.TempDir())
	o.HistoryBytes = 3000
	s := openWith(t, o)
	dates := []string{monday, tuesday, wednesday, thursday, friday}
	file := map[string]File{}
	for _, date := range dates {
		file[date] = single(t, `"`+date+`"`)
		must(t, save(s, gamma, date, file[date]))
	}
	var wg sync.WaitGroup
	work := func(n int, step func(date string) error) {
		wg.Go(func() {
			for i := range n {
				if err := step(dates[i%len(dates)]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work(40, func(date string) error { return save(s, gamma, date, file[date]) })
	work(40, func(date string) error {
		f, err := datedOn(date, file[date])
		f.Product, f.Current = gamma, true
		return errors.Join(err, s.Save([]File{f}, []Object{{SHA256: sha([]byte(date)), Body: []byte(date)}}))
	})
	for range 4 {
		work(400, func(date string) error {
			if got, err := s.Historical(gamma, date); err != nil && !errors.Is(err, ErrBusy) || err == nil && string(got.Default.Data()) != `"`+date+`"` {
				return fmt.Errorf("historical %s: %v, %w", date, got, err)
			}
			return nil
		})
	}
	work(40, func(date string) error {
		if f, err := s.LoadCurrent(gamma); err == nil && string(f.Edition.Default.Data()) != `"`+f.Date()+`"` {
			return fmt.Errorf("current: %s of %s", f.Edition.Default.Data(), f.Date())
		}
		return nil
	})
	work(20, func(date string) error {
		_, err := s.Expire(Ages{FilesBefore: date})
		return err
	})
	work(100, func(string) error {
		if got := s.DatesOf(gamma); !slices.Equal(got, dates) {
			return fmt.Errorf("dates %q", got)
		}
		return errors.Join(s.DiskError())
	})
	work(20, func(string) error {
		_, bad, err := Verify(s.opts.Dir)
		if len(bad) > 0 {
			return bad[0].Err
		}
		return err
	})
	wg.Wait()
	for _, date := range dates {
		equal(t, historical(t, s, date), date, "%s", date)
	}
	s.history.Wait()
	room := int64(0)
	for _, date := range dates {
		if snapshot, ok := s.history.Get(s.index[key{date, "gex-spx"}].digest); ok {
			room += snapshot.cost()
		}
	}
	if n := len(s.reads); room == 0 || room > o.HistoryBytes || n != 0 {
		t.Errorf("history holds %d bytes, want some, at most %d; %d places for reading are still taken", room, o.HistoryBytes, n)
	}
}

// The error of a store that cannot open has the reason and names the directory. The directory stays free.
func TestOpenReturnsItsErrors(t *testing.T) {
	place := func(make func(dir string) error) string {
		dir := filepath.Join(t.TempDir(), "data")
		must(t, make(dir))
		return dir
	}
	file := func(dir string) error { return os.WriteFile(dir, nil, 0o644) }
	folder := func(path ...string) func(dir string) error {
		return func(dir string) error { return os.MkdirAll(filepath.Join(append([]string{dir}, path...)...), 0o755) }
	}
	full := t.TempDir()
	for name, c := range map[string]struct {
		dir, want string
		history   int64
	}{
		"a file in its place": {place(file), "not a directory", 1},
		"a file above it":     {filepath.Join(place(file), "sub"), "not a directory", 1},
		"a file for the source": {place(func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o755), file(filepath.Join(dir, "simulated")))
		}), "not a directory", 1},
		"a folder for the lock":    {place(folder("simulated", lockName)), "open lock file", 1},
		"a link to nowhere":        {place(func(dir string) error { return os.Symlink(dir+"/no/where", dir) }), "directory", 1},
		"a name that is too long":  {filepath.Join(t.TempDir(), strings.Repeat("x", 300)), "file name too long", 1},
		"no room for past answers": {full, "create cache", 0},
	} {
		o := options(c.dir)
		o.HistoryBytes = c.history
		s, err := Open(o)
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "open data directory "+c.dir) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	open(t, full)
}

// A start indexes the dated files, removes what a crash left, and leaves all other files alone. Verify looks at the dated files
// of every source, and changes nothing. What a file manager, rsync or an NFS client leaves beside our files is not bad
// (weaviate/weaviate#2953, elastic/elasticsearch#12433).
func TestOpenReadsTheDirectory(t *testing.T) {
	s := open(t, t.TempDir())
	for _, date := range []string{friday, monday, wednesday} {
		must(t, save(s, gamma, date, single(t, `{"n":1}`)))
	}
	must(t, save(s, "gex/spx/series", tuesday, single(t, `{"n":1}`))) // its name begins like the other's
	foreign := []string{
		"notes", ".new-usage.json-1", "gex-spx", "notes~/gex-spx", "2026-11-31/gex-spx", "20261117/gex-spx", "2026-11-17x/gex-spx",
		monday + "/README", monday + "/.hidden", monday + "/sub/file", "other/" + tempPrefix + "x", "2026-02-30/" + tempPrefix + "x",
		monday + "/.nfs000000000000a1b2", monday + "/gex-spx~", monday + "/#gex-spx#", "objects/.DS_Store", "objects/readme", "current/.gex-spx.Xq3kZ1", "current/gex-spx (1)",
	}
	left := []string{
		tempPrefix + identityName + "-123", monday + "/" + tempPrefix + "gex-spx-123", monday + "/" + tempPrefix,
		thursday + "/" + tempPrefix + "spx-max-pain-9",
	}
	for _, name := range slices.Concat(foreign, left) {
		put(t, s, name, "x")
	}
	other := options(s.opts.Dir)
	other.Source = "cboe"
	must(t, save(openWith(t, other), vix, friday, single(t, `1`)))
	equal(t, verified(t, s.opts.Dir, filepath.Join(s.dir, monday, "README")), 6, "files")
	names, err := FileNames(s.opts.Dir, s.opts.Source, monday)
	must(t, err)
	equal(t, names, []string{"README", "gex-spx"}, "names")
	failIf(t, !exists(t, s, left[0]), "verify removes files")
	n, bad, err := Verify(filepath.Join(s.opts.Dir, "none"))
	failIf(t, n != 0 || len(bad) != 0 || err == nil, "no directory: %d, %v, %v", n, bad, err)
	for range 2 { // before and after a restart
		for product, want := range map[string][]string{gamma: {monday, wednesday, friday}, "gex/spx/series": {tuesday}, vix: nil} {
			equal(t, s.DatesOf(product), want, "dates of %s", product)
		}
		s = reopen(t, s)
	}
	equal(t, s.Stats().BadFiles, int64(1), "bad files of the last start")
	for _, name := range append(foreign, monday+"/gex-spx", ".lock") {
		failIf(t, !exists(t, s, name), "%s is gone", name)
	}
	for _, name := range left {
		failIf(t, exists(t, s, name), "%s is still there", name)
	}
}

// The summaries of a product's dates are found without a read, before and after a start.
func TestSummaries(t *testing.T) {
	s := open(t, t.TempDir())
	for _, date := range []string{friday, monday, wednesday} {
		f := single(t, `1`)
		if f.Summary = []byte("row of " + date); date == wednesday {
			f.Summary = nil
		}
		must(t, save(s, gamma, date, f))
	}
	for range 2 {
		got := s.Summaries(gamma)
		failIf(t, len(got) != 2 || got[0].Date != monday || string(got[0].Body) != "row of "+monday || string(got[1].Body) != "row of "+friday, "summaries %q", got)
		s = reopen(t, s)
	}
}
