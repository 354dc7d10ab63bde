package compute_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"strikecache/bench/need"
)

// What package plain may take of package compute: the types and constants of its input. A function would let an error
// of the production code repeat itself in its judge.
var plainMayUse = []string{"Chain", "Contract", "Quote", "Underlying", "Series", "Skipped", "Date", "NewDate", "Call", "Put", "AM", "PM",
	"Right", "Settlement"}

// The methods of those types that compute what plain must compute itself; those of a date only tell what it is.
var plainMustNotCall = []string{"TwoSided", "Mid", "Instant", "Session", "AppendSymbol", "AddMonths"}

func parseFile(t *testing.T, path string, mode parser.Mode) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, mode)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func imports(file *ast.File) []string {
	var paths []string
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

func TestPlainIsIndependent(t *testing.T) {
	files, err := filepath.Glob("plain/*.go")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, path := range files {
		file := parseFile(t, path, 0)
		for _, imported := range imports(file) {
			standard := !strings.Contains(strings.Split(imported, "/")[0], ".") && !strings.HasPrefix(imported, "strikecache/")
			if !standard && imported != "strikecache/compute" {
				t.Errorf("%s imports %s: the judge must not rest on what it judges, nor on anything but the standard library", path, imported)
			}
		}
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "compute" && x.Obj == nil && !slices.Contains(plainMayUse, s.Sel.Name) {
				t.Errorf("%s uses compute.%s: only input types and constants may be shared", path, s.Sel.Name)
			}
			if slices.Contains(plainMustNotCall, s.Sel.Name) {
				t.Errorf("%s uses .%s: it must be computed there once more", path, s.Sel.Name)
			}
			return true
		})
	}
}

func TestNobodyImportsPlain(t *testing.T) {
	root := need.Root(t)
	seen := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // another test's temporary file
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "data"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		seen++
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err == nil && slices.Contains(imports(file), "strikecache/compute/plain") {
			t.Errorf("%s imports compute/plain: it is slow and for tests alone", path)
		}
		return nil
	})
	if err != nil || seen < 20 {
		t.Errorf("%d files, %v", seen, err)
	}
}

// The ground floor imports nothing of ours, no network and no file, reads no clock and starts no goroutine: numbers can
// be checked with a pencil.
func TestComputeIsPure(t *testing.T) {
	allowed := []string{"bufio", "bytes", "cmp", "errors", "fmt", "iter", "math", "slices", "strconv", "strings", "time", "time/tzdata"}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file := parseFile(t, path, 0)
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
