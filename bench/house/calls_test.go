package house

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The files of a package can be put in an order in which each calls only files below it. Whoever reads a file then knows
// that no function below it leads back to it. A use of a function as a value counts as a call. A call through an interface
// or a variable does not.
func TestCallsRunDownward(t *testing.T) {
	exports := map[string]string{} // compiled packages, by import path
	for _, line := range goList(t, "-deps", "-export", "-f", "{{.ImportPath}}={{.Export}}", "./snapshots", "./server", "./refresh") {
		path, file, _ := strings.Cut(line, "=")
		exports[path] = file
	}
	set := token.NewFileSet()
	imports := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, dir := range []string{"snapshots", "server", "refresh"} {
		var files []*ast.File
		for _, name := range goList(t, "-f", `{{join .GoFiles " "}}`, "./"+dir) {
			f, err := parser.ParseFile(set, filepath.Join(root, dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		c, err := callsOf(set, files, imports)
		if err != nil {
			t.Fatalf("check the types of %s: %v", dir, err)
		}
		if len(c) < len(files)/2 {
			t.Fatalf("%s: only %d of %d files call another file", dir, len(c), len(files))
		}
		if cycle := c.cycle(); cycle != "" {
			t.Errorf("%s: calls run in a circle: %s. Move a function to the file that its callers may call", dir, cycle)
		}
	}
}

// calls holds a function of the second file that the first file calls, by both files.
type calls map[string]map[string]string

// callsOf returns the calls between the files of a package.
func callsOf(set *token.FileSet, files []*ast.File, imports types.Importer) (calls, error) {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: imports}
	pkg, err := config.Check(files[0].Name.Name, set, files, info)
	if err != nil {
		return nil, err
	}
	fileOf := func(pos token.Pos) string { return filepath.Base(set.Position(pos).Filename) }
	c := calls{}
	for id, object := range info.Uses {
		f, ok := object.(*types.Func)
		if !ok || f.Pkg() != pkg {
			continue
		}
		if receiver := f.Signature().Recv(); receiver != nil && types.IsInterface(receiver.Type()) {
			continue
		}
		from, to := fileOf(id.Pos()), fileOf(f.Pos())
		if from == to {
			continue
		}
		if c[from] == nil {
			c[from] = map[string]string{}
		}
		if known := c[from][to]; known == "" || f.Name() < known {
			c[from][to] = f.Name()
		}
	}
	return c, nil
}

// cycle returns the shortest cycle of calls as text, "" when there is none.
func (c calls) cycle() (shortest string) {
	length := len(c) + 2 // more files than any cycle names
	for _, start := range slices.Sorted(maps.Keys(c)) {
		if files := c.wayBack(start); files != nil && len(files) < length {
			length, shortest = len(files), start
			for i := range files[1:] {
				shortest += fmt.Sprintf(" → %s (%s)", files[i+1], c[files[i]][files[i+1]])
			}
		}
	}
	return shortest
}

// wayBack returns the files on the shortest way of calls from a file back to it, the file first and last, nil when no way
// leads back.
func (c calls) wayBack(start string) []string {
	seen := map[string]bool{}
	for ways := [][]string{{start}}; len(ways) > 0; ways = ways[1:] {
		way := ways[0]
		for _, to := range slices.Sorted(maps.Keys(c[way[len(way)-1]])) {
			next := append(slices.Clip(way), to)
			if to == start {
				return next
			}
			if !seen[to] {
				seen[to] = true
				ways = append(ways, next)
			}
		}
	}
	return nil
}
