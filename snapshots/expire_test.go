package snapshots

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// stocked is a store with an answer of two products on every day of a week, of which each names an object of its own and one
// that all name.
func stocked(t testing.TB) *Store {
	t.Helper()
	s := open(t, t.TempDir())
	for _, date := range []string{monday, tuesday, wednesday, thursday, friday} {
		for _, product := range []string{gamma, pain} {
			stock(t, s, product, date)
		}
	}
	return s
}

func stock(t testing.TB, s *Store, product, date string) {
	t.Helper()
	f, err := datedOn(date, single(t, `"`+date+`"`))
	must(t, err)
	own, shared := []byte(product+" of "+date), []byte("all name this")
	f.Product, f.Dated, f.Current = product, true, true
	f.Inputs = []StoredInput{{Input: Input{"own", sha(own)}}, {Input: Input{"shared", sha(shared)}}}
	must(t, s.Save([]File{f}, []Object{{SHA256: sha(own), Body: own}, {SHA256: sha(shared), Body: shared}}))
}

// withObject returns an answer of friday that names an object, and the object's body.
func withObject(t testing.TB, text string) (File, []byte) {
	t.Helper()
	f := single(t, `"`+text+`"`)
	f.Product, f.Current, f.Dated = gamma, true, true
	f.Inputs = []StoredInput{{Input: Input{"options/_SPX.json", sha([]byte(text))}}}
	return f, []byte(text)
}

// saveWithObject stores such an answer and its object, and returns the object's digest.
func saveWithObject(t testing.TB, s *Store, text string) string {
	t.Helper()
	f, body := withObject(t, text)
	must(t, s.Save([]File{f}, []Object{{SHA256: sha(body), Body: body}}))
	return sha(body)
}

// held lists the files of a store.
func held(t testing.TB, s *Store) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(s.dir, "*", "*"))
	must(t, err)
	for i, path := range paths {
		paths[i] = filepath.ToSlash(strings.TrimPrefix(path, s.dir+string(filepath.Separator)))
	}
	return paths
}

// objects returns the number of objects on the disk.
func objects(t testing.TB, s *Store) (n int) {
	t.Helper()
	for _, path := range held(t, s) {
		if strings.HasPrefix(path, objectsDir+"/") {
			n++
		}
	}
	return n
}

func expire(t *testing.T, s *Store, ages Ages, want int) {
	t.Helper()
	if n, err := s.Expire(ages); n != want || err != nil {
		t.Errorf("expired %d files, %v, want %d", n, err, want)
	}
}

// Old files of the given products are removed, also from the index and from memory, and the objects that only they named.
func TestExpire(t *testing.T) {
	s := stocked(t)
	for _, foreign := range []string{monday + "/README", "old/gex-spx", "gex-spx", monday + "/sub/file", "2026-02-30/gex-spx"} {
		put(t, s, foreign, "hello")
	}
	all := held(t, s)
	expire(t, s, Ages{}, 0)
	expire(t, s, Ages{FilesBefore: monday, Products: []string{gamma, pain}}, 0)
	expire(t, s, Ages{FilesBefore: forever}, 0)
	equal(t, held(t, s), all, "held")
	expire(t, s, Ages{FilesBefore: wednesday, Products: []string{pain}}, 2)
	for range 2 {
		equal(t, s.DatesOf(pain), []string{wednesday, thursday, friday}, "dates")
		equal(t, len(s.DatesOf(gamma)), 5, "dates of the other")
		failIf(t, exists(t, s, monday+"/"+pain) || !exists(t, s, monday+"/gex-spx") || objects(t, s) != 9, "held are %q", held(t, s))
		s = reopen(t, s)
	}
	historical(t, s, monday)
	s.history.Wait()
	digest := s.digest(key{monday, "gex-spx"})
	expire(t, s, Ages{FilesBefore: forever, Products: []string{gamma}}, 5)
	_, kept := s.history.Get(digest)
	failIf(t, kept, "an expired answer is kept in memory")
	equal(t, historical(t, s, monday), "none", "an expired date") // although it was in memory
	f, err := s.LoadCurrent(gamma)
	failIf(t, err != nil || f.Date() != friday, "the current file: %v, %v", f, err)
}

// Objects go with their age; the files that name them stay. A start does not miss them.
func TestExpireObjects(t *testing.T) {
	s := stocked(t)
	expire(t, s, Ages{ObjectsBefore: friday}, 0)
	for range 2 {
		equal(t, objects(t, s), 3, "friday's two, and the shared one")
		equal(t, len(s.DatesOf(gamma)), 5, "dates")
		s = reopen(t, s)
	}
	stock(t, s, gamma, "2026-11-21")
	equal(t, objects(t, s), 4, "that of friday's answer in current/ is still that of its date")
}

// A publication does not pay for the objects of dates whose objects have expired: a year has thousands of files.
func TestSweepOfALongHistory(t *testing.T) {
	s := stocked(t)
	expire(t, s, Ages{ObjectsBefore: monday}, 0)
	allocations := func() float64 {
		defer s.use()()
		return testing.AllocsPerRun(10, s.sweep)
	}
	before := allocations()
	s.mu.Lock()
	for i := range 5000 {
		s.index[key{"2025-11-20", strconv.Itoa(i)}] = &entry{digest: "0", objects: []string{strconv.Itoa(i)}}
	}
	s.mu.Unlock()
	if after := allocations(); after > before {
		t.Errorf("%v allocations, %v without the history", after, before)
	}
	equal(t, objects(t, s), 11, "objects")
}

