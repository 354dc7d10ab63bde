package compute_test

import "math"

// plainShape is the shape of METHODS.md §6 of the settlements of a curve, nearest month first. There must be at least one. The moves
// between turns are the longest chain of moves over 0.10 that rise and fall in turn.
func plainShape(settlements []float64) string {
	var longest func(from int, sign float64) int // the moves of the longest chain from a month whose first move has a sign
	longest = func(from int, sign float64) (moves int) {
		for to := from + 1; to < len(settlements); to++ {
			if math.Round(sign*(settlements[to]-settlements[from])*1e6)/1e6 > 0.10 {
				moves = max(moves, 1+longest(to, -sign))
			}
		}
		return moves
	}
	rises, falls := 0, 0
	for from := range settlements {
		rises, falls = max(rises, longest(from, 1)), max(falls, longest(from, -1))
	}
	switch {
	case rises == 0 && falls == 0:
		return "flat"
	case max(rises, falls) > 2:
		return "mixed"
	case rises == 2:
		return "humped"
	case falls == 2:
		return "trough"
	case rises == 1:
		return "upward"
	default:
		return "downward"
	}
}
