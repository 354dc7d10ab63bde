package keys

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"strikecache/server/limits"
	"strikecache/snapshots"
)

// FuzzKeyFile: a key file loads as encoding/json reads it, loads the same after it was written, and a server that opens it
// knows its keys and no other keys.
func FuzzKeyFile(f *testing.F) {
	for _, s := range []string{
		file(), file(record(digestA, limitsOf)), file(record(digestA, limitsOf), record(digestB, limitsOf+`,"expires":"2027-01-01T01:00:00+01:00","revoked":null`)),
		file(record(digestA, `,"per_minute":1000000,"per_day":0,"revoked":"2026-06-01T00:00:00Z"`)), `{"format":1,"keys":[{"id":"k_0"`, `{"format":1,"Keys":[{}]}`, file(record(digestA, limitsOf), record(digestA, limitsOf)), "", "null", "[]",
		"\xef\xbb\xbf" + file(), strings.Replace(file(record(digestA, limitsOf)), "a name", "n\\u00e4me\U0001F600", 1), strings.Replace(file(record(digestA, limitsOf)), ":1,", ":1.0,", 1),
	} {
		f.Add(s)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(dir, "keys.json")
		write(t, path, text)
		keys, err := load(path)
		if err != nil {
			if strings.Contains(err.Error(), digestA) {
				t.Errorf("the error quotes a digest: %v", err)
			}
			if _, err := Open(path, nil, slog.New(slog.DiscardHandler)); err == nil {
				t.Error("a server opens it")
			}
			return
		}
		var plain struct {
			Format int
			Keys   []map[string]any
		}
		if err := json.Unmarshal([]byte(text), &plain); err != nil || plain.Format != 1 || len(plain.Keys) != len(keys) {
			t.Fatalf("%v: %d keys, %+v", err, len(keys), plain)
		}
		for i, k := range keys {
			p := plain.Keys[i]
			if p["id"] != k.ID || p["name"] != k.Name || p["sha256"] != k.SHA256 || p["per_minute"] != float64(k.PerMinute) || p["per_day"] != float64(k.PerDay) {
				t.Errorf("%+v, want %+v", k, p)
			}
			for name, at := range map[string]time.Time{"created": k.Created, "expires": k.Expires, "revoked": k.Revoked} {
				said, _ := p[name].(string)
				if want, err := time.Parse(time.RFC3339, said); said != "" && (err != nil || !want.Equal(at)) || said == "" && !at.IsZero() || at.Location() != time.UTC {
					t.Errorf("%s is %v, want %q", name, at, said)
				}
			}
		}
		again, err := encode(keys)
		if err != nil {
			t.Fatal(err)
		}
		if len(again) > maxFile {
			return // names of many bytes
		}
		write(t, path, string(again))
		back, err := load(path)
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

// FuzzLedger: a file is loaded whole, except for impossible counts, or not at all. What was loaded is written and loaded
// again. A file that cannot be used is replaced.
func FuzzLedger(f *testing.F) {
	good := `{"format":1,"day":"2026-11-21","requests":{"k_0123456789ab":7,"k_ffffffffffff":0}}`
	for _, s := range []string{good, good[:40], "", "[]", strings.Replace(good, "11-21", "11-20", 1), strings.Replace(good, "11-21", "11-22", 1), strings.Replace(good, ":7", ":-7", 1), strings.Replace(good, "k_01", "k_XY", 1), strings.Replace(good, ":7", ":1e3", 1), good + good,
		`{"format":1,"day":"2026-11-21","requests":null}`, `{"format":1,"day":"2026-11-21"}`, strings.Replace(good, ":7", ":9223372036854775807", 1), strings.Replace(good, "}}", `,"k_0123456789ab":8}}`, 1), `{"Format":1,"DAY":"2026-11-21","requests":{"k_0123456789ab":7}}`} {
		f.Add(s)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(dir, "usage.json")
		write(t, path, text)
		counts := func() (map[string]int64, *Ledger, error) {
			l := &Ledger{path: path, log: slog.New(slog.DiscardHandler), now: func() time.Time { return now }, writeFile: snapshots.WritePrivateFile, days: map[string]*limits.Day{}}
			err := l.load()
			out := map[string]int64{}
			for id, d := range l.days {
				if n := d.Count(now.UnixNano()); n != 0 {
					out[id] = n
				}
				if n := d.Count(now.UnixNano()); n < 0 || n > limits.MaxCount || !idForm.MatchString(id) {
					t.Fatalf("%s %d", id, n)
				}
			}
			return out, l, err
		}
		got, ledger, err := counts()
		var plain struct {
			Day      string
			Requests map[string]float64
		}
		plainErr := json.Unmarshal([]byte(text), &plain)
		if err == nil && plainErr != nil || err != nil && len(got) > 0 {
			t.Fatalf("%v, %v: %v", err, plainErr, got)
		}
		if err == nil && plain.Day == now.Format(time.DateOnly) {
			for id, n := range plain.Requests {
				if possible := idForm.MatchString(id) && n >= 0 && n <= limits.MaxCount; possible && got[id] != int64(n) || !possible && got[id] != 0 {
					t.Errorf("%s: %d, want %v", id, got[id], n)
				}
			}
		} else if len(got) > 0 {
			t.Errorf("%v of %q", got, plain.Day)
		}
		ledger.counter(someID).Take(now.UnixNano(), 0)
		if got[someID] < limits.MaxCount {
			got[someID]++
		}
		if err := ledger.Flush(); err != nil {
			t.Fatal(err)
		}
		if again, _, err := counts(); err != nil || !reflect.DeepEqual(again, got) {
			stored, _ := os.ReadFile(path)
			t.Errorf("%v: %v, want %v: %s", err, again, got, stored)
		}
	})
}
