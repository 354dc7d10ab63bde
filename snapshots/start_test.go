package snapshots

import (
	"bytes"
	"log/slog"
	"testing"

	"strikecache/bench/testkit"
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
	tried := 0
	for _, dir := range []string{friday, currentDir} {
		s := open(t, t.TempDir())
		saveIn(t, s, dir, "good")
		whole := bytesOf(t, s, dir+"/gex-spx")
		for name, b := range badFiles(whole, encoded(t, pain, single(t, `1`))) {
			tried++
			failIf(t, bytes.Equal(b, whole), "%s: nothing was injected", name)
			t.Run(dir+" "+name, func(t *testing.T) { startWithBadFile(t, dir, b) })
		}
	}
	t.Logf("figure: %d bad files at the start: each named once, none served", tried)
}

func startWithBadFile(t *testing.T, dir string, b []byte) {
	o, log := options(t.TempDir()), &testkit.Text{}
	s := openWith(t, o)
	must(t, save(s, gamma, thursday, single(t, `"before"`)))
	path := put(t, s, dir+"/gex-spx", string(b))
	must(t, s.Close())
	verified(t, o.Dir, path)
	o.Log = log.Logger(slog.LevelInfo)
	s = openWith(t, o)
	for range 2 {
		failIf(t, log.Count(passedOver) != 1 || log.Count(" file="+path+" ") != 1 || s.Stats().BadFiles != 1, "%d bad files: %s", s.Stats().BadFiles, log)
		equal(t, wordIn(s, dir), "none", "found")
		equal(t, historical(t, s, ""), "before", "newest, the good file of the day before")
		equal(t, historical(t, s, friday), "none", "of its date")
		equal(t, s.DatesOf(gamma), []string{thursday}, "dates")
	}
	equal(t, string(bytesOf(t, s, dir+"/gex-spx")), string(b), "the bad file now")
	saveIn(t, s, dir, "again")
	equal(t, wordIn(s, dir), "again", "after a new one was written")
	equal(t, after(t, s, dir), "again", "and after a restart")
}
