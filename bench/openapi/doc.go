// Package openapi holds answers against an OpenAPI document, both ways: an answer may have nothing that the document
// does not describe, and what no answer ever had is named.
package openapi
