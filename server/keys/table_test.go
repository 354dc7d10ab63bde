package keys

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/server/limits"
)

func lookup(table *Table, secret string, at time.Time) *Entry {
	e, _ := table.Lookup([]byte(secret), at.UnixNano())
	return e
}

func TestLookup(t *testing.T) {
	path := keyPath(t)
	secret, key := create(t, path, Spec{Name: "a", PerMinute: 60, PerDay: 100})
	brief, _ := create(t, path, Spec{Name: "b", Expires: now.Add(time.Hour)})
	gone, _ := create(t, path, Spec{Name: "c"})
	if _, err := Revoke(path, "c", now); err != nil {
		t.Fatal(err)
	}
	table := open(t, path, nil, &logged{})
	if table.Len() != 3 || table.Err() != nil {
		t.Errorf("%d keys, %v", table.Len(), table.Err())
	}
	if e := lookup(table, secret, now); e == nil || e.Key != key {
		t.Fatalf("%v", e)
	} else if e.Policy() != `"minute";q=60;w=60, "day";q=100;w=86400` {
		t.Errorf("policy %s", e.Policy())
	}
	if lookup(table, brief, now.Add(time.Hour-1)) == nil || lookup(table, brief, now.Add(time.Hour)) != nil {
		t.Error("the expiry does not count")
	}
	for what, presented := range map[string]string{
		"revoked": gone, "empty": "", "changed": secret[:len(secret)-1] + "!", "longer": secret + "x", "shorter": secret[:45],
		"id": key.ID, "digest": key.SHA256, "very long": strings.Repeat("x", 10_000),
	} {
		if lookup(table, presented, now) != nil {
			t.Errorf("%s secret is accepted", what)
		}
	}
}

// Secrets of 1 to 128 bytes are looked up.
func TestLookupLength(t *testing.T) {
	path := keyPath(t)
	longest, over := strings.Repeat("x", MaxSecret), strings.Repeat("x", MaxSecret+1)
	write(t, path, file(record(digestOf(longest), limitsOf), record(digestOf(over), limitsOf), record(digestOf(""), limitsOf)))
	table := open(t, path, nil, &logged{})
	if lookup(table, longest, now) == nil || lookup(table, over, now) != nil || lookup(table, "", now) != nil {
		t.Error("the limit is not 1 to 128 bytes")
	}
}

// A key keeps its count and its tokens when the file is loaded again, also when its limits change.
func TestReloadKeepsState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := keyPath(t)
		secret, key := create(t, path, Spec{Name: "a", PerMinute: 10, PerDay: 100})
		log := &logged{}
		table := open(t, path, nil, log)
		first := lookup(table, secret, now)
		for range 4 {
			first.Admit(now.UnixNano())
		}
		other, _ := create(t, path, Spec{Name: "b"})
		if err := look(table); err != nil || table.Len() != 2 || lookup(table, other, now) == nil {
			t.Fatalf("%d keys, %v", table.Len(), err)
		}
		if lookup(table, secret, now) != first {
			t.Error("an unchanged key has a new entry")
		}
		write(t, path, strings.Replace(content(t, path), `"per_minute": 10,`, `"per_minute": 20,`, 1))
		if err := look(table); err != nil {
			t.Fatal(err)
		}
		second := lookup(table, secret, now)
		if v := second.Admit(now.UnixNano()); second == first || v.Today != 5 || v.PerMinute != 20 || v.Minute.Remaining != 11 {
			t.Errorf("after the rate was changed: %+v", v)
		}
		if _, err := Revoke(path, key.ID, now); err != nil {
			t.Fatal(err)
		}
		if err := look(table); err != nil || lookup(table, secret, now) != nil || table.Len() != 2 {
			t.Errorf("after the revocation: %v", err)
		}
		if n := log.count("keys loaded"); n != 4 {
			t.Errorf("%d loads logged", n)
		}
	})
}

