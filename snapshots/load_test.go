package snapshots

import (
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSaveAndLoad(t *testing.T) {
	s := open(t, t.TempDir())
	f := File{Edition: variants(t), Content: "inputs", Summary: []byte(`{"row":1}`)}
	must(t, s.Save(pain, friday, f))
	if s.Save(gamma, friday, File{Edition: &Edition{}}) == nil {
		t.Error("saved without a default")
	}
	for range 2 {
		got, err := s.Load(pain, friday)
		must(t, err)
		sameFile(t, got, f)
		for _, none := range []struct{ product, date string }{{pain, monday}, {gamma, friday}, {pain, ""}} {
			if _, err := s.Load(none.product, none.date); !errors.Is(err, ErrNoSnapshot) {
				t.Errorf("%s of %q: %v", none.product, none.date, err)
			}
		}
		s = reopen(t, s)
	}
	if got := names(t, filepath.Join(s.dir, friday)); !slices.Equal(got, []string{pain}) {
		t.Errorf("directory holds %q", got)
	}
}

// Hidden dates are not found by any read and stay on the disk. The next start, the next write and a later call bring them back.
func TestHideAfter(t *testing.T) {
	s := week(t, options(t.TempDir()), monday, tuesday, friday)
	must(t, s.SaveState("iv-SPX", wednesday, []byte("state")))
	if got := s.HideAfter(tuesday); !slices.Equal(got, []string{friday}) { // the state of Wednesday is no answer
		t.Errorf("hidden %q", got)
	}
	for date, want := range map[string]string{"": tuesday, friday: "none", tuesday: tuesday, monday: monday} {
		if got := historical(t, s, date); got != want {
			t.Errorf("%q: %s, want %s", date, got, want)
		}
	}
	if _, date := s.State("iv-SPX", friday); date != "" || !slices.Equal(s.DatesOf(gamma), []string{monday, tuesday}) {
		t.Errorf("state of %q, dates %q", date, s.DatesOf(gamma))
	}
	must(t, s.Save(gamma, friday, single(t, `"new"`)))
	if got := historical(t, s, friday); got != "new" {
		t.Errorf("after a write: %s", got)
	}
	if got := s.HideAfter(wednesday); !slices.Equal(got, []string{friday}) || !slices.Equal(s.StateDates("iv-SPX"), []string{wednesday}) {
		t.Errorf("hidden by a later call: %q; states of %q", got, s.StateDates("iv-SPX"))
	}
	if got := s.HideAfter(friday); len(got) != 0 || historical(t, s, friday) != "new" {
		t.Errorf("hidden at the end: %q", got)
	}
	s = reopen(t, s)
	if got := s.StateDates("iv-SPX"); !slices.Equal(got, []string{wednesday}) || historical(t, s, friday) != "new" {
		t.Errorf("after a start: %q, %s", got, historical(t, s, friday))
	}
}

// newest returns the date and data of a product's newest answer.
func newest(t *testing.T, s *Store, product, notAfter string) string {
	t.Helper()
	f, path, err := s.Newest(product, notAfter)
	date, _, _ := strings.Cut(path, "/")
	if err != nil {
		if !errors.Is(err, ErrNoSnapshot) || date != "" || f.Edition != nil {
			t.Fatalf("newest on or before %s: %v, %q, %v", notAfter, f, date, err)
		}
		return "none"
	}
	return date + " " + string(f.Edition.Default.Data())
}

func TestNewest(t *testing.T) {
	s := open(t, t.TempDir())
	for _, date := range []string{friday, tuesday, thursday} { // an older date after a newer
		must(t, s.Save(gamma, date, single(t, `"`+date+`"`)))
	}
	for range 2 {
		for notAfter, want := range map[string]string{
			forever: friday, friday: friday, thursday: thursday, wednesday: tuesday, tuesday: tuesday,
		} {
			if got := newest(t, s, gamma, notAfter); got != want+` "`+want+`"` {
				t.Errorf("on or before %s: %s", notAfter, got)
			}
		}
		if got := newest(t, s, gamma, monday); got != "none" {
			t.Errorf("before the first: %s", got)
		}
		s = reopen(t, s)
	}
}

// A restart serves the later of a date's two files. The history never serves the late one.
func TestNewestWithLateFiles(t *testing.T) {
	at := func(data string, asOf time.Time) File {
		m := meta()
		m.AsOf = asOf
		return File{Edition: &Edition{Default: sealedWith(t, data, m)}}
	}
	for name, c := range map[string]struct {
		dated, late   int // minutes; -1: damaged
		want, history string
	}{
		"late is newer":    {0, 10, friday + ` "late"`, "dated"},
		"late is older":    {10, 0, friday + ` "dated"`, "dated"},
		"late is as old":   {10, 10, friday + ` "late"`, "dated"},
		"late is damaged":  {0, -1, friday + ` "dated"`, "dated"},
		"dated is damaged": {-1, 0, friday + ` "late"`, "before"},
		"both are damaged": {-1, -1, thursday + ` "before"`, "before"},
	} {
		t.Run(name, func(t *testing.T) {
			o, log := options(t.TempDir()), &testLog{}
			o.Log = log.logger(slog.LevelInfo)
			s := openWith(t, o)
			must(t, s.Save(gamma, thursday, at(`"before"`, asOf.Add(-24*time.Hour))))
			must(t, s.Save(gamma, friday, at(`"dated"`, asOf.Add(time.Duration(c.dated)*time.Minute))))
			must(t, s.SaveLate(gamma, friday, at(`"late"`, asOf.Add(time.Duration(c.late)*time.Minute))))
			if c.dated == -1 {
				damage(t, s, friday+"/gex-spx")
			}
			if c.late == -1 {
				damage(t, s, friday+"/gex-spx@late")
			}
			s = reopen(t, s)
			for range 2 {
				if got := newest(t, s, gamma, forever); got != c.want {
					t.Errorf("newest %s, want %s", got, c.want)
				}
				if got := historical(t, s, ""); got != c.history {
					t.Errorf("newest of the history %s, want %s", got, c.history)
				}
			}
			for file, minutes := range map[string]int{"gex-spx": c.dated, "gex-spx@late": c.late} {
				path := " file=" + filepath.Join(s.dir, friday, file) + " "
				if n := log.count(path); n != 0 && minutes != -1 || n != 1 && minutes == -1 {
					t.Errorf("%s is named %d times", file, n)
				}
			}
		})
	}
}

func TestState(t *testing.T) {
	o, log := options(t.TempDir()), &testLog{}
	o.Log = log.logger(slog.LevelInfo)
	s := openWith(t, o)
	for date, state := range map[string]string{monday: "1", wednesday: "line\nline\x00", friday: ""} {
		must(t, s.SaveState("iv-SPX", date, []byte(state)))
	}
	expect := func(notAfter, want, wantDate string) {
		t.Helper()
		if got, date := s.State("iv-SPX", notAfter); string(got) != want || date != wantDate {
			t.Errorf("on or before %s: %q of %q, want %q of %q", notAfter, got, date, want, wantDate)
		}
	}
	for range 2 {
		expect(forever, "", friday)
		expect(thursday, "line\nline\x00", wednesday)
		expect(wednesday, "line\nline\x00", wednesday)
		expect(tuesday, "1", monday)
		expect("2026-11-15", "", "")
		if got, date := s.State("iv-SPY", forever); got != nil || date != "" {
			t.Errorf("of another name: %q of %q", got, date)
		}
		s = reopen(t, s)
	}
	damage(t, s, wednesday+"/state-iv-SPX")
	for range 2 {
		expect(thursday, "1", monday)
	}
	if log.count(passedOver) != 1 {
		t.Errorf("%d lines for a bad file", log.count(passedOver))
	}
	must(t, s.SaveState("iv-SPX", wednesday, []byte("2")))
	expect(thursday, "2", wednesday)
	// A state is not an answer.
	if _, err := s.Load("iv-SPX", wednesday); !errors.Is(err, ErrNoSnapshot) {
		t.Errorf("load: %v", err)
	}
	if _, err := s.Load("state-iv-SPX", wednesday); !errors.Is(err, ErrTorn) {
		t.Errorf("load of a name that falls on the same file: %v", err)
	}
}
