package main

import (
	"cmp"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// linuxCommands are the command rivals and its two built-in servers.
type linuxCommands struct {
	Rivals  rivalsCommand  `cmd:"" help:"Measure strikecache beside other servers."`
	Epoll   epollCommand   `cmd:"" hidden:"" help:"Serve as the bare epoll loop of rivals."`
	NetHTTP netHTTPCommand `cmd:"" name:"nethttp" hidden:"" help:"Serve as the net/http server of rivals."`
	Floor   floorCommand   `cmd:"" hidden:"" help:"Do the floor's work of rivals."`
}

// rivalsCommand measures strikecache beside other servers.
type rivalsCommand struct {
	Before      string        `type:"existingfile" placeholder:"FILE" help:"Also measure this strikecache, such as one built before a change. Its row is \"strikecache before\". Its answers may differ."`
	Out         string        `placeholder:"FILE" help:"Write all results to this file, as JSON."`
	WriteReadme string        `placeholder:"FILE" help:"Put the tables between the markers of this file."`
	Cells       []string      `enum:"small,medium,large,304,churn,1000,10000,idle,refresh,round" placeholder:"CELL,..." help:"Measure only these: ${enum}."`
	Only        []string      `enum:"net/http,nginx,lighttpd,h2o,strikecache" placeholder:"SERVER,..." help:"Measure only these rivals beside the bare loop and strikecache: ${enum}. \"strikecache\" means none of them."`
	Rounds      int           `default:"5" help:"Interleaved rounds, 1 to 50 (default ${default})."`
	Duration    time.Duration `default:"500ms" help:"CPU time of the bare loop in one reading, 50ms to 30s (default ${default}). The number of requests follows from it."`
}

// Help implements kong's interface.
func (*rivalsCommand) Help() string {
	return `The command starts strikecache with a market that stands still. On the same core it starts a bare epoll loop,
net/http, and nginx, lighttpd and h2o if they are installed, and strikecache with --engine fasthttp. Each sends the same answers, byte for byte,
to a generator on another core, in interleaved rounds. The command compares the servers' CPU time per request. Then it compares the
CPU time of a refresh with that of the least work with the same chain: decode, one gamma a contract, encode, gzip, digest.

With --before, another binary of strikecache takes part in the same rounds. It gets the same requests, and its answers may
differ.

    go run ./bench rivals                                                   all, about 10 minutes
    go run ./bench rivals --cells small,churn --only nginx --rounds 3       a minute
    go run ./bench rivals --cells churn --only strikecache --before FILE    one change
    go run ./bench rivals --cells refresh,round --before FILE               the cost of refreshes

It installs nothing, listens on loopback only, and needs Linux and two cores.`
}

// Validate implements kong's interface.
func (c *rivalsCommand) Validate() error {
	switch {
	case runtime.NumCPU() <= generatorCore:
		return errors.New("rivals needs two cores")
	case len(c.Cells)+len(c.Only) > 0 && c.WriteReadme != "":
		return errors.New("--write-readme needs all cells and all rivals")
	}
	return cmp.Or(
		within("rounds", c.Rounds, 1, 50),
		within("duration", c.Duration, 50*time.Millisecond, 30*time.Second),
	)
}

// Run measures, prints and writes the results.
func (c *rivalsCommand) Run(ctx context.Context, stdout io.Writer) error {
	dir, err := os.MkdirTemp("", "strikecache-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b := &comparison{rivalsCommand: c, dir: dir, stdout: stdout}
	if err := b.build(ctx); err != nil {
		return err
	}
	if err := b.measure(ctx); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\n%s", b.results.markdown())
	if c.Out != "" {
		if err := writeJSON(c.Out, b.results); err != nil {
			return err
		}
	}
	if c.WriteReadme != "" {
		return b.results.writeReadme(c.WriteReadme)
	}
	return nil
}

// comparison is a run of rivals.
type comparison struct {
	*rivalsCommand
	dir         string   // has every temporary file, and is removed at the end
	binary      string   // built from the working tree
	answers     []answer // of the strikecache that runs now
	results     results
	running     []*process
	environment []string // variables of the servers, besides those of this process
	stdout      io.Writer
}

// build builds strikecache from the working tree, and writes the build and the machine into the results.
func (b *comparison) build(ctx context.Context) error {
	b.binary = filepath.Join(b.dir, "strikecache")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", b.binary, "strikecache")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build strikecache: %w\n%s", err, out)
	}
	info, err := buildinfo.ReadFile(b.binary)
	if err != nil {
		return fmt.Errorf("read the build of strikecache: %w", err)
	}
	cpu, kernel := machine()
	b.results = results{Date: time.Now().UTC().Truncate(time.Second), Version: info.Main.Version, CPU: cpu, Cores: runtime.NumCPU(),
		Kernel: kernel, Go: runtime.Version(), Rounds: b.Rounds}
	return nil
}

