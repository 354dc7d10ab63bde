//go:build race

package keys

// raceEnabled says that the race detector adds allocations.
const raceEnabled = true
