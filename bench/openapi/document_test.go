package openapi

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

const small = `{
  "openapi": "3.1.0", "info": {"title": "t", "version": "1"},
  "paths": {"/a": {
    "parameters": [{"name": "n", "in": "query", "schema": {"type": "integer", "maximum": 9}}],
    "get": {"responses": {"200": {"$ref": "#/components/responses/A"}, "304": {"description": "Same.", "headers": {"ETag": {"required": true, "schema": {"type": "string"}}}}}},
    "head": {"responses": {"200": {"$ref": "#/components/responses/A"}}}}},
  "components": {
    "responses": {"A": {"description": "A.",
      "headers": {"ETag": {"required": true, "schema": {"type": "string", "pattern": "^\""}}, "Age": {"schema": {"type": "integer"}}},
      "content": {"application/json": {"schema": {"allOf": [{"$ref": "#/components/schemas/Base"}, {"type": "object", "properties": {"more": {"type": "object", "properties": {"y": {"type": "string"}}}}}]}}}}},
    "schemas": {
      "Base": {"type": "object", "required": ["x", "row"], "properties": {
        "x": {"type": ["number", "null"]}, "row": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": {"type": "null"}, "maxItems": 2},
        "more": {"type": "object", "properties": {"z": {"type": "integer"}}},
        "none": {"type": "null"},
        "who": {"oneOf": [{"$ref": "#/components/schemas/One"}, {"$ref": "#/components/schemas/Two"}]},
        "deep": {"anyOf": [{"$ref": "#/components/schemas/One"}, {"$ref": "#/components/schemas/Deep"}]}}},
      "One": {"type": "object", "required": ["kind"], "properties": {"kind": {"type": "string", "enum": ["one"]}}},
      "Two": {"type": "object", "required": ["kind", "key"], "properties": {"kind": {"type": "string", "enum": ["two"]}, "key": {"type": "string"}}},
      "Deep": {"type": "object", "required": ["of"], "properties": {"kind": {"type": "null"}, "of": {"$ref": "#/components/schemas/Two"}, "depth": {"type": "integer"}}},
      "Error": {"type": "object", "properties": {"code": {"type": "string", "enum": ["not_found", "gone"]}}},
      "ErrorAnswer": {"type": "object", "properties": {"error": {"$ref": "#/components/schemas/Error"}}}}}
}`

func load(t *testing.T) *Document {
	t.Helper()
	d, err := Load([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *Document) checked(method, target string, status int, body string, headers ...string) error {
	req, err := http.NewRequest(method, "http://x"+target, nil)
	if err != nil {
		return err
	}
	resp := &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}, "Date": {"now"}}}
	for i := 0; i < len(headers); i += 2 {
		resp.Header.Set(headers[i], headers[i+1])
	}
	return d.Check(req, resp, []byte(body))
}

const good = `{"x": 1.5, "row": ["a", 1], "more": {"y": "b", "z": 2}, "who": {"kind": "two", "key": "k"}}`

