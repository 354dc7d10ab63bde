package server

import (
	"encoding/json"
	"io/fs"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"strikecache/bench/testkit"
	"strikecache/server/openapi"
)

// The documented paths are those that are answered. Files beside a page, such as its style sheet, and the paths of widgets are not documented.
func TestTheDocumentHasEveryPath(t *testing.T) {
	text, err := openapi.Files.ReadFile("openapi.json")
	testkit.Must(t, err)
	var doc struct{ Paths map[string]any }
	testkit.Must(t, json.Unmarshal(text, &doc))
	documented := map[string]bool{}
	for p := range doc.Paths {
		documented[strings.Replace(p, placeholder, "ndx", 1)] = true
	}
	s := New(Config{Underlyings: []string{"NDX"}, Now: time.Now, Readiness: func() Readiness { return Readiness{} }, Log: slog.New(slog.DiscardHandler)})
	answered := map[string]bool{}
	for p, target := range s.targets {
		if target.page != nil && target.page.contentType == "" {
			t.Errorf("%s has no content type", p)
		}
		if ext := path.Ext(p); (ext == "" || ext == ".json" || ext == ".markdown" || p == "/llms.txt") && fs.ValidPath(p[1:]) && target.of == nil || p == "/" {
			answered[p] = true
		}
	}
	if got, want := slices.Sorted(maps.Keys(answered)), slices.Sorted(maps.Keys(documented)); !slices.Equal(got, want) {
		t.Errorf("answered: %v\ndocumented: %v", got, want)
	}
	for _, p := range pathsOf("ndx") {
		if !answered[p] {
			t.Errorf("%s is in the table and not answered", p)
		}
	}
}
