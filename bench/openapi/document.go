package openapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// Document is an OpenAPI document and what the answers held against it have shown of it.
type Document struct {
	doc *openapi3.T
	// seen has what was shown: an operation with a status, a response with a header field, a field of a schema, a code.
	seen map[string]bool
	// null and filled have the fields that were seen without a value and with one.
	null, filled map[string]bool
}

// Load parses and validates a document, its examples included.
func Load(body []byte) (*Document, error) {
	doc, err := openapi3.NewLoader().LoadFromData(body)
	if err != nil {
		return nil, fmt.Errorf("load OpenAPI document: %w", err)
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, fmt.Errorf("validate OpenAPI document: %w", err)
	}
	return &Document{doc, map[string]bool{}, map[string]bool{}, map[string]bool{}}, nil
}

// Paths returns the documented paths, sorted.
func (d *Document) Paths() []string { return slices.Sorted(keys(d.doc.Paths.Map())) }

// Methods returns the documented methods of a path, sorted.
func (d *Document) Methods(path string) []string {
	return slices.Sorted(keys(d.doc.Paths.Value(path).Operations()))
}

func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// framing are the fields of HTTP itself, which no document needs to describe.
var framing = []string{"Connection", "Content-Length", "Content-Type", "Date", "Server"}

// Check holds an answer against the document. The body must not be coded. A method that the document does not have
// is held against GET, and a path that it does not have must be answered with a documented error.
func (d *Document) Check(req *http.Request, resp *http.Response, body []byte) error {
	item := d.doc.Paths.Value(req.URL.Path)
	if item == nil {
		if resp.StatusCode != http.StatusNotFound {
			return fmt.Errorf("%s is not documented, yet answered %d", req.URL.Path, resp.StatusCode)
		}
		return d.body(d.doc.Components.Schemas["ErrorAnswer"], body)
	}
	method := req.Method
	if item.GetOperation(method) == nil {
		method = http.MethodGet
	}
	operation := item.GetOperation(method)
	found := operation.Responses.Value(strconv.Itoa(resp.StatusCode))
	if found == nil {
		return fmt.Errorf("%s %s is documented without status %d", method, req.URL.Path, resp.StatusCode)
	}
	input := &openapi3filter.RequestValidationInput{
		Request:     req,
		QueryParams: req.URL.Query(),
		Route:       &routers.Route{Spec: d.doc, Path: req.URL.Path, PathItem: item, Method: method, Operation: operation},
		Options:     &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}
	if resp.StatusCode == http.StatusOK {
		if err := openapi3filter.ValidateRequest(context.Background(), input); err != nil {
			return fmt.Errorf("answered, though the document does not allow the request: %w", err)
		}
	}
	d.seen[fmt.Sprintf("%s %s %d", method, req.URL.Path, resp.StatusCode)] = true
	name, content := responseName(found), found.Value.Content
	if err := d.headers(name, found.Value.Headers, resp.Header); err != nil {
		return err
	}
	if method == http.MethodHead || len(content) == 0 {
		if len(body) > 0 {
			return fmt.Errorf("%d bytes of a body that must not be", len(body))
		}
		return nil
	}
	if content.Get(resp.Header.Get("Content-Type")) == nil {
		return fmt.Errorf("response %s is not documented as %s", name, resp.Header.Get("Content-Type"))
	}
	media := content.Get("application/json")
	if media == nil {
		return nil
	}
	if err := openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: resp.StatusCode, Header: resp.Header, Body: io.NopCloser(bytes.NewReader(body)), Options: input.Options,
	}); err != nil {
		return err
	}
	return d.body(media.Schema, body)
}

// Allows says whether the document allows a request: its parameters are within their bounds.
func (d *Document) Allows(req *http.Request) error {
	item := d.doc.Paths.Value(req.URL.Path)
	return openapi3filter.ValidateRequest(context.Background(), &openapi3filter.RequestValidationInput{
		Request: req, QueryParams: req.URL.Query(),
		Route:   &routers.Route{Spec: d.doc, Path: req.URL.Path, PathItem: item, Method: http.MethodGet, Operation: item.Get},
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	})
}

// headers holds the fields of an answer against those of a response. They are compared here, as the library leaves
// out HEAD and 304.
func (d *Document) headers(name string, documented openapi3.Headers, sent http.Header) error {
	var failures []error
	for field, h := range documented {
		value := sent.Get(field)
		switch {
		case value == "" && h.Value.Required:
			failures = append(failures, fmt.Errorf("response %s: no %s", name, field))
		case value == "":
		default:
			d.seen[name+": "+field] = true
			var v any = value
			if h.Value.Schema.Value.Type.Is("integer") {
				v = json.Number(value)
			}
			if err := h.Value.Schema.Value.VisitJSON(v, openapi3.EnableJSONSchema2020()); err != nil {
				failures = append(failures, fmt.Errorf("response %s: %s: %q: %w", name, field, value, err))
			}
		}
	}
	for field := range sent {
		if documented[canonical(documented, field)] == nil && !slices.Contains(framing, field) {
			failures = append(failures, fmt.Errorf("response %s: %s is sent and not documented", name, field))
		}
	}
	return errors.Join(failures...)
}

// canonical returns a field's name as the document spells it.
func canonical(documented openapi3.Headers, field string) string {
	for name := range documented {
		if strings.EqualFold(name, field) {
			return name
		}
	}
	return field
}

func responseName(r *openapi3.ResponseRef) string { return r.Ref[strings.LastIndexByte(r.Ref, '/')+1:] }
