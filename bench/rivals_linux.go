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
	"runtime/debug"
	"slices"
	"time"
)

// linuxCommands are the command rivals and its two built-in servers.
type linuxCommands struct {
	Rivals  rivalsCommand  `cmd:"" help:"Measure strikecache beside other servers, and during its refreshes."`
	Epoll   epollCommand   `cmd:"" hidden:"" help:"Serve as the bare epoll loop of rivals."`
	NetHTTP netHTTPCommand `cmd:"" name:"nethttp" hidden:"" help:"Serve as the net/http server of rivals."`
}

// rivalsCommand measures strikecache beside other servers, and during its refreshes.
type rivalsCommand struct {
	Binary        string        `type:"existingfile" placeholder:"FILE" help:"Measure this strikecache instead of one that is built from the working tree."`
	Before        string        `type:"existingfile" placeholder:"FILE" help:"Also measure this strikecache, such as one built before a change. Its row is \"strikecache before\". Its answers may differ."`
	Out           string        `placeholder:"FILE" help:"Write all results to this file, as JSON."`
	WriteReadme   string        `placeholder:"FILE" help:"Put the tables between the markers of this file."`
	Rounds        int           `default:"5" help:"Interleaved rounds, 0 to 50 (default ${default}). 0: measure the refreshes only."`
	Duration      time.Duration `default:"1s" help:"CPU time of the bare loop in one reading, 50ms to 30s (default ${default}). The number of requests follows from it."`
	ServerCore    int           `default:"0" help:"Core of the servers (default ${default})."`
	GeneratorCore int           `default:"1" help:"Core of the generator (default ${default})."`
	Refreshes     int           `default:"5" help:"Refreshes to measure on one core, and again on two, 0 to 100 (default ${default}). 0: measure the ratios only."`
	RefreshEvery  time.Duration `default:"10s" help:"Interval of refreshes, 5s to 1m (default ${default}). A slow machine needs more."`
}

const rivalConnections = 64

// Help implements kong's interface.
func (*rivalsCommand) Help() string {
	return `The command starts strikecache with a market that stands still. On the same core it starts a bare epoll loop,
net/http, and nginx, lighttpd, haproxy and varnish if they are installed. Each sends the same four answers, byte for
byte, to a generator on another core, in interleaved rounds. The command compares the servers' CPU time per request.

With --before, another binary of strikecache takes part in the same rounds. It gets the same four requests, and its
answers may differ.

Then strikecache refreshes its whole option chain every few seconds at half of saturation. The command compares p99.9
during a refresh with p99.9 between refreshes, once with the server on one core and once on two.

It installs nothing, listens on loopback only, needs Linux and two cores, and takes some minutes.`
}

// Validate implements kong's interface.
func (c *rivalsCommand) Validate() error {
	last := runtime.NumCPU() - 1
	switch {
	case c.ServerCore == c.GeneratorCore:
		return errors.New("--server-core and --generator-core must be two different cores")
	case c.Rounds+c.Refreshes == 0:
		return errors.New("--rounds 0 --refreshes 0 leaves nothing to measure")
	case c.Rounds*c.Refreshes == 0 && c.WriteReadme != "":
		return errors.New("--write-readme needs both --rounds and --refreshes")
	case c.Rounds == 0 && c.Before != "":
		return errors.New("--before needs --rounds")
	}
	return cmp.Or(
		within("rounds", c.Rounds, 0, 50),
		within("duration", c.Duration, 50*time.Millisecond, 30*time.Second),
		within("server-core", c.ServerCore, 0, last),
		within("generator-core", c.GeneratorCore, 0, last),
		within("refreshes", c.Refreshes, 0, 100),
		within("refresh-every", c.RefreshEvery, 5*time.Second, time.Minute),
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
	dir     string // has every temporary file, and is removed at the end
	results results
	running []*process // in the order of their start
	stdout  io.Writer
}

// build builds the binary, unless --binary names one, and writes the build and the machine into the results.
func (b *comparison) build(ctx context.Context) error {
	if b.Binary == "" {
		b.Binary = filepath.Join(b.dir, "strikecache")
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", b.Binary, "strikecache")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build strikecache: %w\n%s", err, out)
		}
	}
	info, err := buildinfo.ReadFile(b.Binary)
	if err != nil {
		return fmt.Errorf("read the build of strikecache: %w", err)
	}
	cpu, kernel := machine()
	b.results = results{Format: resultsFormat, Date: time.Now().UTC().Truncate(time.Second), Commit: commitOf(info), CPU: cpu, Cores: runtime.NumCPU(),
		Kernel: kernel, Go: runtime.Version(), Connections: rivalConnections, Rounds: b.Rounds, Absent: []string{}}
	return nil
}

