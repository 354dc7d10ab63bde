package snapshots

import "testing"

// The summaries of a product's dates are found without a read, before and after a start.
func TestSummaries(t *testing.T) {
	s := open(t, t.TempDir())
	for _, date := range []string{friday, monday, wednesday} {
		f := single(t, `1`)
		if f.Summary = []byte("row of " + date); date == wednesday {
			f.Summary = nil
		}
		must(t, save(s, gamma, date, f))
	}
	for range 2 {
		got := s.Summaries(gamma)
		if len(got) != 2 || got[0].Date != monday || string(got[0].Body) != "row of "+monday || string(got[1].Body) != "row of "+friday {
			t.Errorf("summaries %q", got)
		}
		s = reopen(t, s)
	}
}
