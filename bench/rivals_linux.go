package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

const rivalsText = `usage: go run ./bench rivals [flags]

Starts strikecache with a market that stands still, and beside it the bare epoll loop, net/http, and nginx, lighttpd,
haproxy and varnish where they are installed, all on one core. Each serves the same four answers, byte for byte, to a
generator on another core, in interleaved rounds; what is compared is the server's CPU time per request. Then the same
strikecache refreshes its whole chain every few seconds at half of saturation, and p99.9 during a refresh is set against
p99.9 between them. Installs nothing; listens on loopback only; takes some minutes.

flags:`

// rivalsOptions are the flags of the side-by-side run.
type rivalsOptions struct {
	binary, out, readme    string
	rounds, connections    int
	cpuSeconds             float64
	core, generator        int
	alternations           int
	gexEvery               time.Duration
	skipRatio, skipRefresh bool
}

func parseRivals(args []string, stderr io.Writer) (*rivalsOptions, error) {
	o := &rivalsOptions{}
	fs := flag.NewFlagSet("rivals", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() { fmt.Fprintln(stderr, rivalsText); fs.PrintDefaults() }
	fs.StringVar(&o.binary, "binary", "", "measure this strikecache instead of building one from the working tree")
	fs.StringVar(&o.out, "out", "", "write the results to `file`")
	fs.StringVar(&o.readme, "write-readme", "", "put the table between the markers of `file`")
	fs.IntVar(&o.rounds, "rounds", 5, "interleaved rounds; 1 to 50")
	fs.IntVar(&o.connections, "connections", 64, "keep-alive connections; 1 to 1000")
	fs.Float64Var(&o.cpuSeconds, "cpu-seconds", 1, "CPU time that the bare loop spends on one reading, from which n follows; 0.05 to 30")
	fs.IntVar(&o.core, "server-core", 0, "core of the servers")
	fs.IntVar(&o.generator, "generator-core", 1, "core of the generator")
	fs.IntVar(&o.alternations, "alternations", 5, "refreshes that are measured; 1 to 100")
	fs.DurationVar(&o.gexEvery, "refresh-every", 10*time.Second, "interval of refreshes; 5s to 1m")
	fs.BoolVar(&o.skipRatio, "skip-ratios", false, "measure the refresh only")
	fs.BoolVar(&o.skipRefresh, "skip-refresh", false, "measure the ratios only")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	var err error
	switch {
	case fs.NArg() > 0:
		err = fmt.Errorf("rivals takes flags only, not %q", fs.Args())
	case o.rounds < 1 || o.rounds > 50:
		err = fmt.Errorf("--rounds must be from 1 to 50, not %d", o.rounds)
	case o.connections < 1 || o.connections > maxConnections:
		err = fmt.Errorf("--connections must be from 1 to %d, not %d", maxConnections, o.connections)
	case !(o.cpuSeconds >= 0.05 && o.cpuSeconds <= 30):
		err = fmt.Errorf("--cpu-seconds must be from 0.05 to 30, not %g", o.cpuSeconds)
	case o.core == o.generator || o.core < 0 || o.generator < 0 || max(o.core, o.generator) >= runtime.NumCPU():
		err = fmt.Errorf("--server-core and --generator-core must be two of the %d cores from 0", runtime.NumCPU())
	case o.alternations < 1 || o.alternations > 100:
		err = fmt.Errorf("--alternations must be from 1 to 100, not %d", o.alternations)
	case o.gexEvery < 5*time.Second || o.gexEvery > time.Minute:
		err = fmt.Errorf("--refresh-every must be from 5s to 1m, not %s", o.gexEvery)
	case o.skipRatio && (o.out != "" || o.readme != ""):
		err = errors.New("--out and --write-readme need the ratios")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	return o, nil
}

func rivalsCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseRivals(args, stderr)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "strikecache-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b := &bench{dir: dir, core: o.core, answer: map[string]prepared{}}
	r, err := describe(ctx, o)
	if err != nil {
		return err
	}
	if err := o.build(ctx, b); err != nil {
		return err
	}
	debug.SetGCPercent(400) // the generator keeps samples and must not often pause for them
	if err := stayOn(o.generator); err != nil {
		return err
	}
	if !o.skipRatio {
		if err := o.ratios(ctx, b, r, stdout); err != nil {
			return err
		}
	}
	if !o.skipRefresh {
		if r.Refresh, err = o.felt(ctx, b, stdout); err != nil {
			return err
		}
	}
	if o.skipRatio {
		return nil
	}
	fmt.Fprintf(stdout, "\n%s", r.markdown())
	if o.out != "" {
		if err := writeJSON(o.out, r); err != nil {
			return err
		}
	}
	if o.readme != "" {
		return r.writeReadme(o.readme)
	}
	return nil
}

// describe fills in what the run is.
func describe(ctx context.Context, o *rivalsOptions) (*results, error) {
	cpu, kernel := machine()
	r := &results{Format: resultsFormat, Date: time.Now().UTC().Truncate(time.Second), CPU: cpu, Cores: runtime.NumCPU(), Kernel: kernel,
		Go: runtime.Version(), Connections: o.connections, Rounds: o.rounds, TickHz: ticksPerSecond, Absent: []string{}}
	head, err := exec.CommandContext(ctx, "git", "rev-parse", "HEAD").Output()
	if err != nil {
		return nil, fmt.Errorf("git rev-parse HEAD: %w", err)
	}
	r.Commit = strings.TrimSpace(string(head))
	changed, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--untracked-files=no", "--", "*.go", "go.mod").Output()
	if err != nil {
		return nil, fmt.Errorf("git status: %w", err)
	}
	if o.binary != "" {
		r.Commit = "unknown (--binary)"
	} else if len(changed) > 0 {
		r.Commit += "+changes"
	}
	return r, nil
}

// build puts the three programs of ours into the run's directory.
func (o *rivalsOptions) build(ctx context.Context, b *bench) error {
	mod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	for program, pkg := range map[string]string{"epoll": "./bench/rivals/epoll", "nethttp": "./bench/rivals/nethttp", "strikecache": "."} {
		if program == "strikecache" && o.binary != "" {
			path, err := filepath.Abs(o.binary)
			if err == nil {
				err = os.Symlink(path, filepath.Join(b.dir, program))
			}
			if err != nil {
				return err
			}
			continue
		}
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(b.dir, program), pkg)
		cmd.Dir = filepath.Dir(strings.TrimSpace(string(mod)))
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", program, err, out)
		}
	}
	return nil
}

