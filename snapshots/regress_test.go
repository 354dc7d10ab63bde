package snapshots

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestOpenReturnsItsErrors(t *testing.T) {
	opened := func(o Options) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = nil
				t.Errorf("panic: %v", p)
			}
		}()
		s, err := Open(o)
		if err == nil {
			s.Close()
		}
		return err
	}
	o := options(t.TempDir())
	o.HistoryBytes = 0
	if opened(o) == nil {
		t.Error("no room for history: no error")
	}
	o.HistoryBytes = 1 << 20
	if err := opened(o); err != nil {
		t.Errorf("the lock stayed: %v", err)
	}
	o = options(t.TempDir())
	if err := os.MkdirAll(filepath.Join(o.Dir, o.Source, tempPrefix+"x", "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if opened(o) == nil {
		t.Error("what cannot be swept: no error")
	}
}

func TestLateFileAloneIsInNoHistory(t *testing.T) {
	s := open(t, t.TempDir())
	save(t, s, gamma, thursday, single(t, `"thursday"`))
	if err := s.SaveLate(gamma, friday, single(t, `"late"`)); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"before", "after"} {
		if got := historical(t, s, ""); got != "thursday" {
			t.Errorf("%s a restart: newest in the history: %s", when, got)
		}
		if got := s.Dates(); !slices.Equal(got, []string{thursday}) {
			t.Errorf("%s a restart: dates %q", when, got)
		}
		free := occupy(s)
		if got := historical(t, s, friday); got != "none" {
			t.Errorf("%s a restart: the late date goes to the disk: %s", when, got)
		}
		free()
		s = reopen(t, s)
	}
}

func TestOlderDateAfterARestartIsNotTheNewest(t *testing.T) {
	s := week(t, options(t.TempDir()), monday, friday)
	save(t, s, gamma, wednesday, single(t, `"`+wednesday+`"`)) // such as a back-fill
	if got := historical(t, s, ""); got != friday {
		t.Errorf("newest is %s, stored are %q", got, s.Dates())
	}
}

func TestOverwriteDuringARead(t *testing.T) {
	o := options(t.TempDir())
	o.HistoryBytes = 64 << 20
	s := openWith(t, o)
	large := func(n int) File {
		return single(t, fmt.Sprintf(`{"n":%d,"fill":%q}`, n, strings.Repeat("abcdefghij", 100_000)))
	}
	save(t, s, gamma, monday, large(0))
	save(t, s, gamma, friday, large(0))
	first, later := 0, 0
	for n := 1; n <= 30; n++ {
		next, want := large(n), fmt.Sprintf(`{"n":%d,`, n)
		s.history.Del(monday)
		s.history.Wait()
		var wg sync.WaitGroup
		var done atomic.Bool
		wg.Go(func() { s.Historical(monday); done.Store(true) })
		await(t, "the reader reads", func() bool { return len(s.reading) > 0 || done.Load() })
		save(t, s, gamma, monday, next)
		if got, err := s.Historical(monday); err != nil || !strings.HasPrefix(string(got.Data()), want) {
			first++
		}
		wg.Wait()
		s.history.Wait()
		if got, err := s.Historical(monday); err != nil || !strings.HasPrefix(string(got.Data()), want) {
			later++
		}
	}
	if first+later > 0 {
		t.Errorf("after 30 overwrites: the old answer %d times right after Save, %d times for good", first, later)
	}
}

func TestRenamedVariant(t *testing.T) {
	s := open(t, t.TempDir())
	save(t, s, pain, friday, File{Edition: variants(t)})
	b, _ := os.ReadFile(filepath.Join(s.dir, friday, pain))
	put(t, s, friday+"/"+pain, strings.Replace(string(b), `"name":"2027-01-15"`, `"name":"2027-01-16"`, 1))
	_, bad, _ := Verify(s.opts.Dir)
	f, err := s.Load(pain, friday)
	if err == nil && f.Edition.Variants["2027-01-16"] != nil {
		t.Errorf("expiration 2027-01-16 is answered with %s; verify finds %v", f.Edition.Variants["2027-01-16"].Data(), bad)
	}
	save(t, s, gamma, friday, single(t, `{"a":1}`))
	b, _ = os.ReadFile(filepath.Join(s.dir, friday, "gex-spx"))
	i := bytes.Index(b, []byte(`"gzip":`)) + 7
	b[i] = '9'
	put(t, s, friday+"/gex-spx", string(b))
	_, bad, _ = Verify(s.opts.Dir)
	s = reopen(t, s)
	if got, err := s.Historical(friday); err == nil && len(got.Body(Gzip)) == 0 {
		t.Errorf("an empty gzip body is served; verify finds %v", bad)
	}
}