func (b *comparison) measure(ctx context.Context) error {
	defer b.stop()
	if err := stayOn(ctx, generatorCore); err != nil {
		return err
	}
	if err := b.ratios(ctx); err != nil {
		return err
	}
	if err := b.idleMemory(ctx); err != nil {
		return fmt.Errorf("memory of idle connections: %w", err)
	}
	b.environment = nil
	if err := b.refreshes(ctx); err != nil {
		return fmt.Errorf("refreshes: %w", err)
	}
	return nil
}

// serverCore and generatorCore are the cores of the servers and of the generator.
const serverCore, generatorCore = 0, 1

// assemble starts the servers and checks their answers. The first server that it returns is the bare loop.
func (b *comparison) assemble(ctx context.Context, cells []cell) (sides []*side, err error) {
	ours, err := b.serve(ctx, "strikecache", b.binary)
	if err != nil {
		return nil, err
	}
	if err := b.takeAnswers(ctx, ours.address); err != nil {
		return nil, err
	}
	bare, err := b.startRival(ctx, rivals[0])
	if err != nil {
		return nil, err
	}
	fasthttp, err := b.serve(ctx, "strikecache --engine fasthttp", b.binary, "--engine", "fasthttp")
	if err != nil {
		return nil, err
	}
	sides = []*side{bare, ours, fasthttp}
	if b.Before != "" {
		before, err := b.serve(ctx, "strikecache before", b.Before)
		if err != nil {
			return nil, err
		}
		before.ownBodies = true
		sides = append(sides, before)
	}
	absent := []string{}
	for _, rival := range rivals[1:] {
		if !chosen(b.Only, rival.name) {
			continue
		}
		s, err := b.startRival(ctx, rival)
		if errors.Is(err, exec.ErrNotFound) {
			absent = append(absent, rival.name)
			continue
		}
		if err != nil {
			return nil, err
		}
		sides = append(sides, s)
	}
	for _, s := range sides {
		if err := b.plan(ctx, s, cells); err != nil {
			return nil, err
		}
	}
	if b.results.Servers == nil {
		for _, s := range sides {
			b.results.Servers = append(b.results.Servers, s.server)
		}
		b.results.Answers, b.results.Absent = b.answers, absent
	}
	return sides, nil
}

// cells returns the chosen cells of requests, of idle connections, or of refreshes.
func (b *comparison) cells(idle, refresh bool) []cell {
	return slices.DeleteFunc(slices.Clone(allCells), func(c cell) bool {
		return c.Idle != idle || c.Refresh != refresh || !chosen(b.Cells, c.Name)
	})
}

