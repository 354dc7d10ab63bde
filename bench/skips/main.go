// Command skips reads go test -json and prints what go test would: a line a package, and the output of what
// failed. At the end it lists the figures that tests reported and names every skipped test with its reason. It exits 1 when anything failed.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

type event struct {
	Action, Package, Test, Output string
	ImportPath                    string // of a build
}

type key struct{ pkg, test string }

func main() {
	output := map[key][]string{}
	var skipped []key
	var figures []string
	failed, events := false, 0
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fmt.Println(lines.Text())
			continue
		}
		events++
		k := key{e.Package, e.Test}
		switch e.Action {
		case "output":
			output[k] = append(output[k], e.Output)
			if _, figure, ok := strings.Cut(e.Output, "figure: "); ok {
				figures = append(figures, figure)
			}
			if e.Test == "" && isSummary(e.Output) {
				fmt.Print(e.Output)
			}
		case "build-output":
			fmt.Print(e.Output)
		case "pass":
			delete(output, k)
		case "skip":
			if e.Test != "" {
				skipped = append(skipped, k)
			}
		case "fail", "build-fail":
			failed = true
			for _, o := range output[k] {
				if e.Test != "" || !isSummary(o) {
					fmt.Print(o)
				}
			}
		}
	}
	if err := lines.Err(); err != nil || events == 0 {
		fmt.Println("skips: no test output:", err)
		failed = true
	}
	if len(figures) > 0 {
		fmt.Print("\nfigures:\n  ", strings.Join(figures, "  "))
	}
	fmt.Printf("\nskipped tests: %d\n", len(skipped))
	for _, k := range skipped {
		fmt.Printf("  %s %s: %s\n", k.pkg, k.test, reason(output[k]))
	}
	if failed {
		fmt.Println("FAIL")
		os.Exit(1)
	}
}

// isSummary says whether a line is the one that closes a package.
func isSummary(line string) bool {
	return strings.HasPrefix(line, "ok  \t") || strings.HasPrefix(line, "FAIL\t") || strings.HasPrefix(line, "?   \t")
}

// reason returns what a skipped test said.
func reason(lines []string) string {
	for _, l := range lines {
		l = strings.TrimSpace(l)
		if _, said, ok := strings.Cut(l, ".go:"); ok {
			_, said, _ = strings.Cut(said, ": ")
			return said
		}
	}
	return "no reason given"
}
