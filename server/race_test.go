//go:build race

package server_test

// raceEnabled says that the race detector slows every access down and adds allocations.
const raceEnabled = true
