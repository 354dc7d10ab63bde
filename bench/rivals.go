package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"
)

// Help implements kong's interface.
func (*rivalsCommand) Help() string {
	return `Starts strikecache with a market that stands still, and beside it a bare epoll loop, net/http, and nginx,
lighttpd, haproxy and varnish where they are installed, all on one core. Each serves the same four answers, byte for
byte, to a generator on another core, in interleaved rounds. What is compared is the server's CPU time per request.

Then strikecache refreshes its whole option chain every few seconds at half of saturation, and p99.9 during a refresh
is set against p99.9 between refreshes: once with the server on one core and once on two.

Installs nothing, listens on loopback only, needs Linux and two cores, and takes some minutes.`
}

// rivalsCommand measures strikecache beside other servers, and during its refreshes.
type rivalsCommand struct {
	Binary        string        `placeholder:"FILE" help:"Measure this strikecache instead of one that is built from the working tree."`
	Out           string        `placeholder:"FILE" help:"Write all results to this file, as JSON."`
	WriteReadme   string        `placeholder:"FILE" help:"Put the tables between the markers of this file."`
	Rounds        int           `default:"5" help:"Interleaved rounds, 0 to 50 (default ${default}). 0: measure the refreshes only."`
	Duration      time.Duration `default:"1s" help:"CPU time that the bare loop spends on one reading, from which the number of requests follows, 50ms to 30s (default ${default})."`
	ServerCore    int           `default:"0" help:"Core of the servers (default ${default})."`
	GeneratorCore int           `default:"1" help:"Core of the generator (default ${default})."`
	Refreshes     int           `default:"5" help:"Refreshes that are measured on one core and on two, 0 to 100 (default ${default}). 0: measure the ratios only."`
	RefreshEvery  time.Duration `default:"10s" help:"Interval of refreshes, 5s to 1m (default ${default}). A slow machine needs more."`
}

const rivalConnections = 64

// Validate implements kong's interface.
func (c *rivalsCommand) Validate() error {
	cores := runtime.NumCPU()
	switch {
	case c.Rounds < 0 || c.Rounds > 50:
		return fmt.Errorf("--rounds must be from 0 to 50, not %d", c.Rounds)
	case c.Duration < 50*time.Millisecond || c.Duration > 30*time.Second:
		return fmt.Errorf("--duration must be from 50ms to 30s, not %s", c.Duration)
	case c.ServerCore == c.GeneratorCore || min(c.ServerCore, c.GeneratorCore) < 0 || max(c.ServerCore, c.GeneratorCore) >= cores:
		return fmt.Errorf("--server-core and --generator-core must be two different ones of this machine's %d cores, counted from 0", cores)
	case c.Refreshes < 0 || c.Refreshes > 100:
		return fmt.Errorf("--refreshes must be from 0 to 100, not %d", c.Refreshes)
	case c.RefreshEvery < 5*time.Second || c.RefreshEvery > time.Minute:
		return fmt.Errorf("--refresh-every must be from 5s to 1m, not %s", c.RefreshEvery)
	case c.Rounds+c.Refreshes == 0:
		return errors.New("--rounds 0 --refreshes 0 leaves nothing to measure")
	case c.Rounds*c.Refreshes == 0 && c.WriteReadme != "":
		return errors.New("--write-readme needs both --rounds and --refreshes")
	}
	return nil
}

// Run measures, prints and writes the results.
func (c *rivalsCommand) Run(ctx context.Context, stdout io.Writer) error {
	r, err := c.measure(ctx, stdout)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\n%s", r.markdown())
	if c.Out != "" {
		if err := writeJSON(c.Out, r); err != nil {
			return err
		}
	}
	if c.WriteReadme != "" {
		return r.writeReadme(c.WriteReadme)
	}
	return nil
}
