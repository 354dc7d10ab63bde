package keys

import (
	"encoding/json"
	"log/slog"
	"maps"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"strikecache/server/limits"
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
			if _, err := Open(path, nil, slog.New(slog.DiscardHandler)); err == nil {
				t.Error("a server opens it")
			}
			return
		}
		again, err := encode(keys)
		if err != nil && strings.Contains(err.Error(), "year outside of range") {
			return // 9999-12-31T23:59:59-01:00 is in the year 10000
		}
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, string(again))
		back, err := List(path)
		if err != nil || !reflect.DeepEqual(back, keys) {
			t.Fatalf("%v: %s", err, again)
		}
		table, err := Open(path, nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		table.Close()
		if table.Len() != len(keys) {
			t.Errorf("%d of %d keys in force", table.Len(), len(keys))
		}
		for _, secret := range []string{"a", "b", "c", text[:min(len(text), 100)]} { // a and b are the secrets of the seeds
			want := false
			for _, k := range keys {
				want = want || k.SHA256 == digestOf(secret) && k.State(now) == "active"
			}
			if _, ok := table.Lookup([]byte(secret), now.UnixNano()); ok != want {
				t.Errorf("secret %q: known %v, want %v", secret, ok, want)
			}
		}
	})
}

// FuzzLedger: the counts of a file are loaded whole or not at all. What was loaded is written and loaded again. A file that
// cannot be used is replaced.
func FuzzLedger(f *testing.F) {
	good := `{"format":1,"day":"2000-01-01","requests":{"k_0123456789ab":7,"k_ffffffffffff":0}}`
	for _, s := range []string{
		good, good[:40], "", "[]", strings.Replace(good, "01-01", "01-02", 1), strings.Replace(good, "2000", "1999", 1), strings.Replace(good, ":7", ":-7", 1),
		strings.Replace(good, "k_01", "k_XY", 1), strings.Replace(good, ":7", ":1e3", 1), good + good, `{"format":1,"day":"2000-01-01","requests":null}`, `{"format":1,"day":"2000-01-01"}`,
		strings.Replace(good, ":7", ":9223372036854775807", 1), strings.Replace(good, "}}", `,"k_0123456789ab":8}}`, 1),
	} {
		f.Add(s)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		synctest.Test(t, func(t *testing.T) { checkLedgerFile(t, filepath.Join(dir, "usage.json"), text) })
	})
}

// checkLedgerFile must run in a synctest bubble, whose clock says which day the file is of.
func checkLedgerFile(t *testing.T, path, text string) {
	t.Helper()
	write(t, path, text)
	counts := func() (map[string]int64, *Ledger, error) {
		l := &Ledger{path: path, log: slog.New(slog.DiscardHandler), days: map[string]*limits.Day{}}
		err := l.load()
		out := map[string]int64{}
		for id, d := range l.days {
			n := d.Count(now.UnixNano())
			if n < 0 || n > limits.MaxCount {
				t.Fatalf("%s %d", id, n)
			}
			if n > 0 {
				out[id] = n
			}
		}
		return out, l, err
	}
	got, ledger, err := counts()
	want := map[string]int64{}
	var plain ledgerFile
	if plainErr := json.Unmarshal([]byte(text), &plain); err == nil && plainErr != nil {
		t.Fatal(plainErr)
	}
	for id, n := range plain.Requests {
		if err == nil && n > 0 && plain.Day == "2000-01-01" {
			want[id] = min(n, limits.MaxCount)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	ledger.counter(someID).Take(now.UnixNano(), 0)
	got[someID] = min(got[someID]+1, limits.MaxCount)
	if err := ledger.flush(); err != nil {
		t.Fatal(err)
	}
	if again, _, err := counts(); err != nil || !maps.Equal(again, got) {
		t.Errorf("%v: %v, want %v: %s", err, again, got, content(t, path))
	}
}
