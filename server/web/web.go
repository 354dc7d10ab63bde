// Package web holds the dashboard: one page, its script and its style sheet. The sources are in the directory src. go generate
// makes one minified script and one style sheet of them in the directory static, which is part of the binary. The page loads
// nothing from another host, and its numbers come from the public resources.
package web

import (
	"bytes"
	"embed"
	"html/template"
	"path"
)

//go:generate go test -count=1 -run ^TestBundle$ . -update

// File is one static file. Its Body must not be changed.
type File struct {
	Path        string // of the URL
	ContentType string
	Body        []byte
}

//go:embed static
var static embed.FS

const dashboardFile = "index.html"

// types are the content types by extension.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".txt":  "text/plain; charset=utf-8",
}

// Dashboard returns the page at /. It names the source of the data and links to the paths of the public resources. In a fleet,
// it has a place for the role of the server, which is the same on every member.
func Dashboard(source string, fleet bool, resources []string) File {
	var out bytes.Buffer
	err := template.Must(template.ParseFS(static, "static/"+dashboardFile)).Execute(&out, struct {
		Source    string
		Fleet     bool
		Resources []string
	}{source, fleet, resources})
	if err != nil {
		panic(err) // the template is part of the binary
	}
	return File{"/", types[path.Ext(dashboardFile)], out.Bytes()}
}

// Files returns the files that the dashboard loads, and the license of what is in its script, all below /assets/.
func Files() (files []File) {
	entries, err := static.ReadDir("static")
	if err != nil {
		panic(err) // the directory is part of the binary
	}
	for _, e := range entries {
		if e.Name() == dashboardFile {
			continue
		}
		body, err := static.ReadFile("static/" + e.Name())
		if err != nil {
			panic(err) // the file is part of the binary
		}
		files = append(files, File{"/assets/" + e.Name(), types[path.Ext(e.Name())], body})
	}
	return files
}
