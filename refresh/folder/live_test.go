//go:build unix

package folder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"strikecache/refresh/upstream"
)

// place puts a file into a folder as a collector does: under another name, then renamed.
func place(t testing.TB, dir string, name upstream.Name, body string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(string(name)))
	store(t, path+".tmp", []byte(body))
	if err := os.Rename(path+".tmp", path); err != nil {
		t.Fatal(err)
	}
}

func live(t testing.TB) (*Live, string) {
	t.Helper()
	dir := t.TempDir()
	l, err := NewLive(dir)
	if err != nil {
		t.Fatal(err)
	}
	return l, dir
}

// A file is read once, and again when another takes its place, even of the same size and time.
func TestUnchangedFilesAreNotReadAgain(t *testing.T) {
	l, dir := live(t)
	name := upstream.Quotes("XLK")
	if l.Offers(name) || l.Version(name) != "" || !l.Offers(upstream.Options("_SPX")) || l.Offers(upstream.Settlement("2026-10-05")) {
		t.Error("an empty folder offers more or less than the SPX chain")
	}
	before := &upstream.Document{ETag: "of no file"}
	for _, step := range []struct{ file, body string }{{"", "first"}, {"", "other"}, {".gz", "third"}} {
		if step.file != "" {
			if err := os.Remove(filepath.Join(dir, string(name))); err != nil {
				t.Fatal(err)
			}
		}
		place(t, dir, name+upstream.Name(step.file), step.body)
		if err := os.Chtimes(filepath.Join(dir, string(name)+step.file), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		doc, err := l.Fetch(t.Context(), name, nil)
		if err != nil || string(doc.Body)+string(doc.Gzip) != step.body || doc.Name != name || doc.Received.IsZero() || doc.ETag != l.Version(name) || !l.Offers(name) {
			t.Fatalf("%+v %v", doc, err)
		}
		if _, err := l.Fetch(t.Context(), name, doc); !errors.Is(err, upstream.ErrNotModified) {
			t.Errorf("%q again: %v", step.body, err)
		}
		if _, err := l.Fetch(t.Context(), name, before); err != nil {
			t.Errorf("%q since another: %v", step.body, err)
		}
		before = doc
	}
	place(t, dir, upstream.Settlement("2026-10-05"), "x")
	if l.Offers(upstream.Settlement("2026-10-06")) {
		t.Error("a request looks at the folder")
	}
	l.Version(upstream.Settlement("2026-10-06")) // as each second
	if !l.Offers(upstream.Settlement("2026-10-06")) {
		t.Error("settlements are not offered once their folder is there")
	}
}

// What is no readable file of the folder is refused by name, and nothing of it is read. No open waits.
func TestRefusedFiles(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside.json")
	store(t, outside, []byte(secretText))
	link := func(target string) func(string) error {
		return func(path string) error { return os.Symlink(target, path) }
	}
	for what, c := range map[string]struct {
		make   func(path string) error
		reason upstream.Reason
		says   string
	}{
		"no file":             {func(string) error { return nil }, upstream.Missing, "options/_SPX.json"},
		"an absolute link":    {link(outside), upstream.Unreachable, "path escapes"},
		"a link with ..":      {link("../../../../../../../.." + outside), upstream.Unreachable, "path escapes"},
		"a link to itself":    {link("_SPX.json"), upstream.Unreachable, "options/_SPX.json"},
		"a FIFO":              {func(path string) error { return syscall.Mkfifo(path, 0o600) }, upstream.Unreachable, "not a regular file"},
		"a directory":         {func(path string) error { return os.Mkdir(path, 0o700) }, upstream.Unreachable, "not a regular file"},
		"a gigabyte":          {func(path string) error { return sparse(path, 1<<30) }, upstream.TooLarge, "1073741824 bytes"},
		"one byte too large":  {func(path string) error { return sparse(path, upstream.OptionsKind.MaxBody()+1) }, upstream.TooLarge, "over 41943040"},
		"a link that is fine": {link("../beside.json"), "", ""},
		"the largest":         {func(path string) error { return sparse(path, upstream.OptionsKind.MaxBody()) }, "", ""},
	} {
		for _, suffix := range []string{"", ".gz"} {
			l, dir := live(t)
			name := upstream.Options("_SPX")
			store(t, filepath.Join(dir, "beside.json"), []byte("beside"))
			path := filepath.Join(dir, string(name)) + suffix
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if what == "a link to itself" && suffix != "" {
				continue
			}
			if err := c.make(path); err != nil {
				t.Fatal(err)
			}
			doc, err := l.Fetch(t.Context(), name, nil)
			if c.reason == "" {
				if err != nil {
					t.Errorf("%s%s: %v", what, suffix, err)
				}
				continue
			}
			var refused *upstream.Error
			if doc != nil || !errors.As(err, &refused) || refused.Reason != c.reason || refused.Name != name || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s%s: %v %v, want %s and %q", what, suffix, doc, err, c.reason, c.says)
			}
		}
	}
}

