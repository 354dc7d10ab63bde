// Command varnish checks strikecache behind Varnish as its CDN: what a refresh costs the origin, that no request
// fails, and that no answer to a key reaches a client without one, or the other way round.
//
// It builds strikecache, serves the simulated market on a loopback port with every request logged, and starts
// varnishd with its built-in VCL in front. The steady phase sends the requests over at least one refresh, the
// conditional phase revalidates the current document, and the last phase sends some more to a varnishd with its own
// parameters, under which it unzips for clients that cannot. The exit status is 1 when anything is not as it should
// be, and 0 with a message where varnishd is missing, unless STRIKECACHE_REQUIRE lists varnish.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

var (
	errUsage   = errors.New("usage")
	errMissing = errors.New("varnishd is not installed")
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return
	case errors.Is(err, errMissing) && !required(os.Getenv("STRIKECACHE_REQUIRE")):
		fmt.Println("skipped:", err)
		return
	}
	fmt.Fprintln(os.Stderr, "varnish:", err)
	if errors.Is(err, errUsage) {
		os.Exit(2)
	}
	os.Exit(1)
}

// required says whether a list of what must not be skipped has varnish.
func required(list string) bool {
	names := strings.Split(list, ",")
	return slices.Contains(names, "varnish") || slices.Contains(names, "all")
}

// options is how much the steady phase sends, and for how long.
type options struct {
	requests int
	length   time.Duration
}

// The least length has a whole max-age of the document and what a scheduled refresh takes.
const (
	minRequests, maxRequests = 400, 200_000
	minSeconds, maxSeconds   = 28, 300
)

func parse(args []string, stderr io.Writer) (options, error) {
	flags := flag.NewFlagSet("varnish", flag.ContinueOnError)
	flags.SetOutput(stderr)
	requests := flags.Int("requests", 20_000, fmt.Sprintf("requests of the steady phase, %d to %d", minRequests, maxRequests))
	seconds := flags.Int("seconds", 32, fmt.Sprintf("length of the steady phase, %d to %d", minSeconds, maxSeconds))
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return options{}, err
		}
		return options{}, fmt.Errorf("%w: %w", errUsage, err)
	}
	switch {
	case flags.NArg() > 0:
		return options{}, fmt.Errorf("%w: %q is not understood; see --help", errUsage, flags.Arg(0))
	case *requests < minRequests || *requests > maxRequests:
		return options{}, fmt.Errorf("%w: --requests must be from %d to %d, not %d", errUsage, minRequests, maxRequests, *requests)
	case *seconds < minSeconds || *seconds > maxSeconds:
		return options{}, fmt.Errorf("%w: --seconds must be from %d to %d, not %d", errUsage, minSeconds, maxSeconds, *seconds)
	}
	return options{*requests, time.Duration(*seconds) * time.Second}, nil
}

// findVarnish returns the path of varnishd, which Debian keeps out of the search path of most users.
func findVarnish() (string, error) {
	for _, name := range []string{"varnishd", "/usr/sbin/varnishd"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errMissing
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	varnishd, err := findVarnish()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "strikecache-varnish-")
	if err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithTimeout(ctx, o.length+8*time.Minute)
	defer cancel()

	origin, err := startOrigin(ctx, dir)
	if err != nil {
		return err
	}
	defer origin.stop()
	fmt.Fprintf(stdout, "%s in front of %s\n", version(ctx, varnishd), origin.version)

	b := &bench{out: stdout, dir: dir, varnishd: varnishd, origin: origin}
	if err := b.plain(ctx, o); err != nil {
		return err
	}
	if err := b.defaults(ctx); err != nil {
		return err
	}
	if len(b.problems) > 0 {
		return fmt.Errorf("%d problems:\n  %s", len(b.problems), strings.Join(b.problems, "\n  "))
	}
	fmt.Fprintln(stdout, "ok")
	return nil
}

// version returns what varnishd calls itself, such as varnish-7.1.1.
func version(ctx context.Context, varnishd string) string {
	out, _ := exec.CommandContext(ctx, varnishd, "-V").CombinedOutput()
	_, rest, _ := strings.Cut(string(out), "(")
	name, _, _ := strings.Cut(rest, " ")
	if name == "" {
		return "varnish of unknown version"
	}
	return name
}
