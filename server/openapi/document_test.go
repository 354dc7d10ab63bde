package openapi_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"strikecache/refresh"
	"strikecache/server"
)

// The files that are made are up to date with their sources.
func TestTheFilesAreUpToDate(t *testing.T) {
	for _, fault := range faults {
		t.Error(fault)
	}
	for name, content := range made {
		written, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(content, written) {
			t.Errorf("%s is not up to date: go test ./server/openapi -update", name)
		}
	}
}

// parsed returns openapi.json as the schema library needs it.
func parsed(t *testing.T) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(made["openapi.json"]))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// at returns a value in the document.
func at(t *testing.T, keys ...string) any {
	t.Helper()
	v := parsed(t)
	for _, key := range keys {
		v = v.(object)[key]
	}
	return v
}

// Every example is valid by its own schema, and every scalar field of a Go type has one.
func TestExamplesAreValid(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("openapi.json", parsed(t)); err != nil {
		t.Fatal(err)
	}
	n := 0
	check := func(at string, example any) {
		schema, err := compiler.Compile("openapi.json#" + at)
		if err != nil {
			t.Fatal(err)
		}
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
	visit("", parsed(t))
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
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range constant.FindAllStringSubmatch(string(source), -1) {
				known[m[1]] = true
			}
		}
	}
	sameWords(t, "the reason in openapi.yaml", at(t, "components", "schemas", "Reason", "description").(string), "`([a-z_]+)`", known, 17)
	text, err := os.ReadFile("../API.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tables, _ := strings.Cut(string(text), "\n## Freshness\n")
	tables, _, _ = strings.Cut(tables, "\n## ")
	known["fresh"], known["null"], known["as_of"] = true, true, true
	sameWords(t, "the tables of freshness", tables, "`([a-z_]+)`", known, 17)
}

// server/API.md names every path, parameter and error code of the document, and no other.
func TestAPIMDNamesEveryPathAndCode(t *testing.T) {
	text, err := os.ReadFile("../API.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for path := range at(t, "paths").(object) {
		known[path] = true
	}
	for _, code := range at(t, "components", "schemas", "Error", "properties", "code", "enum").([]any) {
		known[code.(string)] = true
	}
	for _, p := range at(t, "components", "parameters").(object) {
		if p := p.(object); p["in"] == "query" && !bytes.Contains(text, []byte("`"+p["name"].(string)+"`")) {
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
// paths of an underlying can name an unknown one.
func TestAPathHasOneOperation(t *testing.T) {
	for path, item := range at(t, "paths").(object) {
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
		if said := strings.Contains(fmt.Sprint(at(t, "components", "responses", name)), "unknown_underlying"); said != strings.Contains(path, "{u}") {
			t.Errorf("%s: its 404 is %s", path, name)
		}
	}
}

// Every product that is computed has a path, so that every product is served.
func TestEveryProductHasAPath(t *testing.T) {
	paths, served := at(t, "paths").(object), server.New(server.Config{Log: slog.New(slog.DiscardHandler)}).Resources()
	for name := range refresh.Shapes() {
		if paths["/api/v1/"+name] == nil && paths["/api/public/"+name] == nil || !slices.Contains(served, strings.Replace(name, "{u}", "spx", 1)) {
			t.Errorf("%s is in the table of products, and has no path or no description", name)
		}
	}
}

// The pages have nothing that the content security policy forbids, because a browser would not load it.
func TestThePagesNeedNothingElse(t *testing.T) {
	html := strings.Replace(string(made["docs.html"])+string(made["methods.html"]), `<script type="module" src="/docs.js"></script>`, "", 1)
	for what, pattern := range map[string]string{
		"script": `(?i)<script`, "inline style": `(?i)<style|\sstyle=`, "handler": `(?i)\son[a-z]+=`, "another host": `(?i)(src|href)="?(https?:)?//`,
		"another file": `<(link|img)[^>]*(href|src)="([^/]|/[^d]|/docs\.[^c])`, "unrendered template or HTML": `{{|ZgotmplZ|&lt;p&gt;|raw HTML omitted`,
	} {
		if m := regexp.MustCompile(pattern).FindString(html); m != "" {
			t.Errorf("%s: %q", what, m)
		}
	}
}

// HTML in a text does not become markup.
func TestMarkupInATextIsNoMarkup(t *testing.T) {
	const text = "# A\n\n<script>alert(1)</script>\n\nb <i onclick=\"x\"> c `<b>`\n\n## 1. <b>D</b>\n\n|a|\n|---|\n|<img src=x>|\n"
	page, err := methodsPage([]byte(text))
	if html := string(page) + string(prose(text)); err != nil || regexp.MustCompile(`<script|<i |<b>|<img`).MatchString(html) {
		t.Errorf("%v %s", err, html)
	}
}

// Each link of the page leads to an element of the page, no two elements have the same ID, and the page shows each path with a
// command, each response, header field and parameter, and each field of each schema.
func TestThePageHasEverything(t *testing.T) {
	html := string(made["docs.html"])
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
	for path := range at(t, "paths").(object) {
		if !strings.Contains(html, ">"+path+"</a></h3>") || !strings.Contains(html, "</span>"+strings.Replace(path, "{u}", "spx", 1)+"'</code>") {
			t.Errorf("%s is not shown, or has no command", path)
		}
	}
	for kind, prefix := range map[string]string{"responses": "response-", "headers": "header-"} {
		for name := range at(t, "components", kind).(object) {
			if !ids[prefix+name] {
				t.Errorf("%s%s is not shown", prefix, name)
			}
		}
	}
	for _, p := range at(t, "components", "parameters").(object) {
		if name := p.(object)["name"].(string); !ids["request-"+name] && !strings.Contains(html, "-"+name+`">`) {
			t.Errorf("the parameter %s is not shown", name)
		}
	}
	rows := 0
	for name, s := range at(t, "components", "schemas").(object) {
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
