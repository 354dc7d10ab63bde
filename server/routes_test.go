package server

import (
	"encoding/json"
	"io/fs"
	"log/slog"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"strikecache/server/openapi"
)

// The documented paths are those that are answered. Files beside a page, such as its style sheet, are not documented.
func TestTheDocumentHasEveryPath(t *testing.T) {
	files := openapi.Files()
	var doc struct{ Paths map[string]any }
	if err := json.Unmarshal(files[0].Body, &doc); err != nil {
		t.Fatal(err)
	}
	s := New(Config{Now: time.Now, Readiness: func() Readiness { return Readiness{} }, Log: slog.New(slog.DiscardHandler)})
	answered := map[string]bool{}
	for p := range s.targets {
		if ext := path.Ext(p); (ext == "" || ext == ".json") && fs.ValidPath(p[1:]) || p == "/" {
			answered[p] = true
		}
	}
	if got, want := slices.Sorted(maps.Keys(answered)), slices.Sorted(maps.Keys(doc.Paths)); !slices.Equal(got, want) {
		t.Errorf("answered: %v\ndocumented: %v", got, want)
	}
	for _, p := range paths() {
		if !answered[p] {
			t.Errorf("%s is in the table and not answered", p)
		}
	}
}

// FuzzParameter: a query that package url can read gives the same values. In any other query a malformed escape stays as it
// is, so its value is not valid.
func FuzzParameter(f *testing.F) {
	for _, s := range []string{"limit=%35&l%69mit=6", "", "limit", "limit=", "&&limit=5&", "LIMIT=5", "limit=a=b", "limit=a+b", "limit=%zz", "limit=%4", "limit=5;limit=6", "limit=%00&limit=%25", "+limit=5", "=5&limit==", "%6c%69%6D%69%74=20"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, query []byte) {
		before := string(query)
		value, n := parameter(query, "limit")
		if (value == nil) != (n == 0) || string(query) != before {
			t.Fatalf("%q: %q %d", before, value, n)
		}
		values, err := url.ParseQuery(before)
		if err == nil {
			if want := values["limit"]; len(want) != n || n > 0 && want[0] != string(value) {
				t.Errorf("%q: %q %d, want %q", before, value, n, want)
			}
			return
		}
		count := 0 // of the pairs with this name
		for _, pair := range strings.Split(before, "&") {
			name, v, _ := strings.Cut(pair, "=")
			if plain, err := url.QueryUnescape(name); err == nil && plain == "limit" {
				if count++; count == 1 {
					plain, err := url.QueryUnescape(v)
					if err == nil && plain != string(value) || err != nil && !strings.Contains(string(value), "%") {
						t.Errorf("%q: %q, want %q %v", before, value, plain, err)
					}
				}
			}
		}
		if count != n {
			t.Errorf("%q: given %d times, want %d", before, n, count)
		}
	})
}

// FuzzValidDate: a date is valid if package time reads it and writes the same text.
func FuzzValidDate(f *testing.F) {
	for _, s := range []string{"2026-11-20", "2024-02-29", "2023-02-29", "0000-01-01", "9999-12-31", "2026-1-1", "2026-13-01", "-026-01-01", "", "2026-11-2\xff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		want := false
		if parts := regexp.MustCompile(`^([0-9]{4})-([0-9]{2})-([0-9]{2})$`).FindStringSubmatch(string(text)); parts != nil {
			y, _ := strconv.Atoi(parts[1])
			m, _ := strconv.Atoi(parts[2])
			d, _ := strconv.Atoi(parts[3])
			want = time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC).Format(time.DateOnly) == string(text)
		}
		if got := validDate(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	})
}
