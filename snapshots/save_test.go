package snapshots

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

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

// ours are the files of the tests' products.
func ours(file string) bool {
	return slices.Contains([]string{"gex-spx", pain, vix, "state-chain-SPX"}, file)
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

func TestExpireForgetsInMemoryToo(t *testing.T) {
	s := week(t, options(t.TempDir()), monday, friday)
	historical(t, s, monday)
	s.history.Wait()
	expire(t, s, friday, every, 1)
	if got := historical(t, s, monday); got != "none" {
		t.Errorf("expired, not in %q, yet served: %s", s.Dates(), got)
	}
}

func TestSaveOfNoDefault(t *testing.T) {
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
