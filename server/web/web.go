// Package web holds the dashboard: one page and the files it loads, as they are sent. There is no build step, and the
// page asks no other host for anything. Its numbers come from the public resources, as any client's do.
package web

import (
	"embed"
	"path"
)

// File is one static file. Its Body must not be changed.
type File struct {
	Path        string // of the URL
	ContentType string
	Body        []byte
}

//go:embed static
var static embed.FS

// types are the content types by extension. A file of another kind does not belong here.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".txt":  "text/plain; charset=utf-8",
}

// Files returns the files: the page at /, all others below /assets/. The page is an html/template of what the server
// knows: Source, the name of the upstream, and Resources, the paths of the public resources.
func Files() []File {
	entries, err := static.ReadDir("static")
	if err != nil {
		panic(err) // the directory is part of the binary
	}
	files := make([]File, 0, len(entries))
	for _, e := range entries {
		body, err := static.ReadFile("static/" + e.Name())
		if err != nil {
			panic(err)
		}
		url := "/assets/" + e.Name()
		if e.Name() == "index.html" {
			url = "/"
		}
		files = append(files, File{url, types[path.Ext(e.Name())], body})
	}
	return files
}
