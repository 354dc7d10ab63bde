package compute_test

import "math"

// plainShape is the shape of METHODS.md §6 of the settlements of a curve, nearest month first. There must be at least one.
func plainShape(settlements []float64) string {
	difference := func(from, to float64) float64 { return math.Round((to-from)*1e6) / 1e6 }
	var turns []string // the directions of the significant differences, without repetitions
	for i := 1; i < len(settlements); i++ {
		d := difference(settlements[i-1], settlements[i])
		direction := ""
		if d > 0.10 {
			direction = "upward"
		}
		if d < -0.10 {
			direction = "downward"
		}
		if direction != "" && (len(turns) == 0 || turns[len(turns)-1] != direction) {
			turns = append(turns, direction)
		}
	}
	switch total := difference(settlements[0], settlements[len(settlements)-1]); {
	case len(turns) == 1:
		return turns[0]
	case len(turns) == 2 && turns[0] == "upward":
		return "humped"
	case len(turns) == 2:
		return "trough"
	case len(turns) > 2:
		return "mixed"
	case total > 0.10:
		return "upward"
	case total < -0.10:
		return "downward"
	default:
		return "flat"
	}
}
