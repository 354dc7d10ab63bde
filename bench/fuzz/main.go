// Command fuzz runs every fuzz target of the project in turn, for a number of inputs or for a time, and tells how many
// inputs each has got. It builds one instrumented test binary a package, where go test -fuzz would build one a target.
// An input that fails is stored as a seed, testdata/fuzz/TARGET/… beside the target, and the command exits 1.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

func main() {
	inputs := flag.Int("inputs", 1000, "inputs for each target, its seeds included")
	duration := flag.Duration("time", 0, "time for each target, instead of -inputs")
	only := flag.String("run", "", "targets whose names match this regular expression alone")
	flag.Parse()
	limit, corpus := strconv.Itoa(*inputs)+"x", ""
	if *duration > 0 { // a long run goes on from what the last one found, where go test keeps it too
		limit, corpus = duration.String(), "GOCACHE"
	}
	if err := run(limit, corpus, *only); err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
}

// run fuzzes with a corpus of its own, or with the one below the directory that a variable of go env names.
func run(limit, corpus, only string) error {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	packages, err := list()
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "fuzz-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	kept := tmp
	if corpus != "" {
		out, err := exec.Command("go", "env", corpus).Output()
		if err != nil {
			return fmt.Errorf("go env: %w", err)
		}
		kept = filepath.Join(strings.TrimSpace(string(out)), "fuzz")
	}
	start, targets, total, failed := time.Now(), 0, 0, 0
	for _, p := range packages {
		p.keep(wanted)
		if len(p.targets) == 0 {
			continue
		}
		if err := p.build(tmp, kept); err != nil {
			return err
		}
		for _, target := range p.targets {
			n, err := p.fuzz(target, limit)
			targets, total = targets+1, total+n
			verdict := ""
			if err != nil {
				failed++
				verdict = "  FAILED: " + err.Error()
			}
			fmt.Printf("%-34s %-26s %9d inputs%s\n", p.path, target, n, verdict)
		}
	}
	fmt.Printf("%d fuzz targets, %d inputs, %d failed, in %v\n", targets, total, failed, time.Since(start).Round(time.Second))
	switch {
	case targets == 0:
		return errors.New("there is no such target")
	case failed > 0:
		return fmt.Errorf("%d of %d targets failed", failed, targets)
	}
	return nil
}

// pkg is a package with fuzz targets.
type pkg struct {
	path, dir, binary, corpus string
	targets                   []string
}

var declaration = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`)

// list finds the fuzz targets of all packages.
func list() ([]*pkg, error) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}}{{"\t"}}{{.Dir}}{{range .TestGoFiles}}{{"\t"}}{{.}}{{end}}{{range .XTestGoFiles}}{{"\t"}}{{.}}{{end}}`, "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var packages []*pkg
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		p := &pkg{path: fields[0], dir: fields[1]}
		for _, file := range fields[2:] {
			text, err := os.ReadFile(filepath.Join(p.dir, file))
			if err != nil {
				return nil, err
			}
			for _, m := range declaration.FindAllSubmatch(text, -1) {
				p.targets = append(p.targets, string(m[1]))
			}
		}
		packages = append(packages, p)
	}
	return packages, nil
}

func (p *pkg) keep(wanted *regexp.Regexp) {
	kept := p.targets[:0]
	for _, target := range p.targets {
		if wanted.MatchString(target) {
			kept = append(kept, target)
		}
	}
	p.targets = kept
}

// build compiles the package's tests with the instrumentation that guides the fuzzer.
func (p *pkg) build(tmp, corpus string) error {
	p.binary = filepath.Join(tmp, strings.ReplaceAll(p.path, "/", "-")+".test")
	p.corpus = filepath.Join(corpus, filepath.FromSlash(p.path))
	if out, err := exec.Command("go", "test", "-c", "-fuzz", "^Fuzz", "-o", p.binary, p.path).CombinedOutput(); err != nil {
		return fmt.Errorf("build the tests of %s: %w\n%s", p.path, err, out)
	}
	return nil
}

// executed is how many inputs a target has got by then.
var executed = regexp.MustCompile(`execs: (\d+)`)

// fuzz runs one target and returns how many inputs it got.
func (p *pkg) fuzz(target, limit string) (inputs int, err error) {
	cmd := exec.Command(p.binary, "-test.run=^$", "-test.fuzz=^"+target+"$", "-test.fuzztime="+limit, "-test.fuzzminimizetime=100x", "-test.fuzzcachedir="+p.corpus)
	cmd.Dir = p.dir // where a failing input is stored
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	if all := executed.FindAllSubmatch(out.Bytes(), -1); len(all) > 0 {
		inputs, _ = strconv.Atoi(string(all[len(all)-1][1]))
	}
	switch {
	case err != nil:
		return inputs, fmt.Errorf("%w\n%s", err, out.Bytes())
	case inputs == 0:
		return 0, fmt.Errorf("nothing was tried\n%s", out.Bytes())
	}
	return inputs, nil
}
