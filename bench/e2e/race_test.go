//go:build race

package e2e

// With -race, the binary is built with the race detector, too. A program with a race ends with a special exit code.
func init() { raceFlags = []string{"-race"} }
