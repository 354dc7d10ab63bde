package compute_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func parseFiles(t *testing.T, fset *token.FileSet, pattern string) map[string]*ast.File {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]*ast.File{}
	for _, path := range paths {
		file, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files[path] = file
	}
	return files
}

func imports(file *ast.File) []string {
	var paths []string
	for _, spec := range file.Imports {
		if path, err := strconv.Unquote(spec.Path.Value); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// Package compute imports no other package of ours, no network and no file. It reads no clock and starts no goroutine. So
// its results depend on its inputs alone.
func TestComputeIsPure(t *testing.T) {
	allowed := []string{"bufio", "bytes", "cmp", "errors", "fmt", "iter", "maps", "math", "slices", "strconv", "strings", "time", "time/tzdata"}
	for path, file := range parseFiles(t, token.NewFileSet(), "*.go") {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		for _, imported := range imports(file) {
			if !slices.Contains(allowed, imported) {
				t.Errorf("%s imports %s", path, imported)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s starts a goroutine", path)
			case *ast.SelectorExpr:
				x, ok := n.X.(*ast.Ident)
				if ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "After", "Sleep", "NewTimer"}, n.Sel.Name) {
					t.Errorf("%s uses time.%s", path, n.Sel.Name)
				}
			}
			return true
		})
	}
}
