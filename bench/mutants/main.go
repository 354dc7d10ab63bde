// Command mutants plants named faults in the code, one at a time, and shows that a named test kills each. It
// changes no file: the go command is given the faulty text as an overlay. It exits 1 when a fault survives, when
// a fault no longer fits the code, or when a test fails without one.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run() error {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return err
	}
	root := filepath.Dir(strings.TrimSpace(string(out)))
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := soundWithout(root); err != nil {
		return err
	}
	survived := 0
	for _, m := range mutants {
		verdict := "killed"
		if err := m.plant(root, dir); err != nil {
			verdict = "SURVIVED: " + err.Error()
			survived++
		}
		fmt.Printf("%-38s %-44s %s\n", m.name, m.test, verdict)
	}
	fmt.Printf("%d faults planted, %d killed\n", len(mutants), len(mutants)-survived)
	if survived > 0 {
		return fmt.Errorf("%d faults survived", survived)
	}
	return nil
}

// soundWithout runs the named tests on the code as it is: all must pass, and exist.
func soundWithout(root string) error {
	tests := map[string][]string{}
	for _, m := range mutants {
		tests[m.pkg] = append(tests[m.pkg], m.test)
	}
	for pkg, names := range tests {
		out, err := goTest(root, pkg, strings.Join(names, "|"))
		if err != nil {
			return fmt.Errorf("tests of %s fail without a fault: %s", pkg, out)
		}
		for _, name := range names {
			if !strings.Contains(out, "--- PASS: "+name+" ") {
				return fmt.Errorf("%s has no test %s that ran", pkg, name)
			}
		}
	}
	return nil
}

// plant runs the mutant's test on the faulty code and returns an error unless it fails for the fault.
func (m *mutant) plant(root, dir string) error {
	path := filepath.Join(root, filepath.FromSlash(m.file))
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if n := strings.Count(string(text), m.is); n != 1 {
		return fmt.Errorf("%q stands %d times in %s, want once", m.is, n, m.file)
	}
	faulty := filepath.Join(dir, "mutant.go")
	if err := os.WriteFile(faulty, []byte(strings.Replace(string(text), m.is, m.becomes, 1)), 0o600); err != nil {
		return err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: faulty}})
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		return err
	}
	out, err := goTest(root, m.pkg, m.test, "-overlay", file)
	switch {
	case err == nil:
		return errors.New("the test passes")
	case strings.Contains(out, "--- FAIL: "+m.test):
		return nil
	case strings.Contains(out, "=== RUN   "+m.test) && strings.Contains(out, "\npanic: "):
		return nil // the fault ended the test's process
	}
	return fmt.Errorf("the test did not run: %s", out)
}

func goTest(root, pkg, tests string, args ...string) (string, error) {
	cmd := exec.Command("go", append(append([]string{"test", "-v", "-count=1", "-run", "^(" + tests + ")$"}, args...), "./"+pkg)...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	return string(out), err
}
