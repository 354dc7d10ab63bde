//go:build race

package snapshots

// raceEnabled says that the race detector slows every access down and adds allocations.
const raceEnabled = true
