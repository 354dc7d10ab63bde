package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// loadCommand loads a running server.
type loadCommand struct {
	URL         string        `arg:"" optional:"" default:"http://127.0.0.1:8080" help:"Server, with or without a path (default ${default}). A strikecache without a path gets a mix of all its resources."`
	Path        []string      `sep:"none" placeholder:"PATH" help:"Path to request, with its query. May be repeated: each request picks one of the paths at random."`
	Header      []string      `sep:"none" placeholder:"'NAME: VALUE'" help:"Header field of each request. May be repeated."`
	Revalidate  bool          `help:"Send the last ETag of a path as If-None-Match, as polling clients do."`
	Mix         string        `enum:"spx,all" default:"spx" help:"Underlyings of the mix for a strikecache without a path: ${enum}, which are those of /api/v1/underlyings (default ${default})."`
	Rates       string        `name:"rate" default:"1000" placeholder:"RATE" help:"Requests a second, 0.1 to 200000 (default ${default}). FROM:TO is a ramp in --steps. 0 is a closed loop: a connection sends its next request when it has the answer to the last."`
	Connections int           `default:"16" help:"Keep-alive connections, 1 to 1000 (default ${default})."`
	Duration    time.Duration `default:"10s" help:"Length of the measurement, 100ms to 10m (default ${default}). A ramp divides it among its steps."`
	Warmup      time.Duration `default:"500ms" help:"Length of the warm-up: the same load before the measurement, not counted, 0s to 1m (default ${default}). Each step of a ramp has its own."`
	Timeout     time.Duration `default:"5s" help:"Longest wait for a response, 10ms to 1m (default ${default})."`
	PID         int           `name:"pid" placeholder:"PID" help:"Server process on this machine whose CPU time is measured, with its child processes (Linux only)."`
	FailIf      []condition   `name:"fail-if" sep:"none" placeholder:"CONDITION" help:"Exit with 1 if this is true at the end, such as p99>5ms, p99.99>=1s, max>2s, mean>1ms, failed>0.1% or rate<1000. May be repeated. Without it, exit with 1 if any request failed."`
	Until       []condition   `sep:"none" placeholder:"CONDITION" help:"End a ramp at the first step for which this is true (default p99>5ms). May be repeated. A step with failed requests or with less than 95 % of its rate ends it, too."`
	Steps       int           `default:"10" help:"Steps of a ramp, 2 to 100 (default ${default}). Each rate is the same multiple of the one before."`
	JSON        string        `name:"json" placeholder:"FILE" help:"Also write the report to this file, as JSON. \"bench schema\" prints its JSON Schema."`
	HDR         string        `name:"hdr" placeholder:"FILE" help:"Also write the percentiles of the latency since due to this file, in milliseconds, in HdrHistogram's text format (.hgrm)."`
	Remote      bool          `help:"Allow a server on another machine. Its operator must have agreed."`

	Rate     float64 `kong:"-"` // of Rates
	most     float64 // rate of the last step of a ramp, 0 without a ramp
	target   *target
	path     string    // of the URL
	terminal io.Writer // gets the progress; nil: none
}

