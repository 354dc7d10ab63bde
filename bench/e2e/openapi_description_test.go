package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// description is an OpenAPI document, with the parts of it that answers have shown.
type description struct {
	Paths      map[string]map[string]json.RawMessage
	Components struct {
		PathItems  struct{ Preflight map[string]json.RawMessage }
		Parameters map[string]struct{ Name, In string }
		Responses  map[string]struct {
			Headers map[string]reference
			Content map[string]json.RawMessage
		}
		Headers map[string]struct {
			Required bool
			Schema   struct{ Type string }
		}
		Schemas struct {
			Error struct {
				Properties struct{ Code struct{ Enum []string } }
			}
		}
	}
	compiler *jsonschema.Compiler
	seen     map[string]bool
}

// reference refers to a component.
type reference struct {
	Ref string `json:"$ref"`
}

func (r reference) name() string { return r.Ref[strings.LastIndexByte(r.Ref, '/')+1:] }

// describe reads a document and closes its schemas: a field that is not in them is a fault here, although the document
// itself allows further fields.
func describe(t testing.TB, body []byte) *description {
	t.Helper()
	d := &description{compiler: jsonschema.NewCompiler(), seen: map[string]bool{}}
	must(t, json.Unmarshal(body, d))
	for path, item := range d.Paths { // with spx in place of {u}, and with the methods that are described once for all
		delete(d.Paths, path)
		item["head"], item["options"] = item["get"], d.Components.PathItems.Preflight["options"]
		d.Paths[documented(strings.Replace(path, "{u}", "spx", 1))] = item
	}
	schemas, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	must(t, err)
	closeSchemas("", schemas, regexp.MustCompile(`^/components/schemas/(Answer|Meta|Error|ErrorAnswer)$|/allOf/\d+$`))
	d.compiler.AssertFormat()
	must(t, d.compiler.AddResource("openapi.json", schemas))
	return d
}

// closeSchemas closes every schema of an object, except schemas that are parts of other schemas.
func closeSchemas(at string, v any, parts *regexp.Regexp) {
	switch v := v.(type) {
	case map[string]any:
		_, object := v["properties"].(map[string]any)
		if _, said := v["additionalProperties"]; object && v["type"] == "object" && !said && !parts.MatchString(at) {
			v["additionalProperties"] = false
		} else if v["allOf"] != nil {
			v["unevaluatedProperties"] = false
		}
		for k, x := range v {
			closeSchemas(at+"/"+k, x, parts)
		}
	case []any:
		for i, x := range v {
			closeSchemas(fmt.Sprintf("%s/%d", at, i), x, parts)
		}
	}
}

// valid checks a value against the schema at a path of the document.
func (d *description) valid(at string, v any) error {
	schema, err := d.compiler.Compile("openapi.json#/" + at)
	if err != nil {
		return err
	}
	return schema.Validate(v)
}

// paths returns the documented paths, sorted.
func (d *description) paths() []string { return slices.Sorted(maps.Keys(d.Paths)) }

// methods returns the documented methods of a path, sorted.
func (d *description) methods(path string) (methods []string) {
	for key := range d.Paths[path] {
		if key != "parameters" {
			methods = append(methods, strings.ToUpper(key))
		}
	}
	slices.Sort(methods)
	return methods
}

// responses returns the names of the responses of an operation, by status.
func (d *description) responses(path, method string) map[string]string {
	var operation struct{ Responses map[string]reference }
	if raw := d.Paths[path][strings.ToLower(method)]; json.Unmarshal(raw, &operation) != nil {
		return nil // a method that the path does not have
	}
	names := map[string]string{}
	for status, r := range operation.Responses {
		if method != http.MethodHead || status != "405" {
			names[status] = r.name()
		}
	}
	return names
}

var ofUnderlying = regexp.MustCompile(`^(/api/v1/(?:gex|volatility)/)[^/]+|^(/api/public/)[^/]+(-max-pain(?:/series)?)$`)

// documented returns a path with spx in place of the underlying.
func documented(path string) string { return ofUnderlying.ReplaceAllString(path, "${1}${2}spx${3}") }

// framing are the fields of HTTP itself, which no document needs to describe.
var framing = []string{"Connection", "Content-Length", "Content-Type", "Date", "Server"}

