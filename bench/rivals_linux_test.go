package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRivalsFlags(t *testing.T) {
	for _, args := range []string{"extra", "--rounds 0", "--connections 0", "--cpu-seconds 0", "--server-core 1 --generator-core 1", "--server-core -1",
		"--generator-core 100000", "--alternations 0", "--refresh-every 1s", "--skip-ratios --out x.json", "--nonsense"} {
		if _, err := parseRivals(strings.Fields(args), io.Discard); err == nil {
			t.Errorf("%s is accepted", args)
		}
	}
}

// The bare loop and net/http answer with the bytes they are given, under the generator of the side-by-side run.
func TestBuiltRivalsSendTheSameBytes(t *testing.T) {
	dir := t.TempDir()
	b := &bench{dir: dir, answer: map[string]prepared{}}
	for _, size := range []int{1000, 60_000} {
		body := strings.Repeat("x", size)
		c := cell{Name: fmt.Sprintf("%d KB", size/1000), Coding: "identity", BodyBytes: size}
		raw := fmt.Sprintf("HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 14:25:24 GMT\r\nContent-Length: %d\r\nETag: \"a\"\r\n\r\n%s", size, body)
		b.cells = append(b.cells, c)
		b.answer[c.Name] = prepared{path: "/" + c.file(), raw: []byte(raw), body: []byte(body), etag: `"a"`}
		for _, ext := range []string{".raw", ".wire"} {
			if err := os.WriteFile(filepath.Join(dir, c.file()+ext), []byte(raw), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for program, begin := range map[string]func() (*process, map[string]string, error){
		"epoll":   func() (*process, map[string]string, error) { return startEpoll(t.Context(), b) },
		"nethttp": func() (*process, map[string]string, error) { return startNetHTTP(t.Context(), b) },
	} {
		if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, program), "./rivals/"+program).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		p, addresses, err := begin()
		if err != nil {
			t.Fatal(err)
		}
		defer p.stop()
		s := &side{contender: contender{Name: program}, process: p}
		if err := b.plan(t.Context(), s, addresses); err != nil {
			t.Fatal(err)
		}
		if err := b.verify(t.Context(), s); err != nil {
			t.Error(err)
		}
		o := rivalsOptions{connections: 7}
		for _, c := range b.cells {
			c.Requests = 3000
			x, err := o.read(s, c)
			if err != nil || x.CPUNs == 0 || x.WallNs == 0 {
				t.Errorf("%s, %s: %+v %v", program, c.Name, x, err)
			}
		}
		// A rival with other bytes ends the run.
		other := b.answer["1 KB"]
		other.body = []byte("other")
		b.answer["1 KB"], other = other, b.answer["1 KB"]
		if err := b.verify(t.Context(), s); err == nil {
			t.Errorf("%s: other bytes are not noticed", program)
		}
		b.answer["1 KB"] = other
	}
}

func TestHammerOpensAtItsRate(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	request := ask("/", "identity", "")
	_, first, _, err := exchange(t.Context(), address, request)
	if err != nil {
		t.Fatal(err)
	}
	h, err := aim(address, 4, request, first)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	_, samples, err := h.open(2000, 200*time.Millisecond)
	if err != nil || len(samples) != 400 {
		t.Fatalf("%d samples, %v", len(samples), err)
	}
	h.length--
	if err := h.closed(10); err == nil {
		t.Error("a longer answer is not noticed")
	}
}

const someLog = `time=2026-11-21T14:25:10.500Z level=INFO msg=refreshed feed=flow symbols=11 fetch_ms=100 publish_ms=50
time=2026-11-21T14:25:12.000Z level=WARN msg=other feed=spx decode_ms=9
time=2026-11-21T14:25:13.000Z level=INFO msg=refreshed feed=spx as_of=2026-11-20T15:44:39.000Z fetch_ms=50 decode_ms=25.5 compute_ms=94.5 publish_ms=80
`

func TestWindowsOfTheLog(t *testing.T) {
	all := windows(someLog)
	if len(all) != 2 || all[0].chain || !all[1].chain {
		t.Fatalf("%+v", all)
	}
	if d := all[1].to.Sub(all[1].from); d != 201*time.Millisecond || all[1].fetch != 50*time.Millisecond {
		t.Errorf("%+v", all[1])
	}
	start := all[1].to.Add(-3 * time.Second) // 10.001: everything below is measured from here
	samples := []sample{
		{100 * time.Millisecond, 10 * time.Microsecond},   // quiet
		{400 * time.Millisecond, 70 * time.Microsecond},   // in the flow's refresh
		{600 * time.Millisecond, 80 * time.Microsecond},   // while it settles
		{1500 * time.Millisecond, 20 * time.Microsecond},  // quiet
		{2760 * time.Millisecond, 90 * time.Microsecond},  // while the chain is fetched
		{2900 * time.Millisecond, 60 * time.Microsecond},  // during
		{3010 * time.Millisecond, 900 * time.Microsecond}, // after
	}
	got := alternate(start, samples, all)
	if len(got) != 1 || got[0].DuringCount != 1 || got[0].BetweenCount != 2 || got[0].Ratio != 3 {
		t.Errorf("%+v", got)
	}
}

func TestUsageOfThisProcess(t *testing.T) {
	before, err := usageOf(os.Getpid())
	if err != nil || before.CPU <= 0 {
		t.Fatalf("%+v %v", before, err)
	}
	if _, err := usageOf(1 << 30); err == nil {
		t.Error("a process that does not exist has used CPU time")
	}
	if n, err := residentPeak(os.Getpid()); err != nil || n < 1<<20 {
		t.Errorf("%d %v", n, err)
	}
}
