package keys

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/bench/testkit"
	"strikecache/server/limits"
)

func lookup(table *Table, secret string, at time.Time) *Entry {
	e, _ := table.Lookup([]byte(secret), at.UnixNano())
	return e
}

func TestLookup(t *testing.T) {
	path := keyPath(t)
	secret, key := create(t, path, Key{Name: "a", PerMinute: 60, PerDay: 100})
	brief, _ := create(t, path, Key{Name: "b", Expires: now.Add(time.Hour)})
	gone, _ := create(t, path, Key{Name: "c"})
	_, err := Revoke(path, "c", now)
	must(t, err)
	table := open(t, path, &Counts{}, &testkit.Text{})
	if table.Len() != 3 || table.Err() != nil {
		t.Errorf("%d keys, %v", table.Len(), table.Err())
	}
	if e := lookup(table, secret, now); e == nil || e.Key != key {
		t.Errorf("%v", e)
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

// A key keeps its count and its tokens when the file is loaded again, also when its limits change.
func TestReloadKeepsState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := keyPath(t)
		secret, key := create(t, path, Key{Name: "a", PerMinute: 10, PerDay: 100})
		log := &testkit.Text{}
		table := open(t, path, &Counts{}, log)
		first := lookup(table, secret, now)
		for range 4 {
			first.Admit(now.UnixNano())
		}
		other, _ := create(t, path, Key{Name: "b"})
		if table.Look(); table.Err() != nil || table.Len() != 2 || lookup(table, other, now) == nil { // Look needs no time
			t.Fatalf("%d keys, %v", table.Len(), table.Err())
		}
		write(t, path, strings.Replace(content(t, path), `"per_minute": 10,`, `"per_minute": 20,`, 1))
		must(t, look(table))
		second := lookup(table, secret, now)
		if v := second.Admit(now.UnixNano()); v.Today != 5 || v.PerMinute != 20 || v.Minute.Remaining != 11 {
			t.Errorf("after the rate was changed: %+v", v)
		}
		_, err := Revoke(path, key.ID, now)
		must(t, err)
		if err := look(table); err != nil || lookup(table, secret, now) != nil || table.Len() != 2 {
			t.Errorf("after the revocation: %v", err)
		}
		if n := log.Count("keys loaded"); n != 4 {
			t.Errorf("%d loads logged", n)
		}
	})
}

// A missing file is an error only if there was a file before. A file that cannot be used later changes no key. A wrong mode
// alone makes a file unusable.
func TestTableFollowsItsFile(t *testing.T) {
	path := keyPath(t)
	synctest.Test(t, func(t *testing.T) {
		log := &testkit.Text{}
		table := open(t, path, &Counts{}, log)
		if err := look(table); err != nil || table.Len() != 0 || log.Count("key file missing") != 1 {
			t.Fatalf("missing file: %v", err)
		}
		secret, _ := create(t, path, Key{Name: "a"})
		good := content(t, path)
		spoil := map[string]func() error{
			"unexpected end of JSON input": func() error { return os.WriteFile(path, []byte(`{"format":1,"keys":[`), 0o600) },
			"key file missing":             func() error { return os.Remove(path) },
			"has over 8388608 bytes":       func() error { return os.Truncate(path, maxFile+1) },
		}
		if checksModes {
			spoil["run chmod 600"] = func() error { return os.Chmod(path, 0o644) }
		}
		for want, spoil := range spoil {
			if err := look(table); err != nil || table.Len() != 1 {
				t.Errorf("before %s: %d keys, %v", want, table.Len(), err)
			}
			must(t, spoil())
			if wantError(t, want, look(table), want); lookup(table, secret, now) == nil {
				t.Errorf("%s: the key is not known any more", want)
			}
			must(t, os.RemoveAll(path))
			write(t, path, good)
		}
		table.Close()
		create(t, path, Key{Name: "b"})
		time.Sleep(time.Minute)
		if table.Len() != 1 {
			t.Errorf("%d keys after Close", table.Len())
		}
	})
}

// Requests are answered and counted while the file changes. No secret reaches the log.
func TestLookupDuringReloads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, log := keyPath(t), &testkit.Text{}
		secret, _ := create(t, path, Key{Name: "a", PerDay: 1_000_000})
		counts := OpenCounts(usagePath(t), log.Logger(slog.LevelInfo))
		table := open(t, path, counts, log)
		const readers, requests, reloads = 4, 500, 20
		var wg sync.WaitGroup
		for range readers {
			wg.Go(func() {
				for range requests {
					if e := lookup(table, secret, now); e == nil || e.Admit(now.UnixNano()).Outcome != limits.Allowed {
						t.Error("refused")
						return
					}
				}
			})
		}
		for i := range reloads {
			other, _ := create(t, path, Key{Name: fmt.Sprint(i)})
			if err := table.load([][]byte{[]byte(content(t, path))}, now); err != nil || lookup(table, other, now) == nil {
				t.Errorf("not found after its creation: %v", err)
			}
			if counts.save(); counts.Err() != nil {
				t.Error(counts.Err())
			}
		}
		wg.Wait()
		if v := lookup(table, secret, now).Admit(now.UnixNano()); v.Today != readers*requests+1 {
			t.Errorf("%d counted", v.Today)
		}
		counts.Close()
		if text := log.String(); strings.Contains(text, "sk_") || strings.Contains(text, digestOf(secret)) {
			t.Errorf("a secret or digest was logged: %s", text)
		}
	})
}
