// Package openapi holds the description of the public interface: an OpenAPI 3.1 document, the tools for language models, the
// widgets for OpenBB Workspace, and two pages for people. One page shows the document, the other the methods behind the numbers,
// which are also there as Markdown. The pages need no other host. The page of the document has a script for its search, and
// everything else works without it.
//
// Command refresh/gen makes all of them but docs.css and docs.js. It makes the document from openapi.yaml and from the Go types of
// the results, whose comments and tags describe each field. A new field needs a comment, its unit in a tag if it is a number, and
// its value in testdata/answers.json. The page of the methods is made from compute/METHODS.md, tools.json, widgets.json
// and llms.txt from the document. After a change to a source, go generate ./server/openapi writes the files anew.
package openapi

import "embed"

//go:generate go run -C ../.. ./refresh/gen

// Files has the document, the tools, the links for language models, the widgets of any underlying, the page of the document, the methods as a page and as
// Markdown, the style sheet of both pages, and the script of the document's page.
//
//go:embed openapi.json tools.json widgets.json docs.html methods.html methods.markdown llms.txt docs.css docs.js
var Files embed.FS