func TestNewestWithABadDatedFileTwice(t *testing.T) {
	s := open(t, t.TempDir())
	save(t, s, gamma, thursday, single(t, `"before"`))
	save(t, s, gamma, friday, single(t, `"dated"`))
	if err := s.SaveLate(gamma, friday, single(t, `"late"`)); err != nil {
		t.Fatal(err)
	}
	damage(t, s, friday+"/gex-spx")
	s = reopen(t, s)
	for i := range 2 {
		if got := newest(t, s, gamma, forever); got != friday+` "late"` {
			t.Errorf("call %d: newest %s", i, got)
		}
	}
}

func TestNewestSeesALateFileAtOnce(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.SaveLate(gamma, friday, single(t, `"late"`)); err != nil {
		t.Fatal(err)
	}
	if got := newest(t, s, gamma, forever); got != friday+` "late"` {
		t.Errorf("newest %s", got)
	}
	expire(t, s, forever, every, 0) // the newest file of a product always stays
}

func TestHistoricalNewestPassesOverBadFiles(t *testing.T) {
	s := week(t, options(t.TempDir()), monday, friday)
	damage(t, s, friday+"/gex-spx")
	if got := historical(t, s, ""); got != monday {
		t.Errorf("newest %s", got)
	}
}

func TestAPassingReadErrorForgetsNoDate(t *testing.T) {
	s := week(t, options(t.TempDir()), monday, friday)
	dir := filepath.Join(s.dir, monday)
	if err := os.Rename(dir, dir+"~"); err != nil {
		t.Fatal(err)
	}
	put(t, s, monday, "in the way: the read fails with ENOTDIR, as it would with EMFILE or EIO")
	historical(t, s, monday)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir+"~", dir); err != nil {
		t.Fatal(err)
	}
	if got := historical(t, s, monday); got != monday {
		t.Errorf("when the file can be read again: %s, dates %q", got, s.Dates())
	}
}

func TestSaveReturnsItsOwnError(t *testing.T) {
	s := open(t, t.TempDir())
	obstruct(t, s, friday)
	if s.Save(gamma, friday, single(t, `1`)) == nil {
		t.Fatal("saved")
	}
	if err := s.Save(vix, monday, single(t, `1`)); err != nil && exists(t, s, monday+"/"+vix) {
		t.Errorf("the file was written, yet: %v", err)
	}
}

func TestSealedFilesAreReadable(t *testing.T) {
	for _, data := range []string{" {}", "{}\n", "\t1", "{\n}"} {
		s, err := Seal([]byte(data), meta())
		if err != nil {
			continue // refusing is fine
		}
		b := encoded(t, gamma, File{Edition: &Edition{Default: s}})
		if _, err := decodeFile(b, gamma, friday); err != nil {
			t.Errorf("%q is sealed and saved, but: %v", data, err)
		}
		if lines := bytes.SplitN(b, []byte{'\n'}, 3); !bytes.Equal(lines[1], s.Body(Identity)) {
			t.Errorf("%q: line 2 is not the body", data)
		}
	}
}

func TestOneBadFileDoesNotStopExpiry(t *testing.T) {
	s := stocked(t)
	put(t, s, monday+"/"+pain, "torn")
	if _, err := s.Expire(friday, func(file string) bool { return file == pain }); err != nil {
		t.Fatal(err)
	}
	if got := s.DatesOf(pain); !slices.Equal(got, []string{friday}) && !slices.Equal(got, []string{monday, friday}) {
		t.Errorf("dates of max pain %q", got)
	}
}

