// Package openapi holds the description of the public interface: an OpenAPI 3.1 document, and the same document as a
// page for people that needs no script and no other host.
//
// The document, openapi.json, is written by hand and is the only source: the page is rendered from it, and the tests
// hold it against the route table, the result types and real answers.
package openapi
