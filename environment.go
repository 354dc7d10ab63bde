package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// unknownVariable returns an error if the environment has a variable that begins with STRIKECACHE_ and is not known. The
// error names the known variable with the most similar name. model is the parsed command line.
func unknownVariable(model *kong.Node) error {
	known := []string{"STRIKECACHE_REQUIRE", "STRIKECACHE_FULL"} // read by the tests
	var learn func(*kong.Node)
	learn = func(command *kong.Node) {
		for _, flag := range command.Flags {
			known = append(known, flag.Envs...)
		}
		for _, child := range command.Children {
			learn(child)
		}
	}
	learn(model)
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "STRIKECACHE_SERVICE_") || name == "STRIKECACHE_PORT" || strings.HasPrefix(name, "STRIKECACHE_PORT_") {
			continue // Kubernetes sets these in every pod when a service is named strikecache
		}
		if strings.HasPrefix(name, "STRIKECACHE_") && !slices.Contains(known, name) {
			closest := slices.MinFunc(known, func(a, b string) int { return cmp.Compare(distance(name, a), distance(name, b)) })
			return fmt.Errorf("environment variable %s is not known; did you mean %s? `strikecache serve --help` lists all", name, closest)
		}
	}
	return nil
}

// distance returns how many bytes must be inserted, removed or replaced to turn a into b (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
