package keys

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "keys.json")
	spec := Key{Name: "dashboard é", PerMinute: 600, PerDay: 100_000, Expires: now.AddDate(1, 0, 0)}
	secret, key := create(t, path, spec)
	if !regexp.MustCompile(`^sk_[A-Za-z0-9_-]{43}$`).MatchString(secret) {
		t.Errorf("secret has the wrong form")
	}
	want := Key{
		ID: "k_" + digestOf(secret)[:12], Name: spec.Name, SHA256: digestOf(secret), Created: now,
		Expires: spec.Expires, PerMinute: 600, PerDay: 100_000,
	}
	equal(t, key, want, "key")
	second, other := create(t, path, Key{Name: "another"})
	if second == secret || other.ID == key.ID {
		t.Error("two keys are the same")
	}
	keys, err := List(path)
	if err != nil || len(keys) != 2 || keys[0] != key || keys[1] != other {
		t.Errorf("%v %v", keys, err)
	}
	text := content(t, path)
	if strings.Contains(text, secret) || strings.Contains(text, secret[3:]) || !strings.HasPrefix(text, "{\n  \"format\": 1,\n") {
		t.Errorf("file is\n%s", text)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) > 2 { // the file and its lock
		t.Errorf("%v %v", entries, err)
	}
	if checksModes {
		for _, p := range []string{path, path + ".lock"} {
			if info, err := os.Stat(p); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v %v", p, info.Mode(), err)
			}
		}
	}
}

// A refused key makes no file. TestDecodeRefuses shows the other values that no key may have.
func TestCreateRefuses(t *testing.T) {
	path := keyPath(t)
	for want, spec := range map[string]Key{"printable characters only": {Name: "a\xff"}, "expiry 2000-01-01T00:00:00Z is not in the future": {Name: "a", Expires: now}} {
		_, _, err := Create(path, spec, now)
		wantError(t, want, err, "create key: ", want)
	}
	if exists(path) {
		t.Error("a file was made")
	}
	create(t, path, Key{Name: strings.Repeat("é", 64), PerMinute: 1_000_000, PerDay: 1_000_000_000, Expires: now.Add(time.Second)})
}

// Two keys that are not revoked never have one name.
func TestOneNameOneKey(t *testing.T) {
	path := keyPath(t)
	_, one := create(t, path, Key{Name: "twin", Expires: now.Add(time.Hour)})
	before := content(t, path)
	_, _, err := Create(path, Key{Name: "twin"}, now.Add(2*time.Hour)) // the first has expired and is not revoked
	wantError(t, "second", err, "create key: key file not changed: ", "key "+one.ID+` has the name "twin": give another name, or revoke that key first`)
	equal(t, content(t, path), before, "the file after a refused key")
	_, err = Revoke(path, "twin", now)
	must(t, err)
	create(t, path, Key{Name: "twin"}) // the name is free again
}

func TestRevoke(t *testing.T) {
	path := keyPath(t)
	_, err := Revoke(path, "a", now)
	wantError(t, "no file", err, "revoke key: key file missing: "+path, "strikecache keys create NAME", "--data-dir")
	if exists(path + ".lock") {
		t.Error("a lock was left where no file is")
	}
	secret, one := create(t, path, Key{Name: "one"})
	create(t, path, Key{Name: "single", PerDay: 5})
	before := content(t, path)
	_, err = Revoke(path, "nobody", now)
	wantError(t, "unknown", err, `found no unrevoked key with the id or name "nobody"`)
	_, err = Revoke(path, secret, now)
	wantError(t, "secret", err, "that is a secret", one.ID)
	if err != nil && strings.Contains(err.Error(), secret) {
		t.Error("the error repeats the secret")
	}
	equal(t, content(t, path), before, "the file after a refused revocation")
	later := now.Add(time.Hour)
	create(t, path, Key{Name: one.ID}) // the id goes before the name
	for _, by := range []string{"single", one.ID} {
		if key, err := Revoke(path, by, later); err != nil || !key.Revoked.Equal(later) {
			t.Errorf("%s: %v %v", by, key, err)
		}
	}
	keys, err := List(path)
	if err != nil || len(keys) != 3 || keys[0].State(later) != "revoked" || keys[1].State(later) != "revoked" || keys[1].PerDay != 5 || keys[2].State(later) != "active" {
		t.Errorf("%v %v", keys, err)
	}
	_, err = Revoke(path, one.ID, later)
	wantError(t, "again", err, one.ID+" was revoked at 2000-01-01T01:00:00Z")
	_, err = Revoke(path, "single", later)
	wantError(t, "again by name", err, `the id or name "single"`)
}

