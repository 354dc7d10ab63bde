package openapi_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"strikecache/server/openapi"
)

func page(t *testing.T) string {
	t.Helper()
	html, err := os.ReadFile("docs.html")
	if err != nil {
		t.Fatal(err)
	}
	return string(html)
}

// What the content security policy forbids would be missing in a browser.
func TestThePageNeedsNothingElse(t *testing.T) {
	html := page(t)
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

func TestThePageHasEverything(t *testing.T) {
	html := page(t)
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(html, -1) {
		if ids[m[1]] {
			t.Errorf("two elements are %s", m[1])
		}
		ids[m[1]] = true
	}
	links := regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(html, -1)
	for _, m := range links {
		if !ids[m[1]] {
			t.Errorf("a link leads to %s, which is not there", m[1])
		}
	}
	if len(links) < 500 {
		t.Errorf("only %d links", len(links))
	}
	var doc struct {
		Paths      map[string]struct{ Get struct{ OperationID string } }
		Components struct{ Schemas, Responses, Headers map[string]json.RawMessage }
	}
	if err := json.Unmarshal(document(t), &doc); err != nil {
		t.Fatal(err)
	}
	for path, item := range doc.Paths {
		if !ids[item.Get.OperationID] || !strings.Contains(html, ">"+path+"</a></h3>") {
			t.Errorf("%s is not shown", path)
		}
	}
	for prefix, components := range map[string]map[string]json.RawMessage{"schema-": doc.Components.Schemas, "response-": doc.Components.Responses, "header-": doc.Components.Headers} {
		for name := range components {
			if !ids[prefix+name] {
				t.Errorf("%s%s is not shown", prefix, name)
			}
		}
	}
	parsedDocument, _ := parsed(t)
	unit, units := regexp.MustCompile(` Unit: ([^.]+)\.$`), map[string]bool{}
	for _, alternatives := range []string{"AnonymousUsage KeyedUsage", "GammaAnswer ImportedAnswer"} { // oneOf, anyOf
		one, other, _ := strings.Cut(alternatives, " ")
		if !strings.Contains(html, ">"+one+`</a> or <a href="#schema-`+other+`">`) {
			t.Errorf("that it is %s or %s is not shown", one, other)
		}
	}
	// Every field of every schema, and every unit.
	each("", parsedDocument, func(at string, o map[string]any) {
		properties, _ := o["properties"].(map[string]any)
		for name := range properties {
			if strings.HasPrefix(at, "/components/schemas/") && !strings.Contains(html, "<code>"+name+"</code>") {
				t.Errorf("%s of %s is not shown", name, at)
			}
		}
		text, _ := o["description"].(string)
		if m := unit.FindStringSubmatch(text); m != nil {
			if units[m[1]] = true; !strings.Contains(html, "<td>"+m[1]+"</td>") {
				t.Errorf("unit %s of %s is not shown", m[1], at)
			}
		}
	})
	if len(units) < 25 {
		t.Errorf("only %d units", len(units))
	}
}

func TestTheFilesAreServedAsWhatTheyAre(t *testing.T) {
	var got []string
	for _, f := range openapi.Files() {
		got = append(got, fmt.Sprint(f.Path, " ", f.ContentType, " ", f.Page, " ", len(f.Body) > 1000))
	}
	want := []string{"/openapi.json application/json false true", "/docs text/html; charset=utf-8 true true", "/docs.css text/css; charset=utf-8 true true"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// Whatever stands in a description is text.
func TestADescriptionCannotBreakThePage(t *testing.T) {
	want := "<p>&lt;script&gt;alert(1)&lt;/script&gt; <strong>&lt;b&gt;</strong> <code>&lt;i&gt;</code></p>"
	if got := prose("<script>alert(1)</script> **<b>** `<i>`"); string(got) != want {
		t.Error(got)
	}
}
