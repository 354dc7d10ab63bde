package snapshots

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A file goes from one store to another as it is, also while the disk of either refuses it.
func TestTransfer(t *testing.T) {
	for _, refusing := range []bool{false, true} {
		var changed []string
		o := options(t.TempDir())
		o.Changed = func(path string) { changed = append(changed, path) }
		from, to := openWith(t, o), open(t, t.TempDir())
		for _, s := range []*Store{from, to} {
			noRetries(s)
			if refusing {
				s.writer.fault = func(step, string) error { return errors.New("no space") }
			}
		}
		f := single(t, `"carried"`)
		f.Summary = []byte("row")
		for _, err := range []error{from.Save(gamma, friday, f), from.SaveLate(gamma, thursday, f), from.SaveState("x", friday, []byte("state"))} {
			if (err != nil) != refusing {
				t.Fatal(err)
			}
		}
		paths := from.Paths()
		if want := []string{friday + "/state-x", friday + "/gex-spx", thursday + "/gex-spx@late"}; !slices.Equal(paths, want) {
			t.Errorf("paths %v, want %v", paths, want)
		}
		if slices.Sort(changed); !slices.Equal(changed, slices.Sorted(slices.Values(paths))) {
			t.Errorf("changed %v", changed)
		}
		for _, path := range paths {
			file, digest, err := from.Bytes(path)
			if err != nil || digest == "" || digest != from.Digest(path) {
				t.Fatalf("%s: digest %q and %q, %v", path, digest, from.Digest(path), err)
			}
			if _, err := to.Accept(path, digest, file, []string{gamma}); err != nil && (!refusing || !errors.Is(err, ErrPending)) {
				t.Fatal(err)
			}
			if again, _, err := to.Bytes(path); err != nil || !bytes.Equal(again, file) || to.Digest(path) != digest {
				t.Errorf("%s: %v", path, err)
			}
		}
		got, err := to.LoadPath(friday + "/gex-spx")
		must(t, err)
		sameFile(t, got, f)
		if s := historical(t, to, friday); s != "carried" {
			t.Errorf("the history serves %s", s)
		}
		if state, date := to.State("x", forever); string(state) != "state" || date != friday {
			t.Errorf("state %s of %s", state, date)
		}
		if s := historical(t, to, thursday); s != "none" {
			t.Errorf("the history serves the late answer: %s", s)
		}
	}
}

// No path leaves the directory of the source, and every path of a store has one spelling.
func FuzzPath(f *testing.F) {
	for _, path := range []string{"2026-11-20/gex-spx", "2026-11-20/gex-spx@late", "2026-11-20/state-x.json", "../x", "2026-11-20/../x", "2026-11-20/.tmp-x", "2026-02-30/x", "2026-11-20/x@late@late", "2026-11-20/@late"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		k, err := parsePath(path)
		if err != nil {
			if !errors.Is(err, ErrPath) {
				t.Fatal(err)
			}
			return
		}
		if k.String() != path || filepath.Clean(path) != path || strings.Count(path, "/") != 1 || !filepath.IsLocal(path) || Temporary(k.file) || !isDate(k.date) {
			t.Errorf("%q is taken", path)
		}
	})
}
