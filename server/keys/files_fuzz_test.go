package keys

import (
	"log/slog"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// FuzzKeyFile: a key file that loads is written and loaded again as it was, and a server that opens it knows its keys and no
// other keys. A server does not open a file that does not load.
func FuzzKeyFile(f *testing.F) {
	for _, s := range []string{
		file(), file(recordText(digestA, limitsOf)), file(recordText(digestA, limitsOf), recordText(digestB, limitsOf+`,"expires":"2027-01-01T01:00:00+01:00","revoked":null`)),
		file(recordText(digestA, `,"per_minute":1000000,"per_day":0,"revoked":"2026-06-01T00:00:00Z"`)), `{"format":1,"keys":[{"id":"k_0"`, `{"format":1,"Keys":[{}]}`, file(recordText(digestA, limitsOf), recordText(digestA, limitsOf)), "", "null", "[]",
		"\xef\xbb\xbf" + file(), strings.Replace(file(recordText(digestA, limitsOf)), "a name", "n\\u00e4me\U0001F600", 1), strings.Replace(file(recordText(digestA, limitsOf)), ":1,", ":1.0,", 1),
	} {
		f.Add(s)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(dir, "keys.json")
		write(t, path, text)
		keys, err := List(path)
		if err != nil {
			if _, err := Open(path, &Counts{}, slog.New(slog.DiscardHandler)); err == nil {
				t.Error("a server opens it")
			}
			return
		}
		again, err := encode(keys)
		if err != nil && strings.Contains(err.Error(), "year outside of range") {
			return // 9999-12-31T23:59:59-01:00 is in the year 10000
		}
		must(t, err)
		write(t, path, string(again))
		back, err := List(path)
		if err != nil || !reflect.DeepEqual(back, keys) {
			t.Fatalf("%v: %s", err, again)
		}
		table, err := Open(path, &Counts{}, slog.New(slog.DiscardHandler))
		must(t, err)
		table.Close()
		equal(t, table.Len(), len(keys), "keys in force")
		for _, secret := range []string{"a", "b", "c", text[:min(len(text), 100)]} { // a and b are the secrets of the seeds
			want := false
			for _, k := range keys {
				want = want || k.SHA256 == digestOf(secret) && k.State(now) == "active"
			}
			equal(t, lookup(table, secret, now) != nil, want, "secret %q is known", secret)
		}
	})
}

// FuzzCounts: a file of counts is loaded whole or not at all, and no count is negative. What was loaded is saved and loaded
// again. A file that cannot be used is replaced.
func FuzzCounts(f *testing.F) {
	good := `{"day":"2000-01-01","requests":{"k_0123456789ab":7,"k_ffffffffffff":0}}`
	for _, s := range []string{
		good, good[:40], "", "[]", "null", strings.Replace(good, "01-01", "01-02", 1), strings.Replace(good, ":7", ":-7", 1),
		strings.Replace(good, ":7", ":1e3", 1), good + good, `{"day":"2000-01-01","requests":null}`, strings.Replace(good, "}}", `},"last_use":{"k_0123456789ab":-1,"k_0123456789ac":946684800}}`, 1),
		strings.Replace(good, ":7", ":9223372036854775807", 1), strings.Replace(good, "}}", `,"k_0123456789ab":8}}`, 1),
	} {
		f.Add(s)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(dir, "usage.json")
		write(t, path, text)
		read := func() (*Counts, error) {
			c := &Counts{path: path}
			return c, c.load(now)
		}
		c, err := read()
		if err != nil && len(c.usage) > 0 {
			t.Errorf("loaded in part: %v", err)
		}
		c.of(someID).Admit(0, 0, now.UnixNano())
		must(t, c.write(now))
		again, err := read()
		must(t, err)
		for id, u := range c.usage {
			n, last := u.Today(now.UnixNano())
			if back, lastBack := again.of(id).Today(now.UnixNano()); n < 0 || back != min(n, 1<<53) || lastBack != last {
				t.Errorf("%s: %d and %d saved, %d and %d loaded", id, n, last, back, lastBack)
			}
		}
	})
}
