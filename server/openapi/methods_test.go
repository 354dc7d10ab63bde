package openapi_test

import (
	"bytes"
	_ "embed"
	"html/template"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
)

//go:embed methods.tmpl
var methodsTemplate string

// methodsFile defines every number. methods.html shows it.
const methodsFile = "../../compute/METHODS.md"

var (
	numbered    = regexp.MustCompile(`(?m)^##(#?) (\d+(?:\.\d+)?)\.? +([^,(\n]*[^,(\s])`) // a heading up to the first comma
	blockStart  = regexp.MustCompile(`<h([23]) id="([^"]*)">(.*)</h\d>|<table>`)
	sectionMark = regexp.MustCompile(`§+(\d+(?:\.\d+)?)`)
	tables      = strings.NewReplacer("</table>", "</table></div>", "<th>", `<th scope="col">`)
)

// numbers makes the number of a heading its ID.
type numbers struct{}

func (numbers) Put([]byte) {}
func (numbers) Generate(heading []byte, _ ast.NodeKind) []byte {
	number, _, _ := bytes.Cut(heading, []byte(" "))
	return bytes.TrimSuffix(number, []byte("."))
}

// methodsPage returns a text in Markdown as a page. Its headings and the numbers of sections in the text are links.
func methodsPage(source []byte) ([]byte, error) {
	var out bytes.Buffer
	markdown := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	if err := markdown.Convert(source, &out, parser.WithContext(parser.NewContext(parser.WithIDs(numbers{})))); err != nil {
		return nil, err
	}
	section := ""
	html := blockStart.ReplaceAllStringFunc(tables.Replace(out.String()), func(start string) string {
		if start == "<table>" {
			return `<div class="table" tabindex="0" role="region" aria-label="Table of section ` + section + `">` + start
		}
		section = blockStart.FindStringSubmatch(start)[2]
		return blockStart.ReplaceAllString(start, `<h$1 id="$2"><a href="#$2">$3</a></h$1>`)
	})
	html = sectionMark.ReplaceAllStringFunc(html, func(mark string) string {
		id := strings.TrimLeft(mark, "§")
		if !strings.Contains(html, ` id="`+id+`"`) {
			return mark
		}
		return `<a href="#` + id + `">` + mark + `</a>`
	})
	t, err := template.New("methods").Parse(methodsTemplate)
	if err != nil {
		return nil, err
	}
	out.Reset()
	err = t.Execute(&out, struct {
		Sections [][]string // each with a # if it lies within another, its number, and its name
		HTML     template.HTML
	}{numbered.FindAllStringSubmatch(strings.ReplaceAll(string(source), "`", ""), -1), template.HTML(html)})
	return out.Bytes(), err
}

// The page has every word of the text, and its sections, tables and references can be reached.
func TestTheMethodsPageHasEverything(t *testing.T) {
	source, err := os.ReadFile(methodsFile)
	if err != nil {
		t.Fatal(err)
	}
	html := string(made["methods.html"])
	for number := range strings.FieldsSeq("0 1 1.0 1.1 1.2 1.3 1.7 2 3 4 5 6 7") {
		if !strings.Contains(html, ` id="`+number+`"><a href="#`+number+`">`) || !strings.Contains(html, `<a href="#`+number+`">`+number) {
			t.Errorf("section %s is missing in the text or in the contents", number)
		}
	}
	if !strings.Contains(html, `<a href="#7">§7</a>`) {
		t.Error("the number of a section is no link")
	}
	_, content, _ := strings.Cut(html, "<main")
	plain := strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&amp;", "&").Replace(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(content, " "))
	shown := strings.Join(strings.Fields(plain), "")
	for word := range strings.FieldsSeq(strings.NewReplacer("`", " ", "*", " ", `\|`, "|", "#", " ", "|---", " ").Replace(string(source))) {
		word = strings.Trim(word, "|")
		if word != "-" && !regexp.MustCompile(`^\d+\.$`).MatchString(word) && !strings.Contains(shown, word) {
			t.Errorf("%q is not shown", word)
		}
	}
	if n, want := strings.Count(html, `<div class="table" tabindex="0"`), strings.Count(string(source), "\n|---"); n != want || n < 5 {
		t.Errorf("%d tables scroll inside themselves, want %d", n, want)
	}
}
