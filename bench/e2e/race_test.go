//go:build race

package e2e

// Under the race detector the programs run with it too. One that finds a race ends with an exit code of its own.
func init() { buildFlags = append(buildFlags, "-race") }
