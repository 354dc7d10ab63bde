// Command strikecache is an edge cache for options market structure. It fetches upstream documents on a schedule, computes
// every answer before a client asks, seals each answer as the bytes that clients receive, and serves those bytes.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"strikecache/refresh"
	"strikecache/refresh/fleet"
	"strikecache/server"
	"strikecache/server/admin"
	"strikecache/server/keys"
	"strikecache/server/limits"
	"strikecache/server/lines"
	"strikecache/server/loop"
	"strikecache/server/mcp"
	"strikecache/server/watch"
	"strikecache/snapshots"
)

func main() {
	log, code := lines.New(os.Stderr), 0
	if err := run(untilSignal(), os.Args[1:], os.Stdout, os.Stderr, log); err != nil {
		fmt.Fprintln(log, "strikecache:", err)
		code = 1
		if outcome, is := errors.AsType[*refresh.Outcome](err); is {
			code = outcome.ExitCode()
		}
	}
	log.Close()
	os.Exit(code)
}

// longestStop bounds the time from the first signal to the end: the server takes at most 10 s, refreshes 30 s, the log 3 s. It also ends a
// process whose disk does not answer at the start.
const longestStop = 45 * time.Second

// untilSignal returns a context that ends at the first SIGINT or SIGTERM. The second signal ends the process at once.
func untilSignal() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Reset(os.Interrupt, syscall.SIGTERM) // before anyone can see that the context has ended
		cancel()
		time.AfterFunc(longestStop, func() { os.Exit(1) })
	}()
	return ctx
}

const about = `An edge cache for options market structure.

strikecache fetches delayed option chains, quotes and VIX futures settlements. From these documents it computes dealer gamma exposure, max
pain, unusual flow, sector rotation and the VIX curve. It prepares every answer as the bytes that clients receive, and serves these bytes.
"strikecache serve" without flags serves a simulated market. Then meta.source of every answer is "simulated".

Each flag has an environment variable, which its help names. When both are set, the flag counts. Empty is unset, but for --admin-listen.`

type commands struct {
	Serve     serveCommand             `cmd:"" help:"Refresh the answers and serve them until SIGINT or SIGTERM."`
	Keys      keys.Commands            `cmd:"" help:"Create, list and revoke API keys."`
	Verify    verifyCommand            `cmd:"" help:"Check every stored file and name the bad files. With --ready, ask a running server whether it is ready, with --wait until it is. Exit code 1: a file is bad, or the server is not ready."`
	Recompute refresh.RecomputeCommand `cmd:"" help:"Compute a stored UTC date again from its documents. Exit code 1: an answer differs, or nothing is stored. Exit code 3: an answer cannot be compared, because its method has changed or its documents are gone. A stored date keeps the method by which it was computed."`
	Check     refresh.CheckCommand     `cmd:"" help:"Say of upstream documents in files whether a server would accept them, what it would use and what it would skip. Needs no server. Exit code 1: a file would be refused."`
	MCP       mcpCommand               `cmd:"" name:"mcp" help:"Offer the answers of a running server to a language model, as a Model Context Protocol server on standard input and output, or over HTTP."`
	Version   versionCommand           `cmd:"" help:"Print the version."`
}

// run parses the arguments and runs the selected command. It returns when the command is done, or soon after ctx ends. A command that
// runs until it is told to end writes log, and no stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer, log *lines.Writer) error {
	var c commands
	parser, err := kong.New(&c, kong.Name("strikecache"), kong.Description(about), kong.DefaultEnvars("STRIKECACHE"),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}), kong.Writers(stdout, stderr), kong.Vars(refresh.FlagVars()))
	if err == nil {
		err = checkVariables(parser.Model.Node)
	}
	if err != nil {
		return err
	}
	first := append(args, "")[0]
	if word := map[string]string{"": "--help", "help": "--help", "--version": "version"}[first]; word != "" {
		args = append(args[min(1, len(args)):], word)
	}
	selected, err := parser.Parse(args)
	if wrong, is := errors.AsType[*kong.ParseError](err); is {
		return fmt.Errorf("%w; see %s --help", err, cmp.Or(wrong.Context.Selected(), parser.Model.Node).FullPath())
	}
	selected.BindTo(ctx, (*context.Context)(nil))
	selected.BindTo(stdout, (*io.Writer)(nil))
	return selected.Run(&c.Keys, keys.Streams{Out: stdout, Err: stderr}, log)
}