// When an answer is replaced, the objects that no file names any more go. What a kill left without a name goes at the start.
func TestObjectsOfReplacedAnswers(t *testing.T) {
	o := options(t.TempDir())
	s := openWith(t, o)
	object := func(text string) string { return "objects/" + sha([]byte(text)) + ".gz" }
	for _, text := range []string{"first", "second"} {
		saveWithObject(t, s, text)
	}
	want := []string{friday + "/gex-spx", "current/gex-spx", object("second")}
	equal(t, held(t, s), want, "held")
	packed := (&Object{Body: []byte("left")}).pack()
	put(t, s, object("left"), string(packed))
	s = reopen(t, s)
	equal(t, held(t, s), want, "held after a start")
	equal(t, text(s.Object(sha([]byte("second")))), "second", "object")
}

// The file of a date is a link to the file in current/ if both are written at once and are the same, also after an outage.
func TestADateIsALink(t *testing.T) {
	s, f := openFaulty(t, notSynced, options(t.TempDir()))
	noRetries(s)
	linked := func(want bool, when string) {
		t.Helper()
		current, err1 := os.Stat(filepath.Join(s.dir, currentDir, "gex-spx"))
		dated, err2 := os.Stat(filepath.Join(s.dir, friday, "gex-spx"))
		must(t, errors.Join(err1, err2))
		equal(t, os.SameFile(current, dated), want, "linked %s", when)
	}
	saveWithObject(t, s, "first")
	linked(true, "when written")
	f.on.Store(true)
	saveWithObject(t, s, "second")
	f.on.Store(false)
	must(t, save(s, pain, monday, single(t, `1`)))
	linked(true, "when the disk is writable again")
	saveIn(t, s, currentDir, "third")
	linked(false, "after a write of the file in current/ alone")
	equal(t, historical(t, reopen(t, s), friday), "second", "the date has")
}

// If a kill came between the file in current/ and its link under the date, a start makes the link.
func TestAStartMakesTheLink(t *testing.T) {
	s := open(t, t.TempDir())
	saveWithObject(t, s, "before")
	old := string(bytesOf(t, s, friday+"/gex-spx"))
	f, body := withObject(t, "after")
	m := f.Edition.Default.Meta
	m.ComputedAt = m.ComputedAt.Add(1e9)
	f.Edition = &Edition{Default: sealedWith(t, `"after"`, m)}
	must(t, s.Save([]File{f}, []Object{{SHA256: sha(body), Body: body}}))
	must(t, s.Close())
	must(t, os.Remove(filepath.Join(s.dir, friday, "gex-spx"))) // or put would write through the link
	put(t, s, friday+"/gex-spx", old)
	s = openWith(t, s.opts)
	equal(t, historical(t, s, friday), "after", "the date has")
}

// An object that is not what its name says is never returned, sent or accepted, and verify names it. It is written again when the same bytes come again.
func TestDamagedObjects(t *testing.T) {
	s := open(t, t.TempDir())
	sum := saveWithObject(t, s, "whole")
	name := "objects/" + sum + ".gz"
	packed := (&Object{Body: []byte("other")}).pack()
	for what, b := range map[string][]byte{"another": packed, "cut off": packed[:len(packed)-1], "no gzip": []byte("x"), "empty": {}} {
		path := put(t, s, name, string(b))
		_, _, two := s.Bytes(name)
		_, one := s.Object(sum)
		_, three := ReadObject(s.opts.Dir, s.opts.Source, sum)
		for _, err := range []error{one, two, three, s.Accept(name, sum, b, nil, asOf)} {
			failIf(t, !errors.Is(err, ErrTorn), "%s: %v", what, err)
		}
		verified(t, s.opts.Dir, path)
		saveWithObject(t, s, "whole")
		equal(t, text(s.Object(sum)), "whole", "saved again after %s", what)
	}
	for _, none := range []string{sha([]byte("never stored")), "../../" + sum, ""} {
		fails(t, second(s.Object(none)), ErrGone, "%q", none)
	}
}

// While a stored file cannot be read, the objects that it may name stay.
func TestObjectsOfAnUnreadFile(t *testing.T) {
	s := stocked(t)
	path := filepath.Join(s.dir, monday, "gex-spx")
	want := objects(t, s)
	must(t, s.Close())
	file, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, bytes.Replace(file, []byte(`"format":1`), []byte(`"format":2`), 1), 0o600))
	s = openWith(t, s.opts)
	must(t, save(s, gamma, friday, single(t, `"next"`)))
	equal(t, objects(t, s), want, "objects")
	must(t, errors.Join(s.Close(), os.WriteFile(path, file, 0o600)))
	s = openWith(t, s.opts)
	equal(t, historical(t, s, monday), monday, "when the file can be read again")
	equal(t, objects(t, s), want, "objects when the file can be read again")
}
