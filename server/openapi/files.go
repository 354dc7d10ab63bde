// Package openapi holds the description of the public interface: an OpenAPI 3.1 document, and the same document as a
// page for people that needs no script and no other host.
//
// Both are made by the tests of this package: of the types of the results, of fields.txt, which has a line for every
// field, of document.yaml, which has the paths and responses, and of docs.tmpl, the template of the page. After a change
// to one of them,
//
//	go test ./server/openapi -update
//
// writes openapi.json and docs.html anew.
package openapi

import _ "embed"

var (
	//go:embed openapi.json
	document []byte
	//go:embed docs.html
	page []byte
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

// Files returns the document, its page and the page's style sheet.
func Files() []File {
	return []File{
		{Path: "/openapi.json", ContentType: "application/json", Body: document},
		{Path: "/docs", ContentType: "text/html; charset=utf-8", Body: page, Page: true},
		{Path: "/docs.css", ContentType: "text/css; charset=utf-8", Body: style, Page: true},
	}
}
