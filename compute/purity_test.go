package compute_test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
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

// The plain implementation may use types and constants of package compute, but no function: otherwise it would repeat the
// errors that it must find. It may not use the tests beside it: its files compile alone.
func TestPlainIsIndependent(t *testing.T) {
	allowed := []string{"Chain", "Contract", "Series", "Skipped", "Date", "NewDate", "Right", "Call", "Put", "AM", "PM", "Settlement"}
	methods := []string{"TwoSided", "Mid", "Instant", "Session", "Symbol", "AddMonths", "Weekend", "At", "QuoteInstant"} // it has its own versions
	packages := []string{"cmp", "fmt", "math", "slices", "time", "strikecache/compute"}
	fset := token.NewFileSet()
	files := parseFiles(t, fset, "plain*_test.go")
	if len(files) < 4 {
		t.Fatalf("only %d files", len(files))
	}
	var all []*ast.File
	for path, file := range files {
		all = append(all, file)
		for _, imported := range imports(file) {
			if !slices.Contains(packages, imported) {
				t.Errorf("%s imports %s", path, imported)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := s.X.(*ast.Ident)
			if ok && x.Name == "compute" && !slices.Contains(allowed, s.Sel.Name) || slices.Contains(methods, s.Sel.Name) {
				t.Errorf("%s uses %s of package compute", path, s.Sel.Name)
			}
			return true
		})
	}
	config := types.Config{Importer: importer.ForCompiler(fset, "source", nil)}
	if _, err := config.Check("compute_test", fset, all, nil); err != nil {
		t.Errorf("the plain implementation does not compile alone: %v", err)
	}
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