func sparse(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

// A link in the place of a folder leads out as little as one in the place of a file.
func TestLinkedFolder(t *testing.T) {
	l, dir := live(t)
	outside := t.TempDir()
	store(t, filepath.Join(outside, "_SPX.json"), []byte(secretText))
	if err := os.Symlink(outside, filepath.Join(dir, "options")); err != nil {
		t.Fatal(err)
	}
	if doc, err := l.Fetch(t.Context(), upstream.Options("_SPX"), nil); err == nil || !strings.Contains(err.Error(), "path escapes") {
		t.Errorf("%v %v", doc, err)
	}
	if _, err := NewRecorded(dir); err == nil {
		t.Error("the folder has no document within, and NewRecorded accepts it")
	}
	store(t, filepath.Join(dir, "quotes", "XLF.json"), []byte("x"))
	if err := os.Symlink(filepath.Join(outside, "_SPX.json"), filepath.Join(dir, "quotes", "XLK.json")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "quotes", "XLE.json.gz"), 0o700); err != nil {
		t.Fatal(err)
	}
	r, err := NewRecorded(dir)
	if err != nil {
		t.Fatal(err)
	}
	for symbol, says := range map[string]string{"XLK": "path escapes", "XLE": "not a regular file"} { // neither takes the others away
		if doc, err := r.Fetch(t.Context(), upstream.Quotes(symbol), nil); err == nil || !strings.Contains(err.Error(), says) || !r.Offers(upstream.Quotes(symbol)) {
			t.Errorf("%s: %v %v, want %q", symbol, doc, err, says)
		}
	}
	if _, err := r.Fetch(t.Context(), upstream.Quotes("XLF"), nil); err != nil {
		t.Error(err)
	}
}

// A thousand files that nobody asks for are not looked at, and another folder may take the place of the folder.
func TestOtherFilesAndAnotherFolder(t *testing.T) {
	l, dir := live(t)
	for i := range 1000 {
		store(t, filepath.Join(dir, "options", fmt.Sprintf("Z%d.json", i)), []byte("x"))
	}
	place(t, dir, upstream.Options("SPY"), "asked for")
	if doc, err := l.Fetch(t.Context(), upstream.Options("SPY"), nil); err != nil || string(doc.Body) != "asked for" {
		t.Errorf("%v %v", doc, err)
	}
	before := l.Version(upstream.Options("SPY"))
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir + ".old")
	if _, err := l.Fetch(t.Context(), upstream.Options("SPY"), nil); upstream.ReasonOf(err) != upstream.Missing {
		t.Errorf("without the folder: %v", err)
	}
	place(t, dir, upstream.Options("SPY"), "in the new folder")
	if doc, err := l.Fetch(t.Context(), upstream.Options("SPY"), nil); err != nil || string(doc.Body) != "in the new folder" || doc.ETag == before {
		t.Errorf("%v %v", doc, err)
	}
	if _, err := NewLive(filepath.Join(dir, "nowhere")); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("a folder that does not exist: %v", err)
	}
}