func TestWhatIsDocumentedPasses(t *testing.T) {
	d := load(t)
	for what, err := range map[string]error{
		"200":     d.checked("GET", "/a?n=9", 200, good, "ETag", `"t"`),
		"none":    d.checked("GET", "/a", 200, `{"x": 1, "row": [], "none": null}`, "ETag", `"t"`),
		"deep":    d.checked("GET", "/a", 200, `{"x": 1, "row": [], "deep": {"of": {"kind": "two", "key": "k"}, "depth": 2}}`, "ETag", `"t"`),
		"null":    d.checked("GET", "/a", 200, `{"x": null, "row": []}`, "ETag", `"t"`, "Age", "7"),
		"304":     d.checked("GET", "/a", 304, "", "ETag", "t"),
		"HEAD":    d.checked("HEAD", "/a", 200, "", "ETag", `"t"`),
		"no path": d.checked("GET", "/b", 404, `{"error": {"code": "not_found"}}`),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestWhatIsNotDocumentedIsNamed(t *testing.T) {
	for what, c := range map[string]struct {
		method, target string
		status         int
		body           string
		headers        []string
		want           string
	}{
		"status":            {"GET", "/a", 418, "{}", nil, "without status 418"},
		"path":              {"GET", "/b", 200, "{}", nil, "/b is not documented"},
		"request":           {"GET", "/a?n=10", 200, good, []string{"ETag", `"t"`}, "does not allow the request"},
		"header":            {"GET", "/a", 200, good, []string{"ETag", `"t"`, "X-New", "1"}, "X-New is sent and not documented"},
		"no header":         {"GET", "/a", 200, good, nil, "no ETag"},
		"header's value":    {"GET", "/a", 200, good, []string{"ETag", "t"}, "ETag"},
		"header's number":   {"GET", "/a", 200, good, []string{"ETag", `"t"`, "Age", "old"}, "Age"},
		"HEAD's header":     {"HEAD", "/a", 200, "", nil, "no ETag"},
		"304's header":      {"GET", "/a", 304, "", nil, "no ETag"},
		"304's body":        {"GET", "/a", 304, "{}", []string{"ETag", "t"}, "body that must not be"},
		"HEAD's body":       {"HEAD", "/a", 200, "{}", []string{"ETag", `"t"`}, "body that must not be"},
		"type":              {"GET", "/a", 200, good, []string{"ETag", `"t"`, "Content-Type", "text/plain"}, "text/plain"},
		"field":             {"GET", "/a", 200, strings.Replace(good, `"x"`, `"w": 1, "x"`, 1), []string{"ETag", `"t"`}, ".w is sent"},
		"nested field":      {"GET", "/a", 200, strings.Replace(good, `"y"`, `"w": 1, "y"`, 1), []string{"ETag", `"t"`}, ".more.w is sent"},
		"field of another":  {"GET", "/a", 200, strings.Replace(good, `"two"`, `"one"`, 1), []string{"ETag", `"t"`}, "Base.who.key is sent"},
		"deep":              {"GET", "/a", 200, strings.Replace(good, `"x"`, `"deep": {"kind": "one", "depth": 2}, "x"`, 1), []string{"ETag", `"t"`}, "Base.deep.depth is sent"},
		"column":            {"GET", "/a", 200, strings.Replace(good, `"a", 1`, `"a", 1, 2`, 1), []string{"ETag", `"t"`}, "row"},
		"missing field":     {"GET", "/a", 200, `{"row": []}`, []string{"ETag", `"t"`}, "x"},
		"null":              {"GET", "/a", 200, strings.Replace(good, `["a", 1]`, `null`, 1), []string{"ETag", `"t"`}, "row"},
		"field of an error": {"GET", "/b", 404, `{"error": {"code": "gone", "why": 1}}`, nil, "Error.why is sent"},
	} {
		err := load(t).checked(c.method, c.target, c.status, c.body, c.headers...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want it to name %q", what, err, c.want)
		}
	}
}

func TestWhatIsNeverShownIsNamed(t *testing.T) {
	d := load(t)
	if err := d.checked("GET", "/a", 200, `{"x": null, "row": ["a"], "none": null, "who": {"kind": "one"}}`, "ETag", `"t"`); err != nil {
		t.Fatal(err)
	}
	if err := d.checked("GET", "/b", 404, `{"error": {"code": "gone"}}`); err != nil {
		t.Fatal(err)
	}
	want := []string{".more", ".more.y", "A: Age", "Base.more", "Base.more.z", "Base.row[1]", "Base.x is always null", "Deep.depth", "GET /a 304", "HEAD /a 200", "Two.key", "Two.kind", "code not_found"}
	got := d.Unseen()
	for _, key := range want {
		if !slices.Contains(got, key) {
			t.Errorf("%s is not named", key)
		}
	}
	for _, key := range []string{"GET /a 200", "A: ETag", "Base.x", "Base.row", "Base.row[0]", "Base.none", "Base.none is always null", "One.kind", "code gone"} {
		if slices.Contains(got, key) {
			t.Errorf("%s is named, and was shown", key)
		}
	}
}

func TestLoadRefusesWhatIsNoDocument(t *testing.T) {
	for _, body := range []string{"", "{}", strings.Replace(small, `"description": "A.",`, "", 1)} {
		if _, err := Load([]byte(body)); err == nil {
			t.Errorf("%.40q is accepted", body)
		}
	}
}
