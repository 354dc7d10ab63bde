package snapshots

import (
	"bytes"
	"errors"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"
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

// A file that cannot be served is passed over until its date is saved again.
func TestReplicaPassesOverBadFiles(t *testing.T) {
	s := open(t, t.TempDir())
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
