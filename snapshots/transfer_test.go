package snapshots

import (
	"bytes"
	"cmp"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Files and objects go from one store to another as they are, also while the disk of either refuses them. What could not be
// published is not stored.
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
				has, err := checkFile(k, f.Body)
				failIf(t, err != nil || has != f.SHA256 || (f.Answer == nil) != strings.HasPrefix(f.Path, objectsDir+"/"), "%s: %q, %v", f.Path, has, err)
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
		documents := []Object{{SHA256: sha(body), Body: body}}
		fails(t, from.Save([]File{f}, documents), refused, "save")
		equal(t, from.Paths(), []string(nil), "stored, but not published")
		refused = nil
		must(t, from.Save([]File{f}, documents))
		object := "objects/" + sha(body) + ".gz"
		paths := []string{object, "current/gex-spx", friday + "/gex-spx"}
		equal(t, from.Paths(), []string{friday + "/gex-spx", "current/gex-spx", object}, "paths")
		equal(t, published, paths, "published")
		for _, path := range paths {
			file, digest, err := from.Bytes(path)
			failIf(t, err != nil || digest == "" || digest != from.Digest(path), "%s: digest %q, %v", path, digest, err)
			must(t, to.Accept(path, digest, file, []string{gamma}, asOf))
			equal(t, to.DiskError() != nil, refusing, "refusing")
			again, is, err := to.Bytes(path)
			failIf(t, err != nil || !bytes.Equal(again, file) || is != digest, "%s: %v", path, err)
		}
		got, err := to.Load(gamma, friday)
		must(t, err)
		sameFile(t, got, f)
		equal(t, historical(t, to, friday), "carried", "the history serves")
		equal(t, text(to.Object(sha(body))), "carried", "object")
	}
}

// A file is accepted only if it is what was announced, an answer of this source, of a known product and not of the future.
func TestAcceptRefuses(t *testing.T) {
	s, m := open(t, t.TempDir()), meta()
	m.Source = "cboe"
	file, foreign := encoded(t, gamma, single(t, `1`)), encoded(t, gamma, File{Edition: &Edition{Default: sealedWith(t, `1`, m)}})
	for name, c := range map[string]struct {
		path   string
		file   []byte
		digest string
		until  time.Time
		want   error
	}{
		"right":             {"current/gex-spx", file, "", asOf, nil},
		"another path":      {"../gex-spx", file, "", asOf, ErrPath},
		"another date":      {monday + "/gex-spx", file, "", asOf, ErrTorn},
		"another product":   {"current/" + pain, file, "", asOf, ErrTorn},
		"another digest":    {"current/gex-spx", file, sha(file), asOf, ErrTorn},
		"another object":    {"objects/" + sha(file) + ".gz", file, sha(file), asOf, ErrTorn},
		"cut off":           {"current/gex-spx", file[:len(file)-1], "", asOf, ErrTorn},
		"too large":         {"current/gex-spx", make([]byte, MaxTransfer+1), "", asOf, ErrForeign},
		"of the future":     {"current/gex-spx", file, "", asOf.Add(-time.Second), ErrForeign},
		"of another source": {"current/gex-spx", foreign, "", asOf, ErrForeign},
	} {
		h, _, _ := unframe(c.file, key{currentDir, "gex-spx"})
		fails(t, s.Accept(c.path, cmp.Or(c.digest, h.SHA256), c.file, []string{gamma}, c.until), c.want, "%s", name)
	}
	h, _, _ := unframe(file, key{currentDir, "gex-spx"})
	fails(t, s.Accept("current/gex-spx", h.SHA256, file, []string{pain}, asOf), ErrForeign, "not a product of this server")
}

// An object of another store waits a day for the file that names it, also while the disk refuses it. Afterwards it goes like any
// other that no file names.
func TestAcceptedObjectsWaitForTheirFile(t *testing.T) {
	answer, body := withObject(t, "carried")
	next, other := withObject(t, "next")
	packed := (&Object{Body: body}).pack()
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
				failIf(t, exists(t, s, path), "refusing %t, its file comes %t: it stays", refusing, comes)
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
