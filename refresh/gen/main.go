// Command gen writes the files of server/openapi that are made from others, and prints the names of those that it changed. It is
// in refresh because it needs the Go types of the results. Its folder must be the project's root, as in go generate ./server/openapi.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

const folder = "server/openapi/"

type object = map[string]any

func main() {
	for name, content := range files() {
		if old, err := os.ReadFile(folder + name); err != nil || !bytes.Equal(old, content) {
			check(os.WriteFile(folder+name, content, 0o644))
			fmt.Println(folder + name)
		}
	}
}

// files returns the contents of the files by name.
func files() map[string][]byte {
	answers := map[string]json.RawMessage{}
	check(json.Unmarshal(must(os.ReadFile(folder+"testdata/answers.json")), &answers))
	document, methods := makeDocument(answers), must(os.ReadFile("compute/METHODS.md"))
	p := newPage(document, answers)
	return map[string][]byte{
		"openapi.json": document, "tools.json": encode(p.tools()), "widgets.json": encode(p.widgets()),
		"docs.html": render("docs.tmpl", p), "methods.html": methodsPage(string(methods)), "methods.markdown": methods, "llms.txt": p.llms(),
	}
}

// encode returns v as JSON with a line per value.
func encode(v any) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	check(e.Encode(v))
	return out.Bytes()
}

// check panics on an error: nobody but a developer runs this program.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](v T, err error) T {
	check(err)
	return v
}
