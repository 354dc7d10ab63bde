package snapshots

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

// The server ignores symbolic links among its dated files. The start and verify name each of them.
func TestSymbolicLinksAreNamed(t *testing.T) {
	o, log := options(t.TempDir()), &testLog{}
	o.Log = log.logger(slog.LevelInfo)
	s := openWith(t, o)
	save(t, s, gamma, monday, single(t, `1`))
	save(t, s, gamma, tuesday, single(t, `1`))
	away := t.TempDir()
	for path, target := range map[string]string{
		filepath.Join(monday, "gex-spx"): filepath.Join(away, "gex-spx"),
		tuesday:                          filepath.Join(away, tuesday),
	} {
		if err := errors.Join(os.Rename(filepath.Join(s.dir, path), target), os.Symlink(target, filepath.Join(s.dir, path))); err != nil {
			t.Fatal(err)
		}
	}
	put(t, s, friday, "a file with the name of a date")
	want := []string{filepath.Join(s.dir, monday, "gex-spx"), filepath.Join(s.dir, tuesday), filepath.Join(s.dir, friday)}
	_, bad, err := Verify(o.Dir)
	if err != nil || len(bad) != len(want) {
		t.Errorf("verify finds %v, %v", bad, err)
	}
	s = reopen(t, s)
	for i, path := range want {
		if i < len(bad) && (bad[i].Path != path || !errors.Is(bad[i].Err, ErrTorn)) {
			t.Errorf("verify names %s, %v, want %s", bad[i].Path, bad[i].Err, path)
		}
		if log.count(passedOver+`" file=`+path+" ") != 1 {
			t.Errorf("the start does not name %s: %s", path, log)
		}
	}
	if n := s.Stats().BadFiles; n != 3 || len(s.Dates()) != 0 {
		t.Errorf("%d bad files, dates %q", n, s.Dates())
	}
	if _, err := ReadFile(o.Dir, o.Source, gamma, monday); !errors.Is(err, ErrTorn) {
		t.Errorf("read through the link: %v", err)
	}
	if dates, err := ListDates(o.Dir, o.Source, gamma); len(dates) != 0 || err != nil {
		t.Errorf("listed %q, %v", dates, err)
	}
}

// The data directory itself, and that of a source, may be links: an operator moves them to another disk.
func TestVerifyFollowsTheDirectory(t *testing.T) {
	o := options(filepath.Join(t.TempDir(), "data"))
	s := openWith(t, o)
	save(t, s, gamma, monday, single(t, `1`))
	damage(t, s, monday+"/gex-spx")
	away := t.TempDir()
	for _, path := range []string{s.dir, o.Dir} {
		target := filepath.Join(away, filepath.Base(path))
		if err := errors.Join(os.Rename(path, target), os.Symlink(target, path)); err != nil {
			t.Fatal(err)
		}
		if files, bad, err := Verify(o.Dir); files != 1 || len(bad) != 1 || err != nil {
			t.Errorf("%s is a link: %d files, %v, %v", path, files, bad, err)
		}
	}
}
