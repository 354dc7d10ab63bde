// Package openapi holds the description of the public interface: an OpenAPI 3.1 document, the tools for language models, the
// widgets for OpenBB Workspace, and two pages for people. One page shows the document, the other the methods behind the numbers,
// which are also there as Markdown. The pages need no other host. The page of the document has a script for its search, and
// everything else works without it.
//
// The tests of this package make all of them. The document is made from openapi.yaml and from the Go types of the results, whose
// comments and tags describe each field. A new field needs a comment, its unit in a tag if it is a number, and its value in
// testdata/answers.json. docs.tmpl is the template of the document's page. The page of the methods is made from
// compute/METHODS.md and methods.tmpl. tools.json and widgets.json are made from the document. After a change to one of these files,
//
//	go test ./server/openapi -update
//
// writes openapi.json, tools.json, widgets.json, docs.html, methods.html and methods.markdown anew.
package openapi

import "embed"

// Files has the document, the tools, the widgets of any underlying, the page of the document, the methods as a page and as
// Markdown, the style sheet of both pages, and the script of the document's page.
//
//go:embed openapi.json tools.json widgets.json docs.html methods.html methods.markdown docs.css docs.js
var Files embed.FS
