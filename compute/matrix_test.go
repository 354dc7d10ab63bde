package compute_test

import (
	"fmt"
	"testing"
)

// The week ends on its Friday, also where the Friday is the session date or a holiday. A part without strikes is an empty list.
func TestMatrixWeek(t *testing.T) {
	for _, c := range []struct{ asOf, session, friday string }{
		{"2026-08-17T15:00:00Z", "2026-08-17", "2026-08-21"},
		{"2026-08-21T15:00:00Z", "2026-08-21", "2026-08-21"},
		{"2026-08-23T15:00:00Z", "2026-08-21", "2026-08-21"}, // a Sunday
		{"2027-03-25T15:00:00Z", "2027-03-25", "2027-03-26"}, // before Good Friday
	} {
		r := exposure(t, index(4000, c.asOf), row{"SPXW271217C04000000", published(0.2, 10)})
		equal(t, c.asOf, string(marshal(t, r.Matrix.Parts)), fmt.Sprintf(
			`[{"name":"zero_dte","from":%q,"to":%[1]q,"by_strike":[]},{"name":"this_week","from":%[1]q,"to":%q,"by_strike":[]}]`, c.session, c.friday))
	}
}
