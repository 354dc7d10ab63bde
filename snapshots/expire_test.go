package snapshots

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// stocked is a store with every kind of file on every day of a week.
func stocked(t testing.TB) *Store {
	t.Helper()
	s := open(t, t.TempDir())
	for _, date := range []string{monday, tuesday, wednesday, thursday, friday} {
		must(t, s.Save(gamma, date, single(t, `"`+date+`"`)))
		must(t, s.Save(pain, date, File{Edition: variants(t)}))
		must(t, s.SaveLate(gamma, date, single(t, `"late"`)))
		must(t, s.SaveState("chain-SPX", date, []byte("x")))
	}
	return s
}

// held lists a store's dated files.
func held(t testing.TB, s *Store) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(s.dir, "2*", "*"))
	must(t, err)
	for i, path := range paths {
		paths[i] = filepath.ToSlash(strings.TrimPrefix(path, s.dir+string(filepath.Separator)))
	}
	return paths
}

func expire(t *testing.T, s *Store, before string, expired func(string) bool, want int) {
	t.Helper()
	if n, err := s.Expire(before, expired); n != want || err != nil {
		t.Errorf("expired %d files before %s, %v, want %d", n, before, err, want)
	}
}

func every(string) bool { return true }

// Old files for which expired returns true are removed, also from the index. Files of others stay.
func TestExpire(t *testing.T) {
	s := stocked(t)
	for _, foreign := range []string{monday + "/README", "old/gex-spx", "gex-spx", monday + "/sub/file", "2026-02-30/gex-spx"} {
		put(t, s, foreign, "hello")
	}
	all := held(t, s)
	expire(t, s, "", every, 0)
	expire(t, s, monday, every, 0)
	expire(t, s, forever, func(string) bool { return false }, 0)
	if got := held(t, s); !slices.Equal(got, all) {
		t.Fatalf("held are %q", got)
	}
	asked := map[string]bool{}
	expire(t, s, wednesday, func(file string) bool {
		asked[file] = true
		return file != "gex-spx"
	}, 4)
	if len(asked) != 3 || !asked["gex-spx"] || !asked[pain] || !asked["state-chain-SPX"] {
		t.Errorf("asked about %v", asked)
	}
	gone := func(path string) bool {
		return path < wednesday && (strings.HasSuffix(path, pain) || strings.HasSuffix(path, "state-chain-SPX"))
	}
	for range 2 {
		if got, want := held(t, s), slices.DeleteFunc(slices.Clone(all), gone); !slices.Equal(got, want) {
			t.Errorf("held are %q, want %q", got, want)
		}
		want := []string{wednesday, thursday, friday}
		if got, states := s.DatesOf(pain), s.StateDates("chain-SPX"); !slices.Equal(got, want) || !slices.Equal(states, want) {
			t.Errorf("dates %q and %q, want %q", got, states, want)
		}
		if got := s.DatesOf(gamma); len(got) != 5 {
			t.Errorf("dates of gamma %q", got)
		}
		s = reopen(t, s)
	}
}

// The newest file of each product stays, however old, with the late file beside it: a restart serves them.
func TestExpireLeavesTheNewest(t *testing.T) {
	s := stocked(t)
	must(t, s.Save(vix, tuesday, single(t, `"alone"`))) // its newest is older than the others'
	expire(t, s, forever, every, 16)
	want := []string{tuesday + "/" + vix, friday + "/gex-spx", friday + "/gex-spx@late", friday + "/" + pain, friday + "/state-chain-SPX"}
	if got := held(t, s); !slices.Equal(got, want) {
		t.Errorf("held are %q, want %q", got, want)
	}
	if got := s.DatesOf(gamma); !slices.Equal(got, []string{friday}) {
		t.Errorf("dates %q", got)
	}
	if got := historical(t, s, monday); got != "none" { // although it was in memory
		t.Errorf("an expired date: %s", got)
	}
}
