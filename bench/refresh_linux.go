package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// window is a time in which the server refreshed.
type window struct {
	from, to time.Time
	fetch    time.Duration // just before from
	chain    bool          // of the whole option chain
}

// settled is when what queued up during a refresh has drained: until then a request counts neither as during nor as
// between. At half of saturation, a queue drains in as much time as it took to build up.
func (w window) settled() time.Time {
	return w.to.Add(2*w.to.Sub(w.from.Add(-w.fetch)) + 250*time.Millisecond)
}

var (
	refreshedLine = regexp.MustCompile(`^time=(\S+) .*msg=refreshed feed=(\S+)`)
	stepsDuration = regexp.MustCompile(` (fetch|decode|compute|publish|archive)_ms=([0-9.]+)`)
)

// windows reads the server's log: each refresh is one line, written at its end, with the duration of its steps.
func windows(log string) []window {
	var found []window
	for line := range strings.Lines(log) {
		m := refreshedLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, m[1])
		if err != nil {
			continue
		}
		w := window{to: at.Add(time.Millisecond), chain: m[2] == "spx"} // the line's time is cut to milliseconds
		var worked time.Duration
		for _, step := range stepsDuration.FindAllStringSubmatch(line, -1) {
			ms, _ := strconv.ParseFloat(step[2], 64) // digits, by the expression
			d := time.Duration(ms * float64(time.Millisecond))
			if step[1] == "fetch" {
				w.fetch = d
			} else {
				worked += d
			}
		}
		w.from = at.Add(-worked)
		found = append(found, w)
	}
	return found
}

// alternate sets each refresh of the chain against the quiet stretch since the refresh before it.
func alternate(start time.Time, samples []sample, all []window) []alternation {
	var out []alternation
	quietFrom := start
	for _, w := range all {
		if !w.chain || w.from.Before(start) || len(samples) == 0 || w.to.After(start.Add(samples[len(samples)-1].due)) {
			continue
		}
		during, between := newHistogram(), newHistogram()
		for _, s := range samples {
			at := start.Add(s.due)
			switch {
			case !at.Before(w.from) && at.Before(w.to):
				record(during, s.latency)
			case at.After(quietFrom) && at.Before(w.from) && !near(at, all):
				record(between, s.latency)
			}
		}
		quietFrom = w.to
		if during.TotalCount() == 0 || between.TotalCount() < during.TotalCount() {
			continue // a maximum, or nearly one, grows with the count
		}
		a := alternation{WindowMs: float64(w.to.Sub(w.from).Microseconds()) / 1000,
			During: summarize(during).P999, DuringCount: during.TotalCount(),
			Between: summarize(between).P999, BetweenCount: between.TotalCount()}
		a.Ratio = rounded(a.During/a.Between, 2)
		out = append(out, a)
	}
	return out
}

// near says whether an instant lies in any refresh, in its fetch, or just after it. The fetch of the simulated
// market, which writes the document, is work that a real upstream does elsewhere; it counts for neither side.
func near(at time.Time, all []window) bool {
	for _, w := range all {
		if at.After(w.from.Add(-w.fetch)) && at.Before(w.settled()) {
			return true
		}
	}
	return false
}

// felt measures p99.9 during refreshes of the whole chain against p99.9 between them, at half of saturation.
func (o *rivalsOptions) felt(ctx context.Context, b *bench, stdout io.Writer) (*refreshRun, error) {
	p, err := b.serve(ctx, "--gex-every", o.gexEvery.String(), "--quotes-every", "1h", "--flow-every", "1h",
		"--sim-speed", "4") // the simulated upstream writes a chain every 15 seconds of its own
	if err != nil {
		return nil, err
	}
	defer p.stop()
	request := ask(volatility, "gzip", "") // does not change while the chain refreshes
	_, first, _, err := exchange(ctx, b.ours, request)
	if err != nil {
		return nil, err
	}
	h, err := aim(b.ours, o.connections, request, first)
	if err != nil {
		return nil, err
	}
	defer h.close()
	const probe = 100_000
	var best float64
	for range 3 {
		began := time.Now()
		if err := h.closed(probe); err != nil {
			return nil, err
		}
		best = max(best, probe/time.Since(began).Seconds())
	}
	f := &refreshRun{Saturation: rounded(best, 0), Rate: rounded(best/2, 0)}
	fmt.Fprintf(stdout, "saturation %.0f requests a second; refreshing every %s at %.0f\n", f.Saturation, o.gexEvery, f.Rate)
	for turn := 0; len(f.Alternations) < o.alternations; turn++ {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if turn > 4*o.alternations {
			return nil, errors.New("the server's log tells of no refresh of the chain after a stretch as long as itself")
		}
		began, samples, err := h.open(f.Rate, 2*o.gexEvery)
		if err != nil {
			return nil, err
		}
		f.Alternations = append(f.Alternations, alternate(began, samples, windows(p.log.String()))...)
	}
	f.Alternations = f.Alternations[:o.alternations]
	var ratios []float64
	for _, a := range f.Alternations {
		fmt.Fprintf(stdout, "refresh of %.0f ms: p99.9 %.0f µs (n %d), before it %.0f µs (n %d), ratio %.2f\n",
			a.WindowMs, a.During, a.DuringCount, a.Between, a.BetweenCount, a.Ratio)
		ratios = append(ratios, a.Ratio)
	}
	f.MedianRatio = rounded(medianOf(ratios), 2)
	if f.ResidentPeak, err = residentPeak(p.pid()); err != nil {
		return nil, err
	}
	fmt.Fprintf(stdout, "median ratio %.2f; resident peak %d MiB\n", f.MedianRatio, f.ResidentPeak>>20)
	return f, nil
}
