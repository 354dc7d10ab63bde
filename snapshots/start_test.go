package snapshots

import (
	"bytes"
	"cmp"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// badFiles returns bad files: some ways in which a good file may be damaged or misplaced.
func badFiles(whole, otherProduct []byte) map[string][]byte {
	altered, zeroes := bytes.Clone(whole), bytes.Clone(whole)
	altered[len(altered)-1] ^= 0x02
	clear(zeroes[len(zeroes)-len(zeroes)/4:]) // the last page never left the page cache
	return map[string][]byte{
		"empty":               {},
		"foreign text":        []byte("hello\nworld\n"),
		"another product's":   otherProduct,
		"of a newer format":   bytes.Replace(whole, []byte(`"format":1`), []byte(`"format":2`), 1),
		"torn in the header":  whole[:20],
		"torn in the payload": whole[:len(whole)-1],
		"followed by zeroes":  append(bytes.Clone(whole), make([]byte, 512)...),
		"altered at the end":  altered,
		"its end is zeroes":   zeroes,
		"zeroes":              make([]byte, len(whole)), // a length that reached the disk before its bytes
	}
}

// A start finds every bad file, as a crash, a failing disk or a person may leave it. The file is logged once, whatever asks
// for it later. It is counted, never served and not changed.
func TestFaultBadFilesAtTheStart(t *testing.T) {
	kinds := storedKinds(t)
	tried := 0
	for _, kind := range kinds {
		whole, other := wholeFile(t, kind), encoded(t, pain, single(t, `1`))
		for name, b := range badFiles(whole, other) {
			tried++
			if bytes.Equal(b, whole) {
				t.Fatalf("%s: nothing was injected", name)
			}
			t.Run(kind.name+" "+name, func(t *testing.T) { startWithBadFile(t, kind, b) })
		}
	}
	t.Logf("figure: %d bad files at the start: each named once, none served", tried)
}

// wholeFile returns the bytes of a good file of friday.
func wholeFile(t *testing.T, kind stored) []byte {
	s := open(t, t.TempDir())
	defer s.Close()
	must(t, kind.save(s, friday, "good"))
	b, err := os.ReadFile(filepath.Join(s.dir, cmp.Or(kind.dir, friday), "gex-spx"))
	must(t, err)
	return b
}

func startWithBadFile(t *testing.T, kind stored, b []byte) {
	kinds := storedKinds(t)
	o, log := options(t.TempDir()), &testLog{}
	s := openWith(t, o)
	must(t, kinds[0].save(s, thursday, "before"))
	path := put(t, s, cmp.Or(kind.dir, friday)+"/gex-spx", string(b))
	must(t, s.Close())
	_, bad, err := Verify(o.Dir)
	failIf(t, err != nil || len(bad) != 1 || bad[0].Path != path, "verify finds %v, %v", bad, err)
	o.Log = log.logger(slog.LevelInfo)
	s = openWith(t, o)
	named := func(when string) {
		t.Helper()
		if n := log.count(passedOver); n != 1 || log.count(" file="+path+" ") != 1 || s.Stats().BadFiles != 1 {
			t.Errorf("%s: %d lines, %d bad files: %s", when, n, s.Stats().BadFiles, log)
		}
	}
	named("when it opens")
	for range 2 {
		equal(t, kind.found(s, friday), "none", "found")
		equal(t, kinds[0].found(s, thursday), "before", "the good file of the day before")
		for _, date := range []string{"", friday} {
			if got := historical(t, s, date); strings.Contains(got, "good") {
				t.Errorf("historical %q: %.40q", date, got)
			}
		}
		if f, err := s.Load(gamma, friday); err == nil {
			t.Errorf("loaded %.40q", f.Edition.Default.Data())
		}
		failIf(t, slices.Contains(s.DatesOf(gamma), friday), "its date is listed")
	}
	named("after it was asked for")
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, b) {
		t.Errorf("the bad file was changed: %v", err)
	}
	must(t, kind.save(s, friday, "again"))
	equal(t, kind.found(s, friday), "again", "after a new one was written")
	equal(t, after(t, s, func(s *Store) string { return kind.found(s, friday) }), "again", "and after a restart")
}
