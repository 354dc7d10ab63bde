// Package house tests the project itself: which package may import which, that files and functions are short, and that cited
// files exist. The linters check that packages and exported names have comments.
package house

import (
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"strikecache/bench/testkit"
)

const module = "strikecache"

// arrows says which folders of the project the packages of a folder may import, outside their tests, and why no others. A row
// whose folder does not exist is skipped.
var arrows = []struct {
	dir, why string
	may      []string
}{
	{"compute", "numbers depend on their inputs alone: no clock, no I/O, no log, no goroutine", nil},
	{"snapshots", "it stores bytes, whatever they mean", nil},
	{"refresh", "it works without a server", []string{"compute", "snapshots"}},
	{"server", "it must not compute, even by accident", []string{"snapshots"}},
	{"bench", "it measures what any client can measure", nil},

	{"refresh/upstream", "it names documents, whoever sends them", nil},
	{"refresh/cboe", "it reads what one exchange sends", []string{"refresh/upstream", "compute"}},
	{"refresh/folder", "it is a source of documents like any other", []string{"refresh/upstream", "refresh/cboe", "compute"}},
	{"refresh/simulated", "it is a source of documents like any other", []string{"refresh/upstream", "compute"}},
	{"refresh/fleet", "it distributes bytes, whatever they mean", []string{"snapshots"}},
	{"refresh/feed", "a document is valid or not, whatever is computed from it", []string{"refresh/upstream", "refresh/cboe", "compute", "snapshots"}},
	{"refresh/product", "an answer depends on its documents, not on when it is asked for", []string{"refresh/feed", "refresh/upstream", "refresh/cboe", "compute", "snapshots"}},
}

// root is the project's folder.
const root = "../.."

// goList runs go list in the project's root.
func goList(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %v: %v", args, err)
	}
	return strings.Fields(string(out))
}

func TestArrows(t *testing.T) {
	for _, a := range arrows {
		if _, err := os.Stat(filepath.Join(root, a.dir)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		allowed := append([]string{a.dir}, a.may...)
		for _, dep := range goList(t, "-deps", "./"+a.dir+"/...") {
			folder, ours := strings.CutPrefix(dep, module+"/")
			if ours && !slices.ContainsFunc(allowed, func(may string) bool { return strings.HasPrefix(folder+"/", may+"/") }) {
				t.Errorf("%s depends on %s: %s", a.dir, dep, a.why)
			}
		}
	}
	for _, found := range goList(t, "-f", `{{$package := .ImportPath}}{{range .Imports}}{{if eq . "testing"}}{{$package}}{{end}}{{end}}`, "./...") {
		t.Errorf("%s imports testing: test code belongs into files that end in _test.go", found)
	}
}

const maxArrowsUp = 20 // between the files of refresh and between those of refresh/product, together

// An arrow runs from a file to one that declares what it uses: a name of the package, a field or a method. The files of a package
// are put in an order, lowest first, in which few arrows run up, from a file to a later one: none, unless files form a circle.
func TestArrowsBetweenFiles(t *testing.T) {
	var up []string
	for _, dir := range []string{"refresh", "refresh/product"} {
		if _, err := os.Stat(filepath.Join(root, dir)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		files, uses := usesBetweenFiles(t, dir)
		order := fewUp(files, uses)
		for i, from := range order {
			for _, to := range order[i+1:] {
				if names := uses[[2]string{from, to}]; names != nil {
					names = slices.Compact(slices.Sorted(slices.Values(names)))
					up = append(up, fmt.Sprintf("%s: %s uses %s: %s", dir, from, to, strings.Join(names, ", ")))
				}
			}
		}
	}
	if len(up) > maxArrowsUp {
		t.Errorf("%d arrows between files run up, more than %d:\n%s", len(up), maxArrowsUp, strings.Join(up, "\n"))
	}
}

// usesBetweenFiles returns the files of a package, but for tests, and which names each uses of which other.
func usesBetweenFiles(t *testing.T, dir string) (files []string, uses map[[2]string][]string) {
	compiled := map[string]string{}
	for _, dep := range goList(t, "-deps", "-export", "-f", "{{.ImportPath}}={{.Export}}", "./"+dir) {
		path, file, _ := strings.Cut(dep, "=")
		compiled[path] = file
	}
	dependencies := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(compiled[path]) })
	set, info, uses := token.NewFileSet(), types.Info{Uses: map[*ast.Ident]types.Object{}}, map[[2]string][]string{}
	files = goList(t, "-f", `{{join .GoFiles "\n"}}`, "./"+dir)
	var parsed []*ast.File
	for _, name := range files {
		f, _ := parser.ParseFile(set, filepath.Join(root, dir, name), nil, parser.SkipObjectResolution) // go list has compiled it
		parsed = append(parsed, f)
	}
	pkg, err := (&types.Config{Importer: dependencies}).Check(module+"/"+dir, set, parsed, &info)
	testkit.Must(t, err)
	base := func(pos token.Pos) string { return filepath.Base(set.Position(pos).Filename) }
	for id, what := range info.Uses {
		ends := [2]string{base(id.Pos()), base(what.Pos())}
		if what.Pkg() == pkg && (what.Parent() == nil || what.Parent() == pkg.Scope()) && ends[0] != ends[1] { // a field or method has no parent
			uses[ends] = append(uses[ends], id.Name)
		}
	}
	return files, uses
}

