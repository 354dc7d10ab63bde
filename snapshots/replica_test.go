package snapshots

import (
	"bytes"
	"cmp"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"strikecache/bench/need"
)

func replicaOf(t *testing.T, s *Store) *Replica {
	t.Helper()
	r, err := NewReplica(s.opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// A packed snapshot is the same one in every respect after it is unpacked.
func TestPack(t *testing.T) {
	whole := sealed(t, `[1,2,3]`)
	rare, err := SealIn([]byte(`{"a":1}`), meta())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []*Snapshot{whole, rare} {
		head, bodies, err := want.Pack()
		if err != nil {
			t.Fatal(err)
		}
		body := slices.Concat(bodies...)
		got, err := Unpack(head, body)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
		for c := range Codings {
			usage := []byte(`{"tier":"keyed"}`)
			if !bytes.Equal(got.AppendTail(got.Prefix(c), c, usage), want.AppendTail(want.Prefix(c), c, usage)) {
				t.Errorf("%v: another tail", c)
			}
		}
		for name, wrong := range map[string][]byte{"short": body[:len(body)-1], "long": append(slices.Clone(body), 0), "none": nil} {
			if s, err := Unpack(head, wrong); err == nil {
				t.Errorf("%s: %+v", name, s)
			}
		}
	}
	for _, head := range []string{``, `{}`, `{"lengths":[-1,1,0,0]}`, `{"lengths":[1,1,0,0],"prefix":[2,0,0,0]}`, `{"lengths":[1,1,0,0],"data":[1,9]}`, `[]`} {
		if s, err := Unpack([]byte(head), []byte("ab")); err == nil {
			t.Errorf("%s: %+v", head, s)
		}
	}
}

// A replica answers what it is told, and past dates from the store's files.
func TestReplica(t *testing.T) {
	s := open(t, t.TempDir())
	r := replicaOf(t, s)
	if _, err := r.Historical(""); !errors.Is(err, ErrNoSnapshot) || r.Current(gamma) != nil || len(r.Dates()) != 0 {
		t.Errorf("an empty replica answers: %v", err)
	}
	e := numbered(1)
	if err := r.Publish("options", map[string]*Edition{gamma: e}); err != nil || r.Current(gamma) != e {
		t.Errorf("current %v, %v", r.Current(gamma), err)
	}
	save(t, s, gamma, monday, single(t, `1`))
	save(t, s, gamma, friday, single(t, `2`))
	r.Listed(s.Dates())
	said := func(when, date, want string) {
		t.Helper()
		snapshot, err := r.Historical(date)
		if err != nil {
			t.Errorf("%s: %v", when, err)
		} else if string(snapshot.Data()) != want {
			t.Errorf("%s: %s, want %s", when, snapshot.Data(), want)
		}
	}
	said("from the file", monday, `1`)
	said("the newest file", "", `2`)
	r.Renewed(friday, sealed(t, `3`), true)
	said("the newest told", "", `3`)
	r.Renewed(monday, sealed(t, `4`), false)
	said("what no file holds", monday, `4`)
	r.Listed([]string{friday})
	said("what no file holds, after a store without it was opened", monday, `4`)
	r.Listed(s.Dates())
	r.Written(monday)
	r.history.Del(monday)
	r.history.Wait()
	said("what the file holds, which is another here", monday, `1`)
}

// What a store restores never takes the place of a later answer, which its process may not have written.
func TestReplicaKeepsLaterAnswers(t *testing.T) {
	r := replicaOf(t, open(t, t.TempDir()))
	at := func(minutes int) *Edition {
		return &Edition{Default: sealedAt(t, `1`, asOf.Add(time.Duration(minutes)*time.Minute))}
	}
	early, late, same := at(0), at(1), at(1)
	for _, step := range []struct{ restored, want *Edition }{{early, early}, {late, late}, {early, late}, {same, same}} {
		if err := r.Restore("options", map[string]*Edition{gamma: step.restored}); err != nil {
			t.Fatal(err)
		}
		if got := r.Current(gamma); got != step.want {
			t.Errorf("%v after %v, want %v", got.Default.Meta.AsOf, step.restored.Default.Meta.AsOf, step.want.Default.Meta.AsOf)
		}
	}
}

// What a process publishes that holds less than the one before it takes no later answer back; what was computed anew does.
func TestReplicaKeepsWhatWasComputedLater(t *testing.T) {
	r := replicaOf(t, open(t, t.TempDir()))
	at := func(minutes, computed int, state string) *Edition {
		m := meta()
		m.AsOf, m.ComputedAt = asOf.Add(time.Duration(minutes)*time.Minute), asOf.Add(time.Duration(computed)*time.Minute)
		m.CapturedAt, m.Freshness.State = nil, state
		s, err := Seal([]byte(`1`), m)
		if err != nil {
			t.Fatal(err)
		}
		return &Edition{Default: s}
	}
	for n, step := range []struct {
		restored bool
		is       *Edition
		taken    bool
	}{
		{false, at(5, 20, "fresh"), true},
		{false, at(0, 15, "stale"), false}, // of the process before
		{false, at(0, 25, "fresh"), true},  // an older document, accepted later
		{false, at(0, 25, "stale"), true},
		{true, at(0, 25, "fresh"), false}, // which does not know
		{false, at(0, 25, "fresh"), true}, // which does
		{false, at(9, 10, "fresh"), true}, // by a clock that was set back
	} {
		publish := r.Publish
		if step.restored {
			publish = r.Restore
		}
		if err := publish("options", map[string]*Edition{gamma: step.is}); err != nil {
			t.Fatal(err)
		}
		if taken := r.Current(gamma) == step.is; taken != step.taken {
			t.Errorf("step %d: taken: %v", n, taken)
		}
	}
}

// What the files of a store hold that was opened again is read again: a process may end between a file and its word of it.
func TestReplicaReadsAgain(t *testing.T) {
	s := open(t, t.TempDir())
	r := replicaOf(t, s)
	save(t, s, gamma, monday, single(t, `1`))
	r.Opened(s.Dates())
	said := func(date, want string) {
		t.Helper()
		if snapshot, err := r.Historical(date); err != nil || string(snapshot.Data()) != want {
			t.Errorf("%q: %v, want %s", date, err, want)
		}
	}
	said(monday, `1`)
	r.Renewed(monday, sealed(t, `2`), true)
	save(t, s, gamma, monday, single(t, `3`))
	said("", `2`)
	r.Opened(s.Dates())
	said("", `3`)
	save(t, s, gamma, monday, single(t, `4`))
	r.history.Wait()
	said(monday, `3`)
	r.Renewed(monday, sealed(t, `5`), false)
	save(t, s, gamma, friday, single(t, `6`))
	r.Opened(s.Dates())
	said(monday, `5`) // no file holds it
	said("", `6`)
}

// A date that is renewed while its torn file is read is served, and nothing panics.
func TestReplicaRenewsWhatIsRead(t *testing.T) {
	s := open(t, t.TempDir())
	save(t, s, gamma, friday, single(t, `1`))
	if err := os.WriteFile(s.path(friday, fileName(gamma)), []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	five := sealed(t, `5`)
	for range 300 {
		r, err := NewReplica(s.opts)
		if err != nil {
			t.Fatal(err)
		}
		r.Listed([]string{friday})
		var both sync.WaitGroup
		both.Go(func() { _, _ = r.Historical(friday) })
		both.Go(func() { r.Renewed(friday, five, false) }) // no file holds it, or a reader that comes later meets the torn one
		both.Wait()
		if got, err := r.Historical(friday); err != nil || got != five || r.BadFiles() != 0 {
			t.Fatalf("%v, %d bad files", err, r.BadFiles())
		}
		r.Close()
	}
}

// A file that cannot be served is passed over until its date is saved again.
func TestReplicaPassesOverBadFiles(t *testing.T) {
	s := open(t, t.TempDir())
	log := &need.Log{}
	s.opts.Log = log.Logger(slog.LevelInfo)
	r := replicaOf(t, s)
	save(t, s, gamma, monday, single(t, `1`))
	save(t, s, gamma, friday, single(t, `2`))
	if err := os.WriteFile(s.path(friday, fileName(gamma)), []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.Listed(s.Dates())
	if snapshot, err := r.Historical(""); err != nil || string(snapshot.Data()) != `1` {
		t.Errorf("newest %v, %v", snapshot, err)
	}
	if _, err := r.Historical(friday); !errors.Is(err, ErrNoSnapshot) || !slices.Equal(r.Dates(), []string{monday}) {
		t.Errorf("%v, %v", r.Dates(), err)
	}
	if r.BadFiles() != 1 || log.Count(passedOver) != 1 {
		t.Errorf("%d bad files: %s", r.BadFiles(), log)
	}
	r.Listed(s.Dates())
	if !slices.Equal(r.Dates(), []string{monday}) {
		t.Errorf("back without having been saved: %v", r.Dates())
	}
	r.Renewed(friday, sealed(t, `5`), true)
	if snapshot, err := r.Historical(friday); err != nil || string(snapshot.Data()) != `5` || len(r.Dates()) != 2 {
		t.Errorf("%v, %v", r.Dates(), err)
	}
}

func TestReplicaDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	r := replicaOf(t, open(t, t.TempDir()))
	if err := r.Publish("options", map[string]*Edition{gamma: numbered(1)}); err != nil {
		t.Fatal(err)
	}
	r.Listed([]string{friday})
	r.Renewed(friday, sealed(t, `1`), true)
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := r.Historical(""); err != nil || r.Current(gamma) == nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A file that cannot be read for another reason is named once, however often it is asked for.
func TestReplicaNamesAFileOnce(t *testing.T) {
	s := open(t, t.TempDir())
	save(t, s, gamma, monday, single(t, `1`))
	day := filepath.Dir(s.path(monday, fileName(gamma)))
	if err := cmp.Or(os.Rename(day, day+"-away"), os.WriteFile(day, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	log := &need.Log{}
	s.opts.Log = log.Logger(slog.LevelInfo)
	r := replicaOf(t, s)
	r.Listed([]string{monday})
	for range 10 {
		if _, err := r.Historical(monday); !errors.Is(err, ErrBusy) {
			t.Error(err)
		}
	}
	if n := log.Count(passedOver); n != 1 || r.BadFiles() != 0 {
		t.Errorf("%d bad files: %s", r.BadFiles(), log)
	}
}
