package snapshots

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func none(string) bool { return false }

func every(string) bool { return true }

// ours are the files of the tests' products.
func ours(file string) bool {
	return slices.Contains([]string{"gex-spx", pain, vix, "state-chain-SPX"}, file)
}

// stocked is a store with every kind of file on every day of a week.
func stocked(t testing.TB) *Store {
	t.Helper()
	s := open(t, t.TempDir())
	for _, date := range []string{monday, tuesday, wednesday, thursday, friday} {
		save(t, s, gamma, date, single(t, `"`+date+`"`))
		save(t, s, pain, date, File{Edition: variants(t)})
		if err := errors.Join(s.SaveLate(gamma, date, single(t, `"late"`)), s.SaveState("chain-SPX", date, []byte("x"))); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// held lists a store's dated files.
func held(t testing.TB, s *Store) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(s.dir, "2*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i, path := range paths {
		rel, err := filepath.Rel(s.dir, path)
		if err != nil {
			t.Fatal(err)
		}
		paths[i] = filepath.ToSlash(rel)
	}
	return paths
}

func expire(t *testing.T, s *Store, before string, expired func(string) bool, want int) {
	t.Helper()
	if n, err := s.Expire(before, expired); n != want || err != nil {
		t.Errorf("expired %d files before %s, %v, want %d", n, before, err, want)
	}
}

func TestExpire(t *testing.T) {
	s := stocked(t)
	all := held(t, s)
	expire(t, s, "", every, 0)
	expire(t, s, monday, every, 0)
	expire(t, s, forever, none, 0)
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
		return path < wednesday && !strings.Contains(path, "gex")
	}
	for range 2 {
		if got, want := held(t, s), slices.DeleteFunc(slices.Clone(all), gone); !slices.Equal(got, want) {
			t.Errorf("held are %q, want %q", got, want)
		}
		if got, want := s.DatesOf(pain), []string{wednesday, thursday, friday}; !slices.Equal(got, want) || !slices.Equal(s.StateDates("chain-SPX"), want) {
			t.Errorf("dates %q and %q, want %q", got, s.StateDates("chain-SPX"), want)
		}
		if got := s.Dates(); len(got) != 5 {
			t.Errorf("dates of gamma %q", got)
		}
		expire(t, s, wednesday, func(file string) bool { return file != "gex-spx" }, 0)
		s = reopen(t, s)
	}
}

// However old, the newest file of each product stays for a restart to serve, with the late one beside it.
func TestExpireLeavesTheNewest(t *testing.T) {
	s := stocked(t)
	save(t, s, vix, tuesday, single(t, `"alone"`)) // its newest is older than the others'
	expire(t, s, forever, every, 16)
	want := []string{tuesday + "/" + vix, friday + "/gex-spx", friday + "/gex-spx@late", friday + "/" + pain, friday + "/state-chain-SPX"}
	if got := held(t, s); !slices.Equal(got, want) {
		t.Errorf("held are %q, want %q", got, want)
	}
	if got := s.Dates(); !slices.Equal(got, []string{friday}) {
		t.Errorf("dates %q", got)
	}
	if got := historical(t, s, monday); got != "none" {
		t.Errorf("an expired date: %s", got)
	}
	s = reopen(t, s)
	for product, want := range map[string]string{gamma: friday, pain: friday, vix: tuesday} {
		if _, date, err := s.Newest(product, forever); date != want || err != nil {
			t.Errorf("newest of %s is of %s, %v", product, date, err)
		}
	}
}

// What is not ours is not removed.
func TestExpireLeavesForeignFiles(t *testing.T) {
	s := stocked(t)
	foreign := []string{monday + "/README", monday + "/notes.txt", "old/gex-spx", "gex-spx", monday + "/sub/file", "2026-02-30/gex-spx", monday + "/newer"}
	for _, name := range foreign {
		put(t, s, name, "{\"format\":2,\"product\":\"newer\"}\nnot ours")
	}
	for _, name := range foreign[:2] {
		put(t, s, name, "hello")
	}
	expire(t, s, friday, ours, 16)
	for _, name := range foreign {
		if !exists(t, s, name) {
			t.Errorf("%s is gone", name)
		}
	}
}

