// Package openapi holds the description of the public interface: an OpenAPI 3.1 document, and two pages for people. One page
// shows the document, the other the methods behind the numbers. The pages need no other host. The page of
// the document has a script for its search, and everything else works without it.
//
// The tests of this package make all three. The document is made from openapi.yaml and from the Go types of the results, whose
// comments and tags describe each field. A new field needs a comment, its unit in a tag if it is a number, and its value in
// testdata/answers.json. docs.tmpl is the template of the document's page. The page of the methods is made from
// compute/METHODS.md and methods.tmpl. After a change to one of these files,
//
//	go test ./server/openapi -update
//
// writes openapi.json, docs.html and methods.html anew.
package openapi

import _ "embed"

var (
	//go:embed openapi.json
	document []byte
	//go:embed docs.html
	page []byte
	//go:embed methods.html
	methods []byte
	//go:embed docs.css
	style []byte
	//go:embed docs.js
	script []byte
)

// File is a file that is the same for every client as long as the process runs.
type File struct {
	Path, ContentType string
	Body              []byte // must not be changed
	// Page says whether a browser shows the file, so that it needs the header fields that keep a page safe.
	Page bool
}

// Files returns the document, its page, the page of the methods, the style sheet of both pages, and the script of the
// document's page.
func Files() []File {
	return []File{
		{Path: "/openapi.json", ContentType: "application/json", Body: document},
		{Path: "/docs", ContentType: "text/html; charset=utf-8", Body: page, Page: true},
		{Path: "/methods", ContentType: "text/html; charset=utf-8", Body: methods, Page: true},
		{Path: "/docs.css", ContentType: "text/css; charset=utf-8", Body: style, Page: true},
		{Path: "/docs.js", ContentType: "text/javascript; charset=utf-8", Body: script, Page: true},
	}
}