// Help implements kong's interface.
func (*loadCommand) Help() string {
	return `Each request is due at an instant that is fixed beforehand, and its latency counts from that instant. So the wait
behind a stall of the server is counted (an open model). With --rate 0 the load is a closed loop, as of wrk and ab: it shows
how much --connections clients get that do not wait between requests, and hides such stalls. The report has statuses, percentiles, figures of each path, a time line, and with
--pid the CPU time of the server per request, which includes all other work of the server during the load. The generator
uses one core. It measures its own delays and its CPU time, and says "inconclusive" when it was the limit itself.

Exit codes: 0, 1 (a condition of --fail-if is true, or without --fail-if a request failed, or no step of a ramp held, or
nothing could be measured), 2 (wrong arguments) and 3 (inconclusive: a condition on latencies or the rate is true, or no step
of a ramp held, but the generator was the limit).

    go run ./bench http://127.0.0.1:8080                     a strikecache: a mix of all its resources, of SPX
    go run ./bench --mix all http://127.0.0.1:8080           of all underlyings
    go run ./bench --rate 0 --connections 64 http://[::1]/   a closed loop
    go run ./bench http://127.0.0.1:8080/api/v1/gex/spx      one URL
    go run ./bench --path / --path /style.css http://[::1]   several paths of any server
    go run ./bench --header 'Accept-Encoding: br' --revalidate --rate 5000 --duration 1m http://localhost:8080
    go run ./bench --fail-if 'p99>5ms' --fail-if 'failed>0' http://localhost:8080/
    go run ./bench --rate 1000:50000 --until 'p99>5ms' --duration 20s http://localhost:8080/
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
		c.parseRate(),
		within("steps", c.Steps, 2, 100),
		within("connections", c.Connections, 1, 1000),
		within("duration", c.Duration, 100*time.Millisecond, 10*time.Minute),
		within("warmup", c.Warmup, 0, time.Minute),
		within("timeout", c.Timeout, 10*time.Millisecond, time.Minute),
		within("pid", c.PID, 0, 1<<22),
	); err != nil {
		return err
	}
	switch {
	case c.Mix == "all" && (c.path != "" || len(c.Path) > 0):
		return errors.New("--mix all needs a strikecache without a path")
	case c.path != "" && len(c.Path) > 0:
		return fmt.Errorf("--path needs a URL without a path, not %s", c.URL)
	case !c.target.local() && !c.Remote:
		return fmt.Errorf("%s is not this machine: ask its operator, then add --remote", c.target.base)
	case !c.target.local() && c.PID > 0:
		return errors.New("--pid needs a server on this machine")
	}
	for _, p := range c.Path {
		if !strings.HasPrefix(p, "/") || strings.ContainsAny(p, " \t\r\n#") {
			return fmt.Errorf("--path must begin with / and must not contain a blank or #, not %q", p)
		}
	}
	for _, h := range c.Header {
		if name, _, ok := strings.Cut(h, ":"); !ok || name == "" || strings.ContainsAny(name, " \t") || strings.ContainsAny(h, "\r\n") {
			return fmt.Errorf("--header must be NAME: VALUE, not %q", h)
		}
	}
	return nil
}

// parseRate sets Rate and most.
func (c *loadCommand) parseRate() (err error) {
	from, to, isRamp := strings.Cut(c.Rates, ":")
	switch {
	case !isRamp && len(c.Until) > 0:
		return errors.New("--until needs a ramp, such as --rate 1000:50000")
	case len(c.Until) == 0:
		c.Until = []condition{{figure: "p99", percentile: 99, operator: ">", bound: 5000, text: "5 ms"}}
	}
	if c.Rate, err = strconv.ParseFloat(from, 64); err == nil && isRamp {
		c.most, err = strconv.ParseFloat(to, 64)
	}
	if err != nil {
		return fmt.Errorf("--rate must be a number or FROM:TO, not %q", c.Rates)
	}
	if c.Rate == 0 && !isRamp {
		return nil
	}
	if err = within("rate", c.Rate, 0.1, 200_000); err == nil && isRamp {
		err = within("rate", c.most, c.Rate, 200_000)
	}
	return err
}

// Run measures and reports. It returns an error when nothing could be measured, and when the verdict is bad.
func (c *loadCommand) Run(ctx context.Context, stdout io.Writer) error {
	requests, about, err := c.choose()
	if err != nil {
		return err
	}
	if _, err := cpuTime(c.PID); err != nil {
		return err
	}
	measure := c.load
	if c.most > 0 {
		measure = c.climb
	}
	r := measure(ctx, requests)
	if c.terminal != nil {
		_, _ = io.WriteString(c.terminal, "\r\x1b[K") // removes the last line of the progress
	}
	if r.Requests == 0 {
		return errors.New("no request was sent")
	}
	r.About = about
	if err := r.print(stdout); err != nil {
		return err
	}
	if c.JSON != "" {
		err = writeJSON(c.JSON, r)
	}
	if c.HDR != "" {
		err = errors.Join(err, r.writeHDR(c.HDR))
	}
	if ctx.Err() != nil {
		err = errors.Join(err, errors.New("interrupted: the report ends there"))
	}
	return errors.Join(err, c.verdict(r))
}

// choose returns the requests, and describes them for the report.
func (c *loadCommand) choose() (requests []request, about string, err error) {
	paths := c.Path
	if c.path != "" {
		paths = []string{c.path}
	}
	if len(paths) == 0 {
		var underlyings []string
		if requests, underlyings, err = c.target.mix(c.Mix); err != nil {
			return nil, "", err
		}
		about = fmt.Sprintf("a strikecache: a mix of %d requests for all its resources, of %s", len(requests), strings.Join(underlyings, ", "))
		paths = []string{"/"}
	}
	if len(requests) == 0 {
		about = "GET " + strings.Join(paths, ", ")
		for _, path := range paths {
			status, _, err := c.target.get(path, c.Header...)
			if err != nil {
				return nil, "", err
			}
			if status != http.StatusOK {
				about += fmt.Sprintf("; %s answers %d", path, status)
			}
			requests = append(requests, request{path: path, name: path})
		}
	}
	for i := range requests {
		requests[i].headers = append(requests[i].headers, c.Header...)
		requests[i].revalidate = requests[i].revalidate || c.Revalidate
	}
	return requests, about, nil
}
