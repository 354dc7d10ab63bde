//go:build unix

package folder

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"strikecache/refresh/upstream"

	"strikecache/bench/testkit"
)

var must = testkit.Must

const secretText = "file outside the folder"

// store writes a file, with its folders.
func store(t testing.TB, path string, body []byte) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, body, 0o644))
}

// place puts a file into a folder as a collector does: under another name, then renamed.
func place(t testing.TB, dir string, name upstream.Name, body string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(string(name)))
	store(t, path+".tmp", []byte(body))
	must(t, os.Rename(path+".tmp", path))
}

func live(t testing.TB) (*Live, string) {
	t.Helper()
	dir := t.TempDir()
	l, err := NewLive(dir)
	must(t, err)
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
			must(t, os.Remove(filepath.Join(dir, string(name))))
		}
		place(t, dir, name+upstream.Name(step.file), step.body)
		must(t, os.Chtimes(filepath.Join(dir, string(name)+step.file), time.Unix(1, 0), time.Unix(1, 0)))
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
		reason upstream.Reason // "": the file is read
		says   string
	}{
		"no file":             {func(string) error { return nil }, upstream.Missing, "options/_SPX.json"},
		"an absolute link":    {link(outside), upstream.Unreachable, "path escapes"},
		"a link with ..":      {link("../../../../../../../.." + outside), upstream.Unreachable, "path escapes"},
		"a link to itself":    {func(path string) error { return os.Symlink(filepath.Base(path), path) }, upstream.Unreachable, "options/_SPX.json"},
		"a FIFO":              {func(path string) error { return syscall.Mkfifo(path, 0o600) }, upstream.Unreachable, "not a regular file"},
		"a directory":         {func(path string) error { return os.Mkdir(path, 0o700) }, upstream.Unreachable, "not a regular file"},
		"a gigabyte":          {sparse(1 << 30), upstream.TooLarge, "1073741824 bytes"},
		"one byte too large":  {sparse(upstream.OptionsKind.MaxBody() + 1), upstream.TooLarge, "over 41943040"},
		"a link that is fine": {link("../beside.json"), "", ""},
		"the largest":         {sparse(upstream.OptionsKind.MaxBody()), "", ""},
	} {
		for _, suffix := range []string{"", ".gz"} {
			l, dir := live(t)
			name := upstream.Options("_SPX")
			store(t, filepath.Join(dir, "beside.json"), []byte("beside"))
			store(t, filepath.Join(dir, "options", "other"), nil)
			must(t, c.make(filepath.Join(dir, string(name))+suffix))
			doc, err := l.Fetch(t.Context(), name, nil)
			var refused *upstream.Error
			switch {
			case c.reason == "" && err != nil:
				t.Errorf("%s%s: %v", what, suffix, err)
			case c.reason != "" && (doc != nil || !errors.As(err, &refused) || refused.Reason != c.reason || refused.Name != name || !strings.Contains(err.Error(), c.says)):
				t.Errorf("%s%s: %v %v, want %s and %q", what, suffix, doc, err, c.reason, c.says)
			}
		}
	}
}

// sparse makes a file of a size that takes no room on the disk.
func sparse(size int64) func(path string) error {
	return func(path string) error {
		return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, size))
	}
}

// A link in the place of a folder leads out as little as one in the place of a file.
func TestLinkedFolder(t *testing.T) {
	l, dir := live(t)
	outside := t.TempDir()
	store(t, filepath.Join(outside, "_SPX.json"), []byte(secretText))
	must(t, os.Symlink(outside, filepath.Join(dir, "options")))
	if doc, err := l.Fetch(t.Context(), upstream.Options("_SPX"), nil); err == nil || !strings.Contains(err.Error(), "path escapes") {
		t.Errorf("%v %v", doc, err)
	}
	if _, err := NewRecorded(dir); err == nil {
		t.Error("the folder has no document within, and NewRecorded accepts it")
	}
	store(t, filepath.Join(dir, "quotes", "XLF.json"), []byte("x"))
	must(t, os.Symlink(filepath.Join(outside, "_SPX.json"), filepath.Join(dir, "quotes", "XLK.json")))
	must(t, os.MkdirAll(filepath.Join(dir, "quotes", "XLE.json.gz"), 0o700))
	r, err := NewRecorded(dir)
	must(t, err)
	for symbol, says := range map[string]string{"XLK": "path escapes", "XLE": "not a regular file"} { // neither takes the others away
		if doc, err := r.Fetch(t.Context(), upstream.Quotes(symbol), nil); err == nil || !strings.Contains(err.Error(), says) || !r.Offers(upstream.Quotes(symbol)) {
			t.Errorf("%s: %v %v, want %q", symbol, doc, err, says)
		}
	}
	if _, err := r.Fetch(t.Context(), upstream.Quotes("XLF"), nil); err != nil {
		t.Error(err)
	}
}