// A file that cannot be used changes nothing and is logged once.
func TestReloadKeepsTheOldTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spoil := map[string]func(path string) error{
			"the JSON ends too early": func(path string) error { return os.WriteFile(path, []byte(`{"format":1,"keys":[`), 0o600) },
			"no such file":            os.Remove,
			"is not a regular file": func(path string) error {
				if err := os.Remove(path); err != nil {
					return err
				}
				return os.Mkdir(path, 0o700)
			},
		}
		if checksModes {
			spoil["run chmod 600"] = func(path string) error { return os.Chmod(path, 0o644) }
			spoil["is a symbolic link"] = func(path string) error {
				if err := os.Rename(path, path+".real"); err != nil {
					return err
				}
				return os.Symlink(path+".real", path)
			}
		}
		for want, spoil := range spoil {
			path := keyPath(t)
			secret, _ := create(t, path, Spec{Name: "a"})
			good := content(t, path)
			log := &logged{}
			table := open(t, path, nil, log)
			e := lookup(table, secret, now)
			if err := spoil(path); err != nil {
				t.Fatal(err)
			}
			for range 5 {
				wantError(t, want, look(table), want)
			}
			if lookup(table, secret, now) != e || e == nil {
				t.Errorf("%s: the key is not what it was", want)
			}
			if n := log.count("level=ERROR"); n != 1 {
				t.Errorf("%s: logged %d times", want, n)
			}
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			write(t, path, good)
			if err := look(table); err != nil || table.Err() != nil || log.count("usable again") != 1 || lookup(table, secret, now) != e {
				t.Errorf("%s: after it was mended: %v", want, err)
			}
		}
	})
}

// A change of the mode alone is noticed, in both directions.
func TestReloadModeAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if !checksModes {
			t.Skip("modes tell nothing on this system")
		}
		path := keyPath(t)
		create(t, path, Spec{Name: "a"})
		table := open(t, path, nil, &logged{})
		for _, mode := range []os.FileMode{0o640, 0o600, 0o604, 0o400} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			if err := look(table); (err != nil) != (mode&0o077 != 0) {
				t.Errorf("mode %o: %v", mode, err)
			}
		}
	})
}

// Two files of one size and one time: the second is found.
func TestReloadWithinTheClocksResolution(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := keyPath(t)
		replace := func(digest string) {
			write(t, path, file(record(digest, limitsOf)))
			if err := os.Chtimes(path, now, now); err != nil {
				t.Fatal(err)
			}
		}
		replace(digestA)
		table := open(t, path, nil, &logged{})
		replace(digestB)
		if err := look(table); err != nil || lookup(table, "b", now) == nil || lookup(table, "a", now) != nil {
			t.Errorf("the second file was not read: %v", err)
		}
	})
}

// The table follows its file from before it exists until Close.
func TestTablePolls(t *testing.T) {
	path := keyPath(t)
	synctest.Test(t, func(t *testing.T) {
		log := &logged{}
		table, err := Open(path, nil, log.logger())
		if err != nil || table.Len() != 0 || table.Err() != nil || log.count("key file missing") != 1 {
			t.Fatalf("missing file: %v", err)
		}
		time.Sleep(time.Minute)
		for n := 1; n <= 2; n++ {
			create(t, path, Spec{Name: "a"})
			if err := look(table); err != nil || table.Len() != n {
				t.Errorf("%d keys, want %d: %v", table.Len(), n, err)
			}
		}
		table.Close()
		table.Close()
		create(t, path, Spec{Name: "a"})
		time.Sleep(time.Minute)
		if table.Len() != 2 || log.count("level=ERROR") > 0 {
			t.Errorf("%d keys after Close", table.Len())
		}
	})
}

// A missing file is no error until there was a file. An empty file is an error, not a file without keys.
func TestEmptyFileAppears(t *testing.T) {
	path := keyPath(t)
	synctest.Test(t, func(t *testing.T) {
		table := open(t, path, nil, &logged{})
		write(t, path, "")
		wantError(t, "empty", look(table), "the JSON ends too early")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		wantError(t, "gone", look(table), "no such file")
	})
}

