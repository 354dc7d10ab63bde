package openapi_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	yaml "github.com/oasdiff/yaml3"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"strikecache/refresh/product"
	"strikecache/server/openapi"

	"strikecache/bench/testkit"
)

var must = testkit.Must

type object = map[string]any

// document is openapi.json.
var document = func() any {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(file("openapi.json")))
	if err != nil {
		panic(err)
	}
	return v
}()

// file returns the text of a file of this package.
func file(name string) string {
	text, err := openapi.Files.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// at returns a value in the document.
func at(keys ...string) any {
	v := document
	for _, key := range keys {
		v = v.(object)[key]
	}
	return v
}

var saysNull = regexp.MustCompile("(^|[.;:] )`null` ")

// Each field of each schema has a description with a full stop, each number a unit, and each field that may be null says when. A
// field of a Go type has a value in testdata/answers.json, or an example in its tag.
func TestEveryFieldIsDescribed(t *testing.T) {
	var outline struct {
		Components struct{ Schemas object }
	}
	text, err := os.ReadFile("openapi.yaml")
	must(t, errors.Join(err, yaml.Unmarshal(text, &outline)))
	n := 0
	for name, s := range at("components", "schemas").(object) {
		fields, _ := s.(object)["properties"].(object)
		for field, v := range fields {
			n++
			value := v.(object)
			text, _ := value["description"].(string)
			null := strings.Contains(fmt.Sprint(value["type"], value["oneOf"]), "null")
			for value["items"] != nil {
				value = value["items"].(object)
				null = null || strings.Contains(fmt.Sprint(value["type"], value["oneOf"]), "null")
			}
			kind := strings.Trim(strings.TrimSuffix(fmt.Sprint(value["type"]), " null]"), "[")
			isRef := value["$ref"] != nil || value["oneOf"] != nil
			if number := kind == "integer" || kind == "number"; number != strings.Contains(text, ". Unit: ") {
				t.Errorf("%s.%s: a number needs a unit, and nothing else has one: %q", name, field, text)
			}
			if null != saysNull.MatchString(text) {
				t.Errorf("%s.%s: it may be null: %v; its description says when: %v", name, field, null, !null)
			}
			if text == "" && !isRef || text != "" && !strings.HasSuffix(text, ".") {
				t.Errorf("%s.%s has no description, or one without a full stop: %q", name, field, text)
			}
			if value["examples"] == nil && value["type"] != nil && kind != "object" && outline.Components.Schemas[name] == nil {
				t.Errorf("%s.%s has no value in testdata/answers.json, and no example in its tag", name, field)
			}
		}
	}
	if n < 500 {
		t.Errorf("only %d fields", n)
	}
}

// The values of the parameter format are json and the forms of the answer.
func TestEveryFormIsAValueOfFormat(t *testing.T) {
	for path, item := range at("paths").(object) {
		described := "[json]"
		for _, ref := range list(item.(object)["parameters"]) {
			if p := component("parameters", ref); p["name"] == "format" {
				described = fmt.Sprint(p["schema"].(object)["enum"])
			}
		}
		offered := []string{"json"}
		content, _ := component("responses", item.(object)["get"].(object)["responses"].(object)["200"])["content"].(object)
		for _, kind := range slices.Sorted(maps.Keys(content)) {
			if kind != "application/json" && strings.HasPrefix(path, "/api/") {
				offered = slices.AppendSeq(offered, maps.Keys(content[kind].(object)["examples"].(object)))
			}
		}
		if fmt.Sprint(offered) != described {
			t.Errorf("%s: the parameter format has %s, the answer %s", path, described, offered)
		}
	}
}

// component returns the component that a reference names.
func component(kind string, ref any) object {
	return at("components", kind, path.Base(ref.(object)["$ref"].(string))).(object)
}

func list(v any) []any {
	all, _ := v.([]any)
	return all
}

// Every example is valid by its own schema, and every scalar field of a Go type has one.
func TestExamplesAreValid(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	must(t, compiler.AddResource("openapi.json", document))
	n := 0
	check := func(at string, example any) {
		schema, err := compiler.Compile("openapi.json#" + at)
		must(t, err)
		n++
		if err := schema.Validate(example); err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
	var visit func(at string, v any)
	visit = func(at string, v any) {
		o, _ := v.(object)
		if examples, found := o["examples"].([]any); found {
			for _, example := range examples {
				check(at, example)
			}
		}
		if named, found := o["examples"].(object); found && strings.HasSuffix(at, "json") {
			for _, example := range named {
				check(at+"/schema", example.(object)["value"])
			}
		}
		for key, x := range o {
			if key != "value" {
				visit(at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(key), x)
			}
		}
		if items, found := v.([]any); found {
			for i, x := range items {
				visit(fmt.Sprintf("%s/%d", at, i), x)
			}
		}
	}
	visit("", document)
	if n < 250 {
		t.Errorf("only %d examples", n)
	}
}

// The document and server/API.md name every reason that the code knows, and no other.
func TestEveryReasonIsDescribed(t *testing.T) {
	constant := regexp.MustCompile(`(?m)^\t(?:reason\w+|\w+ +Reason) += "([a-z_]+)"`)
	known := map[string]bool{"closed": true, "stale": true}
	for _, pattern := range []string{"../../refresh/*.go", "../../refresh/upstream/*.go"} {
		files, err := filepath.Glob(pattern)
		must(t, err)
		for _, file := range files {
			source, err := os.ReadFile(file)
			must(t, err)
			for _, m := range constant.FindAllStringSubmatch(string(source), -1) {
				known[m[1]] = true
			}
		}
	}
	sameWords(t, "the reason in openapi.yaml", at("components", "schemas", "Reason", "description").(string), "`([a-z_]+)`", known, 17)
	text, err := os.ReadFile("../API.md")
	must(t, err)
	_, tables, _ := strings.Cut(string(text), "\n## Freshness\n")
	tables, _, _ = strings.Cut(tables, "\n## ")
	known["fresh"], known["null"], known["as_of"] = true, true, true
	sameWords(t, "the tables of freshness", tables, "`([a-z_]+)`", known, 17)
}

// server/API.md names every path, parameter and error code of the document, and no other.
func TestAPIMDNamesEveryPathAndCode(t *testing.T) {
	text, err := os.ReadFile("../API.md")
	must(t, err)
	known := map[string]bool{}
	for path := range at("paths").(object) {
		known[path] = true
	}
	for _, code := range at("components", "schemas", "Error", "properties", "code", "enum").([]any) {
		known[code.(string)] = true
	}
	for _, p := range at("components", "parameters").(object) {
		if p := p.(object); p["in"] == "query" && !strings.Contains(string(text), "`"+p["name"].(string)+"`") {
			t.Errorf("server/API.md does not name %s", p["name"])
		}
	}
	sameWords(t, "server/API.md", string(text), "`(/[^`]*)`|(?m)^\\| \\d+ \\| `([a-z_]+)`", known, 30)
}

// sameWords compares the words of a text with the words that are known, of which there are at least some.
func sameWords(t *testing.T, where, text, pattern string, known map[string]bool, least int) {
	t.Helper()
	for word := range known {
		if !strings.Contains(text, "`"+word+"`") {
			t.Errorf("%s does not name %s", where, word)
		}
	}
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		if word := strings.Join(m[1:], ""); !known[word] {
			t.Errorf("%s names %s, which is unknown", where, word)
		}
	}
	if len(known) < least {
		t.Errorf("%s: only %d words are known", where, len(known))
	}
}

// A path has one operation, so that a generated client has one function per path, has the errors that every path can give, and only the
// paths of an underlying, and those of all, whose parameter may ask for one, can name an unknown one.
func TestAPathHasOneOperation(t *testing.T) {
	for path, item := range at("paths").(object) {
		for key := range item.(object) {
			if key != "get" && key != "parameters" {
				t.Errorf("%s has %s", path, key)
			}
		}
		responses := item.(object)["get"].(object)["responses"].(object)
		if responses["500"] == nil || responses["503"] == nil { // after a panic, and at the limit of connections
			t.Errorf("%s lacks a 500 or 503", path)
		}
		ref, _ := responses["404"].(object)
		if ref == nil {
			continue
		}
		name := strings.TrimPrefix(ref["$ref"].(string), "#/components/responses/")
		if said := strings.Contains(fmt.Sprint(at("components", "responses", name)), "unknown_underlying"); said != (strings.Contains(path, "{u}") || strings.HasSuffix(path, "/unusual") || strings.HasSuffix(path, "/underlyings")) {
			t.Errorf("%s: its 404 is %s", path, name)
		}
	}
}

// No two components have one name: a generator of Go makes a type of each.
func TestComponentsHaveDifferentNames(t *testing.T) {
	of := map[string]string{}
	for _, kind := range []string{"schemas", "responses", "parameters"} {
		for name := range at("components", kind).(object) {
			if of[name] != "" {
				t.Errorf("%s is in %s and in %s", name, of[name], kind)
			}
			of[name] = kind
		}
	}
}

// Every product that is computed has a path.
func TestEveryProductHasAPath(t *testing.T) {
	paths := at("paths").(object)
	for name := range product.Shapes() {
		if paths["/api/v1/"+name] == nil && paths["/api/public/"+name] == nil {
			t.Errorf("%s is in the table of products, and has no path", name)
		}
	}
}

// The pages have nothing that the content security policy forbids, because a browser would not load it.
func TestThePagesNeedNothingElse(t *testing.T) {
	html := strings.Replace(file("docs.html")+file("methods.html"), `<script type="module" src="/docs.js"></script>`, "", 1)
	for what, pattern := range map[string]string{
		"script": `(?i)<script`, "inline style": `(?i)<style|\sstyle=`, "handler": `(?i)\son[a-z]+=`, "another host": `(?i)(src|href)="?(https?:)?//`,
		"another file": `<(link|img)[^>]*(href|src)="([^/]|/[^d]|/docs\.[^c])`, "unrendered template or HTML": `{{|ZgotmplZ|&lt;p&gt;|raw HTML omitted`,
	} {
		if m := regexp.MustCompile(pattern).FindString(html); m != "" {
			t.Errorf("%s: %q", what, m)
		}
	}
}

// idsOf returns the IDs of the elements of a page. Each link within the page leads to one, and no two are the same.
func idsOf(t *testing.T, html string) map[string]bool {
	t.Helper()
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(html, -1) {
		if ids[m[1]] {
			t.Errorf("two elements have the id %s", m[1])
		}
		ids[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(html, -1) {
		if !ids[m[1]] {
			t.Errorf("a link leads to %s, which does not exist", m[1])
		}
	}
	return ids
}

// The page shows each path with a command, each response, header field and parameter, and each field of each schema.
func TestThePageHasEverything(t *testing.T) {
	html := file("docs.html")
	ids := idsOf(t, html)
	for path := range at("paths").(object) {
		if !strings.Contains(html, ">"+path+"</a></h3>") || !strings.Contains(html, "</span>"+strings.Replace(path, "{u}", "spx", 1)+"'</code>") {
			t.Errorf("%s is not shown, or has no command", path)
		}
	}
	if !strings.Contains(html, `id="response-Preflight"><th scope="row">204</th>`) || at("components", "pathItems", "Preflight", "options", "responses", "204") == nil {
		t.Error("the status of Preflight is not 204")
	}
	for kind, prefix := range map[string]string{"responses": "response-", "headers": "header-"} {
		for name := range at("components", kind).(object) {
			if !ids[prefix+name] {
				t.Errorf("%s%s is not shown", prefix, name)
			}
		}
	}
	for _, p := range at("components", "parameters").(object) {
		if name := p.(object)["name"].(string); !ids["request-"+name] && !strings.Contains(html, "-"+name+`">`) {
			t.Errorf("the parameter %s is not shown", name)
		}
	}
	if !strings.Contains(html, `[5] call_wall</code></a></th><td>number or null`) {
		t.Error("the page does not say which columns of a row may be null")
	}
	rows := 0
	for name, s := range at("components", "schemas").(object) {
		fields, _ := s.(object)["properties"].(object)
		for field := range fields {
			if rows++; !ids[name+"."+field] {
				t.Errorf("%s.%s has no row", name, field)
			}
		}
	}
	if rows < 300 {
		t.Errorf("only %d fields", rows)
	}
}

// The page of the methods has every word of the text, and its sections, tables and references can be reached.
func TestTheMethodsPageHasEverything(t *testing.T) {
	source, html := file("methods.markdown"), file("methods.html")
	for number := range strings.FieldsSeq("0 1 1.0 1.1 1.2 1.3 1.7 2 3 4 5 6 7") {
		if !strings.Contains(html, ` id="`+number+`"><a href="#`+number+`">`) || !strings.Contains(html, `<a href="#`+number+`">`+number) {
			t.Errorf("section %s is missing in the text or in the contents", number)
		}
	}
	if idsOf(t, html); !strings.Contains(html, `<a href="#7">§7</a>`) {
		t.Error("the number of a section is no link")
	}
	_, content, _ := strings.Cut(html, "<main")
	plain := strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&amp;", "&").Replace(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(content, " "))
	shown := strings.Join(strings.Fields(plain), "")
	for word := range strings.FieldsSeq(strings.NewReplacer("`", " ", "*", " ", `\|`, "|", "#", " ", "|---", " ").Replace(source)) {
		word = strings.Trim(word, "|")
		if word != "-" && !regexp.MustCompile(`^\d+\.$`).MatchString(word) && !strings.Contains(shown, word) {
			t.Errorf("%q is not shown", word)
		}
	}
	if n, want := strings.Count(html, `<div class="table" tabindex="0"`), strings.Count(source, "\n|---"); n != want || n < 5 {
		t.Errorf("%d tables scroll inside themselves, want %d", n, want)
	}
}
