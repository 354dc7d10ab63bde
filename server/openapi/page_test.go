package openapi_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"strikecache/server/openapi"
)

// page is docs.html.
var page = sync.OnceValue(func() string { return string(formats(made)["docs.html"]) })

// The pages have nothing that the content security policy forbids, because a browser would not load it.
func TestThePagesNeedNothingElse(t *testing.T) {
	const search = `<script type="module" src="/docs.js"></script>`
	if strings.Count(page(), search) != 1 {
		t.Errorf("the page does not load its search")
	}
	html := strings.Replace(page(), search, "", 1) + string(formats(made)["methods.html"])
	for what, pattern := range map[string]string{
		"script": `(?i)<script`, "inline style": `(?i)<style|\sstyle=`, "handler": `(?i)\son[a-z]+=`, "another host": `(?i)(src|href)="?(https?:)?//`, "unrendered template": `{{|ZgotmplZ|&lt;p&gt;`,
	} {
		if m := regexp.MustCompile(pattern).FindString(html); m != "" {
			t.Errorf("%s: %q", what, m)
		}
	}
	for _, m := range regexp.MustCompile(`<(?:link|img)[^>]*(?:href|src)="([^"]*)"`).FindAllStringSubmatch(html, -1) {
		if m[1] != "/docs.css" {
			t.Errorf("%s is loaded", m[1])
		}
	}
}

// Every link of the page leads to an element of the page, and every part of the document is shown.
func TestThePageHasEverything(t *testing.T) {
	html := page()
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(html, -1) {
		if ids[m[1]] {
			t.Errorf("two elements have the id %s", m[1])
		}
		ids[m[1]] = true
	}
	links := regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(html, -1)
	for _, m := range links {
		if !ids[m[1]] {
			t.Errorf("a link leads to %s, which does not exist", m[1])
		}
	}
	if len(links) < 400 {
		t.Errorf("only %d links", len(links))
	}
	for _, p := range made.get("paths").(object) {
		if !strings.Contains(html, ">"+p.Key+"</a></h3>") || !strings.Contains(html, "</span>"+p.Key+"&#39;</code>") && !strings.Contains(html, "</span>"+p.Key+"'</code>") {
			t.Errorf("%s is not shown, or has no command", p.Key)
		}
	}
	for kind, prefix := range map[string]string{"responses": "response-", "headers": "header-"} {
		for _, c := range made.at("components", kind).(object) {
			answer := kind == "responses" && made.at("components", "schemas", c.Key+"Answer") != nil
			if !ids[prefix+c.Key] && !answer {
				t.Errorf("%s%s is not shown", prefix, c.Key)
			}
		}
	}
	for _, p := range made.at("components", "parameters").(object) {
		if name := p.Value.(object).get("name").(string); !ids["request-"+name] && !regexp.MustCompile(` id="[a-z-]+\?`+name+`"`).MatchString(html) {
			t.Errorf("the parameter %s is not shown", name)
		}
	}
	units := map[string]bool{}
	each("", made.at("components", "schemas"), func(at string, o object) {
		text, _ := o.get("description").(string)
		if unit := unitOf(text); unit != "" {
			if units[unit] = true; !strings.Contains(html, "<small>"+unit+"</small>") {
				t.Errorf("unit %s of %s is not shown", unit, at)
			}
		}
		schema, field, _ := strings.Cut(strings.TrimPrefix(at, "/"), "/")
		if !strings.HasPrefix(field, "properties/") || strings.HasSuffix(schema, "Answer") || schema == "ErrorMeta" || text == "" || nameOf(o) == "Unknown" {
			return
		}
		if !strings.Contains(html, strings.TrimSuffix(string(prose(text)), "</p>")) {
			t.Errorf("the description of %s is not shown: %s", at, text)
		}
	})
	if len(units) < 25 {
		t.Errorf("only %d units", len(units))
	}
}

