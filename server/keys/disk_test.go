package keys

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"strikecache/bench/need"
)

// A writer that dies leaves its temporary file; the next start removes it, and nothing else, and not while another
// writer holds the lock.
func TestFaultOrphansAreSwept(t *testing.T) {
	path := keyPath(t)
	secret, _ := create(t, path, Spec{Name: "a"})
	dying := system
	dying.rename = func(string, string) error { panic("dies") }
	for range 3 {
		func() {
			defer func() { _ = recover() }()
			_ = dying.replace(path, []byte("half"))
		}()
	}
	dir := filepath.Dir(path)
	foreign := []string{".new-keys.json-notes", ".new-keys.json", ".new-other.json-1", ".new-keys.json-x-2", "keys.json-3"}
	for _, name := range foreign {
		write(t, filepath.Join(dir, name), "not ours")
	}
	if n := len(orphans(path)); n != 3 {
		t.Fatalf("%d temporary files lie beside the key file, want 3", n)
	}
	unlock, err := lock(path + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { sweep(path); close(done) }()
	select {
	case <-done:
		t.Error("swept while a writer holds the lock")
	case <-time.After(50 * time.Millisecond):
	}
	if n := len(orphans(path)); n != 3 {
		t.Errorf("%d temporary files while a writer holds the lock", n)
	}
	unlock()
	<-done
	table := open(t, path, nil, &need.Log{})
	if _, ok := table.Lookup([]byte(secret), now.UnixNano()); !ok {
		t.Error("the key is gone")
	}
	var left []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	want := append(foreign, "keys.json", "keys.json.lock")
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("left are %q, want %q", left, want)
	}
	need.Figure(t, "3 temporary files of writers of the key file that died, all swept")
}
