package openapi_test

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

//go:embed methods.tmpl
var methodsTemplate string

// methodsFile defines every number. methods.html shows it.
const methodsFile = "../../compute/METHODS.md"

// methodsSection is a heading with the text below it, up to the next heading. Its ID is the number in the heading, such as
// 1.2, and its name is the rest of the heading up to the first comma. The title of the page has no ID.
type methodsSection struct {
	ID, Name string
	Level    int
	HTML     template.HTML
}

// numbered splits a heading. sectionMark finds the number of another section in rendered text.
var (
	numbered    = regexp.MustCompile(`^(\d+(?:\.\d+)?)\.? +([^,(]*[^,( ])`)
	sectionMark = regexp.MustCompile(`§+(\d+(?:\.\d+)?)`)
)

// renderMethods returns a text in Markdown as a page.
func renderMethods(source []byte) ([]byte, error) {
	markdown := goldmark.New(goldmark.WithExtensions(extension.Table))
	var sections []methodsSection
	var fault error
	html := func(n ast.Node) template.HTML {
		var out bytes.Buffer
		if err := markdown.Renderer().Render(&out, source, n); err != nil {
			fault = err
		}
		return template.HTML(out.String())
	}
	section := methodsSection{}
	doc := markdown.Parser().Parse(text.NewReader(source))
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Heading:
			sections = append(sections, section)
			section = heading(n, source, html)
		case *tables.Table:
			for cell := n.FirstChild().FirstChild(); cell != nil; cell = cell.NextSibling() {
				cell.SetAttributeString("scope", []byte("col"))
			}
			label := template.HTMLEscapeString(section.Name)
			section.HTML += template.HTML(`<div class="table" tabindex="0" role="region" aria-label="`+label+`">`) + html(n) + "</div>\n"
		default:
			section.HTML += html(n)
		}
	}
	sections = append(sections, section)[1:] // there is no text above the first heading
	ids := map[string]bool{}
	for _, s := range sections {
		ids[s.ID] = true
	}
	for i, s := range sections {
		sections[i].HTML = template.HTML(sectionMark.ReplaceAllStringFunc(string(s.HTML), func(mark string) string {
			if id := strings.TrimLeft(mark, "§"); ids[id] {
				return `<a href="#` + id + `">` + mark + `</a>`
			}
			return mark
		}))
	}
	t, err := template.New("methods").Parse(methodsTemplate)
	if err != nil {
		return nil, fmt.Errorf("parse methods.tmpl: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, struct{ Sections []methodsSection }{sections}); err != nil {
		return nil, err
	}
	return out.Bytes(), fault
}

// heading begins a section. Its heading is a link to itself.
func heading(n *ast.Heading, source []byte, html func(ast.Node) template.HTML) methodsSection {
	var inner template.HTML
	for child := n.FirstChild(); child != nil; child = child.NextSibling() {
		inner += html(child)
	}
	s := methodsSection{Level: n.Level, Name: string(n.Lines().Value(source))}
	if m := numbered.FindStringSubmatch(s.Name); m != nil {
		s.ID, s.Name = m[1], m[1]+" "+strings.ReplaceAll(m[2], "`", "")
		inner = template.HTML(`<a href="#`+s.ID+`">`) + inner + "</a>"
	}
	id := ""
	if s.ID != "" {
		id = ` id="` + s.ID + `"`
	}
	s.HTML = template.HTML(fmt.Sprintf("<h%d%s>%s</h%d>\n", n.Level, id, inner, n.Level))
	return s
}

// methods returns methods.html as it must be.
func methods() ([]byte, error) {
	source, err := os.ReadFile(methodsFile)
	if err != nil {
		return nil, err
	}
	return renderMethods(source)
}

// The page has every word of the text, and its sections, tables and references can be reached.
func TestTheMethodsPageHasEverything(t *testing.T) {
	source, err := os.ReadFile(methodsFile)
	if err != nil {
		t.Fatal(err)
	}
	page, err := renderMethods(source)
	if err != nil {
		t.Fatal(err)
	}
	html := string(page)
	for number := range strings.FieldsSeq("0 1 1.1 1.2 1.3 1.7 2 3 4 5 6 7") {
		if !strings.Contains(html, ` id="`+number+`"><a href="#`+number+`">`) || !strings.Contains(html, `"><a href="#`+number+`">`) {
			t.Errorf("no section %s", number)
		}
	}
	_, content, _ := strings.Cut(html, "<main")
	plain := strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&amp;", "&").Replace(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(content, " "))
	shown := strings.Join(strings.Fields(plain), "")
	for word := range strings.FieldsSeq(strings.NewReplacer("`", " ", "*", " ", `\|`, "|", "#", " ", "|---", " ").Replace(string(source))) {
		word = strings.Trim(word, "|")
		if word != "-" && word != "" && !regexp.MustCompile(`^\d+\.$`).MatchString(word) && !strings.Contains(shown, word) {
			t.Errorf("%q is not shown", word)
		}
	}
	if n, want := strings.Count(html, `<div class="table" tabindex="0"`), strings.Count(string(source), "\n|---"); n != want || n < 5 || strings.Count(html, "<table>") != n {
		t.Errorf("%d tables scroll inside themselves, want %d", n, want)
	}
}

// HTML in the text is shown as text.
func TestMarkupInTheMethodsIsNoMarkup(t *testing.T) {
	page, err := renderMethods([]byte("# A\n\n<script>alert(1)</script>\n\nb <i onclick=\"x\"> c\n\n## 1. <b>D</b>\n\n|a|\n|---|\n|<img src=x>|\n"))
	if err != nil || regexp.MustCompile(`<script|<i |<b>|<img`).Match(page) {
		t.Errorf("%v %s", err, page)
	}
}
