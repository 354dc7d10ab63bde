package snapshots

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// obstruct makes a date impossible to write, also for root: a file stands where its directory must be. It returns
// how to mend the disk.
func obstruct(t testing.TB, s *Store, date string) (mend func()) {
	t.Helper()
	path := put(t, s, date, "in the way")
	return func() {
		t.Helper()
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// A disk that refuses costs durability, not the answer; the first write that finds it mended catches up.
func TestFailingDisk(t *testing.T) {
	s := open(t, t.TempDir())
	save(t, s, gamma, monday, single(t, `"before"`))
	if err := s.DiskError(); err != nil {
		t.Errorf("disk error %v at first", err)
	}
	mend := obstruct(t, s, friday)
	f := File{Edition: variants(t), Content: "c", Summary: []byte("s")}
	for _, product := range []string{gamma, pain} {
		if err := s.Save(product, friday, f); err == nil || !strings.Contains(err.Error(), friday) {
			t.Errorf("%s: saved with %v", product, err)
		}
		if s.DiskError() == nil {
			t.Error("no disk error")
		}
		got, err := s.Load(product, friday)
		if err != nil {
			t.Fatal(err)
		}
		sameFile(t, got, f)
		if got := newest(t, s, product, forever); got != friday+` {"expiration":"2026-12-18"}` {
			t.Errorf("newest %s", got)
		}
	}
	for _, date := range []string{"", friday} {
		if got, err := s.Historical(date); err != nil {
			t.Error(err)
		} else {
			sameSnapshot(t, "historical", got, f.Edition.Default)
		}
	}
	if got := s.Dates(); !slices.Equal(got, []string{monday, friday}) {
		t.Errorf("dates %q", got)
	}
	mend()
	save(t, s, vix, tuesday, single(t, `"after"`))
	if err := s.DiskError(); err != nil {
		t.Errorf("disk error %v after it was mended", err)
	}
	s = reopen(t, s)
	for _, product := range []string{gamma, pain} {
		got, err := s.Load(product, friday)
		if err != nil {
			t.Fatal(err)
		}
		sameFile(t, got, f)
	}
}

// While the disk refuses, the last write of a file is the one that counts.
func TestFailingDiskKeepsTheLast(t *testing.T) {
	s := open(t, t.TempDir())
	mend := obstruct(t, s, friday)
	for i := range 3 {
		if err := s.Save(gamma, friday, single(t, fmt.Sprint(i))); err == nil {
			t.Error("saved")
		}
		if got := historical(t, s, friday); got != fmt.Sprint(i) {
			t.Errorf("answer %s, want %d", got, i)
		}
	}
	mend()
	save(t, s, vix, friday, single(t, `1`))
	s = reopen(t, s)
	if got := historical(t, s, friday); got != "2" {
		t.Errorf("answer %s after a restart", got)
	}
}

// A past date whose file waits for the disk is served from what waits.
func TestFailingDiskServesPastDates(t *testing.T) {
	s := open(t, t.TempDir())
	save(t, s, gamma, friday, single(t, `"newest"`))
	obstruct(t, s, tuesday)
	if err := s.Save(gamma, tuesday, single(t, `"past"`)); err == nil {
		t.Error("saved")
	}
	for range 2 {
		if got := historical(t, s, tuesday); got != "past" {
			t.Errorf("answer %s", got)
		}
	}
}

func TestFailingDiskState(t *testing.T) {
	s := open(t, t.TempDir())
	mend := obstruct(t, s, friday)
	if err := s.SaveState("x", friday, []byte("1")); err == nil || s.DiskError() == nil {
		t.Errorf("saved with %v", err)
	}
	if got, date := s.State("x", forever); string(got) != "1" || date != friday {
		t.Errorf("%q of %q", got, date)
	}
	if err := s.SaveLate(gamma, friday, single(t, `"late"`)); err == nil {
		t.Error("saved late")
	}
	mend()
	if err := s.SaveState("y", monday, nil); err != nil || s.DiskError() != nil {
		t.Errorf("%v, disk error %v", err, s.DiskError())
	}
	s = reopen(t, s)
	if got, date := s.State("x", forever); string(got) != "1" || date != friday {
		t.Errorf("after a restart: %q of %q", got, date)
	}
	if got := newest(t, s, gamma, forever); got != friday+` "late"` {
		t.Errorf("after a restart: newest %s", got)
	}
}

// Everything at once: under the race detector no access may go without its lock, and what a reader gets is always
// something that was written for its date.
func TestStoreFromManyGoroutines(t *testing.T) {
	s := open(t, t.TempDir())
	dates := []string{monday, tuesday, wednesday, thursday, friday}
	file := map[string]File{}
	for _, date := range dates {
		file[date] = single(t, `"`+date+`"`)
		save(t, s, gamma, date, file[date])
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
	work(40, func(date string) error { return s.Save(gamma, date, file[date]) })
	work(40, func(date string) error { return s.SaveLate(gamma, date, file[date]) })
	work(40, func(date string) error { return s.SaveState("x", date, []byte(date)) })
	for range 4 {
		work(400, func(date string) error {
			if got, err := s.Historical(date); err != nil && !errors.Is(err, ErrBusy) || err == nil && string(got.Data()) != `"`+date+`"` {
				return fmt.Errorf("historical %s: %v, %w", date, got, err)
			}
			return nil
		})
	}
	work(40, func(date string) error {
		f, found, err := s.Newest(gamma, date)
		if err != nil || found != date || string(f.Edition.Default.Data()) != `"`+date+`"` {
			return fmt.Errorf("newest %s: %s, %w", date, found, err)
		}
		return nil
	})
	work(40, func(date string) error {
		if state, found := s.State("x", date); string(state) != found {
			return fmt.Errorf("state of %s: %s", found, state)
		}
		return nil
	})
	work(20, func(date string) error {
		_, err := s.Expire(date, func(string) bool { return false })
		return err
	})
	work(100, func(string) error {
		if got := s.Dates(); !slices.Equal(got, dates) {
			return fmt.Errorf("dates %q", got)
		}
		return errors.Join(s.DiskError())
	})
	work(20, func(string) error {
		_, err := s.Usage()
		return err
	})
	work(20, func(string) error {
		_, bad, err := Verify(s.opts.Dir)
		if len(bad) > 0 {
			return bad[0].Err
		}
		return err
	})
	wg.Wait()
}
