package snapshots

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Files and objects go from one store to another as they are, also while the disk of either refuses them.
func TestTransfer(t *testing.T) {
	for _, refusing := range []bool{false, true} {
		var published []string
		refused := errors.New("the fleet does not take it")
		o := options(t.TempDir())
		o.Publish = func(files []Packed) (func(), error) {
			published = nil
			for _, f := range files {
				published = append(published, f.Path)
				k, err := parsePath(f.Path)
				must(t, err)
				if has, err := checkFile(k, f.Body); err != nil || has != f.SHA256 || (f.Answer == nil) != IsObject(f.Path) {
					t.Errorf("%s %v: %q, %v", f.Path, f.Answer, has, err)
				}
			}
			return func() {}, refused
		}
		from, to := openWith(t, o), open(t, t.TempDir())
		for _, s := range []*Store{from, to} {
			noRetries(s)
			if refusing {
				s.writer.fault = func(step, string) error { return errors.New("no space") }
			}
		}
		f, body := withObject(t, "carried")
		f.Summary = []byte("row")
		if err := from.Save([]File{f}, []Object{{SHA256: sha(body), Body: body}}); !errors.Is(err, refused) || len(from.Paths()) > 0 {
			t.Errorf("what could not be published is stored: %v, %v", err, from.Paths())
		}
		refused = nil
		must(t, from.Save([]File{f}, []Object{{SHA256: sha(body), Body: body}}))
		object := "objects/" + sha(body) + ".gz"
		paths := []string{object, "current/gex-spx", friday + "/gex-spx"}
		if got := from.Paths(); !refusing && !slices.Equal(got, []string{friday + "/gex-spx", "current/gex-spx", object}) {
			t.Errorf("paths %v", got)
		}
		equal(t, published, paths, "published")
		for _, path := range paths {
			file, digest, err := from.Bytes(path)
			if err != nil || digest == "" || digest != from.Digest(path) {
				t.Fatalf("%s: digest %q and %q, %v", path, digest, from.Digest(path), err)
			}
			if err := to.Accept(path, digest, file, []string{gamma}, time.Now().AddDate(10, 0, 0)); err != nil || (to.DiskError() != nil) != refusing {
				t.Fatal(err, to.DiskError())
			}
			if again, _, err := to.Bytes(path); err != nil || !bytes.Equal(again, file) || to.Digest(path) != digest {
				t.Errorf("%s: %v", path, err)
			}
		}
		got, err := to.Load(gamma, friday)
		must(t, err)
		want := f
		sameFile(t, got, want)
		equal(t, historical(t, to, friday), "carried", "the history serves")
		if got, err := to.Object(sha(body)); err != nil || string(got) != "carried" {
			t.Errorf("object %q, %v", got, err)
		}
	}
}

// An object of another store waits a day for the file that names it, also while the disk refuses it. Afterwards it goes like any
// other that no file names.
func TestAcceptedObjectsWaitForTheirFile(t *testing.T) {
	answer, body := withObject(t, "carried")
	next, other := withObject(t, "next")
	packed, err := (&Object{Body: body}).pack()
	must(t, err)
	path := "objects/" + sha(body) + ".gz"
	for _, refusing := range []bool{false, true} {
		for _, comes := range []bool{false, true} {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				s, f := openFaulty(t, notSynced, options(dir))
				noRetries(s)
				f.on.Store(refusing)
				must(t, s.Accept(path, sha(body), packed, nil, asOf))
				time.Sleep(23 * time.Hour)
				f.on.Store(false)
				must(t, save(s, pain, monday, single(t, `1`))) // sweeps
				if got, err := s.Object(sha(body)); err != nil || string(got) != "carried" || !exists(t, s, path) {
					t.Errorf("refusing %t: before its file %q, %v", refusing, got, err)
				}
				if comes {
					must(t, s.Save([]File{answer}, nil))
					must(t, s.Save([]File{next}, []Object{{SHA256: sha(other), Body: other}}))
				} else {
					time.Sleep(2 * time.Hour)
					must(t, save(s, pain, monday, single(t, `1`)))
				}
				failIf(t, exists(t, s, path) || len(s.unnamed) != 0, "refusing %t, its file comes %t: it stays", refusing, comes)
				must(t, s.Close())
			})
		}
	}
}

// No path leaves the directory of the source, and every path of a store has one spelling.
func FuzzPath(f *testing.F) {
	for _, path := range []string{"2026-11-20/gex-spx", "current/gex-spx", "objects/x.gz", "objects/" + strings.Repeat("a", 64) + ".gz", "../x", "2026-11-20/../x", "2026-11-20/.tmp-x", "2026-02-30/x", "current/../x", "2026-11-20/"} {
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
		if k.String() != path || filepath.Clean(path) != path || strings.Count(path, "/") != 1 || !filepath.IsLocal(path) || Temporary(k.name) || !isDate(k.dir) && k.dir != currentDir && k.dir != objectsDir {
			t.Errorf("%q is taken", path)
		}
	})
}