// serve starts strikecache and waits until it has answers and its start is over.
func (b *bench) serve(ctx context.Context, flags ...string) (*process, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	data, err := os.MkdirTemp(b.dir, "data-")
	if err != nil {
		return nil, err
	}
	args := append([]string{"serve", "--listen", address, "--data-dir", data, "--admin-listen", ""}, flags...)
	p, err := start(ctx, b.core, address, filepath.Join(b.dir, "strikecache"), args...)
	if err != nil {
		return nil, err
	}
	b.ours = address
	t, err := parseTarget("http://"+address, 5*time.Second)
	if err != nil {
		return nil, err
	}
	d := &discovery{ctx: ctx, target: t}
	// A first start fills back what it can of the past, and only then are its answers the last ones. On a busy machine
	// a server that waits for a disk looks idle, so it must do so twice.
	idle := 0
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline) && ctx.Err() == nil; {
		before, err := usageOf(p.pid())
		if err != nil {
			return nil, fmt.Errorf("strikecache ended: %w\n%s", err, p.log)
		}
		time.Sleep(time.Second)
		after, err := usageOf(p.pid())
		if err != nil {
			return nil, fmt.Errorf("strikecache ended: %w\n%s", err, p.log)
		}
		if idle++; after.since(before).CPU > 100*time.Millisecond || !strings.Contains(p.log.String(), "msg=back-filled") {
			idle = 0
		}
		if r, _, err := d.fetch("/readyz"); err == nil && r.status == 200 && idle >= 2 {
			return p, nil
		}
	}
	p.stop()
	return nil, fmt.Errorf("strikecache is not ready and idle within two minutes\n%s", p.log)
}

// side is a server in the run.
type side struct {
	contender
	process *process
	hammer  map[string]shotPlan
}

// shotPlan is what a server is asked for a cell.
type shotPlan struct {
	address        string
	request, first []byte
}