// serviceLink matches the variables that Kubernetes makes for a Service, and Docker for a linked container, named strikecache or strikecache-….
var serviceLink = regexp.MustCompile(`^STRIKECACHE_(\w+_)?((SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)=|PORT=(tcp|udp|sctp)://|NAME=/|ENV_)`)

// checkVariables returns an error if a variable of the environment begins with STRIKECACHE_ and is not known. It takes off the line end that a Secret
// may have, and unsets variables without a value, as templates make them: only --admin-listen has an empty one. model is the parsed command line.
func checkVariables(model *kong.Node) error {
	known := []string{"STRIKECACHE_REQUIRE", "STRIKECACHE_FULL"} // of the tests
	_ = kong.Visit(model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			known = append(known, flag.Envs...)
		}
		return next(nil)
	})
	for _, v := range os.Environ() {
		switch name, value, _ := strings.Cut(strings.TrimSpace(v), "="); {
		case !strings.HasPrefix(name, "STRIKECACHE_"):
		case !slices.Contains(known, name) && !serviceLink.MatchString(v):
			return fmt.Errorf("environment variable %s is not known; the --help of each command lists its variables", name)
		case value != "" || name == "STRIKECACHE_ADMIN_LISTEN":
			_ = os.Setenv(name, value)
		default:
			_ = os.Unsetenv(name)
		}
	}
	return nil
}

type versionCommand struct{}

func (versionCommand) Run(out keys.Streams) error {
	_, err := fmt.Fprintf(out.Out, "strikecache %s %s %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// release is the version that make release gives to its binaries.
var release string

// version returns the version of a release, or else of the module. In a development build it contains the commit.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && release == "" {
		return info.Main.Version
	}
	return cmp.Or(release, "(devel)")
}

type mcpCommand struct {
	mcp.Flags `embed:""`
}

func (c mcpCommand) Run(ctx context.Context, to keys.Streams, log *lines.Writer) error {
	return c.Serve(ctx, version(), os.Stdin, to.Out, log.Outlive())
}

type verifyCommand struct {
	DataDir           string `help:"Directory of the stored files." default:"./data" type:"path"`
	server.ReadyFlags `embed:""`
}

func (c verifyCommand) Run(ctx context.Context, out keys.Streams) error {
	if c.Ready != "" {
		return c.AskReady(ctx, out.Out)
	}
	files, bad, err := snapshots.Verify(c.DataDir)
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	for _, b := range bad {
		fmt.Fprintf(out.Out, "%s: %v\n", b.Path, b.Err)
	}
	fmt.Fprintf(out.Out, "%d files, %d bad\n", files, len(bad))
	if len(bad) > 0 {
		return fmt.Errorf("verify: %d of %d files are bad", len(bad), files)
	}
	return nil
}

type serveCommand struct {
	Listen         []string      `help:"Public addresses; IPv6 as [::1]:8080, a Unix socket as unix:/path, which its group may use and which counts as a trusted proxy. A socket that systemd passes replaces the first." default:"127.0.0.1:8080"`
	DataDir        string        `help:"Directory of the stored files. Each source has its own subdirectory." default:"./data" type:"path"`
	AdminListen    string        `help:"Address for the operator: metrics, profiles and probes. Empty: off." default:"127.0.0.1:9090"`
	MaxConnections int           `help:"Largest number of open connections, at most the limit of open files minus 128. A quarter of them may be from one address (IPv6: /64) that is no trusted proxy and not of this machine. Further connections are refused." default:"10000"`
	IdleTimeout    time.Duration `help:"How long a connection may wait for its next request, 1s to 1h. It must be longer than that of a load balancer in front: Google's keeps connections for 600s and needs 620s." default:"75s"`

	Engine string `help:"What serves connections: ${enum}. \"loop\" is an epoll loop per core. With TLS, and on systems other than Linux, it is always fasthttp." enum:"loop,fasthttp" default:"loop"`

	AnonymousRate  int      `help:"Requests a minute for each client address without a key. IPv6 addresses are counted by /64. 0: no limit." default:"0" group:"Access"`
	TrustedProxies []string `help:"Addresses and prefixes of trusted proxies: their X-Forwarded-For header names the client." placeholder:"ADDR" group:"Access"`

	TLS           server.TLSFlags `embed:"" prefix:"tls-"`
	refresh.Flags `embed:""`

	LogFormat string `help:"Format of the log: ${enum}." enum:"text,json" default:"text" group:"Log"`
	LogLevel  string `help:"Lowest level that is logged: ${enum}." enum:"debug,info,warn,error" default:"info" group:"Log"`

	proxies limits.Proxies // of TrustedProxies; Validate sets them
}

