//go:build race

package limits

// raceEnabled says that the race detector adds allocations.
const raceEnabled = true
