package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The tables of README.md are those of results.json. This test fails if one of the two is changed by hand.
func TestReadmeShowsTheResults(t *testing.T) {
	b, err := os.ReadFile("results.json")
	if err != nil {
		t.Fatalf("%v: make bench writes it", err)
	}
	var r results
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil || len(r.Servers) == 0 {
		t.Fatalf("results.json: %v, %d servers", err, len(r.Servers))
	}
	text, err := os.ReadFile("README.md")
	must(t, err)
	inside := marked.FindSubmatch(text)
	if inside == nil || string(inside[1]) != r.markdown() {
		t.Errorf("README.md and results.json differ: make bench writes both.\nREADME.md: %q\nresults.json: %s", inside, r.markdown())
	}
}

func testResults() *results {
	r := &results{CPU: "a CPU", Version: "v1", Rounds: 3, Absent: []string{"h2o"},
		Answers: []answer{{Name: "small", Resource: "/a", Coding: "gzip", BodyBytes: 1049}, {Name: notModified, Resource: "/b", BodyBytes: 2000}},
		Cells: []cell{{Name: "small", Answer: "small", Requests: 1000}, {Name: notModified, Answer: notModified, Requests: 1000},
			{Name: "churn", Title: "new connections", Answer: "small", Requests: 1000}, {Name: "idle", Title: "idle", Answer: "small", Idle: true},
			{Name: "refresh", Title: "a chain", Refresh: true, Requests: 1}},
		Servers: []server{{Name: "bare"}, {Name: "ours"}, {Name: "nginx", Version: "1.2"}}}
	for round := 1; round <= 3; round++ {
		for i, s := range r.Servers {
			ns := int64(round * (i + 1) * 1_000_000)
			if s.Name == "ours" && round == 3 {
				ns *= 10 // one disturbed round must not move a median
			}
			for _, c := range r.Cells[:3] {
				r.Raw = append(r.Raw, reading{Round: round, Server: s.Name, Cell: c.Name, CPUNs: ns, WallNs: 2 * ns})
			}
		}
	}
	for _, s := range r.Servers {
		r.Raw = append(r.Raw, reading{Round: 1, Server: s.Name, Cell: "idle", Bytes: 200})
	}
	for round := 1; round <= 3; round++ {
		r.Raw = append(r.Raw, reading{Round: round, Server: "floor", Cell: "refresh", CPUNs: int64(round) * 20e6},
			reading{Round: round, Server: "ours", Cell: "refresh", CPUNs: int64(round) * 90e6})
	}
	return r
}

func TestRatiosAreMediansOfTheirRounds(t *testing.T) {
	text := testResults().markdown()
	for _, want := range []string{
		"| 1.0 KB | 304 |\n", "| bare | 1 (2.00 µs) | 1 (2.00 µs) |\n", "| ours | 2.00 (2.00 to 20.00) | 2.00 (2.00 to 20.00) |\n",
		"| nginx 1.2 | 3.00 (3.00 to 3.00) | 3.00 (3.00 to 3.00) |\n", "| new connections | idle |\n", "| ours | 2.00 (2.00 to 20.00) | 0.20 KB |\n",
		"* 1.0 KB: `/a` in the coding gzip, 1049 bytes of body\n", "* 304: `/b`, for a client", "strikecache v1,", "Not installed: h2o.",
		"| a chain |\n|---|--:|\n| floor | 1 (40.0 ms) |\n| ours | 4.50 (4.50 to 4.50) |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if got := testResults().busy(cell{Name: "small"}); got != 0.5 {
		t.Errorf("the bare loop was busy for %v of the time", got)
	}
	if got := medianOf([]float64{4, 1, 9, 2}); got != 3 {
		t.Errorf("median of an even number: %v", got)
	}
}

func TestReadmeIsWrittenBetweenItsMarkers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "README.md")
	r := testResults()
	text := "before\n" + beginMark + "old\n" + endMark + "\nafter\n"
	for range 2 { // writing again changes nothing
		must(t, os.WriteFile(path, []byte(text), 0o644))
		must(t, r.writeReadme(path))
		b, err := os.ReadFile(path)
		if text = string(b); err != nil || text != "before\n"+beginMark+r.markdown()+endMark+"\nafter\n" {
			t.Errorf("%v\n%s", err, b)
		}
	}
	must(t, os.WriteFile(path, []byte("no markers"), 0o644))
	if err := r.writeReadme(path); err == nil {
		t.Error("a file without markers was written")
	}
}
