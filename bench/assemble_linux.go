package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
)

// candidate is an answer of strikecache that a cell could use.
type candidate struct {
	path, coding string
}

// cellsWanted are the sizes, and what may stand for them.
var cellsWanted = []struct {
	name       string
	size       int
	candidates func() []candidate
}{
	{"1 KB", 1 << 10, func() []candidate {
		var c []candidate
		for _, path := range []string{volatility, series, sectors} {
			c = append(c, candidate{path, "gzip"}, candidate{path, "zstd"}, candidate{path, "br"})
		}
		return c
	}},
	{"8 KB", 8 << 10, func() []candidate { return append(flowLimits(40), candidate{sectors, "identity"}) }},
	{"60 KB", 60 << 10, func() []candidate { return flowLimits(100) }},
	{notModified, 0, func() []candidate { return []candidate{{gamma, "identity"}} }},
}

// notModified is the cell that sends no body.
const notModified = "304"

func flowLimits(most int) []candidate {
	var c []candidate
	for limit := 1; limit <= most; limit++ {
		c = append(c, candidate{flow + "?limit=" + strconv.Itoa(limit), "identity"})
	}
	return c
}

// ask returns the bytes that ask for a path as every server of the run is asked.
func ask(path, coding, etag string) []byte {
	t := &target{host: "localhost"}
	headers := []string{"Accept: application/json", "Accept-Encoding: " + coding}
	if etag != "" {
		headers = append(headers, "If-None-Match: "+etag)
	}
	return t.wire(http.MethodGet, path, headers...)
}

// prepare chooses the answers and writes them for the rivals.
func (b *bench) prepare(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Join(b.dir, "www"), 0o755); err != nil {
		return err
	}
	for _, want := range cellsWanted {
		best := cell{Name: want.name}
		distance := -1
		for _, c := range want.candidates() {
			r, raw, body, err := exchange(ctx, b.ours, ask(c.path, c.coding, ""))
			if err != nil {
				return fmt.Errorf("get %s: %w", c.path, err)
			}
			coding := "identity"
			if len(r.coding) > 0 {
				coding = string(r.coding)
			}
			away := max(len(body)-want.size, want.size-len(body))
			if r.status != http.StatusOK || coding != c.coding || distance >= 0 && away >= distance {
				continue
			}
			distance = away
			sum := sha256.Sum256(body)
			best.Resource, best.Coding, best.BodyBytes, best.SHA256 = c.path, coding, len(body), hex.EncodeToString(sum[:])
			b.answer[want.name] = prepared{path: c.path, raw: raw, body: body, etag: string(r.etag)}
		}
		if distance < 0 {
			return fmt.Errorf("strikecache has no answer for the cell %s", want.name)
		}
		b.cells = append(b.cells, best)
		if err := b.write(ctx, best); err != nil {
			return err
		}
	}
	return nil
}

// write stores a cell's answer: its body as a file, and as whole responses.
func (b *bench) write(ctx context.Context, c cell) error {
	a := b.answer[c.Name]
	wire := a.raw
	if c.Name == notModified {
		r, raw, _, err := exchange(ctx, b.ours, ask(a.path, c.Coding, a.etag))
		if err != nil {
			return fmt.Errorf("conditional %s: %w", a.path, err)
		}
		if r.status != http.StatusNotModified {
			return fmt.Errorf("%s with If-None-Match: %s answers %d", a.path, a.etag, r.status)
		}
		wire = raw
	}
	base := filepath.Join(b.dir, c.file())
	for path, bytes := range map[string][]byte{base + ".raw": a.raw, base + ".wire": wire, filepath.Join(b.dir, "www", c.file()): a.body} {
		if err := os.WriteFile(path, bytes, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// assemble starts strikecache and everybody else, the bare loop first in the list, and checks their answers. What
// it returns runs, also beside an error.
func (o *rivalsOptions) assemble(ctx context.Context, b *bench, r *results, stdout io.Writer) (sides []*side, err error) {
	ours, err := b.serve(ctx, "--sim-speed", "0")
	if err != nil {
		return nil, err
	}
	us := &side{contender: contender{Name: "strikecache", How: "this program, its headers, checks and limits on"}, process: ours}
	sides = append(sides, us)
	if err := b.prepare(ctx); err != nil {
		return sides, err
	}
	loop, addresses, err := startEpoll(ctx, b)
	if err != nil {
		return sides, err
	}
	bare := &side{contender: contender{Name: "bare epoll loop", How: "one read, one write of what strikecache sends, no parsing"}, process: loop}
	sides = []*side{bare, us}
	all := []map[string]string{addresses, b.endpoints(b.ours)}
	for _, rival := range rivals {
		version, ok := rival.versionOf(ctx)
		if !ok {
			fmt.Fprintf(stdout, "%s is not installed: left out\n", rival.name)
			r.Absent = append(r.Absent, rival.name)
			continue
		}
		p, addresses, err := rival.start(ctx, b)
		if err != nil {
			return sides, fmt.Errorf("%s: %w", rival.name, err)
		}
		sides = append(sides, &side{contender: contender{rival.name, version, rival.how}, process: p})
		all = append(all, addresses)
	}
	for i, s := range sides {
		if err := b.plan(ctx, s, all[i]); err != nil {
			return sides, fmt.Errorf("%s: %w\n%s", s.Name, err, s.process.log)
		}
		if err := b.verify(ctx, s); err != nil {
			return sides, err
		}
	}
	return sides, nil
}

// plan fixes what a server is asked for each cell.
func (b *bench) plan(ctx context.Context, s *side, addresses map[string]string) error {
	s.hammer = map[string]shotPlan{}
	for _, c := range b.cells {
		path := "/" + c.file()
		if s.Name == "strikecache" || s.Name == "varnish" {
			path = b.answer[c.Name].path
		}
		p := shotPlan{address: addresses[c.Name], request: ask(path, c.Coding, "")}
		r, raw, _, err := exchange(ctx, p.address, p.request)
		if err == nil && c.Name == notModified {
			p.request = ask(path, c.Coding, string(r.etag))
			_, raw, _, err = exchange(ctx, p.address, p.request)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		p.first = raw
		s.hammer[c.Name] = p
	}
	return nil
}

// verify fetches every answer again: a status of 200 with strikecache's very bytes, or 304.
func (b *bench) verify(ctx context.Context, s *side) error {
	for _, c := range b.cells {
		p := s.hammer[c.Name]
		status, body := http.StatusOK, b.answer[c.Name].body
		if c.Name == notModified {
			status, body = http.StatusNotModified, nil
		}
		r, raw, got, err := exchange(ctx, p.address, p.request)
		switch {
		case err != nil:
			return fmt.Errorf("%s, %s: %w", s.Name, c.Name, err)
		case r.status != status:
			return fmt.Errorf("%s, %s: status %d, want %d", s.Name, c.Name, r.status, status)
		case !bytes.Equal(got, body):
			return fmt.Errorf("%s, %s: its %d bytes are not strikecache's %d", s.Name, c.Name, len(got), len(body))
		}
		p.first = raw
		s.hammer[c.Name] = p
	}
	return nil
}
