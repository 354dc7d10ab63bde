package snapshots

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestSaveAndLoad(t *testing.T) {
	s := open(t, t.TempDir())
	f := File{Edition: variants(t), Build: "go1 amd64", Summary: []byte(`{"row":1}`), Inputs: []StoredInput{
		{Input: Input{"options/_SPX.json", "00ff"}, Received: asOf, Generated: asOf.Add(time.Second), FileDate: friday}, {Input: Input{"state/x", "11"}},
	}}
	must(t, save(s, pain, friday, f))
	if s.Save([]File{{Product: gamma, Edition: &Edition{}}}, nil) == nil {
		t.Error("saved without a default")
	}
	for range 2 {
		got, err := s.Load(pain, friday)
		must(t, err)
		sameFile(t, got, f)
		for _, none := range []struct{ product, date string }{{pain, monday}, {gamma, friday}, {pain, ""}} {
			if _, err := s.Load(none.product, none.date); !errors.Is(err, ErrNoSnapshot) {
				t.Errorf("%s of %q: %v", none.product, none.date, err)
			}
		}
		s = reopen(t, s)
	}
	if got := names(t, filepath.Join(s.dir, friday)); !slices.Equal(got, []string{pain}) {
		t.Errorf("directory holds %q", got)
	}
}

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
