package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The tables of README.md are those of results.json: whoever changes one by hand is told here.
func TestReadmeShowsTheResults(t *testing.T) {
	r, err := readResults("results.json")
	if err != nil {
		t.Fatalf("%v: make bench writes it", err)
	}
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, inside, _, err := between(string(text))
	if err != nil {
		t.Fatalf("README.md: %v", err)
	}
	if want := "\n" + r.markdown(); inside != want {
		t.Errorf("README.md and results.json differ: make bench writes both.\nREADME.md:%s\nresults.json:%s", inside, want)
	}
}

func testResults() *results {
	r := &results{Format: resultsFormat, CPU: "a CPU", Kernel: "Linux", Go: "go1", Commit: "0123456789abcdef0123456789abcdef01234567+changes", Rounds: 3, Connections: 64,
		Answers: []answer{{Name: "1 KB", Resource: "/a", Coding: "gzip", BodyBytes: 1000, Requests: 1000}, {Name: "304", Resource: "/b", Coding: "identity", Requests: 1000}},
		Servers: []server{{Name: "bare"}, {Name: "ours"}, {Name: "nginx", Version: "1.2"}}}
	for round := 1; round <= 3; round++ {
		for i, s := range r.Servers {
			ns := int64(round * (i + 1) * 1_000_000)
			if s.Name == "ours" && round == 3 {
				ns *= 10 // one disturbed round must not move a median
			}
			r.Raw = append(r.Raw, reading{Round: round, Server: s.Name, Answer: "1 KB", CPUNs: ns, WallNs: 2 * ns})
		}
	}
	r.Raw = append(r.Raw, reading{Round: 1, Server: "bare", Answer: "304", CPUNs: 5, WallNs: 5})
	return r
}

func TestRatiosAreMediansOfTheirRounds(t *testing.T) {
	r := testResults()
	for server, want := range map[string]float64{"bare": 1, "ours": 2, "nginx": 3} {
		if m, ok := r.median(server, "1 KB"); !ok || m.ratio != want {
			t.Errorf("%s: %+v", server, m)
		}
	}
	if m, _ := r.median("ours", "1 KB"); m.high != 20 || m.low != 2 || m.ns != 4000 {
		t.Errorf("%+v", m)
	}
	r.Absent = []string{"haproxy"}
	for _, cores := range []int{1, 2} {
		f := refreshRun{Cores: cores, SharedCore: cores == 2, Rate: 59_000, ResidentPeak: 100 << 20,
			Refreshes: []refresh{{During: 3000, Between: 1000, Ratio: 3}, {During: 5000, Between: 2500, Ratio: 2}, {During: 1500, Between: 1000, Ratio: 1.5}}}
		r.Refreshes = append(r.Refreshes, f)
	}
	for _, want := range []string{"| bare | 1 (2.0 µs) | 1 (0.0 µs) |", "| ours | 2.00 (2.00 to 20.00) | – |", "| nginx 1.2 | 3.00 (3.00 to 3.00) | – |",
		"commit 0123456789ab+changes.", "* 304: `/b` identity, 0 bytes\n", "Not installed: haproxy.",
		"| 1 core | 59000 | 1 ms | 3 ms | 2.00 (1.50 to 3.00) | 100 MiB |", "| 2 cores, one shared with the generator | 59000 |"} {
		if !strings.Contains(r.markdown(), want) {
			t.Errorf("no %q in\n%s", want, r.markdown())
		}
	}
	for _, c := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{4, 1}, 2.5}, {[]float64{9, 1, 2}, 2}} {
		if got := medianOf(c.values); got != c.want {
			t.Errorf("median of %v: %v", c.values, got)
		}
	}
}

func TestReadmeIsWrittenBetweenItsMarkers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "README.md")
	r := testResults()
	for range 2 { // writing again changes nothing
		if _, err := os.Stat(path); err != nil {
			if err := os.WriteFile(path, []byte("before\n"+beginMark+"\nold\n"+endMark+"\nafter\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.writeReadme(path); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if want := "before\n" + beginMark + "\n" + r.markdown() + endMark + "\nafter\n"; err != nil || string(b) != want {
			t.Errorf("%v\n%s", err, b)
		}
	}
	if err := os.WriteFile(path, []byte("no markers"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := r.writeReadme(path); err == nil {
		t.Error("a file without markers is written to")
	}
}

func readResults(path string) (*results, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var r results
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if r.Format != resultsFormat || len(r.Servers) == 0 {
		return nil, fmt.Errorf("%s: format %d, %d servers", path, r.Format, len(r.Servers))
	}
	return &r, nil
}
