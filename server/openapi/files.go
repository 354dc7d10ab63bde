// Package openapi holds the description of the public interface: an OpenAPI 3.1 document, and the same document as a
// page for people that needs no script and no other host.
//
// The document, openapi.json, is made by the tests of this package: of the types of the results, of fields.txt, which has
// a line for every field, and of the table of paths in paths_test.go. After a change to one of them,
//
//	go test ./server/openapi -update
//
// writes it anew. The page is rendered from the document when the process starts.
package openapi

import _ "embed"

var (
	//go:embed openapi.json
	document []byte
	//go:embed docs.html
	page string
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

// Files returns the document, its page and the page's style sheet. It renders the page anew each time.
func Files() ([]File, error) {
	html, err := render(document)
	if err != nil {
		return nil, err
	}
	return []File{
		{Path: "/openapi.json", ContentType: "application/json", Body: document},
		{Path: "/docs", ContentType: "text/html; charset=utf-8", Body: html, Page: true},
		{Path: "/docs.css", ContentType: "text/css; charset=utf-8", Body: style, Page: true},
	}, nil
}