func TestExpireForgetsInMemoryToo(t *testing.T) {
	s := week(t, options(t.TempDir()), monday, friday)
	historical(t, s, monday)
	s.history.Wait()
	expire(t, s, friday, every, 1)
	if got := historical(t, s, monday); got != "none" {
		t.Errorf("expired, not in %q, yet served: %s", s.Dates(), got)
	}
}

func TestOpenSweepsTheSourceDirectory(t *testing.T) {
	s := open(t, t.TempDir())
	put(t, s, tempPrefix+identityName+"-123", "half") // a crash in Bind
	s = reopen(t, s)
	if exists(t, s, tempPrefix+identityName+"-123") {
		t.Error("the temporary file of Bind stays for ever")
	}
}

// The file of an edition has one form, also when its default stands under several names.
func TestSharedVariantsAreWrittenAlike(t *testing.T) {
	s := sealed(t, string(document(5000)))
	e := &Edition{Default: s, Variants: map[string]*Snapshot{"20": s, "50": s, "100": s}}
	first := encoded(t, pain, File{Edition: e})
	for range 50 {
		if b := encoded(t, pain, File{Edition: e}); !bytes.Equal(b, first) {
			t.Fatal("the same edition has other bytes")
		}
	}
}

func TestHistoryDoesNotWaitForWrites(t *testing.T) {
	s := week(t, options(t.TempDir()), monday, friday)
	s.disk.Lock() // as Save holds it for as long as fsync takes, and Expire for all its removals
	done := make(chan struct{})
	go func() { s.Historical(monday); close(done) }()
	waits := false
	await(t, "it ends or waits", func() bool {
		select {
		case <-done:
			return true
		default:
			waits = inside("sync.(*Mutex).Lock") > 0
			return waits
		}
	})
	s.disk.Unlock()
	<-done
	if waits {
		t.Error("a request for a past date waits for the writer's lock")
	}
}

func TestFileOfAnotherDate(t *testing.T) {
	s := week(t, options(t.TempDir()), monday, friday)
	b, _ := os.ReadFile(filepath.Join(s.dir, monday, "gex-spx"))
	put(t, s, tuesday+"/gex-spx", string(b)) // a slip in a restored back-up
	s = reopen(t, s)
	_, bad, _ := Verify(s.opts.Dir)
	if got := historical(t, s, tuesday); got != "none" || len(bad) == 0 {
		t.Errorf("%s is answered with %s; verify finds %v", tuesday, got, bad)
	}
}

func TestPublishNothingToAnUnknownFeed(t *testing.T) {
	s := open(t, t.TempDir())
	for range 3 {
		if s.Publish("none", nil) == nil {
			t.Error("an unknown feed was published")
		}
	}
}

func TestSaveOfNoDefault(t *testing.T) {
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("panic: %v", p)
		}
	}()
	s := open(t, t.TempDir())
	if s.Save(gamma, friday, File{Edition: &Edition{}}) == nil {
		t.Error("saved")
	}
}

func TestCloseWritesWhatWaits(t *testing.T) {
	s := open(t, t.TempDir())
	mend := obstruct(t, s, friday)
	if s.Save(gamma, friday, single(t, `1`)) == nil {
		t.Fatal("saved")
	}
	mend()
	s = reopen(t, s)
	if _, err := s.Load(gamma, friday); errors.Is(err, ErrNoSnapshot) {
		t.Error("the disk was mended before Close, but the answer is lost")
	}
}

func TestFolderIsNoFile(t *testing.T) {
	s := week(t, options(t.TempDir()), monday)
	put(t, s, friday+"/gex-spx/x", "a folder")
	s = reopen(t, s)
	if got := s.Dates(); !slices.Equal(got, []string{monday}) {
		t.Errorf("dates %q", got)
	}
	if _, bad, _ := Verify(s.opts.Dir); len(bad) != 0 {
		t.Errorf("%v", bad)
	}
}
