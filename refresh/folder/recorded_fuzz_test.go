package folder

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strikecache/refresh/upstream"
)

const secretText = "file outside the folder"

// recorded makes a folder with a document of each kind, and files that Fetch must never return.
func recorded(t testing.TB) (dir string, documents map[upstream.Name]string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "replay")
	documents = map[upstream.Name]string{}
	for _, name := range []upstream.Name{upstream.Options("_SPX"), upstream.Quotes("XLK"), upstream.History("XLK"), upstream.Settlement("2026-10-02"), upstream.Settlement("2026-10-05")} {
		documents[name] = "body of " + string(name)
		store(t, filepath.Join(dir, filepath.FromSlash(string(name))), []byte(documents[name]))
	}
	for _, beside := range []string{"secret.json", "secret.csv"} {
		store(t, filepath.Join(filepath.Dir(dir), beside), []byte(secretText))
	}
	store(t, filepath.Join(dir, "options", "deep", "secret.json"), []byte(secretText))
	return dir, documents
}

func store(t testing.TB, path string, body []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, body, 0o644); err != nil {
		t.Fatal(err)
	}
}

// FuzzName: for any name, Fetch returns only a document of the folder under its own name. For a date without a settlement
// file it returns the newest file before it.
func FuzzName(f *testing.F) {
	dir, documents := recorded(f)
	source, err := NewRecorded(dir)
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{
		"options/_SPX.json", "quotes/XLK.json", "charts/historical/XLK.json", "settlement/2026-10-05.csv", "settlement/2026-10-04.csv", "settlement/2026-01-01.csv", "settlement/9.csv", "settlement/../secret.csv", "options/../../secret.json", "options/..%2f..%2fsecret.json",
		"options/deep/secret.json", "../secret.json", "options/", "options/.json", "/etc/passwd", "options/_SPX.json.gz", "options/_SPX.json/../_SPX.json", "options\\_SPX.json", "options/_SPX.json\x00", "Options/_SPX.json", "settlement/\xff.csv", "", "quotes//XLK.json", "options/./_SPX.json",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name := upstream.Name(text)
		doc, err := source.Fetch(t.Context(), name, nil)
		want, known := documents[name]
		if date, ok := strings.CutPrefix(text, "settlement/"); ok && !known {
			date, ok = strings.CutSuffix(date, ".csv")
			if ok && date != "" && !strings.Contains(date, "/") && date > "2026-10-02" {
				known, want = true, documents[upstream.Settlement("2026-10-02")]
				if date > "2026-10-05" {
					want = documents[upstream.Settlement("2026-10-05")]
				}
			}
		}
		if known != (err == nil) || known && (string(doc.Body) != want || doc.Name != name) {
			t.Fatalf("%q: %+v %v, want %q", text, doc, err, want)
		}
		var refused *upstream.Error
		if err != nil && (!errors.As(err, &refused) || refused.Reason != upstream.Missing) {
			t.Errorf("%q: %v", text, err)
		}
		if offered := source.Offers(name); known && !offered {
			t.Errorf("%q is returned but not offered", text)
		}
	})
}

// FuzzFile: Fetch refuses a file that cannot be unpacked or is too large, and the folder has its other documents all the same. Any other
// file, plain or compressed, is returned unpacked, whatever its name says.
func FuzzFile(f *testing.F) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(`{"timestamp":"2026-08-11 20:36:41","data":{"current_price":1,"last_trade_time":"2026-08-11T16:14:59"}}`)); err != nil {
		f.Fatal(err)
	}
	if err := z.Close(); err != nil {
		f.Fatal(err)
	}
	for _, body := range [][]byte{packed.Bytes(), packed.Bytes()[:packed.Len()-5], append(packed.Bytes(), 'x'), append(packed.Bytes(), packed.Bytes()...), nil, []byte("<html>"), []byte(`{"timestamp":"9999-12-31 23:59:59","data":{"current_price":1,"last_trade_time":"2026-08-11T16:14:59"}}`), bytes.Repeat([]byte("x"), 64<<10+1)} {
		f.Add(body, true)
		f.Add(body, false)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, body []byte, compressed bool) {
		path := filepath.Join(dir, "quotes", "XLK.json")
		if err := os.RemoveAll(filepath.Join(dir, "quotes")); err != nil {
			t.Fatal(err)
		}
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
		if err != nil {
			t.Fatal(err)
		}
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
