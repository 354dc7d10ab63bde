package snapshots

import (
	"errors"
	"io/fs"
	"slices"
	"testing"
)

func imported(t testing.TB, data string) File {
	m := meta()
	m.Source, m.ImportedFrom = "imported", "levels.csv"
	return File{Edition: &Edition{Default: sealedWith(t, data, m)}}
}

// A process that does not own the directory sees what is stored, while another owns it, and leaves no trace.
func TestReadingWithoutTheLock(t *testing.T) {
	o := options(t.TempDir())
	if _, err := ListDates(o.Dir, o.Source, gamma); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of no directory: %v", err)
	}
	s := openWith(t, o)
	for _, date := range []string{friday, tuesday} {
		save(t, s, gamma, date, single(t, `"`+date+`"`))
	}
	save(t, s, pain, wednesday, single(t, `1`))
	put(t, s, thursday+"/.tmp-gex-spx-1", "half")
	put(t, s, monday+"/gex-spx/file", "the product's name is a directory")
	put(t, s, "notes/gex-spx", "no date")
	dates, err := ListDates(o.Dir, o.Source, gamma)
	if want := []string{tuesday, friday}; err != nil || !slices.Equal(dates, want) {
		t.Errorf("dates %q, %v, want %q", dates, err, want)
	}
	f, err := ReadFile(o.Dir, o.Source, gamma, friday)
	if err != nil {
		t.Fatal(err)
	}
	sameFile(t, f, single(t, `"`+friday+`"`))
	if _, err := ReadFile(o.Dir, o.Source, gamma, wednesday); !errors.Is(err, ErrNoSnapshot) {
		t.Errorf("of a date without the product: %v", err)
	}
	damage(t, s, friday+"/gex-spx")
	if _, err := ReadFile(o.Dir, o.Source, gamma, friday); !errors.Is(err, ErrTorn) {
		t.Errorf("damaged: %v", err)
	}
	if !exists(t, s, thursday+"/.tmp-gex-spx-1") {
		t.Error("another process's temporary file is gone")
	}
}

// An imported answer is history alone.
func TestNewestPassesOverImports(t *testing.T) {
	s := open(t, t.TempDir())
	save(t, s, gamma, thursday, imported(t, `"imported"`))
	if got := newest(t, s, gamma, forever); got != "none" {
		t.Errorf("newest of an import alone: %s", got)
	}
	save(t, s, gamma, tuesday, single(t, `"own"`))
	save(t, s, gamma, friday, imported(t, `"imported"`))
	for range 2 {
		if got := newest(t, s, gamma, forever); got != tuesday+` "own"` {
			t.Errorf("newest %s", got)
		}
		if got := historical(t, s, ""); got != "imported" || !slices.Equal(s.Dates(), []string{tuesday, thursday, friday}) {
			t.Errorf("newest of the history %s, dates %q", got, s.Dates())
		}
		s = reopen(t, s)
	}
	if err := s.SaveLate(gamma, friday, single(t, `"late"`)); err != nil {
		t.Fatal(err)
	}
	if got := newest(t, s, gamma, forever); got != friday+` "late"` {
		t.Errorf("a late answer of an imported date: %s", got)
	}
	f, err := s.Load(gamma, friday)
	if err != nil || f.Edition.Default.Meta.ImportedFrom != "levels.csv" {
		t.Errorf("the import: %+v, %v", f, err)
	}
}
