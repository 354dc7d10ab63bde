// Package need finds what some tests need and a machine may lack: recorded documents, reference programs, other
// software. A test that lacks it is skipped with a reason; STRIKECACHE_REQUIRE, a comma-separated list of what
// must be there, or all, turns that skip into a failure.
package need

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Recorded returns the folder of recorded upstream documents, beside the project's root.
func Recorded(t testing.TB) string {
	t.Helper()
	return shared(t, "recorded")
}

// Document returns the bytes of a recorded document, a path below [Recorded]; one that ends in .gz is unpacked.
func Document(t testing.TB, path string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(Recorded(t), filepath.FromSlash(path)))
	if err == nil && strings.HasSuffix(path, ".gz") {
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
			body, err = io.ReadAll(z)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// Oracle returns the folder of the reference programs' outputs, beside the project's root.
func Oracle(t testing.TB) string {
	t.Helper()
	return shared(t, "oracle")
}

// Program returns the path of a program.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		lack(t, name, "program "+name+" is not installed")
	}
	return path
}

// Long skips a test in short runs.
func Long(t testing.TB, why string) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a long run: " + why)
	}
}

// Full says whether the run is a full one, as make faults asks for, and not the short form of make test.
func Full() bool { return os.Getenv("STRIKECACHE_FULL") != "" }

// Count returns full in a full run, and a tenth of it, rounded up, in the short form.
func Count(full int) int {
	if Full() {
		return full
	}
	return (full + 9) / 10
}

// Figure reports a figure of a test: what was injected, survived or held. make faults lists the figures.
func Figure(t testing.TB, format string, args ...any) {
	t.Helper()
	t.Logf("figure: "+format, args...)
}

// Root returns the project's root folder.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the working directory")
		}
		dir = parent
	}
}

func shared(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join(Root(t), "..", "shared", name)
	if _, err := os.Stat(dir); err != nil {
		lack(t, name, "folder ../shared/"+name+" is absent")
	}
	return dir
}

func lack(t testing.TB, name, why string) {
	t.Helper()
	required := strings.Split(os.Getenv("STRIKECACHE_REQUIRE"), ",")
	if slices.Contains(required, name) || slices.Contains(required, "all") {
		t.Fatalf("%s, and STRIKECACHE_REQUIRE asks for it", why)
	}
	t.Skipf("needs %s: %s", name, why)
}