// A killed writer leaves its temporary file. The next writer removes this file, and no other, when it has the lock.
func TestFaultUnfinishedFilesAreRemoved(t *testing.T) {
	path := keyPath(t)
	create(t, path, Key{Name: "a"})
	unfinished := filepath.Join(filepath.Dir(path), ".tmp-keys.json-23")
	foreign := []string{".tmp-other.json-1", ".tmp-keys.json", ".tmp-keys.json-x", ".tmp-keys.json-a-1", "keys.json-3"}
	for i, name := range foreign {
		foreign[i] = filepath.Join(filepath.Dir(path), name)
		write(t, foreign[i], "half")
	}
	write(t, unfinished, "half")
	unlock, err := lock(path + ".lock")
	must(t, err)
	done := make(chan error)
	go func() {
		_, err := Revoke(path, "a", now)
		done <- err
	}()
	select {
	case <-done:
		t.Error("a writer did not wait for the lock")
	case <-time.After(20 * time.Millisecond):
	}
	if !exists(unfinished) {
		t.Error("a writer without the lock removed the file of the one with it")
	}
	unlock()
	must(t, <-done)
	if exists(unfinished) || slices.ContainsFunc(foreign, func(path string) bool { return !exists(path) }) {
		t.Errorf("left: %v, or a foreign file is gone", exists(unfinished))
	}
}

// Writers that run at once lose nothing.
func TestConcurrentWriters(t *testing.T) {
	path := keyPath(t)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 8 {
				_, key, err := Create(path, Key{Name: fmt.Sprint(g, i)}, now)
				if err == nil && i%2 == 0 {
					_, err = Revoke(path, key.ID, now)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	keys, err := List(path)
	revoked := slices.DeleteFunc(slices.Clone(keys), func(k Key) bool { return k.Revoked.IsZero() })
	if err != nil || len(keys) != 32 || len(revoked) != 16 {
		t.Errorf("%d keys, %d revoked, %v", len(keys), len(revoked), err)
	}
}

// A file that is not a usable key file is never replaced.
func TestWritersLeaveForeignFilesAlone(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "real.json")
	create(t, real, Key{Name: "a"})
	link, folder, foreign := filepath.Join(dir, "link"), filepath.Join(dir, "folder"), filepath.Join(dir, "foreign")
	must(t, os.Mkdir(folder, 0o700))
	write(t, foreign, `{"apiVersion":1}`)
	cases := map[string]string{folder: "is not a regular file", foreign: `unknown field "apiVersion"`}
	if err := os.Symlink(real, link); err == nil {
		cases[link] = "is not a regular file"
	}
	if checksModes {
		open := filepath.Join(dir, "open")
		write(t, open, content(t, real))
		must(t, os.Chmod(open, 0o640))
		cases[open] = "has mode 0640: others than its owner may use it; run chmod 600 " + open
	}
	for path, want := range cases {
		_, _, err := Create(path, Key{Name: "b"}, now)
		wantError(t, "create "+path, err, want)
		_, err = Revoke(path, "a", now)
		wantError(t, "revoke "+path, err, want)
		_, err = Open(path, &Counts{}, slog.New(slog.DiscardHandler))
		wantError(t, "open "+path, err, want)
	}
	equal(t, content(t, foreign), `{"apiVersion":1}`, "the foreign file")
	if keys, err := List(real); err != nil || len(keys) != 1 {
		t.Errorf("%v %v", keys, err)
	}
}

// A file with the maximum of keys can be read, and no key can be added.
func TestFileIsFull(t *testing.T) {
	path := keyPath(t)
	keys := make([]Key, MaxKeys)
	for i := range keys {
		digest := digestOf(fmt.Sprint(i))
		keys[i] = Key{ID: publicID(digest), Name: strings.Repeat("𝔫", MaxName), SHA256: digest, Created: now, Expires: now, Revoked: now}
	}
	text, err := encode(keys)
	must(t, err)
	write(t, path, string(text))
	t.Logf("%d bytes", len(text))
	_, _, err = Create(path, Key{Name: "one more"}, now)
	wantError(t, "create", err, "10001 keys, at most 10000 are allowed")
	equal(t, content(t, path), string(text), "the full file")
}
