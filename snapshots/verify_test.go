package snapshots

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strikecache/bench/testkit"
)

// A load trusts the digest. Verify decodes every body, and names a file whose codings differ.
func TestVerifyComparesCodings(t *testing.T) {
	s := open(t, t.TempDir())
	for c := Brotli; c < Codings; c++ {
		mixed := *sealed(t, `{"a":1}`)
		mixed.bodies[c] = sealed(t, `{"a":2}`).bodies[c]
		must(t, save(s, gamma, friday, File{Edition: &Edition{Default: &mixed}}))
		must(t, second(s.Load(gamma, friday)))
		files, bad, err := Verify(s.opts.Dir)
		if err != nil || files != 1 || len(bad) != 1 || !errors.Is(bad[0].Err, ErrTorn) || !strings.Contains(bad[0].Err.Error(), c.String()) {
			t.Errorf("%v: %d files, %v, %v", c, files, bad, err)
		}
	}
	must(t, save(s, gamma, friday, single(t, `{"a":1}`)))
	verified(t, s.opts.Dir)
}

// A process can read the stored files while another process owns the directory. It changes nothing.
func TestReadingWithoutTheLock(t *testing.T) {
	o := options(t.TempDir())
	s := openWith(t, o)
	for _, date := range []string{friday, tuesday} {
		must(t, save(s, gamma, date, single(t, `"`+date+`"`)))
	}
	must(t, save(s, pain, wednesday, single(t, `1`)))
	put(t, s, thursday+"/.tmp-gex-spx-1", "half")
	put(t, s, monday+"/gex-spx/file", "the product's name is a directory")
	put(t, s, "notes/gex-spx", "no date")
	f, err := ReadFile(o.Dir, o.Source, gamma, friday)
	must(t, err)
	sameFile(t, f, single(t, `"`+friday+`"`))
	fails(t, second(ReadFile(o.Dir, o.Source, gamma, wednesday)), ErrNoSnapshot, "of a date without the product")
	damage(t, s, friday+"/gex-spx")
	fails(t, second(ReadFile(o.Dir, o.Source, gamma, friday)), ErrTorn, "damaged")
	failIf(t, !exists(t, s, thursday+"/.tmp-gex-spx-1"), "another process's temporary file is gone")
}

// The server ignores symbolic links among its dated files. The start and verify name each of them.
func TestSymbolicLinksAreNamed(t *testing.T) {
	o, log := options(t.TempDir()), &testkit.Text{}
	o.Log = log.Logger(slog.LevelInfo)
	s := openWith(t, o)
	must(t, save(s, gamma, monday, single(t, `1`)))
	must(t, save(s, gamma, tuesday, single(t, `1`)))
	away := t.TempDir()
	for path, target := range map[string]string{
		filepath.Join(monday, "gex-spx"): filepath.Join(away, "gex-spx"),
		tuesday:                          filepath.Join(away, tuesday),
	} {
		must(t, errors.Join(os.Rename(filepath.Join(s.dir, path), target), os.Symlink(target, filepath.Join(s.dir, path))))
	}
	put(t, s, friday, "a file with the name of a date")
	links := []string{filepath.Join(s.dir, monday, "gex-spx"), filepath.Join(s.dir, tuesday), filepath.Join(s.dir, friday)}
	verified(t, o.Dir, links...)
	s = reopen(t, s)
	for _, path := range links {
		equal(t, log.Count(passedOver+`" file=`+path+" "), 1, "lines of the start with %s: %s", path, log)
	}
	equal(t, s.Stats().BadFiles, int64(3), "bad files")
	equal(t, len(s.DatesOf(gamma)), 0, "dates")
	fails(t, second(ReadFile(o.Dir, o.Source, gamma, monday)), ErrTorn, "read through the link")
}

// The data directory itself, and that of a source, may be links: an operator moves them to another disk.
func TestVerifyFollowsTheDirectory(t *testing.T) {
	o := options(filepath.Join(t.TempDir(), "data"))
	s := openWith(t, o)
	must(t, save(s, gamma, monday, single(t, `1`)))
	damage(t, s, monday+"/gex-spx")
	away := t.TempDir()
	for _, path := range []string{s.dir, o.Dir} {
		target := filepath.Join(away, filepath.Base(path))
		must(t, errors.Join(os.Rename(path, target), os.Symlink(target, path)))
		equal(t, verified(t, o.Dir, filepath.Join(s.dir, monday, "gex-spx")), 1, "files where %s is a link", path)
	}
}
