package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"strikecache/bench/floor"
)

// floorCommand does the floor's work with a chain a few times, and prints the CPU time of one time in nanoseconds.
type floorCommand struct {
	File string `arg:""`
}

// floorTimes is how often the floor's work is done in one reading, after a first time that warms up.
const floorTimes = 5

// Run works and prints.
func (c floorCommand) Run(stdout io.Writer) error {
	text, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	var before time.Duration
	for i := range floorTimes + 1 {
		if i == 1 {
			if before, err = cpuTime(os.Getpid()); err != nil {
				return err
			}
		}
		if _, _, err := floor.Work(text); err != nil {
			return err
		}
	}
	after, err := cpuTime(os.Getpid())
	fmt.Fprintln(stdout, (after-before).Nanoseconds()/floorTimes)
	return err
}

// refreshes measures the CPU time in which each strikecache makes its answers of new chains that a collector has written: of SPX alone, and
// of all default underlyings. The chains are those of the simulated market, each time with later times and other quotes.
func (b *comparison) refreshes(ctx context.Context) error {
	cells := b.cells(false, true)
	if len(cells) == 0 {
		return nil
	}
	defer b.stop()
	chains, err := b.takeChains(ctx)
	if err != nil {
		return err
	}
	binaries := map[string]string{"strikecache": b.binary}
	names := []string{"strikecache"}
	if b.Before != "" {
		names, binaries["strikecache before"] = append(names, "strikecache before"), b.Before
	}
	var served []*collected
	for _, name := range names {
		s := &collected{folder: filepath.Join(b.dir, "folder", name)}
		for symbol, text := range chains {
			if err := s.write(symbol, text); err != nil {
				return err
			}
		}
		if s.side, err = b.serveUntil(ctx, "", name+" of a folder", binaries[name], "--source", "folder", "--folder", s.folder); err != nil {
			return err
		}
		s.Name = name
		served = append(served, s)
	}
	spx := filepath.Join(b.dir, "floor.json")
	if err := os.WriteFile(spx, chains["_SPX"], 0o644); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	b.results.Cells = append(b.results.Cells, cells...)
	for round := 1; round <= b.Rounds; round++ {
		out, err := exec.CommandContext(ctx, "taskset", "-c", strconv.Itoa(serverCore), self, "floor", spx).Output()
		if err != nil {
			return fmt.Errorf("floor: %w", err)
		}
		unit, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
		if err != nil {
			return fmt.Errorf("floor: %w", err)
		}
		for _, c := range cells {
			b.results.Raw = append(b.results.Raw, reading{Round: round, Server: "floor", Cell: c.Name, CPUNs: unit})
			for _, s := range served {
				changed := chains
				if c.Name == "refresh" {
					changed = map[string][]byte{"_SPX": chains["_SPX"]}
				}
				cpu, err := s.refresh(ctx, changed)
				if err != nil {
					return fmt.Errorf("%s, %s: %w\n%s", s.Name, c.Name, err, s.lastLines())
				}
				b.results.Raw = append(b.results.Raw, reading{Round: round, Server: s.Name, Cell: c.Name, CPUNs: cpu.Nanoseconds()})
			}
		}
		fmt.Fprintf(b.stdout, "refreshes: round %d of %d\n", round, b.Rounds)
	}
	return nil
}