// Validate is called by the parser. Its errors name the flag and the values that are allowed.
func (c *serveCommand) Validate() (err error) {
	if err = errors.Join(c.Flags.Validate(), c.TLS.Check()); err != nil {
		return err
	}
	switch {
	case len(c.Listen) == 0:
		return errors.New("--listen must name an address")
	case c.IdleTimeout < time.Second || c.IdleTimeout > time.Hour:
		return fmt.Errorf("--idle-timeout must be from 1s to 1h, not %s", c.IdleTimeout)
	case c.MaxConnections < 1 || c.MaxConnections > 1_000_000:
		return fmt.Errorf("--max-connections must be from 1 to 1000000, not %d", c.MaxConnections)
	case c.AnonymousRate < 0 || c.AnonymousRate > limits.MaxPerMinute:
		return fmt.Errorf("--anonymous-rate must be from 0 to %d, not %d", limits.MaxPerMinute, c.AnonymousRate)
	}
	if c.proxies, err = limits.ParseProxies(strings.Join(c.TrustedProxies, ",")); err != nil {
		return fmt.Errorf("--trusted-proxies: %w", err)
	}
	return nil
}

// gcPercent makes the garbage collector run when the heap has grown by 20 %, not by 100 %, to keep the memory low.
// Measured (2026-11): with 20 a refresh takes 122 ms of CPU, with 40 109 ms, but the most memory, while history is played, is 27 MB less.
const gcPercent = 20

// Run opens everything that can fail, starts the refresher and the servers, waits until ctx ends, and stops them in reverse
// order.
func (c *serveCommand) Run(ctx context.Context, out *lines.Writer) (err error) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	log := out.Outlive().Logger(c.logHandler)
	pair, err := c.TLS.Open(log)
	if err != nil {
		return err
	}
	defer pair.Close()
	var listeners []loop.Listener
	for _, address := range c.Listen {
		ln, err := loop.Listen(address)
		if err != nil {
			return fmt.Errorf("--listen: %w", err)
		}
		defer func() { _ = ln.Close() }() // Serve also closes it, but Run may return before Serve
		listeners = append(listeners, ln)
	}
	refreshes := admin.NewRefreshes()
	refresher, err := c.Flags.Open(c.DataDir, log, refreshes.Observe)
	if err != nil {
		return err
	}
	refreshes.Expect(refresher.Observable())
	stopRefreshing := refresher.Close
	defer func() {
		if err = errors.Join(err, stopRefreshing()); err == nil {
			log.Info("stopped")
		}
	}()
	counts := keys.OpenCounts(filepath.Join(c.DataDir, c.Name(), "usage.json"), log)
	table, err := keys.Open(keys.File(c.DataDir), counts, log)
	if err != nil {
		return err
	}
	ready := func() server.Readiness {
		r := readiness(refresher)
		r.Impaired("keys", table.Err())
		r.Impaired("usage", counts.Err())
		r.Impaired("tls", pair.Err())
		r.Impaired("log", out.Err())
		return r
	}
	cfg := server.Config{
		Finder: refresher.Store(), Source: c.Name(), Underlyings: c.Underlyings, Now: refresher.Now, NextChange: refresher.NextChange, Readiness: ready, Log: log,
		Fleet: refresher.Fleet() != nil, MaxConnections: c.MaxConnections, IdleTimeout: c.IdleTimeout, Engine: c.Engine, TLS: pair.Config(), Keys: table, Proxies: c.proxies,
	}
	if member := refresher.Fleet(); member != nil {
		cfg.Complete = member.Complete
	}
	if c.AnonymousRate > 0 {
		cfg.Addresses = limits.NewAddresses(c.AnonymousRate)
	}
	web := server.New(cfg)
	operator, err := admin.Open(c.AdminListen, admin.Config{
		Sources: admin.Sources{
			Version: version(), Now: refresher.Now, Current: refresher.Store().Current, Readiness: ready, Resources: web.Resources(),
			Refreshes: refreshes, Fleet: fleetStatus(refresher.Fleet()), Store: refresher.Store().Stats, CertificateExpires: pair.Expires, Server: web.Stats, LogLinesLost: out.Lost,
		},
		Healthz: web.Healthz, Readyz: web.Readyz, Log: log,
	})
	if err != nil {
		return err
	}
	defer operator.Close()
	watch.AtHangup(log, table, pair)
	c.announce(log, refresher.Now(), listeners)
	stopRefreshing = refresher.Start(ctx, table.Close, counts.Close)
	return serveUntil(ctx, web, listeners, log)
}

