package compute_test

import (
	"testing"

	"strikecache/compute"
)

func TestTwoSidedQuotes(t *testing.T) {
	chain := build(t, index(7000, "2026-08-11T11:00:00-04:00"),
		row{"SPXW260810C07000000", quoted(1, 2, 5)}, // settled
		row{"SPXW260812C06900000", quoted(1, 2, 0)},
		row{"SPXW260812C07000000", quoted(2, 2, 5)},
		row{"SPXW260812P07000000", quoted(2, 1, 5)}, // crossed
		row{"SPXW260812P06900000", quoted(0, 1, 5)},
		row{"SPX260821P06900000", blank(5)},
		row{"SPXX60821P06900000", quoted(1, 2, 5)})
	equal(t, "two-sided", compute.TwoSidedQuotes(chain, cal), 2)
}