// Requests are answered and counted while the file changes. No secret reaches the log.
func TestLookupDuringReloads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := keyPath(t)
		log := &logged{}
		secret, _ := create(t, path, Spec{Name: "a", PerDay: 1_000_000})
		ledger := openLedger(filepath.Join(t.TempDir(), "usage.json"), log.logger(), func() time.Time { return now })
		table := open(t, path, ledger, log)
		const readers, requests = 4, 500
		var wg sync.WaitGroup
		for range readers {
			wg.Go(func() {
				for range requests {
					e, ok := table.Lookup([]byte(secret), now.UnixNano())
					if !ok || e.Admit(now.UnixNano()).Outcome != limits.Allowed {
						t.Error("refused")
						return
					}
				}
			})
		}
		wg.Go(func() {
			for i := range 20 {
				other, _, err := Create(path, Spec{Name: fmt.Sprint(i)}, now)
				if err == nil {
					// As the poller would, which does not run while the clock of the bubble stands still.
					err = table.load([][]byte{[]byte(content(t, path))}, now)
				}
				if err != nil || lookup(table, other, now) == nil {
					t.Errorf("not found after its creation: %v", err)
				}
				if log.count(other) > 0 {
					t.Error("a secret was logged")
				}
				if err := ledger.Flush(); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Wait()
		if v := lookup(table, secret, now).Admit(now.UnixNano()); v.Today != readers*requests+1 {
			t.Errorf("%d counted", v.Today)
		}
		if err := ledger.Close(); err != nil {
			t.Error(err)
		}
		if log.count(secret) > 0 || log.count(digestOf(secret)) > 0 {
			t.Error("a secret or digest was logged")
		}
	})
}

func TestEntryUsage(t *testing.T) {
	path := keyPath(t)
	secret, key := create(t, path, Spec{Name: "a", PerDay: 1})
	e := lookup(open(t, path, nil, &logged{}), secret, now)
	v := e.Admit(now.UnixNano())
	got := string(e.AppendUsage(nil, v))
	want := `{"tier":"keyed","key":"` + key.ID + `","requests_today":1,"limit_per_day":1,"remaining_today":0,"resets_at":"2026-11-22T00:00:00Z"}`
	if got != want || !json.Valid([]byte(got)) {
		t.Errorf("%s", got)
	}
	if v := e.Admit(now.UnixNano()); v.Outcome != limits.QuotaExceeded || v.RetryAfter() != 12*3600 {
		t.Errorf("%+v", v)
	}
}

func TestKeyIsLoggedAsItsID(t *testing.T) {
	log := &logged{}
	k := Key{ID: "k_0123456789ab", SHA256: digestA, Name: "n"}
	log.logger().Info("x", "key", k, "entry", newEntry(k, nil, nil))
	fmt.Fprintf(log, "%v %+v %s", k, k, newEntry(k, nil, nil))
	if log.count(k.ID) != 5 || log.count(digestA) != 0 {
		t.Error(log)
	}
}

func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector adds allocations")
	}
	path := keyPath(t)
	text, _ := create(t, path, Spec{Name: "a", PerMinute: 60, PerDay: 1000})
	ledger := OpenLedger(filepath.Join(t.TempDir(), "usage.json"), slog.New(slog.DiscardHandler))
	t.Cleanup(func() { ledger.Close() })
	table := open(t, path, ledger, &logged{})
	secret, unknown, at, buf := []byte(text), []byte("unknown"), now.UnixNano(), make([]byte, 0, 512)
	e := lookup(table, text, now)
	for name, f := range map[string]func(){
		"Lookup":  func() { table.Lookup(secret, at) },
		"unknown": func() { table.Lookup(unknown, at) },
		"Admit":   func() { at += int64(time.Second) / 2; e.Admit(at) },
		"usage":   func() { buf = e.AppendUsage(buf[:0], e.Admit(at)) },
	} {
		if n := testing.AllocsPerRun(200, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// BenchmarkLookupAndAdmit measures what a key costs a request.
func BenchmarkLookupAndAdmit(b *testing.B) {
	path := keyPath(b)
	text, _ := create(b, path, Spec{Name: "a", PerMinute: 600, PerDay: 100_000})
	table := open(b, path, nil, &logged{})
	secret, at := []byte(text), now.UnixNano()
	buf := make([]byte, 0, 512)
	b.ReportAllocs()
	for b.Loop() {
		e, _ := table.Lookup(secret, at)
		v := e.Admit(at)
		buf = v.AppendRateLimit(buf[:0])
		buf = e.AppendUsage(buf[:0], v)
	}
}