// check compares an answer with the document. The body must be uncompressed. The answer to an undocumented method is
// compared with GET, and the answer to an undocumented path must be a documented error.
func (d *description) check(method, target string, resp *http.Response, body []byte) error {
	path, _, _ := strings.Cut(target, "?")
	path = documented(path)
	status := fmt.Sprint(resp.StatusCode)
	if d.Paths[path] == nil {
		if resp.StatusCode != http.StatusNotFound {
			return fmt.Errorf("%s is not documented, yet answered %s", path, status)
		}
		return d.body("components/schemas/ErrorAnswer", body)
	}
	if d.responses(path, method) == nil {
		method = http.MethodGet
	}
	name := d.responses(path, method)[status]
	if name == "" {
		return fmt.Errorf("%s %s is documented without status %s", method, path, status)
	}
	if resp.StatusCode == http.StatusOK {
		if err := d.allows(target); err != nil {
			return fmt.Errorf("answered, though the document does not allow the request: %w", err)
		}
	}
	d.seen[method+" "+path+" "+status] = true
	if err := d.headers(name, resp.Header); err != nil {
		return err
	}
	content := d.Components.Responses[name].Content
	if method == http.MethodHead || len(content) == 0 {
		if len(body) > 0 {
			return fmt.Errorf("an unexpected body of %d bytes", len(body))
		}
		return nil
	}
	media, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	if content[media] == nil {
		return fmt.Errorf("response %s is not documented as %s", name, resp.Header.Get("Content-Type"))
	}
	if media != "application/json" {
		return nil
	}
	return d.body("components/responses/"+name+"/content/application~1json/schema", body)
}

// body checks a JSON body against the schema at a path of the document.
func (d *description) body(at string, body []byte) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	if answer, _ := v.(map[string]any); answer != nil {
		if failure, _ := answer["error"].(map[string]any); failure != nil {
			d.seen[fmt.Sprint("code ", failure["code"])] = true
		}
	}
	return d.valid(at, v)
}

// allows says whether the parameters of a query are within their documented bounds.
func (d *description) allows(target string) error {
	u, err := url.Parse(target)
	if err != nil {
		return err
	}
	var references []reference
	if raw := d.Paths[u.Path]["parameters"]; raw != nil {
		if err := json.Unmarshal(raw, &references); err != nil {
			return err
		}
	}
	for _, ref := range references {
		p := d.Components.Parameters[ref.name()]
		if value := u.Query().Get(p.Name); p.In == "query" && value != "" {
			if err := d.text("parameters", ref.name(), value); err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
		}
	}
	return nil
}

// text checks the text of a parameter or a header field against its schema.
func (d *description) text(kind, name, text string) error {
	at := "components/" + kind + "/" + name + "/schema"
	if err := d.valid(at, text); err == nil {
		return nil
	}
	return d.valid(at, json.Number(text)) // the schema may be that of a number
}

// headers compares the header fields of an answer with those of a documented response.
func (d *description) headers(name string, sent http.Header) error {
	var failures []error
	documented := map[string]bool{}
	for field, ref := range d.Components.Responses[name].Headers {
		documented[http.CanonicalHeaderKey(field)] = true
		value, h := sent.Get(field), d.Components.Headers[ref.name()]
		switch {
		case value == "" && h.Required:
			failures = append(failures, fmt.Errorf("response %s: no %s", name, field))
		case value != "":
			d.seen[name+": "+field] = true
			if err := d.text("headers", ref.name(), value); err != nil {
				failures = append(failures, fmt.Errorf("response %s: %s: %q: %w", name, field, value, err))
			}
		}
	}
	for field := range sent {
		if !documented[field] && !slices.Contains(framing, field) {
			failures = append(failures, fmt.Errorf("response %s: %s is sent and not documented", name, field))
		}
	}
	return errors.Join(failures...)
}

// documented returns all that answers can show: statuses of operations, header fields of responses, error codes.
func (d *description) documented() map[string]bool {
	all := map[string]bool{}
	for path := range d.Paths {
		for _, method := range d.methods(path) {
			for status, name := range d.responses(path, method) {
				all[method+" "+path+" "+status] = true
				for field := range d.Components.Responses[name].Headers {
					all[name+": "+field] = true
				}
			}
		}
	}
	for _, code := range d.Components.Schemas.Error.Properties.Code.Enum {
		all["code "+code] = true
	}
	return all
}

// unseen returns what is documented but was shown by no answer, sorted.
func (d *description) unseen() []string {
	all := d.documented()
	maps.DeleteFunc(all, func(key string, _ bool) bool { return d.seen[key] })
	return slices.Sorted(maps.Keys(all))
}