func TestUsageAndFileSize(t *testing.T) {
	s := open(t, t.TempDir())
	if n := s.FileSize(gamma); n != 0 {
		t.Errorf("%d bytes of nothing", n)
	}
	before, err := s.Usage()
	if err != nil {
		t.Fatal(err)
	}
	small, large := single(t, `1`), single(t, string(document(50_000)))
	save(t, s, gamma, monday, large)
	save(t, s, gamma, friday, small)
	save(t, s, gamma, tuesday, large)
	if n, want := s.FileSize(gamma), int64(len(encoded(t, gamma, small))); n != want {
		t.Errorf("newest file has %d bytes, want %d", n, want)
	}
	want := before + int64(2*len(encoded(t, gamma, large))+len(encoded(t, gamma, small)))
	if n, err := s.Usage(); n != want || err != nil {
		t.Errorf("all files have %d bytes, %v, want %d", n, err, want)
	}
	if err := s.SaveState("x", friday, []byte("12345")); err != nil {
		t.Fatal(err)
	}
	if n := s.FileSize(stateProduct + "x"); n < 5 || n > 200 {
		t.Errorf("a state of 5 bytes takes %d", n)
	}
	s.disk.Lock() // or the store would create the directory again
	defer s.disk.Unlock()
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	if n := s.FileSize(gamma); n != 0 {
		t.Errorf("%d bytes without a directory", n)
	}
	if n, err := s.Usage(); err == nil {
		t.Errorf("%d bytes without a directory", n)
	}
}

func TestVerifyGoodTree(t *testing.T) {
	s := stocked(t)
	other := options(s.opts.Dir)
	other.Source = "cboe"
	save(t, openWith(t, other), vix, friday, single(t, `1`))
	for _, ignored := range []string{monday + "/" + tempPrefix + "gex-spx-1", "README", "old/gex-spx", "2026-02-30/gex-spx", monday + "/sub/file"} {
		put(t, s, ignored, "x")
	}
	before := held(t, s)
	n, bad, err := Verify(s.opts.Dir)
	if n != 21 || len(bad) != 0 || err != nil {
		t.Errorf("%d files, bad %v, %v, want 21 good ones", n, bad, err)
	}
	if got := held(t, s); !slices.Equal(got, before) {
		t.Errorf("files changed to %q", got)
	}
	if n, bad, err := Verify(filepath.Join(s.opts.Dir, "none")); n != 0 || len(bad) != 0 || err == nil {
		t.Errorf("no directory: %d, %v, %v", n, bad, err)
	}
}

// Each bad file is named, and why.
func TestVerifyBadFiles(t *testing.T) {
	s := stocked(t)
	b, err := os.ReadFile(filepath.Join(s.dir, friday, pain))
	if err != nil {
		t.Fatal(err)
	}
	damage(t, s, monday+"/gex-spx")
	damage(t, s, monday+"/gex-spx@late")
	damage(t, s, monday+"/state-chain-SPX")
	put(t, s, tuesday+"/"+pain, string(b[:len(b)/3]))
	put(t, s, tuesday+"/gex-spx", "")
	put(t, s, wednesday+"/gex-spx", string(b))
	put(t, s, wednesday+"/notes", "hello\n")
	put(t, s, thursday+"/"+pain, strings.Replace(string(b), `"format":1`, `"format":2`, 1))
	want := map[string]error{
		monday + "/gex-spx": ErrTorn, monday + "/gex-spx@late": ErrTorn, monday + "/state-chain-SPX": ErrTorn, tuesday + "/" + pain: ErrTorn,
		tuesday + "/gex-spx": ErrTorn, wednesday + "/gex-spx": ErrTorn, wednesday + "/notes": ErrTorn, thursday + "/" + pain: ErrNewerFormat,
	}
	n, bad, err := Verify(s.opts.Dir)
	if n != 21 || err != nil {
		t.Errorf("%d files, %v", n, err)
	}
	for _, f := range bad {
		rel, err := filepath.Rel(s.dir, f.Path)
		if err != nil {
			t.Fatal(err)
		}
		if name := filepath.ToSlash(rel); want[name] == nil || !errors.Is(f.Err, want[name]) {
			t.Errorf("%s: %v, want %v", name, f.Err, want[name])
		} else {
			delete(want, name)
		}
	}
	if len(want) > 0 {
		t.Errorf("not named: %v", want)
	}
}