func (c *serveCommand) logHandler(w io.Writer) slog.Handler {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.LogLevel)) // the parser has checked it
	options := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.NewJSONHandler(w, options)
	}
	return slog.NewTextHandler(w, options)
}

// shutdownLimit is how long requests under way may take after the first signal.
const shutdownLimit = 10 * time.Second

// serveUntil serves until ctx ends, tells the service manager when the server is ready and when it stops, and waits up to
// [shutdownLimit] for the requests under way.
func serveUntil(ctx context.Context, web *server.Server, listeners []loop.Listener, log *slog.Logger) error {
	served := make(chan error, 1)
	go func() { served <- web.Serve(listeners...) }()
	server.Notify("READY=1\nSTATUS=serving on "+listeners[0].Addr().String(), log) // resources may still lack answers, see /readyz
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	server.Notify("STOPPING=1", log)
	log.Info("stopping", "limit", shutdownLimit)
	limit, cancel := context.WithTimeout(context.Background(), shutdownLimit)
	defer cancel()
	return web.Shutdown(limit)
}

// readiness returns the resources that the source cannot feed, the resources that wait for their first answer and why, and whether
// the disk or the clock is impaired.
func readiness(refresher *refresh.Refresher) (out server.Readiness) {
	offers := refresher.Offers()
	for _, name := range slices.Sorted(slices.Values(refresher.Resources())) {
		if answered, offered := offers[name]; !offered {
			out.Unfed = append(out.Unfed, name)
		} else if !answered {
			out.Waiting = append(out.Waiting, name)
			if reason := refresher.LastFailure(name); reason != "" {
				out.Failures = append(out.Failures, server.Failure{Resource: name, Reason: reason})
			}
		}
	}
	out.History = refresher.History()
	out.Impaired("disk", refresher.Store().DiskError())
	out.Impaired("clock", refresher.ClockError())
	out.Impaired("refresh", refresher.Stuck())
	if member := refresher.Fleet(); member != nil {
		s := member.Status()
		out.Role = s.Role
		if s.Err != nil || !s.Connected || !s.SilentSince.IsZero() { // the answers may be older than those of the fleet
			out.Degraded = append(out.Degraded, "fleet")
		}
	}
	return out
}

// fleetStatus returns the source of the metrics of a member, nil for a process outside a fleet.
func fleetStatus(member *fleet.Member) func() admin.Fleet {
	if member == nil {
		return nil
	}
	return func() admin.Fleet {
		s := member.Status()
		return admin.Fleet{
			Role: s.Role, Connected: s.Connected, Lease: s.Lease, SilentSince: s.SilentSince, Lag: s.Lag,
			Put: s.Put, Applied: s.Applied, Refused: s.Refused, Reconnects: s.Reconnects,
		}
	}
}

// announce logs the listeners, the source and the version, and a warning if the market is simulated.
func (c *serveCommand) announce(log *slog.Logger, now time.Time, listeners []loop.Listener) {
	if _, passed := listeners[0].(loop.Passed); passed {
		log.Info("public socket passed by the service manager: the first address of --listen has no effect", "listen", c.Listen[0])
	}
	schemes := map[string]string{"tcp": "http://", "unix": "unix:"}
	if c.TLS.Cert != "" {
		schemes["tcp"] = "https://"
	}
	for _, ln := range listeners {
		log.Info("serving", "address", schemes[ln.Addr().Network()]+ln.Addr().String(), "source", c.Name(), "market_time", now.Format(time.RFC3339), "version", version())
	}
	switch {
	case c.Source != "simulated":
	case c.Fleet.Edge: // its market is that of the refresher
		log.Warn("THE MARKET IS SIMULATED: no number served is real")
	default:
		log.Warn("THE MARKET IS SIMULATED: no number served is real", "seed", c.SimSeed, "speed", c.SimSpeed)
	}
}
