package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// loadCommand loads a running server.
type loadCommand struct {
	URL         string        `arg:"" optional:"" default:"http://127.0.0.1:8080" help:"Server, with or without a path (default ${default}). A strikecache without a path gets a mix of all its resources."`
	Header      []string      `sep:"none" placeholder:"'NAME: VALUE'" help:"Header field of each request. May be repeated."`
	Revalidate  bool          `help:"Send the last ETag of a path as If-None-Match, as polling clients do."`
	Rate        float64       `default:"1000" help:"Requests a second, 0.1 to 200000 (default ${default})."`
	Connections int           `default:"16" help:"Keep-alive connections, 1 to 1000 (default ${default})."`
	Duration    time.Duration `default:"10s" help:"Length of the measurement, 100ms to 10m (default ${default})."`
	Warmup      time.Duration `default:"500ms" help:"Length of the warm-up: the same load before the measurement, not counted, 0s to 1m (default ${default})."`
	Timeout     time.Duration `default:"5s" help:"Longest wait for a response, 10ms to 1m (default ${default})."`
	PID         int           `name:"pid" placeholder:"PID" help:"Server process on this machine whose CPU time is measured, with its child processes (Linux only)."`
	Remote      bool          `help:"Allow a server on another machine. Its operator must have agreed."`

	target *target
	path   string // of the URL
}

// Help implements kong's interface.
func (*loadCommand) Help() string {
	return `Each request is due at an instant that is fixed beforehand, and its latency counts from that instant. So the wait
behind a stall of the server is counted. The report has statuses, percentiles, a time line, and with --pid the CPU time of
the server per request, which includes all other work of the server during the load. ` + limitOfGenerator + `

    go run ./bench http://127.0.0.1:8080                     a strikecache: a mix of all its resources
    go run ./bench http://127.0.0.1:8080/api/v1/gex/spx      one URL
    go run ./bench --header 'Accept-Encoding: br' --revalidate --rate 5000 --duration 1m http://localhost:8080
    go run ./bench rivals --help                             strikecache beside nginx, net/http and others (Linux)`
}

// within checks the value of a flag. NaN is in no range.
func within[T cmp.Ordered](flag string, value, least, most T) error {
	if value >= least && value <= most {
		return nil
	}
	return fmt.Errorf("--%s must be from %v to %v, not %v", flag, least, most, value)
}

// Validate implements kong's interface. It parses the URL and checks the bounds. They are high enough for any one machine,
// and so low that a typing error does no harm.
func (c *loadCommand) Validate() (err error) {
	if c.target, c.path, err = parseTarget(c.URL, c.Timeout); err != nil {
		return err
	}
	if err := cmp.Or(
		within("rate", c.Rate, 0.1, 200_000),
		within("connections", c.Connections, 1, 1000),
		within("duration", c.Duration, 100*time.Millisecond, 10*time.Minute),
		within("warmup", c.Warmup, 0, time.Minute),
		within("timeout", c.Timeout, 10*time.Millisecond, time.Minute),
		within("pid", c.PID, 0, 1<<22),
	); err != nil {
		return err
	}
	switch {
	case !c.target.local() && !c.Remote:
		return fmt.Errorf("%s is not this machine: ask its operator, then add --remote", c.target.base)
	case !c.target.local() && c.PID > 0:
		return errors.New("--pid needs a server on this machine")
	}
	for _, h := range c.Header {
		if name, _, ok := strings.Cut(h, ":"); !ok || name == "" || strings.ContainsAny(name, " \t") || strings.ContainsAny(h, "\r\n") {
			return fmt.Errorf("--header must be NAME: VALUE, not %q", h)
		}
	}
	return nil
}

// Run measures and reports. It returns an error when nothing could be measured.
func (c *loadCommand) Run(ctx context.Context, stdout io.Writer) error {
	requests, about, err := c.choose()
	if err != nil {
		return err
	}
	if c.PID > 0 {
		if _, err := cpuTime(c.PID); err != nil {
			return err
		}
	}
	r := c.load(ctx, requests)
	if r.requests == 0 {
		return errors.New("no request was sent")
	}
	fmt.Fprintf(stdout, "%s, %s\n\n", c.target.base, about)
	return r.print(stdout)
}

// choose returns the requests, and describes them for the report.
func (c *loadCommand) choose() (requests []request, about string, err error) {
	if c.path == "" {
		requests, err := c.target.mix()
		if err != nil {
			return nil, "", err
		}
		for i := range requests {
			requests[i].headers = append(requests[i].headers, c.Header...)
			requests[i].revalidate = requests[i].revalidate || c.Revalidate
		}
		if len(requests) > 0 {
			return requests, fmt.Sprintf("a strikecache: a mix of %d requests for all its resources", len(requests)), nil
		}
	}
	path := cmp.Or(c.path, "/")
	status, _, err := c.target.get(path, c.Header...)
	if err != nil {
		return nil, "", err
	}
	return []request{{path, c.Header, c.Revalidate}}, fmt.Sprintf("GET %s, which answers %d", path, status), nil
}
