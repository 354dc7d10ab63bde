package server

import (
	"encoding/json"
	"io/fs"
	"log/slog"
	"maps"
	"path"
	"slices"
	"testing"
	"time"

	"strikecache/server/openapi"
)

// The documented paths are those that are answered. Parts of a page, such as its style sheet, are no resources.
func TestTheDocumentHasEveryPath(t *testing.T) {
	files, err := openapi.Files()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct{ Paths map[string]json.RawMessage }
	if err := json.Unmarshal(files[0].Body, &doc); err != nil {
		t.Fatal(err)
	}
	s := New(Config{Now: time.Now, Readiness: func() Readiness { return Readiness{} }, Log: slog.New(slog.DiscardHandler)})
	answered := map[string]bool{}
	for _, paths := range s.registered() {
		for _, p := range paths {
			if ext := path.Ext(p); (ext == "" || ext == ".json") && fs.ValidPath(p[1:]) || p == "/" {
				answered[p] = true
			}
		}
	}
	if got, want := slices.Sorted(maps.Keys(doc.Paths)), slices.Sorted(maps.Keys(answered)); !slices.Equal(got, want) {
		t.Errorf("documented: %v\nanswered: %v", got, want)
	}
	for _, r := range routes {
		if !answered[r.path] {
			t.Errorf("%s is in the table and not answered", r.path)
		}
	}
}
