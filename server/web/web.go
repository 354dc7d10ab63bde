// Package web holds the dashboard: one page, its script and its style sheet. The sources are in the directory src. go generate
// makes one minified script and one style sheet of them in the directory static, which is part of the binary. The page loads
// nothing from another host, and its numbers come from the public resources.
package web

import (
	"bytes"
	"embed"
	"html/template"
)

//go:generate go run github.com/evanw/esbuild/cmd/esbuild src/app.js src/app.css --bundle --format=iife --minify --charset=utf8 --legal-comments=eof --outdir=static

// Files has, in the directory static, the files that the dashboard loads, and the license of what is in its script.
//
//go:embed static
var Files embed.FS

//go:embed index.html
var dashboard string

// Dashboard returns the page at /. It names the source of the data, the underlyings (symbols in small
// letters), and links to the paths of the public resources. In a fleet, it has a place for the role of the server, which is the same on every member.
func Dashboard(source string, fleet bool, resources, underlyings []string) []byte {
	var out bytes.Buffer
	err := template.Must(template.New("dashboard").Parse(dashboard)).Execute(&out, struct {
		Source                 string
		Fleet                  bool
		Resources, Underlyings []string
	}{source, fleet, resources, underlyings})
	if err != nil {
		panic(err) // the template is part of the binary
	}
	return out.Bytes()
}