// ratios starts everybody and measures round by round.
func (o *rivalsOptions) ratios(ctx context.Context, b *bench, r *results, stdout io.Writer) error {
	sides, err := o.assemble(ctx, b, r, stdout)
	defer func() {
		for _, s := range slices.Backward(sides) {
			s.process.stop()
		}
	}()
	if err != nil {
		return err
	}
	if err := o.calibrate(b, sides[0]); err != nil {
		return err
	}
	r.Cells = b.cells
	for _, s := range sides {
		r.Servers = append(r.Servers, s.contender)
	}
	for round := range o.rounds {
		for i := range sides {
			s := sides[(i+round)%len(sides)] // nobody always comes after the same neighbour
			for _, c := range b.cells {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				x, err := o.read(s, c)
				if err != nil {
					return fmt.Errorf("%s, %s: %w\n%s", s.Name, c.Name, err, s.process.log)
				}
				x.Round = round + 1
				r.Raw = append(r.Raw, x)
			}
		}
		fmt.Fprintf(stdout, "round %d of %d\n", round+1, o.rounds)
	}
	for _, s := range sides {
		if err := b.verify(ctx, s); err != nil {
			return fmt.Errorf("after the rounds: %w", err)
		}
	}
	r.conclude()
	return r.print(stdout)
}

// read has one server answer one cell's requests.
func (o *rivalsOptions) read(s *side, c cell) (reading, error) {
	p := s.hammer[c.Name]
	h, err := aim(p.address, o.connections, p.request, p.first)
	if err != nil {
		return reading{}, err
	}
	defer h.close()
	if err := h.closed(max(c.Requests/50, 10*o.connections)); err != nil { // warm
		return reading{}, err
	}
	before, err := usageOf(s.process.pid())
	if err != nil {
		return reading{}, err
	}
	began := time.Now()
	if err := h.closed(c.Requests); err != nil {
		return reading{}, err
	}
	wall := time.Since(began)
	after, err := usageOf(s.process.pid())
	if err != nil {
		return reading{}, err
	}
	used := after.since(before)
	return reading{Server: s.Name, Cell: c.Name, Ticks: used.Ticks, CPUNs: used.CPU.Nanoseconds(), WallNs: wall.Nanoseconds()}, nil
}

// calibrate finds how many requests keep the bare loop busy for the time asked for.
func (o *rivalsOptions) calibrate(b *bench, loop *side) error {
	for i := range b.cells {
		c := &b.cells[i]
		c.Requests = 20_000
		x, err := o.read(loop, *c)
		if err != nil {
			return fmt.Errorf("calibrate: %w", err)
		}
		n := o.cpuSeconds * 1e9 / (float64(x.CPUNs) / float64(c.Requests))
		c.Requests = max(int(n/1000)*1000, 1000)
	}
	return nil
}

// print shows the readings that the README's table sums up.
func (r *results) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "server\tcell\tn\tticks, by round\tCPU µs/req\tratio\tlow\thigh\tbusy\t")
	for _, m := range r.Medians {
		var ticks []string
		for _, x := range r.Raw {
			if x.Server == m.Server && x.Cell == m.Cell {
				ticks = append(ticks, fmt.Sprint(x.Ticks))
			}
		}
		n := r.Cells[slices.IndexFunc(r.Cells, func(c cell) bool { return c.Name == m.Cell })].Requests
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.0f %%\t\n",
			m.Server, m.Cell, n, strings.Join(ticks, " "), m.Ns/1000, m.Ratio, m.Low, m.High, 100*m.Busy)
	}
	return t.Flush()
}

// exchange sends a request on a connection of its own and returns the whole answer, and its body.
func exchange(ctx context.Context, address string, request []byte) (r reply, raw, body []byte, err error) {
	t := &target{address: address, host: address, timeout: 5 * time.Second}
	c, err := t.dial(ctx)
	if err != nil {
		return reply{}, nil, nil, err
	}
	defer c.close()
	var kept bytes.Buffer
	if r, err = c.do(request, &kept); err != nil {
		return reply{}, nil, nil, err
	}
	raw = append(bytes.Clone(c.buf[:r.received-r.length]), kept.Bytes()...)
	return r, raw, kept.Bytes(), nil
}