// Another folder may take the place of the folder.
func TestAnotherFolder(t *testing.T) {
	l, dir := live(t)
	spy := upstream.Options("SPY")
	before := ""
	for _, body := range []string{"in the folder", "in the new folder"} {
		place(t, dir, spy, body)
		if doc, err := l.Fetch(t.Context(), spy, nil); err != nil || string(doc.Body) != body || l.Version(spy) == before {
			t.Errorf("%v %v", doc, err)
		}
		before = l.Version(spy)
		must(t, os.Rename(dir, filepath.Join(t.TempDir(), "old")))
		if _, err := l.Fetch(t.Context(), spy, nil); upstream.ReasonOf(err) != upstream.Missing {
			t.Errorf("without the folder: %v", err)
		}
	}
	if _, err := NewLive(filepath.Join(dir, "nowhere")); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("a folder that does not exist: %v", err)
	}
}

// Fetch returns only a document of the folder under its own name. For a date without a settlement file it returns the newest file before it.
func TestNames(t *testing.T) {
	dir, documents := filepath.Join(t.TempDir(), "replay"), map[upstream.Name]string{}
	for _, name := range []upstream.Name{upstream.Options("_SPX"), upstream.Quotes("XLK"), upstream.History("XLK"), upstream.Settlement("2026-10-02"), upstream.Settlement("2026-10-05")} {
		documents[name] = "body of " + string(name)
		store(t, filepath.Join(dir, string(name)), []byte(documents[name]))
	}
	for _, beside := range []string{"../secret.json", "../secret.csv", "options/deep/secret.json", "options/SPY.json"} { // Fetch must never return them
		store(t, filepath.Join(dir, beside), []byte(secretText))
	}
	source, err := NewRecorded(dir, upstream.Options("_SPX"))
	must(t, err)
	documents["settlement/2026-10-04.csv"] = documents[upstream.Settlement("2026-10-02")]
	documents["settlement/9.csv"] = documents[upstream.Settlement("2026-10-05")]
	for name, want := range documents {
		if doc, err := source.Fetch(t.Context(), name, nil); err != nil || string(doc.Body) != want || doc.Name != name || !source.Offers(name) {
			t.Errorf("%q: %+v %v, want %q", name, doc, err, want)
		}
	}
	for _, name := range []upstream.Name{
		"settlement/2026-01-01.csv", "settlement/../secret.csv", "options/../../secret.json", "options/..%2f..%2fsecret.json", "options/deep/secret.json", "options/SPY.json", "../secret.json", "options/", "options/.json", "/etc/passwd", "options/_SPX.json.gz",
		"options/_SPX.json/../_SPX.json", "options\\_SPX.json", "options/_SPX.json\x00", "Options/_SPX.json", "", "quotes//XLK.json", "options/./_SPX.json",
	} {
		if doc, err := source.Fetch(t.Context(), name, nil); upstream.ReasonOf(err) != upstream.Missing {
			t.Errorf("%q: %+v %v", name, doc, err)
		}
	}
}

// FuzzFile: Fetch refuses a file that cannot be unpacked or is too large, and the folder has its other documents all the same. Any other
// file, plain or compressed, is returned unpacked, whatever its name says.
func FuzzFile(f *testing.F) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprint(z, `{"timestamp":"2026-08-11 20:36:41","data":{"current_price":1,"last_trade_time":"2026-08-11T16:14:59"}}`)
	z.Close()
	for _, body := range [][]byte{packed.Bytes(), packed.Bytes()[:packed.Len()-5], append(packed.Bytes(), 'x'), append(packed.Bytes(), packed.Bytes()...), nil, []byte("<html>"), []byte(`{"timestamp":"9999-12-31 23:59:59","data":{"current_price":1,"last_trade_time":"2026-08-11T16:14:59"}}`), bytes.Repeat([]byte("x"), 64<<10+1)} {
		f.Add(body, true)
		f.Add(body, false)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, body []byte, compressed bool) {
		path := filepath.Join(dir, "quotes", "XLK.json")
		must(t, os.RemoveAll(filepath.Join(dir, "quotes")))
		want, wantErr := body, error(nil)
		if compressed {
			path += ".gz"
		}
		if bytes.HasPrefix(body, []byte{0x1f, 0x8b}) { // RFC 1952
			var r *gzip.Reader
			if r, wantErr = gzip.NewReader(bytes.NewReader(body)); wantErr == nil {
				want, wantErr = io.ReadAll(io.LimitReader(r, 64<<10+1))
			}
		}
		store(t, path, body)
		good := wantErr == nil && len(want) <= 64<<10
		store(t, filepath.Join(dir, "quotes", "XLF.json"), []byte("x"))
		source, err := NewRecorded(dir)
		must(t, err)
		if other, err := source.Fetch(t.Context(), upstream.Quotes("XLF"), nil); err != nil || string(other.Body) != "x" {
			t.Errorf("the file beside: %v %v", other, err)
		}
		doc, err := source.Fetch(t.Context(), upstream.Quotes("XLK"), nil)
		if (err == nil) != good || err != nil && !upstream.ReasonOf(err).Refuses() {
			t.Fatalf("%v, want %v", err, wantErr)
		}
		if !good {
			return
		}
		if err != nil || !bytes.Equal(doc.Body, want) || doc.Received.After(source.Now()) {
			t.Errorf("%+v %v", doc, err)
		}
	})
}