// ratios starts the servers and measures the cells of CPU time, round by round.
func (b *comparison) ratios(ctx context.Context) error {
	cells := b.cells(false, false)
	if len(cells) == 0 {
		return nil
	}
	defer b.stop()
	sides, err := b.assemble(ctx, cells)
	if err != nil {
		return err
	}
	// Find the number of requests that keeps the bare loop busy for --duration.
	const unit = 4 * burst
	for i := range cells {
		c := &cells[i]
		c.Requests = 20 * unit
		x, err := b.read(sides[0], *c)
		if err != nil {
			return fmt.Errorf("calibrate %s: %w", c.Name, err)
		}
		c.Requests = max(int(20*b.Duration.Nanoseconds()/x.CPUNs), 1) * unit
	}
	b.results.Cells = append(b.results.Cells, cells...)
	for round := range b.Rounds {
		for _, c := range cells {
			for i := range sides {
				s := sides[(i+round)%len(sides)] // so that the order changes from round to round
				if ctx.Err() != nil {
					return ctx.Err()
				}
				x, err := b.read(s, c)
				if err != nil {
					return fmt.Errorf("%s, %s: %w\n%s", s.Name, c.Name, err, s.lastLines())
				}
				x.Round = round + 1
				b.results.Raw = append(b.results.Raw, x)
			}
		}
		fmt.Fprintf(b.stdout, "round %d of %d\n", round+1, b.Rounds)
	}
	for _, c := range cells {
		if busy := b.results.busy(c); !c.Churn {
			fmt.Fprintf(b.stdout, "%s: the bare loop was busy for %.0f %% of the time\n", c.Name, 100*busy)
		}
	}
	for _, s := range sides {
		if err := b.verify(ctx, s, cells); err != nil {
			return fmt.Errorf("after the rounds: %w", err)
		}
	}
	return nil
}

// client returns a function that sends requests to a server as a cell wants them, and a function that ends the client.
func (s *side) client(c cell) (send func(n int) error, end func(), err error) {
	q := s.asked[c.Name]
	if c.Churn {
		client := &churn{address: s.address, group: s.pid(), request: q.request, first: q.first}
		return client.send, client.close, nil
	}
	g, err := newGenerator(s.address, anyAddress, c.Connections, q.request, q.first)
	if err != nil {
		return nil, nil, err
	}
	return g.send, g.end, nil
}

// read measures one server in one cell.
func (b *comparison) read(s *side, c cell) (reading, error) {
	send, end, err := s.client(c)
	if err != nil {
		return reading{}, err
	}
	defer end()
	if err := send(max(c.Requests/50, 10*rivalConnections, c.Connections)); err != nil { // warm-up
		return reading{}, err
	}
	before, err := cpuTime(s.pid())
	if err != nil {
		return reading{}, err
	}
	began := time.Now()
	if err := send(c.Requests); err != nil {
		return reading{}, err
	}
	wall := time.Since(began)
	after, err := cpuTime(s.pid())
	return reading{Server: s.Name, Cell: c.Name, CPUNs: (after - before).Nanoseconds(), WallNs: wall.Nanoseconds()}, err
}

// idleMemory starts the servers anew, because a server keeps the memory of earlier connections. It measures how much resident
// memory grows when connections send one request each and then stay open.
//
// With its default settings, a Go program keeps free memory after each garbage collection, which hides a growth of up to
// 6 KB per connection (2026-11-23). The memory limit makes it return free memory.
func (b *comparison) idleMemory(ctx context.Context) error {
	cells := b.cells(true, false)
	if len(cells) == 0 {
		return nil
	}
	if len(b.results.Cells) == 0 { // the first start takes long with little memory
		if _, err := b.assemble(ctx, cells); err != nil {
			return err
		}
		b.stop()
	}
	b.results.Cells = append(b.results.Cells, cells...)
	b.environment = []string{"GOMEMLIMIT=1MiB"}
	sides, err := b.assemble(ctx, cells)
	if err != nil {
		return err
	}
	for _, s := range slices.Backward(sides) { // strikecache late, so that it has done its work of the start
		x, err := b.readIdle(s, cells[0])
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", s.Name, err, s.lastLines())
		}
		b.results.Raw = append(b.results.Raw, x)
	}
	return nil
}

// readIdle measures the memory of one server.
func (b *comparison) readIdle(s *side, c cell) (reading, error) {
	warm := c
	warm.Connections = rivalConnections
	send, end, err := s.client(warm)
	if err != nil {
		return reading{}, err
	}
	defer end()
	if err := send(10_000); err != nil {
		return reading{}, err
	}
	before, err := settledMemory(s.pid())
	if err != nil {
		return reading{}, err
	}
	send, end, err = s.client(c)
	if err != nil {
		return reading{}, err
	}
	defer end()
	if err := send(c.Connections); err != nil {
		return reading{}, err
	}
	after, err := settledMemory(s.pid())
	return reading{Round: 1, Server: s.Name, Cell: c.Name, Bytes: (after - before) / int64(c.Connections)}, err
}