// fewUp orders files so that few arrows run up: it moves one file at a time to its best place, until no move helps.
func fewUp(order []string, uses map[[2]string][]string) []string {
	arrow := func(from, to string) int { return min(len(uses[[2]string{from, to}]), 1) }
	for moved := true; moved; {
		moved = false
		for _, file := range slices.Clone(order) {
			at := slices.Index(order, file)
			order = slices.Delete(order, at, at+1)
			up := []int{0} // arrows that run up with the file at each place, less those at the first
			for i, other := range order {
				up = append(up, up[i]+arrow(other, file)-arrow(file, other))
			}
			if least := slices.Min(up); up[at] > least {
				at, moved = slices.Index(up, least), true
			}
			order = slices.Insert(order, at, file)
		}
	}
	return order
}

const (
	maxFileLines     = 450
	maxFunctionLines = 80
)

func TestSizes(t *testing.T) {
	for _, file := range tracked(t) {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, filepath.Join(root, file), nil, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, but the deletion is not committed
		}
		testkit.Must(t, err)
		if n := set.File(f.Pos()).LineCount(); n > maxFileLines {
			t.Errorf("%s has %d lines, more than %d: split the file", file, n, maxFileLines)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				if n := set.Position(fn.End()).Line - set.Position(fn.Pos()).Line + 1; n > maxFunctionLines {
					t.Errorf("%s: %s has %d lines, more than %d", file, fn.Name.Name, n, maxFunctionLines)
				}
			}
		}
	}
}

// tracked returns the files of the project, as paths relative to its root.
func tracked(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Skip("needs a git checkout")
	}
	return strings.Fields(string(out))
}

// The top level has these files and folders only, besides dotfiles and files that git ignores.
func TestTopLevel(t *testing.T) {
	allowed := []string{"main.go", "server", "refresh", "compute", "snapshots", "bench", "go.mod", "go.sum", "Makefile", "README.md", "LICENSE"}
	for _, file := range tracked(t) {
		top, _, _ := strings.Cut(file, "/")
		if !strings.HasPrefix(top, ".") && !slices.Contains(allowed, top) {
			t.Errorf("%s must not be on the top level", top)
		}
	}
}

var (
	markdown  = regexp.MustCompile(`[\w./-]+\.md\b`)
	workplace = regexp.MustCompile(`(^|[^\w./-])/(work|root|home)/`)
)

// Every .md file that a file cites is in the repository, and no file names a path of the machine on which it was written.
func TestCitations(t *testing.T) {
	files := tracked(t)
	for _, file := range files {
		switch ext := path.Ext(file); {
		case strings.Contains(file, "testdata/"), ext != ".go" && ext != ".md" && ext != ".sh" && ext != "" && ext != ".yml" && ext != ".yaml":
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			continue // deleted, but the deletion is not committed
		}
		for number, line := range strings.Split(string(text), "\n") {
			if !strings.Contains(line, "://") {
				for _, cited := range markdown.FindAllString(strings.ReplaceAll(line, `\n`, " "), -1) {
					if !slices.Contains(files, path.Clean(cited)) && !slices.Contains(files, path.Join(path.Dir(file), cited)) {
						t.Errorf("%s:%d cites %s, which does not exist", file, number+1, cited)
					}
				}
			}
			if workplace.MatchString(line) && !strings.Contains(line, "workplace = ") && !strings.Contains(line, "inside = ") {
				t.Errorf("%s:%d names a path of one machine: %s", file, number+1, strings.TrimSpace(line))
			}
		}
	}
}

// LICENSE names every module of the binary.
func TestLicenceNamesEveryModule(t *testing.T) {
	licence, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	testkit.Must(t, err)
	for _, path := range goList(t, "-deps", "-f", `{{with .Module}}{{.Path}}{{end}}`, ".") {
		name := strings.TrimSuffix(strings.TrimSuffix(path, "/v2"), "/v3")
		if path != module && !strings.Contains(string(licence), name+" ") && !strings.Contains(string(licence), name+",") {
			t.Errorf("LICENSE does not name %s", name)
		}
	}
}