// Every field of an example of an answer has a row, which a link can name. Its ID has the names of the objects around it.
func TestEveryFieldHasARow(t *testing.T) {
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(`<tr id="([^"]*)"`).FindAllStringSubmatch(page(), -1) {
		ids[m[1]] = true
	}
	same := regexp.MustCompile(`<tr id="([^"]*)">(?:[^\n]*)Fields as in <a href="#([^"]*)"`)
	like := map[string]string{}
	for _, m := range same.FindAllStringSubmatch(page(), -1) {
		like[m[1]] = m[2]
	}
	rows := 0
	var walk func(id string, v any)
	walk = func(id string, v any) {
		if other := like[id]; other != "" {
			id = other
		}
		switch v := v.(type) {
		case object:
			for _, m := range v {
				if rows++; !ids[id+"."+m.Key] {
					t.Errorf("%s.%s has no row", id, m.Key)
				}
				walk(id+"."+m.Key, m.Value)
			}
		case []any:
			for _, x := range v {
				walk(id, x)
			}
		}
	}
	outline, err := parseOutline(outlineText)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range outline.Resources {
		if r.Response == "Historical" { // has the fields of gex/spx
			continue
		}
		id := strings.ReplaceAll(r.Endpoint, "/", "-")
		answer := made.at("components", "responses", r.Response, "content", "application/json", "examples", "simulated", "value").(object)
		walk(id, answer.get("data"))
		walk(id+".meta.quality", answer.at("meta", "quality"))
		for _, m := range answer.get("meta").(object) {
			if m.Key != "quality" && m.Key != "receipt" {
				walk("meta."+m.Key, m.Value)
			}
		}
	}
	if rows < 300 {
		t.Errorf("only %d fields", rows)
	}
}

func TestATypeInWords(t *testing.T) {
	number := object{{"type", []any{"number", "null"}}}
	for want, schema := range map[string]object{
		"number or null":                     number,
		"date":                               {{"type", "string"}, {"format", "date"}},
		"object or null":                     {{"oneOf", []any{reference("schemas", "Band"), object{{"type", "null"}}}}},
		"array of objects":                   {{"type", "array"}, {"items", reference("schemas", "Flip")}},
		"array of arrays of numbers or null": {{"type", "array"}, {"items", object{{"type", "array"}, {"items", number}}}},
	} {
		if got := typeOf(schema); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Long lists in an example end with a mark.
func TestAnExampleSaysWhereItIsShortened(t *testing.T) {
	p := &pages{document: made}
	schema := object{{"properties", object{
		{"open", object{{"items", object{{"type", "integer"}}}}}, {"pair", object{{"items", object{}}, {"maxItems", 2}}}, {"one", object{{"items", object{}}}},
		{"flow", object{{"items", reference("schemas", "FlowItem")}}},
	}}}
	item := object{{"reasons", []any{"a", "b"}}}
	got := oneLine(p.shorten(object{{"open", []any{1, 2}}, {"pair", []any{1, 2}}, {"one", []any{1}}, {"flow", []any{item}}}, schema))
	if want := `{"open": [1, 2, "…"], "pair": [1, 2], "one": [1], "flow": [{"reasons": ["a", "b", "…"]}]}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if n := strings.Count(page(), "\n  …") + strings.Count(page(), " …]"); n == 0 {
		t.Error("no example is marked")
	}
}

func TestTheFilesAreServedAsWhatTheyAre(t *testing.T) {
	var got []string
	for _, f := range openapi.Files() {
		got = append(got, fmt.Sprint(f.Path, " ", f.ContentType, " ", f.Page, " ", len(f.Body) > 1000))
	}
	want := []string{"/openapi.json application/json false true", "/docs text/html; charset=utf-8 true true", "/methods text/html; charset=utf-8 true true", "/docs.css text/css; charset=utf-8 true true",
		"/docs.js text/javascript; charset=utf-8 true true"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// HTML in a description is shown as text.
func TestADescriptionCannotBreakThePage(t *testing.T) {
	want := "<p>&lt;script&gt;alert(1)&lt;/script&gt; <strong>&lt;b&gt;</strong> <code>&lt;i&gt;</code></p>"
	if got := prose("<script>alert(1)</script> **<b>** `<i>`"); string(got) != want {
		t.Error(got)
	}
}
