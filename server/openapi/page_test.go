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
	html := page() + string(formats(made)["methods.html"])
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
	if len(links) < 500 {
		t.Errorf("only %d links", len(links))
	}
	for _, p := range made.get("paths").(object) {
		if !ids[p.Value.(object).at("get", "operationId").(string)] || !strings.Contains(html, ">"+p.Key+"</a></h3>") {
			t.Errorf("%s is not shown", p.Key)
		}
	}
	for kind, prefix := range map[string]string{"schemas": "schema-", "responses": "response-", "headers": "header-"} {
		for _, c := range made.at("components", kind).(object) {
			if !ids[prefix+c.Key] {
				t.Errorf("%s%s is not shown", prefix, c.Key)
			}
		}
	}
	for _, alternatives := range []string{"AnonymousUsage KeyedUsage", "GammaAnswer ImportedAnswer"} { // oneOf, anyOf
		one, other, _ := strings.Cut(alternatives, " ")
		if !strings.Contains(html, ">"+one+`</a> or <a href="#schema-`+other+`">`) {
			t.Errorf("the alternatives %s and %s are not shown", one, other)
		}
	}
	units := map[string]bool{}
	each("", made.at("components", "schemas"), func(at string, o object) {
		for _, p := range fields(o) {
			if o.get("prefixItems") == nil && !strings.Contains(html, "<code>"+p.Key+"</code>") {
				t.Errorf("%s of %s is not shown", p.Key, at)
			}
		}
		text, _ := o.get("description").(string)
		if unit := unitOf(text); unit != "" {
			if units[unit] = true; !strings.Contains(html, "<td>"+unit+"</td>") {
				t.Errorf("unit %s of %s is not shown", unit, at)
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
	want := []string{"/openapi.json application/json false true", "/docs text/html; charset=utf-8 true true", "/methods text/html; charset=utf-8 true true", "/docs.css text/css; charset=utf-8 true true"}
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
