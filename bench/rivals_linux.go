package main

import (
	"cmp"
	"context"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// sideBySide is the state of a run of rivals.
type sideBySide struct {
	*rivalsCommand
	dir         string // everything that is written goes here, and is removed at the end
	self        string // path of this program, which is the bare loop and net/http, too
	strikecache string // path of the binary
	core        int    // of the servers
	ours        string // address of strikecache
	answers     []*answer
	running     []*process // of this run, in the order of their start
	stdout      io.Writer
}

// measure implements the command.
func (c *rivalsCommand) measure(ctx context.Context, stdout io.Writer) (*results, error) {
	dir, err := os.MkdirTemp("", "strikecache-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b := &sideBySide{rivalsCommand: c, dir: dir, core: c.ServerCore, stdout: stdout}
	if b.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if err := b.build(ctx); err != nil {
		return nil, err
	}
	r, err := b.describe()
	if err != nil {
		return nil, err
	}
	debug.SetGCPercent(400) // the generator keeps samples and must not often pause for them
	if err := stayOn(c.GeneratorCore); err != nil {
		return nil, err
	}
	if c.Rounds > 0 {
		if err := b.ratios(ctx, r); err != nil {
			return nil, err
		}
	}
	if c.Refreshes > 0 {
		for _, cores := range [][]int{{c.ServerCore}, c.twoCores()} {
			f, err := b.refreshes(ctx, cores)
			if err != nil {
				return nil, fmt.Errorf("refreshes on %d cores: %w", len(cores), err)
			}
			r.Refreshes = append(r.Refreshes, *f)
		}
	}
	return r, nil
}

// twoCores returns the server's core and a second one, which the generator shares only where there is no third.
func (c *rivalsCommand) twoCores() []int {
	for core := range runtime.NumCPU() {
		if core != c.ServerCore && core != c.GeneratorCore {
			return []int{c.ServerCore, core}
		}
	}
	return []int{c.ServerCore, c.GeneratorCore}
}

// describe fills in what the run is.
func (b *sideBySide) describe() (*results, error) {
	cpu, kernel := machine()
	r := &results{Format: resultsFormat, Date: time.Now().UTC().Truncate(time.Second), CPU: cpu, Cores: runtime.NumCPU(), Kernel: kernel,
		Go: runtime.Version(), Connections: rivalConnections, Rounds: b.Rounds, Absent: []string{}}
	info, err := buildinfo.ReadFile(b.strikecache)
	if err != nil {
		return nil, fmt.Errorf("read the build of strikecache: %w", err)
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	r.Commit = cmp.Or(settings["vcs.revision"], "unknown")
	if settings["vcs.modified"] == "true" {
		r.Commit += "+changes"
	}
	return r, nil
}

// build makes the binary, unless one was named.
func (b *sideBySide) build(ctx context.Context) (err error) {
	if b.Binary != "" {
		b.strikecache, err = filepath.Abs(b.Binary)
		return err
	}
	b.strikecache = filepath.Join(b.dir, "strikecache")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", b.strikecache, "strikecache")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build strikecache: %w\n%s", err, out)
	}
	return nil
}

// serve starts strikecache and waits until it has answers, has filled back what it can of the past, and was idle for so
// many seconds in a row.
func (b *sideBySide) serve(ctx context.Context, cores []int, idleSeconds int, flags ...string) (*process, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	data, err := os.MkdirTemp(b.dir, "data-")
	if err != nil {
		return nil, err
	}
	args := append([]string{"serve", "--listen", address, "--data-dir", data, "--admin-listen", "", "--log-level", "debug"}, flags...)
	p, err := b.start(ctx, cores, address, b.strikecache, args...)
	if err != nil {
		return nil, err
	}
	b.ours = address
	idle := 0
	for deadline := time.Now().Add(10 * time.Minute); time.Now().Before(deadline) && ctx.Err() == nil; {
		before, err := cpuTime(p.pid())
		time.Sleep(time.Second)
		after, err2 := cpuTime(p.pid())
		if err != nil || err2 != nil {
			return nil, fmt.Errorf("strikecache ended\n%s", p.log.end())
		}
		if idle++; after-before > 100*time.Millisecond {
			idle = 0
		}
		x, err := exchangeWith(ctx, address, ask("/readyz", "identity", ""))
		if err == nil && x.status == 200 && idle >= idleSeconds && strings.Contains(p.log.String(), "msg=back-filled") {
			return p, nil
		}
	}
	return nil, fmt.Errorf("strikecache is not ready and idle within ten minutes\n%s", p.log.end())
}

// assemble starts the bare loop, strikecache and its rivals, in this order, and checks their answers.
func (b *sideBySide) assemble(ctx context.Context, r *results) (sides []*side, err error) {
	// Its answers must not change any more. On a busy machine a server that waits for its turn looks idle, too.
	ours, err := b.serve(ctx, []int{b.core}, 3, "--sim-speed", "0")
	if err != nil {
		return nil, err
	}
	if err := b.takeAnswers(ctx); err != nil {
		return nil, err
	}
	bare, addresses, err := b.startBareLoop(ctx)
	if err != nil {
		return nil, err
	}
	sides = []*side{
		{server: server{Name: "bare epoll loop", How: "one read, one write of what strikecache sends, no parsing"}, process: bare, addresses: addresses},
		{server: server{Name: "strikecache", How: "this program, its headers, checks and limits on"}, process: ours, address: b.ours},
	}
	for _, rival := range rivals {
		path, version, ok := rival.find(ctx, b.self)
		if !ok {
			fmt.Fprintf(b.stdout, "%s is not installed: left out\n", rival.name)
			r.Absent = append(r.Absent, rival.name)
			continue
		}
		p, address, err := rival.start(ctx, b, path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", rival.name, err)
		}
		sides = append(sides, &side{server: server{rival.name, version, rival.how}, process: p, address: address})
	}
	for _, s := range sides {
		if err := b.plan(ctx, s); err != nil {
			return nil, err
		}
	}
	return sides, nil
}

// startBareLoop starts the loop and returns an address for each answer, since the loop does not look at what is asked.
func (b *sideBySide) startBareLoop(ctx context.Context) (p *process, addresses map[string]string, err error) {
	addresses = map[string]string{}
	args, last := []string{"epoll"}, ""
	for _, a := range b.answers {
		if last, err = freeAddress(); err != nil {
			return nil, nil, err
		}
		addresses[a.Name] = last
		args = append(args, last+"="+filepath.Join(b.dir, a.file()+".wire"))
	}
	p, err = b.start(ctx, []int{b.core}, last, b.self, args...)
	return p, addresses, err
}

// ratios starts the servers and measures round by round.
func (b *sideBySide) ratios(ctx context.Context, r *results) error {
	defer b.stop()
	sides, err := b.assemble(ctx, r)
	if err != nil {
		return err
	}
	// How many requests keep the bare loop busy for the time asked for?
	for _, a := range b.answers {
		a.Requests = 20_000
		x, err := b.read(sides[0], a)
		if err != nil {
			return fmt.Errorf("calibrate: %w", err)
		}
		a.Requests = max(int(float64(b.Duration.Nanoseconds())*20_000/float64(x.CPUNs)/1000)*1000, 1000)
		r.Answers = append(r.Answers, *a)
	}
	for _, s := range sides {
		r.Servers = append(r.Servers, s.server)
	}
	for round := range b.Rounds {
		for i := range sides {
			s := sides[(i+round)%len(sides)] // so that no server always follows the same neighbour
			for _, a := range b.answers {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				x, err := b.read(s, a)
				if err != nil {
					return fmt.Errorf("%s, %s: %w\n%s", s.Name, a.Name, err, s.process.log.end())
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

// read measures one server sending one answer.
func (b *sideBySide) read(s *side, a *answer) (reading, error) {
	q := s.asked[a.Name]
	g, err := newGenerator(q.address, rivalConnections, q.request, q.first)
	if err != nil {
		return reading{}, err
	}
	defer g.close()
	if err := g.saturate(max(a.Requests/50, 10*rivalConnections)); err != nil { // warm-up
		return reading{}, err
	}
	before, err := cpuTime(s.process.pid())
	if err != nil {
		return reading{}, err
	}
	began := time.Now()
	if err := g.saturate(a.Requests); err != nil {
		return reading{}, err
	}
	wall := time.Since(began)
	after, err := cpuTime(s.process.pid())
	return reading{Server: s.Name, Answer: a.Name, CPUNs: (after - before).Nanoseconds(), WallNs: wall.Nanoseconds()}, err
}
