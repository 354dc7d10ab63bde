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

// Package compute imports no other package of ours, no network and no file. It reads no clock and starts no goroutine. So
// its results depend on its inputs alone. It uses sync for memory that is used again.
func TestComputeIsPure(t *testing.T) {
	allowed := []string{"bytes", "cmp", "errors", "fmt", "iter", "maps", "math", "slices", "strconv", "strings", "sync", "time", "time/tzdata"}
	paths, err := filepath.Glob("*.go")
	if err != nil || len(paths) < 20 {
		t.Fatalf("%d files: %v", len(paths), err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		must(t, err)
		for _, imported := range file.Imports {
			if name, _ := strconv.Unquote(imported.Path.Value); !slices.Contains(allowed, name) {
				t.Errorf("%s imports %s", path, name)
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