// takeChains returns the chains of the default underlyings, by the symbol in their name, from the objects that a strikecache stores.
func (b *comparison) takeChains(ctx context.Context) (map[string][]byte, error) {
	if _, err := b.serveUntil(ctx, "", "chains", b.binary, stillMarket...); err != nil {
		return nil, err
	}
	defer b.stop()
	chains, dir := map[string][]byte{}, filepath.Join(b.dataOf("chains"), "simulated")
	files, _ := filepath.Glob(filepath.Join(dir, "current", "gex-*-levels"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var header struct {
			Inputs []struct{ Name, SHA256 string }
		}
		line, _, _ := bytes.Cut(text, []byte("\n"))
		if err := json.Unmarshal(line, &header); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, in := range header.Inputs {
			symbol, ok := strings.CutPrefix(strings.TrimSuffix(in.Name, ".json"), "options/")
			if !ok {
				continue
			}
			packed, err := os.ReadFile(filepath.Join(dir, "objects", in.SHA256+".gz"))
			if err != nil {
				return nil, err
			}
			r, err := gzip.NewReader(bytes.NewReader(packed))
			if err != nil {
				return nil, err
			}
			if chains[symbol], err = io.ReadAll(r); err != nil {
				return nil, err
			}
		}
	}
	if chains["_SPX"] == nil {
		return nil, errors.New("no chain of SPX is stored")
	}
	return chains, nil
}

// collected is a strikecache that serves a folder, and how often the chains in it were replaced.
type collected struct {
	*side
	folder string
	times  int
}

// write replaces a chain in one step.
func (s *collected) write(symbol string, text []byte) error {
	dir := filepath.Join(s.folder, "options")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	next := filepath.Join(dir, ".next")
	if err := os.WriteFile(next, text, 0o644); err != nil {
		return err
	}
	return os.Rename(next, filepath.Join(dir, symbol+".json"))
}

// refresh replaces chains by later ones, waits until all of their gamma answers have changed and the server is idle, and returns the CPU
// time of the server until then.
func (s *collected) refresh(ctx context.Context, chains map[string][]byte) (time.Duration, error) {
	s.times++
	paths, later := map[string]string{}, map[string][]byte{}
	for symbol, text := range chains {
		path := "/api/v1/gex/" + strings.ToLower(strings.TrimPrefix(symbol, "_"))
		x, err := exchangeWith(ctx, s.address, ask(path, "identity", ""))
		if err != nil {
			return 0, err
		}
		paths[path], later[symbol] = x.ETag, moved(text, s.times)
	}
	before, err := cpuTime(s.pid())
	for symbol, text := range later {
		if err = errors.Join(err, s.write(symbol, text)); err != nil {
			return 0, err
		}
	}
	for deadline := time.Now().Add(2 * time.Minute); len(paths) > 0; {
		time.Sleep(100 * time.Millisecond)
		for path, etag := range paths {
			x, err := exchangeWith(ctx, s.address, ask(path, "identity", ""))
			if err != nil {
				return 0, err
			}
			if x.ETag != etag {
				delete(paths, path)
			}
		}
		if time.Now().After(deadline) {
			return 0, fmt.Errorf("not refreshed within two minutes: %v", paths)
		}
	}
	for after := before; ; {
		now, err := cpuTime(s.pid())
		if err != nil || now-after < 10*time.Millisecond {
			return now - before, err
		}
		after = now
		time.Sleep(500 * time.Millisecond)
	}
}

var (
	timestamp = regexp.MustCompile(`("timestamp": ?")([^"]+)"`)
	quote     = regexp.MustCompile(`"(bid|ask)": ?\d*[1-9.]\d*`)
)

// moved returns a chain that was made some minutes later, and whose quotes are higher by some cents.
func moved(chain []byte, minutes int) []byte {
	out := quote.ReplaceAllFunc(chain, func(text []byte) []byte {
		key, number, _ := bytes.Cut(text, []byte(":"))
		x, err := strconv.ParseFloat(strings.TrimSpace(string(number)), 64)
		if err != nil || x == 0 {
			return text
		}
		return fmt.Appendf(nil, "%s: %.2f", key, x+0.01*float64(minutes))
	})
	return timestamp.ReplaceAllFunc(out, func(text []byte) []byte {
		m := timestamp.FindSubmatch(text)
		at, err := time.Parse(time.DateTime, string(m[2]))
		if err != nil {
			return text
		}
		return fmt.Appendf(nil, "%s%s\"", m[1], at.Add(time.Duration(minutes)*time.Minute).Format(time.DateTime))
	})
}
