package snapshots

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

// formed returns an answer with two forms.
func formed(t testing.TB, s *Snapshot) *Snapshot {
	t.Helper()
	s, err := s.WithForms(
		Form{"csv", "text/csv; charset=utf-8", []byte("name,label\r\n" + strings.Repeat("call_wall,\"Call, \"\"Wall\"\"\"\r\n", 200))},
		Form{"line", "text/plain; charset=utf-8", []byte("$SPX: Call Wall, 6000")},
	)
	must(t, err)
	return s
}

// sameForms compares the forms of two answers.
func sameForms(t testing.TB, name string, got, want *Snapshot) {
	t.Helper()
	if len(got.forms) != len(want.forms) {
		t.Fatalf("%s: %d forms, want %d", name, len(got.forms), len(want.forms))
	}
	for _, f := range want.forms {
		g := got.Form(f.form)
		if g == nil || g.ContentType != f.ContentType || g.Lines != f.Lines || g.LastModified() != f.LastModified() || g.Date() != f.Date() {
			t.Fatalf("%s: the form %s is %+v, want %+v", name, f.form, g, f)
		}
		sameSnapshot(t, name+" "+f.form, g, f)
		must(t, g.verify())
	}
}

// A form is sealed in identity and gzip, has tags of its own, and stays with the answer through a file and a restart. The
// answer itself is the same as without forms.
func TestForms(t *testing.T) {
	plain := sealed(t, `{"a":1}`)
	s := formed(t, plain)
	sameSnapshot(t, "with forms", s, plain)
	csv := s.Form("csv")
	if csv.ContentType != "text/csv; charset=utf-8" || !strings.Contains(csv.Lines, "\r\nX-Source: simulated\r\nX-As-Of: 2026-11-20T20:00:00Z\r\nX-Freshness: fresh\r\n") ||
		csv.LastModified() != s.LastModified() || csv.Date() != friday || s.Form("xml") != nil || plain.Form("csv") != nil || s.ContentType != "" || s.Lines != "" {
		t.Errorf("%+v", csv)
	}
	tags := map[string]bool{}
	for _, one := range []*Snapshot{s, csv, s.Form("line")} {
		must(t, one.verify())
		for c := range Codings {
			tags[one.ETag(c)] = true
			failIf(t, one.Has(c) != (one == s || c <= Gzip) || !one.Matches([]byte(one.ETag(c))) || one != s && s.Matches([]byte(one.ETag(c))), "%s in %v", one.form, c)
		}
	}
	equal(t, len(tags), 3*int(Codings), "tags")
	failIf(t, s.cost() <= plain.cost()+csv.cost(), "with forms %d bytes, without %d", s.cost(), plain.cost())
	for _, short := range []string{"", "x"} {
		failIf(t, second(s.WithForms(Form{Name: "csv", Body: []byte(short)})) == nil, "sealed %q", short)
	}
	again, err := s.WithForms()
	failIf(t, err != nil || again.Form("csv") != nil || s.Form("csv") == nil, "WithForms keeps or changes the forms before")

	store := open(t, t.TempDir())
	must(t, save(store, gamma, friday, File{Edition: &Edition{Default: s}}))
	for range 2 {
		got, err := store.Historical(gamma, friday)
		must(t, err)
		sameForms(t, "of a date", got.Default, s)
		store = reopen(t, store)
	}
	verified(t, store.opts.Dir)
}

// With another meta, the data and the bytes of the forms stay. A form has other header fields and another tag: a client that polls
// learns of the freshness.
func TestReseal(t *testing.T) {
	s := formed(t, sealed(t, `{"a":1}`))
	m := s.Meta
	reason := "upstream_lag\r\nX-Injected: 1"
	m.Freshness = Freshness{State: "stale", Reason: &reason, Since: asOf.Add(time.Hour)}
	again, err := s.Reseal(m)
	must(t, err)
	equal(t, string(again.Data()), `{"a":1}`, "data")
	equal(t, again.Meta, m, "meta")
	failIf(t, !strings.Contains(string(gunzip(t, again.Body(Gzip))), `"state":"stale","reason":"upstream_lag\r\nX-Injected: 1","since":"2026-11-20T21:00:00Z"`), "meta in %s", again.Body(Identity))
	was, is := s.Form("csv"), again.Form("csv")
	failIf(t, !strings.Contains(is.Lines, "\r\nX-Freshness: stale; reason=upstream_lagX-Injected: 1\r\n") || !reflect.DeepEqual(is.Meta, m), "%+v", is)
	failIf(t, is.ETag(Gzip) == was.ETag(Gzip) || is.LastModified() == was.LastModified() || &is.Body(Gzip)[0] != &was.Body(Gzip)[0], "%+v", is)
	back, err := again.Reseal(s.Meta)
	must(t, err)
	sameSnapshot(t, "with the meta before", back, s)
	sameForms(t, "with the meta before", back, s)
}

// A file whose header says something else of its forms is refused.
func TestForeignForms(t *testing.T) {
	s := formed(t, sealed(t, `{"a":1}`))
	csv := s.Form("csv")
	var payload bytes.Buffer
	lengths := func(one *Snapshot, from Coding) (n [Codings]int) {
		for c := from; c < Codings; c++ {
			n[c] = len(one.Body(c))
			payload.Write(one.Body(c))
			if c == Identity {
				payload.WriteByte('\n')
			}
		}
		return n
	}
	answer, form := fileEntry{Lengths: lengths(s, Identity)}, fileEntry{Form: "csv", Type: csv.ContentType, Lengths: lengths(csv, Gzip)}
	changed := func(alter func(*fileEntry)) []fileEntry {
		e := form
		alter(&e)
		return []fileEntry{answer, e}
	}
	for name, entries := range map[string][]fileEntry{
		"right":                  {answer, form},
		"no content type":        changed(func(e *fileEntry) { e.Type = "" }),
		"a line in the type":     changed(func(e *fileEntry) { e.Type = "text/csv\r\nX: 1" }),
		"an answer, not a form":  changed(func(e *fileEntry) { e.Form = "" }),
		"no gzip":                changed(func(e *fileEntry) { e.Lengths[Gzip] = 0 }),
		"bodies of other length": changed(func(e *fileEntry) { e.Lengths[Brotli]--; e.Lengths[Zstd]++ }),
	} {
		b := reframed(t, payload.String(), func(h *fileHeader) { h.Entries = entries })
		if f, err := decodeFile(b, keyOf(gamma)); (name == "right") != (err == nil) || err != nil && !errors.Is(err, ErrTorn) {
			t.Errorf("%s: %v, %v", name, f.Edition, err)
		}
	}
}
