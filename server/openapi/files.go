// Package openapi holds the description of the public interface: an OpenAPI 3.1 document, and two pages for people that
// need no script and no other host: the same document, and the methods behind the numbers.
//
// They are made by the tests of this package. The document is made of the types of the results, of fields.txt, which has a
// line for every field, and of document.yaml, which has the paths and responses. docs.tmpl is the template of its page.
// The page of the methods is made of compute/METHODS.md and methods.tmpl. After a change to one of these files,
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
)

// File is something to serve, the same for everyone and for as long as the process runs.
type File struct {
	Path, ContentType string
	Body              []byte // must not be changed
	// Page says whether a browser shows it, so that it needs the fields that keep a page safe.
	Page bool
}

// Files returns the document, its page, the page of the methods, and the style sheet of both pages.
func Files() []File {
	return []File{
		{Path: "/openapi.json", ContentType: "application/json", Body: document},
		{Path: "/docs", ContentType: "text/html; charset=utf-8", Body: page, Page: true},
		{Path: "/methods", ContentType: "text/html; charset=utf-8", Body: methods, Page: true},
		{Path: "/docs.css", ContentType: "text/css; charset=utf-8", Body: style, Page: true},
	}
}
