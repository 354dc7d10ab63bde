// Command bench measures HTTP servers that answer with prepared documents: latency at a constant rate without
// coordinated omission, throughput at saturation, and CPU time per request. It knows strikecache by its URLs only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const usageText = `usage: go run ./bench [flags] [BASE]       load a running server (default http://127.0.0.1:8080)
       go run ./bench rivals [flags]       measure strikecache beside other servers; rivals --help

Each workload runs open loop, at a constant rate with latencies counted from the instant at which a request was due,
and closed loop, with every connection as fast as it is answered.

  go run ./bench                                         all workloads, 5 s each way, against make run
  go run ./bench --workload list                         what the workloads are
  go run ./bench --workload cdn --mode open --rate 5000  one of them, faster
  go run ./bench --pid $(pgrep -x strikecache) --json new.json --html new.html
  go run ./bench --compare old.json                      measure again; exit 3 when a figure got worse
  go run ./bench --from new.json --compare old.json      compare two reports without measuring

flags:`

// Exit codes beside 0 and 1, anything that failed.
const (
	exitUsage      = 2
	exitRegression = 3
)

var (
	errUsage      = errors.New("usage")
	errRegression = errors.New("a figure regressed")
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return
	default:
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
	stop()
	switch {
	case errors.Is(err, errUsage):
		os.Exit(exitUsage)
	case errors.Is(err, errRegression):
		os.Exit(exitRegression)
	}
	os.Exit(1)
}

func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 && args[0] == "rivals" {
		return rivalsCommand(ctx, args[1:], stdout, stderr)
	}
	o, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	if o.list {
		for _, w := range workloads {
			fmt.Fprintf(stdout, "%-12s %s\n", w.name, w.about)
		}
		return nil
	}
	var r *report
	if o.from != "" {
		r, err = readReport(o.from)
	} else {
		r, err = measure(ctx, o, stderr)
	}
	if err != nil {
		return err
	}
	return o.deliver(r, stdout)
}

// options are the flags of a load.
type options struct {
	target      *target
	workloads   []workload
	list        bool
	modes       []string
	rate        float64
	connections int
	duration    time.Duration
	warmup      time.Duration
	pid         int
	key         string
	json, html  string
	from        string
	compare     string
	threshold   float64
	quiet       bool
}

// The bounds of a load: enough for any one machine, too little to harm by a typing error.
const (
	maxRate        = 200_000
	maxConnections = 1000
	maxDuration    = 10 * time.Minute
)

func parseOptions(args []string, stderr io.Writer) (*options, error) {
	o := &options{}
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() { fmt.Fprintln(stderr, usageText); fs.PrintDefaults() }
	names := fs.String("workload", "all", "comma-separated `names`, all, or list")
	mode := fs.String("mode", "both", "open, closed or both")
	fs.Float64Var(&o.rate, "rate", 1000, "requests a second, open loop; 1 to 200000")
	fs.IntVar(&o.connections, "connections", 16, "keep-alive connections; 1 to 1000")
	fs.DurationVar(&o.duration, "duration", 5*time.Second, "of each workload in each mode; 100ms to 10m")
	fs.DurationVar(&o.warmup, "warmup", 500*time.Millisecond, "of the same load, not counted; 0s to 1m")
	timeout := fs.Duration("timeout", 5*time.Second, "of a request; 10ms to 1m")
	fs.IntVar(&o.pid, "pid", 0, "process `id` of the server, on this machine: adds its CPU time per request")
	fs.StringVar(&o.key, "key", os.Getenv("BENCH_KEY"), "API key of the workload keyed; default from BENCH_KEY")
	fs.StringVar(&o.json, "json", "", "write the report to `file`")
	fs.StringVar(&o.html, "html", "", "write a page with percentile curves to `file`")
	fs.StringVar(&o.from, "from", "", "measure nothing, read the report in `file`")
	fs.StringVar(&o.compare, "compare", "", "compare with the report in `file`; exit 3 when a figure regressed")
	fs.Float64Var(&o.threshold, "threshold", 0.10, "share by which a figure may be worse in --compare; 0.01 to 10.\nRuns on a shared machine differ by 10 % on their own")
	fs.BoolVar(&o.quiet, "quiet", false, "no progress on standard error")
	remote := fs.Bool("remote", false, "the base is another machine, and whoever runs it knows of this")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	if o.list = *names == "list"; o.list {
		return o, nil
	}
	base := "http://127.0.0.1:8080"
	if fs.NArg() > 0 {
		base = fs.Arg(0)
	}
	if err := o.validate(fs, base, *names, *mode, *timeout, *remote); err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	return o, nil
}

func (o *options) validate(fs *flag.FlagSet, base, names, mode string, timeout time.Duration, remote bool) error {
	var err error
	if o.target, err = parseTarget(base, timeout); err != nil {
		return err
	}
	if o.workloads, err = chooseWorkloads(names); err != nil {
		return err
	}
	switch mode {
	case "both":
		o.modes = []string{"open", "closed"}
	case "open", "closed":
		o.modes = []string{mode}
	default:
		return fmt.Errorf("--mode must be open, closed or both, not %q", mode)
	}
	switch {
	case fs.NArg() > 1:
		return fmt.Errorf("one base URL, and flags before it; got %q", fs.Args())
	case !(o.rate >= 1 && o.rate <= maxRate):
		return fmt.Errorf("--rate must be from 1 to %d, not %g", maxRate, o.rate)
	case o.connections < 1 || o.connections > maxConnections:
		return fmt.Errorf("--connections must be from 1 to %d, not %d", maxConnections, o.connections)
	case o.duration < 100*time.Millisecond || o.duration > maxDuration:
		return fmt.Errorf("--duration must be from 100ms to %s, not %s", maxDuration, o.duration)
	case o.warmup < 0 || o.warmup > time.Minute:
		return fmt.Errorf("--warmup must be from 0s to 1m, not %s", o.warmup)
	case timeout < 10*time.Millisecond || timeout > time.Minute:
		return fmt.Errorf("--timeout must be from 10ms to 1m, not %s", timeout)
	case !(o.threshold >= 0.01 && o.threshold <= 10):
		return fmt.Errorf("--threshold must be from 0.01 to 10, not %g", o.threshold)
	case o.pid < 0:
		return fmt.Errorf("--pid must be a process id, not %d", o.pid)
	case strings.ContainsAny(o.key, "\r\n"):
		return errors.New("--key must be one line")
	case !o.target.local() && !remote && o.from == "":
		return fmt.Errorf("%s is not this machine: a load there needs its owner's consent, and --remote", o.target.address)
	}
	return nil
}

// measure runs every chosen workload in every mode.
func measure(ctx context.Context, o *options, progress io.Writer) (*report, error) {
	if o.quiet {
		progress = io.Discard
	}
	r := newReport(o.target.base)
	d := &discovery{ctx: ctx, target: o.target, key: o.key}
	for _, w := range o.workloads {
		requests, err := w.requests(d)
		if err == nil {
			err = d.check(requests)
		}
		if errors.Is(err, errSkip) {
			r.Skipped = append(r.Skipped, w.name+": "+err.Error())
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.name, err)
		}
		for _, mode := range o.modes {
			out, err := o.measureOne(ctx, w, mode, requests, progress)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
			r.Outcomes = append(r.Outcomes, out)
			if ctx.Err() != nil {
				r.Skipped = append(r.Skipped, "interrupted")
				return r, nil
			}
		}
	}
	return r, nil
}

func (o *options) measureOne(ctx context.Context, w workload, mode string, requests []request, progress io.Writer) (outcome, error) {
	p := plan{connections: o.connections, duration: o.duration, warmup: o.warmup, samples: w.refreshes}
	if mode == "open" {
		p.rate = o.rate
	}
	p.progress = func(elapsed time.Duration, so *tally, connections int) {
		l := summarize(so.latency)
		failed := int64(0)
		for _, n := range so.errors {
			failed += n
		}
		fmt.Fprintf(progress, "%-12s %-6s %3.0f s  %9d requests  %7.0f/s  p50 %6.0f µs  p99 %6.0f µs  %d errors\n", w.name, mode,
			elapsed.Seconds(), so.latency.TotalCount(), float64(so.latency.TotalCount())/elapsed.Seconds(), l.P50, l.P99, failed)
	}
	var before, used usage
	var err error
	if o.pid != 0 {
		p.started = func() error { before, err = usageOf(o.pid); return err }
	}
	t, took, err := load(ctx, o.target, requests, p)
	if err != nil {
		return outcome{}, err
	}
	if o.pid != 0 {
		after, err := usageOf(o.pid)
		if err != nil {
			return outcome{}, err
		}
		used = after.since(before)
	}
	return newOutcome(w, p, t, took, used), nil
}

// deliver prints and writes the report, and compares it.
func (o *options) deliver(r *report, stdout io.Writer) error {
	if err := r.table(stdout); err != nil {
		return err
	}
	if o.json != "" {
		if err := writeJSON(o.json, r); err != nil {
			return err
		}
	}
	if o.html != "" {
		if err := r.writeHTML(o.html); err != nil {
			return err
		}
	}
	if o.compare == "" {
		return nil
	}
	old, err := readReport(o.compare)
	if err != nil {
		return err
	}
	changes := compare(old, r, o.threshold)
	if len(changes) == 0 {
		return errors.New("the two reports have no workload with the same mode, rate and connections in common")
	}
	n, err := printChanges(stdout, changes, o.threshold)
	if err == nil && n > 0 {
		err = errRegression
	}
	return err
}
