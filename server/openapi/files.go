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

import "embed"

// Files has the document, its page, the page of the methods, the style sheet of both pages, and the script of the document's page.
//
//go:embed openapi.json docs.html methods.html docs.css docs.js
var Files embed.FS