func (b *comparison) measure(ctx context.Context) error {
	debug.SetGCPercent(400) // the generator keeps many samples, and garbage collection would often pause it
	if err := stayOn(ctx, b.GeneratorCore); err != nil {
		return err
	}
	if b.Rounds > 0 {
		if err := b.ratios(ctx); err != nil {
			return err
		}
	}
	if b.Refreshes == 0 {
		return nil
	}
	for _, cores := range [][]int{{b.ServerCore}, b.twoCores()} {
		f, err := b.refreshes(ctx, cores)
		if err != nil {
			return fmt.Errorf("refreshes on %d cores: %w", len(cores), err)
		}
		b.results.Refreshes = append(b.results.Refreshes, *f)
	}
	return nil
}

// commitOf returns the commit that a binary was built from, with "+changes" when the tree differed from it.
func commitOf(info *debug.BuildInfo) string {
	commit, changes := "unknown", ""
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			commit = s.Value
		} else if s.Key == "vcs.modified" && s.Value == "true" {
			changes = "+changes"
		}
	}
	return commit + changes
}

// twoCores returns the server's core and a second core, which is the generator's only if there is no third.
func (c *rivalsCommand) twoCores() []int {
	for core := range runtime.NumCPU() {
		if core != c.ServerCore && core != c.GeneratorCore {
			return []int{c.ServerCore, core}
		}
	}
	return []int{c.ServerCore, c.GeneratorCore}
}

// assemble starts the servers and checks their answers. The first server that it returns is the bare loop.
func (b *comparison) assemble(ctx context.Context) (sides []*side, err error) {
	ours := &side{server: server{Name: "strikecache", How: "this program, its headers, checks and limits on"}, resources: true}
	if ours.process, err = b.serveStillMarket(ctx, b.Binary); err != nil {
		return nil, err
	}
	if err := b.takeAnswers(ctx, ours.address); err != nil {
		return nil, err
	}
	for _, rival := range rivals {
		s, err := b.startRival(ctx, rival, ours.address)
		if errors.Is(err, exec.ErrNotFound) {
			fmt.Fprintf(b.stdout, "%s is not installed: left out\n", rival.name)
			b.results.Absent = append(b.results.Absent, rival.name)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", rival.name, err)
		}
		sides = append(sides, s)
	}
	sides = slices.Insert(sides, 1, ours)
	if b.Before != "" {
		before := &side{server: server{Name: "strikecache before", How: "the binary of --before"}, resources: true, ownBodies: true}
		if before.process, err = b.serveStillMarket(ctx, b.Before); err != nil {
			return nil, fmt.Errorf("before: %w", err)
		}
		sides = slices.Insert(sides, 2, before)
	}
	for _, s := range sides {
		if err := b.plan(ctx, s); err != nil {
			return nil, err
		}
	}
	return sides, nil
}

// ratios starts the servers and measures round by round.
func (b *comparison) ratios(ctx context.Context) error {
	defer b.stop()
	sides, err := b.assemble(ctx)
	if err != nil {
		return err
	}
	// Find the number of requests that keeps the bare loop busy for --duration.
	r := &b.results
	for i := range r.Answers {
		a := &r.Answers[i]
		a.Requests = 20_000
		x, err := b.read(sides[0], i)
		if err != nil {
			return fmt.Errorf("calibrate: %w", err)
		}
		a.Requests = max(int(float64(b.Duration.Nanoseconds())*20_000/float64(x.CPUNs)/1000)*1000, 1000)
	}
	for _, s := range sides {
		r.Servers = append(r.Servers, s.server)
	}
	for round := range b.Rounds {
		for i := range sides {
			s := sides[(i+round)%len(sides)] // so that the order changes from round to round
			for i, a := range r.Answers {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				x, err := b.read(s, i)
				if err != nil {
					return fmt.Errorf("%s, %s: %w\n%s", s.Name, a.Name, err, s.lastLines())
				}
				x.Round = round + 1
				r.Raw = append(r.Raw, x)
			}
		}
		fmt.Fprintf(b.stdout, "round %d of %d\n", round+1, b.Rounds)
	}
	for _, s := range sides {
		if err := b.verify(ctx, s); err != nil {
			return fmt.Errorf("after the rounds: %w", err)
		}
	}
	return nil
}

// read measures one server sending answer i.
func (b *comparison) read(s *side, i int) (reading, error) {
	g, err := newGenerator(s.address, rivalConnections, s.asked[i].request, s.asked[i].first)
	if err != nil {
		return reading{}, err
	}
	defer g.close()
	a := b.results.Answers[i]
	if _, _, err := g.send(max(a.Requests/50, 10*rivalConnections), 0); err != nil { // warm-up
		return reading{}, err
	}
	before, err := cpuTime(s.pid())
	if err != nil {
		return reading{}, err
	}
	began, _, err := g.send(a.Requests, 0)
	if err != nil {
		return reading{}, err
	}
	wall := time.Since(began)
	after, err := cpuTime(s.pid())
	return reading{Server: s.Name, Answer: a.Name, CPUNs: (after - before).Nanoseconds(), WallNs: wall.Nanoseconds()}, err
}
