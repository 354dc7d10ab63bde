package refresh

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Each line is a run of documents, rows@minute with ' for other content of the same minute, and what the guard says of each: ok, or its reason.
func TestGuard(t *testing.T) {
	for _, c := range []struct{ name, documents, want string }{
		{"the first is accepted", "10@0", "ok"},
		{"exactly half is accepted", "100@0 50@1 25@2", "ok ok ok"},
		{"under half is refused", "100@0 49@1", "ok shrunk"},
		{"an odd count's half is not reached", "101@0 50@1 51@1", "ok shrunk ok"},
		{"growth is accepted", "10@0 1000@1", "ok ok"},
		{"an equal timestamp is accepted", "100@5 100'@5 50@5", "ok ok ok"},
		{"an older timestamp is refused", "100@5 100@4", "ok clock_backwards"},
		{"the clock comes first", "100@5 10@4", "ok clock_backwards"},
		{"a good one between starts the count again", "100@0 10@1 10@2 100@3 10@4 10@5 10@6", "ok shrunk shrunk ok shrunk shrunk ok"},
		{"three that agree are accepted", "100@0 10@1 11@2 10@3 11@4", "ok shrunk shrunk ok ok"},
		{"the third is what later ones are compared with", "100@0 40@1 40@2 40@3 19@4 20@4", "ok shrunk shrunk ok shrunk ok"},
		{"three corrected clocks are accepted", "100@60 100@1 100@2 100@3 100@2", "ok clock_backwards clock_backwards ok clock_backwards"},
		{"a clock that stands still behind, while the rest moves", "100@60 100@1 100'@1 100''@1", "ok clock_backwards clock_backwards ok"},
		{"the same document is no further one", "100@0 10@1 10@1 10@1 10@1 10@2 10@2 10@3", "ok shrunk shrunk shrunk shrunk shrunk shrunk ok"},
		{"a clock that runs backwards never agrees", "100@60 100@59 100@58 100@57 100@56", "ok clock_backwards clock_backwards clock_backwards clock_backwards"},
		{"halving again does not agree", "100@0 40@1 19@2 9@3 9@4 9@5", "ok shrunk shrunk shrunk shrunk ok"},
		{"doubling does not agree", "1000@0 10@1 21@2 43@3 43@4 44@5", "ok shrunk shrunk shrunk shrunk ok"},
		{"the reasons may differ", "100@60 100@59 10@61 10@62 10@63", "ok clock_backwards shrunk shrunk ok"},
		{"nothing readable", "100@0 0@1 0@2 0@3", "ok shrunk shrunk ok"},
	} {
		var g guard
		var got []string
		var accepted *document
		for _, text := range strings.Fields(c.documents) {
			d := marked(t, text)
			if err := g.check(d.mark, accepted); err != nil {
				got = append(got, string(reasonOf(err)))
				continue
			}
			got, accepted = append(got, "ok"), d
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %s: %s, want %s", c.name, c.documents, s, c.want)
		}
	}
}

// marked returns a document with rows@minute.
func marked(t *testing.T, text string) *document {
	t.Helper()
	var rows, minute int
	bare := strings.ReplaceAll(text, "'", "")
	if _, err := fmt.Sscanf(bare, "%d@%d", &rows, &minute); err != nil {
		t.Fatal(err)
	}
	return &document{mark: mark{rows: rows, captured: ny(t, "2026-11-20 11:00:00").Add(time.Duration(minute) * time.Minute), content: text}}
}

// A document that passes the guard and fails in a later step is not accepted: the next one is compared with the one
// before it, and it counts as agreed when it comes again.
func TestGuardAcceptsNothingItself(t *testing.T) {
	var g guard
	first := marked(t, "100@0")
	for _, text := range []string{"100@90000", "100@1"} {
		if err := g.check(marked(t, text).mark, first); err != nil {
			t.Errorf("%s after a document that was not accepted: %v", text, err)
		}
	}
	for i, want := range []bool{false, false, true, true} {
		if got := g.check(marked(t, fmt.Sprintf("10@%d", min(i, 2))).mark, first) == nil; got != want {
			t.Errorf("shrunk document %d: passes %v, want %v", i, got, want)
		}
	}
}
