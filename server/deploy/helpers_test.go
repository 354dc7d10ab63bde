package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// binary builds the program once for all tests and returns its path.
var binary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, "strikecache")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Dir = filepath.Join("..", "..")
	build.Stderr = os.Stderr
	return path, build.Run()
})

// scratch is a directory for the whole run.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "strikecache-deploy-"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(scratch)
	os.Exit(code)
}

func strikecache(t *testing.T) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// program returns the path of a program, or skips the test. STRIKECACHE_REQUIRE, a comma-separated list of programs or
// all, turns the skip into a failure.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if required := strings.Split(os.Getenv("STRIKECACHE_REQUIRE"), ","); slices.Contains(required, name) || slices.Contains(required, "all") {
		t.Fatalf("program %s is not installed, and STRIKECACHE_REQUIRE asks for it", name)
	}
	t.Skipf("needs %s, which is not installed", name)
	return ""
}

// run runs a program and returns what it prints. An error fails the test.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// text returns the content of a file of this folder.
func text(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
